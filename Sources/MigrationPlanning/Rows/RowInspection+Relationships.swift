// Required to-ones that rows leave empty. Core Data refuses such a store ("Validation error missing attribute values on
// mandatory destination relationship"; docs/formats/migration-semantics.md, "Validation").

import Diagnostics
import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite

extension RowInspection {
  /// To-ones that a hop adds as required or makes required, where objects of the store have no target.
  mutating func checkRequiredRelationships() throws(SQLiteError) {
    var checks: [(version: Int, entity: Entity, source: (stored: String, before: String), count: Int64)] = []
    forEachLiveEntity { _, version, entity, source, count in checks.append((version, entity, source, count)) }
    for check in checks {
      let model = migrationPath.models[check.version]
      let mapping = migrationPath.mappings[check.version - 1].mapping(toDestination: check.entity.name)
      for (name, relationship) in model.allRelationships(of: check.entity).sorted(by: { $0.key < $1.key })
      where !relationship.isOptional && !relationship.isToMany && !relationship.isTransient {
        let source = mapping?.relationships.first { $0.destination == name }?.source
        if let source, wasRequired(source, before: check.version) { continue }
        let empty = try rowsWithout(name, of: check.entity.name, stored: check.source.stored, at: check.version)
        guard empty.count > 0 else { continue }
        let rows = "\(empty.count) row\(empty.count == 1 ? " has" : "s have")"
        add(
          HopdError(
            .missingRequiredValue,
            "the relationship \(source == nil ? "is new and required" : "becomes required"), and \(rows) no object in "
              + "it (Core Data would fail with 134110)",
            at: Place(hop: hop(check.version), entity: check.entity.name, property: name, row: empty.first),
            hint: "make the relationship optional in the model, fill it with a mapping model for this hop, or say what "
              + "becomes of these rows: `invalid_rows` (hopctl: --invalid-rows)"))
      }
    }
  }

  /// Did the version before demand the same of every object? Then gaps are carried, as Core Data carries them.
  private func wasRequired(_ source: RelationshipMapping.SourcePairs, before version: Int) -> Bool {
    let model = migrationPath.models[version - 1]
    guard !source.isInverted,
      let relationship = model.entity(named: source.entity).flatMap({
        model.allRelationships(of: $0)[source.relationship]
      })
    else { return false }
    return !relationship.isOptional && !relationship.isToMany
  }

  /// How many objects of a stored entity have no object in a relationship of version `version`, and the first of them.
  private func rowsWithout(
    _ relationship: String, of entity: String, stored: String, at version: Int
  ) throws(SQLiteError) -> (count: Int64, first: Int64?) {
    let schema = migrationPath.sourceSchema
    guard let number = schema.number(of: stored), let table = schema.table(of: stored)?.name else { return (0, nil) }
    var condition = ""
    if let origin = migrationPath.origin(ofRelationship: relationship, in: entity, at: version) {
      guard var pairs = schema.pairs(ofRelationship: origin.relationship, in: origin.entity) else { return (0, nil) }
      if origin.isInverted { pairs = pairs.inverted }
      let (owner, target) = (SQLiteIdentifier.quoted(pairs.owner), SQLiteIdentifier.quoted(pairs.target))
      // A plain to-one is a column of the row itself.
      condition =
        pairs.row == .owner && pairs.table == table
        ? " AND o.\(target) IS NULL"
        : " AND o.Z_PK NOT IN (SELECT \(owner) FROM \(census.reader.qualified(pairs.table))"
          + " WHERE \(owner) IS NOT NULL AND \(target) IS NOT NULL)"
    }
    return try census.reader.connection.rows(
      "SELECT count(*), min(o.Z_PK) FROM \(census.reader.qualified(table)) AS o WHERE o.Z_ENT = \(number)\(condition)"
    ) { row in (row.integer(at: 0), row.isNull(at: 1) ? nil : row.integer(at: 1)) }.first ?? (0, nil)
  }
}
