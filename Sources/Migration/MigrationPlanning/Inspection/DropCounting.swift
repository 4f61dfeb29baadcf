// The data that a migration path loses, counted in the unchanged store: columns, pairs and whole entities that no later
// version continues. A rename without a renaming identifier looks exactly like this and is silent data loss
// (docs/formats/migration-semantics.md, "Matching"), so every number is shown before anything is migrated.

import Diagnostics
import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite

struct DropCounting {
  private let migrationPath: MigrationPath
  private let census: StoreCensus
  private let rows: [String: Int64]
  /// In the order of hops, entities and properties.
  private(set) var drops: [DroppedColumn] = []
  /// Rows of the store's entities that some hop drops.
  private(set) var droppedRows: [String: Int64] = [:]
  private(set) var warnings: [HopdError] = []

  private struct Key: Hashable {
    let hop: Int
    let entity: String
    /// nil for the entity with all its objects; then `column` is nil too.
    let property: String?
    let table: String
    let column: String?
  }
  private var order: [Key] = []
  private var counts: [Key: Int64] = [:]
  /// Columns whose values are not yet counted, by table: those of all hops are counted in one pass.
  private var open: [String: [(key: Key, request: StoreCensus.CountRequest)]] = [:]

  private var reader: StoreReader { census.reader }

  init(migrationPath: MigrationPath, census: StoreCensus, rows: [String: Int64]) throws(SQLiteError) {
    self.migrationPath = migrationPath
    self.census = census
    self.rows = rows
    for (hop, mapping) in migrationPath.mappings.enumerated() {
      for entity in mapping.entityMappings {
        guard let name = entity.sourceEntity, let stored = migrationPath.sourceEntity(of: name, at: hop) else {
          continue
        }
        if entity.kind == .remove {
          noteRemoval(of: name, stored: stored, hop: hop)
        } else {
          noteAttributes(entity.droppedAttributes, of: name, stored: stored, hop: hop)
          try noteRelationships(entity.droppedRelationships, of: name, stored: stored, hop: hop)
        }
      }
    }
    for (table, requests) in open {
      let values = try census.values(requests.map(\.request), in: table)
      for (part, count) in zip(requests, values) { counts[part.key, default: 0] &+= count }
    }
    drops = order.map { key in
      DroppedColumn(
        hop: key.hop, entity: key.entity, property: key.property, table: key.table, column: key.column,
        nonNull: counts[key] ?? 0)
    }
    for drop in drops where drop.nonNull > 0 && drop.property != nil {
      warnings.add(
        .dataDropped,
        "the property is dropped with \(drop.nonNull.counted("value")) (column \(drop.table).\(drop.column ?? "?"))",
        at: Place(hop: migrationPath.hop(to: drop.hop + 1), entity: drop.entity, property: drop.property),
        hint: hint(
          drop.hop, "no expression of \(migrationPath.mappingModels[drop.hop].joined(separator: ", ")) reads it"))
    }
  }

  private mutating func noteRemoval(of entity: String, stored: String, hop: Int) {
    let count = rows[stored] ?? 0
    guard count > 0 else { return }
    droppedRows[stored] = count
    let key = Key(
      hop: hop, entity: entity, property: nil, table: migrationPath.sourceSchema.table(of: stored)?.name ?? "",
      column: nil)
    order.append(key)
    counts[key] = count
    warnings.add(
      .dataDropped, "the entity is dropped with \(count.counted("row"))",
      at: Place(hop: migrationPath.hop(to: hop + 1), entity: entity),
      hint: hint(hop, "\(migrationPath.mappingModels[hop].joined(separator: ", ")) takes its objects nowhere"))
  }

  private mutating func noteAttributes(_ names: [String], of entity: String, stored: String, hop: Int) {
    // A derived value is not data of its own: nothing is lost with it.
    for name in names where migrationPath.definition(of: name, in: entity, at: hop)?.isDerived != true {
      if case .column(let table, let column, _) = migrationPath.origin(ofAttribute: name, in: entity, at: hop) {
        note(name, of: entity, hop: hop, table: table, column: column, stored: stored)
      }
    }
  }

  private mutating func noteRelationships(
    _ names: [String], of entity: String, stored: String, hop: Int
  ) throws(SQLiteError) {
    for name in names {
      guard let origin = migrationPath.origin(ofRelationship: name, in: entity, at: hop),
        let storage = migrationPath.sourceSchema.storage(ofRelationship: origin.relationship, in: origin.entity)
      else { continue }
      let declarer = migrationPath.models[hop].declarer(of: name, in: entity)
      switch storage {
      case .toOne(let columns, _), .members(let columns):
        // Both ends are dropped together; the pairs are counted at the end whose rows hold the column.
        guard (storage.ownColumns != nil) != origin.isInverted else { continue }
        note(name, of: entity, hop: hop, table: columns.table, column: columns.key, stored: stored)
      case .join(let columns):
        // Both ends are dropped together; the pairs are counted once.
        guard !order.contains(where: { $0.hop == hop && $0.table == columns.table }) else { continue }
        let key = Key(
          hop: hop, entity: declarer, property: name, table: columns.table, column: columns.join.targetColumn)
        order.append(key)
        counts[key] = try census.pairs(in: columns.table)
      case .owned(let columns):
        // The count is by owner: another entity may keep the relationship.
        let key = Key(hop: hop, entity: declarer, property: name, table: columns.table, column: columns.key)
        if counts[key] == nil { order.append(key) }
        counts[key, default: 0] &+= try ownedRows(columns, owner: stored)
      }
    }
  }

  /// Returns the number of rows whose owner is of one entity.
  private func ownedRows(_ columns: ToOneColumns, owner: String) throws(SQLiteError) -> Int64 {
    guard (rows[owner] ?? 0) > 0, let owners = migrationPath.sourceSchema.table(of: owner),
      let number = migrationPath.sourceSchema.number(of: owner)
    else { return 0 }
    return try reader.connection.integer(
      "SELECT count(*) FROM \(reader.qualified(columns.table)) AS s JOIN \(reader.qualified(owners.name)) AS o"
        + " ON o.Z_PK = s.\(SQLiteIdentifier.quoted(columns.key)) WHERE o.Z_ENT = \(number)") ?? 0
  }

  /// Adds the values of one entity's rows. An inherited property collects those of all subentities that drop it, but
  /// mapping models say for each entity which of its properties it keeps.
  private mutating func note(
    _ property: String, of entity: String, hop: Int, table: String, column: String, stored: String
  ) {
    let named =
      migrationPath.isMapped(to: hop + 1) ? entity : migrationPath.models[hop].declarer(of: property, in: entity)
    let key = Key(hop: hop, entity: named, property: property, table: table, column: column)
    if counts[key] == nil { order.append(key) }
    counts[key, default: 0] &+= 0
    if (rows[stored] ?? 0) > 0, let number = migrationPath.sourceSchema.number(of: stored) {
      open[table, default: []].append((key, StoreCensus.CountRequest(column: column, entities: [number])))
    }
  }

  /// Returns the remedy against a drop; `reason` is why a mapping model drops it.
  private func hint(_ hop: Int, _ reason: String) -> String {
    migrationPath.isMapped(to: hop + 1)
      ? "\(reason); add one if the data are to stay"
      : "if it was renamed, set its renaming identifier in \(migrationPath.models[hop + 1].name)"
  }
}
