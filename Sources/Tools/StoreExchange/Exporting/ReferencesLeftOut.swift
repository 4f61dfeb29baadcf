// The references that an export of a part of a store leaves out: they are told, because an empty reference looks like
// one that never was.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite

/// References from exported objects to others of one relationship.
package struct ReferencesLeftOut: Sendable, Hashable {
  /// The relationship, by the entity that declares it.
  package let relationship: PropertyKey
  package let count: Int64
  /// Whether the other objects are not in the store at all.
  package var isDangling = false
  /// The entity of the other objects, if none of them are exported.
  package var unselected: String? = nil

  /// The warning of an export.
  package var warning: HopdError {
    let entity = relationship.entity
    return HopdError(
      .referencesLeftOut,
      "\(count) \(count == 1 ? "reference to an object that is" : "references to objects that are") not "
        + "\(isDangling ? "in the store" : "exported") \(count == 1 ? "was" : "were") left out",
      at: Place(entity: entity, property: relationship.property),
      hint: isDangling
        ? nil : (unselected.map { "pass --entity \($0), too, or " } ?? "") + "export the whole store to include them")
  }

  /// Counts those of a selection, by relationship; relationships without any are not there.
  package static func count(
    of selection: StoreSelection, in reader: StoreReader, schema: StoreSchema
  ) throws -> [ReferencesLeftOut] {
    guard !selection.isAll, !selection.keepsReferences else { return [] }
    return try all(in: reader, schema: schema, of: selection, isDangling: false)
  }

  /// Counts references to objects that are not in the store, which only JSON lines have.
  package static func dangling(
    of selection: StoreSelection, in reader: StoreReader, schema: StoreSchema
  ) throws -> [ReferencesLeftOut] {
    try all(in: reader, schema: schema, of: selection, isDangling: true)
  }

  private static func all(
    in reader: StoreReader, schema: StoreSchema, of selection: StoreSelection, isDangling: Bool
  ) throws -> [ReferencesLeftOut] {
    var counts: [PropertyKey: Int64] = [:]
    var unselected: [PropertyKey: String] = [:]
    for entity in schema.model.entities where !entity.isAbstract && selection.contains(entity.name) {
      for (name, relationship) in schema.model.allRelationships(of: entity) {
        guard let key = schema.storingEntity(ofRelationship: name, in: entity.name),
          let count = try count(of: name, in: entity, selection, reader, schema, isDangling), count > 0
        else { continue }
        counts[PropertyKey(entity: key, property: name), default: 0] &+= count
        if !isDangling, !selection.contains(relationship.destinationEntityName) {
          unselected[PropertyKey(entity: key, property: name)] = relationship.destinationEntityName
        }
      }
    }
    return counts.sorted { $0.key.text < $1.key.text }.map {
      ReferencesLeftOut(
        relationship: $0.key, count: $0.value, isDangling: isDangling, unselected: unselected[$0.key])
    }
  }

  private static func count(
    of name: String, in entity: Entity, _ selection: StoreSelection, _ reader: StoreReader, _ schema: StoreSchema,
    _ isDangling: Bool
  ) throws -> Int64? {
    guard let pairs = schema.pairs(ofRelationship: name, in: entity.name), let number = schema.number(of: entity.name),
      let owners = schema.table(named: pairs.ownerTable), let targets = schema.table(named: pairs.targetTable)
    else { return nil }
    let (owner, target) = ("p.\(SQLiteIdentifier.quoted(pairs.owner))", "p.\(SQLiteIdentifier.quoted(pairs.target))")
    let present = Set(try reader.schemaObjects().filter { $0.type == "table" }.map(\.name))
    guard present.isSuperset(of: [pairs.table, owners.name, targets.name]) else { return nil }
    let columns = Set(try reader.shape(of: pairs.table).columns.map(\.name))
    guard columns.isSuperset(of: [pairs.owner, pairs.target]) else { return nil }
    let isOwner = selection.condition(on: "o.\"Z_PK\"", in: owners) ?? "1"
    let isTarget = isDangling ? "t.\"Z_PK\" IS NOT NULL" : selection.condition(on: "t.\"Z_PK\"", in: targets) ?? "1"
    return try reader.connection.integer(
      "SELECT count(*) FROM \(pairs.source(reader.qualified(pairs.table))) AS p"
        + " JOIN \(reader.qualified(owners.name)) AS o ON o.\"Z_PK\" = \(owner)"
        + " \(isDangling ? "LEFT " : "")JOIN \(reader.qualified(targets.name)) AS t ON t.\"Z_PK\" = \(target)"
        + " WHERE o.\"Z_ENT\" = \(number) AND \(target) IS NOT NULL AND \(isOwner) AND NOT (\(isTarget))")
  }
}
