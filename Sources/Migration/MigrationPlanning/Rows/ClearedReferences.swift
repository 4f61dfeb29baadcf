// References that a hop clears because it drops their target's entity: the relationship and its objects stay, but some
// of them refer to no object afterwards. Counted in the existing store, and reported like every other loss.

import Diagnostics
import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite

struct ClearedReferences {
  let migrationPath: MigrationPath
  let reader: StoreReader
  let rows: [String: Int64]

  private var source: StoreSchema { migrationPath.sourceSchema }

  /// A relationship that continues, and a possible target entity that does not.
  private struct Key: Hashable {
    let hop: Int
    let entity: String
    let relationship: String
    /// By its names in the hop's source version and in the store.
    let removed: String
    let stored: String
    let origin: PairsOrigin
  }

  /// Returns one warning per relationship and removed entity, in the order of hops, entities and properties.
  func warnings() throws(SQLiteError) -> [HopdError] {
    var order: [Key] = []
    var owners: [Key: Set<Int64>] = [:]
    for hop in migrationPath.mappings.indices {
      for (key, owner) in keys(of: hop) {
        if owners[key] == nil { order.append(key) }
        owners[key, default: []].insert(owner)
      }
    }
    var warnings: [HopdError] = []
    for key in order {
      let count = try count(key, owners: owners[key] ?? [])
      guard count > 0 else { continue }
      warnings.add(
        .dataDropped,
        "\(count.grouped) reference\(count == 1 ? " is" : "s are") cleared, because the objects of \(key.removed) "
          + "to which "
          + "\(count == 1 ? "it points" : "they point") are dropped",
        at: Place(
          hop: migrationPath.hop(to: key.hop + 1), entity: key.entity, property: key.relationship),
        hint:
          "set the renaming identifier in \(migrationPath.models[key.hop + 1].name) if \(key.removed) was renamed"
      )
    }
    return warnings
  }

  /// Returns the relationships that a hop carries and that may refer to rows it drops, each with the number of an
  /// owner.
  private func keys(of hop: Int) -> [(Key, owner: Int64)] {
    let (mapping, model) = (migrationPath.mappings[hop], migrationPath.models[hop])
    let removed = mapping.entityMappings.filter { $0.destinationEntity == nil }.compactMap { entity in
      entity.sourceEntity.flatMap { name in
        migrationPath.sourceEntity(of: name, at: hop).map { (name: name, stored: $0) }
      }
    }.filter { (rows[$0.stored] ?? 0) > 0 }
    guard !removed.isEmpty else { return [] }
    var keys: [(Key, owner: Int64)] = []
    for entity in mapping.entityMappings where entity.destinationEntity != nil {
      guard let name = entity.sourceEntity, let stored = migrationPath.sourceEntity(of: name, at: hop),
        (rows[stored] ?? 0) > 0, let owner = source.number(of: stored)
      else { continue }
      for relationship in entity.relationships {
        guard let pairs = relationship.source, let reached = model.entity(named: pairs.entity),
          let value = model.allRelationships(of: reached)[pairs.relationship],
          let origin = migrationPath.declaredOrigin(ofRelationship: pairs.relationship, in: pairs.entity, at: hop)
        else { continue }
        // A to-many over a to-one loses no more than the objects themselves: their to-one is dropped with them.
        let inverse = model.inverse(of: value)?.relationship
        if !pairs.isInverted, value.isToMany, inverse?.isToMany == false { continue }
        if pairs.isInverted, !value.isToMany { continue }
        let target = pairs.isInverted ? reached.name : value.destinationEntityName
        for gone in removed where model.isEntity(gone.name, within: target) {
          let key = Key(
            hop: hop, entity: pairs.isInverted ? name : model.declarer(of: pairs.relationship, in: reached),
            relationship: pairs.isInverted ? relationship.destination : pairs.relationship, removed: gone.name,
            stored: gone.stored,
            origin: PairsOrigin(
              entity: origin.entity, relationship: origin.relationship,
              isInverted: origin.isInverted != pairs.isInverted))
          keys.append((key, owner))
        }
      }
    }
    return keys
  }

  private func count(_ key: Key, owners: Set<Int64>) throws(SQLiteError) -> Int64 {
    guard
      let stored = source.pairs(ofRelationship: key.origin.relationship, in: key.origin.entity),
      let gone = source.number(of: key.stored)
    else { return 0 }
    let pairs = key.origin.isInverted ? stored.inverted : stored
    let list = owners.sorted().map(String.init).joined(separator: ", ")
    return try reader.connection.integer(
      "SELECT count(*) FROM \(reader.qualified(pairs.table)) AS p"
        + " JOIN \(reader.qualified(pairs.targetTable)) AS t ON t.Z_PK = p.\(SQLiteIdentifier.quoted(pairs.target))"
        + " JOIN \(reader.qualified(pairs.ownerTable)) AS o ON o.Z_PK = p.\(SQLiteIdentifier.quoted(pairs.owner))"
        + " WHERE t.Z_ENT = \(gone) AND o.Z_ENT IN (\(list))") ?? 0
  }
}
