// Required to-ones that are empty in rows. Core Data refuses such a store ("Validation error missing attribute values
// on mandatory destination relationship"; docs/formats/migration-semantics.md, "Validation").

import Diagnostics
import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite

extension RowInspection {
  /// Finds objects without a target in to-ones that a hop adds as required or makes required.
  mutating func checkRequiredRelationships() throws(SQLiteError) {
    for live in liveEntities {
      let model = migrationPath.models[live.version]
      for (name, relationship) in model.allRelationships(of: live.entity).sorted(by: { $0.key < $1.key })
      where !relationship.isOptional && !relationship.isToMany && !relationship.isTransient {
        let source = live.mapping.relationships.first { $0.destination == name }?.source
        if let source, wasRequired(source, before: live.version) { continue }
        let empty = try rowsWithout(name, of: live)
        guard empty.count > 0 else { continue }
        let rows = "\(empty.count.grouped) row\(empty.count == 1 ? " has" : "s have")"
        findings.add(
          .missingRequiredValue,
          "the relationship \(source == nil ? "is new and required" : "becomes required"), and \(rows) no object in "
            + "it (Core Data would fail with 134110)",
          at: Place(
            hop: migrationPath.hop(to: live.version), entity: live.entity.name, property: name, row: empty.first),
          hint: "make the relationship optional in the model, fill it with a mapping model for this hop, or choose how "
            + "to handle these rows: `invalid_rows` (hopctl: --invalid-rows)")
      }
    }
  }

  /// Whether the previous version already required an object. Then gaps are carried, as Core Data carries them.
  private func wasRequired(_ source: RelationshipMapping.SourcePairs, before version: Int) -> Bool {
    guard !source.isInverted,
      let relationship = migrationPath.models[version - 1].relationship(source.relationship, of: source.entity)
    else { return false }
    return !relationship.isOptional && !relationship.isToMany
  }

  /// Returns the number of objects with an empty relationship after the hop, and the first of them.
  private func rowsWithout(
    _ relationship: String, of live: LiveEntity
  ) throws(SQLiteError) -> (count: Int64, first: Int64?) {
    guard let number = schema.number(of: live.stored), let table = schema.table(of: live.stored)?.name
    else { return (0, nil) }
    var condition = ""
    if let origin = migrationPath.origin(ofRelationship: relationship, in: live.entity.name, at: live.version) {
      guard var pairs = schema.pairs(ofRelationship: origin.relationship, in: origin.entity) else { return (0, nil) }
      if origin.isInverted { pairs = pairs.inverted }
      let (owner, target) = (SQLiteIdentifier.quoted(pairs.owner), SQLiteIdentifier.quoted(pairs.target))
      // A plain to-one is a column of the row itself.
      condition =
        pairs.row == .owner && pairs.table == table
        ? " AND o.\(target) IS NULL"
        : " AND o.Z_PK NOT IN (SELECT \(owner) FROM \(pairs.source(reader.qualified(pairs.table)))"
          + " WHERE \(owner) IS NOT NULL AND \(target) IS NOT NULL)"
    }
    return try countAndFirst(
      "SELECT count(*), min(o.Z_PK) FROM \(reader.qualified(table)) AS o WHERE o.Z_ENT = \(number)\(condition)")
  }
}
