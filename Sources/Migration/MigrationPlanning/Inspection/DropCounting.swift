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

  private var counts: [DroppedPart: Int64] = [:]
  /// Columns whose values are not yet counted, by table: those of all hops are counted in one pass.
  private var open: [String: [(part: DroppedPart, request: StoreCensus.CountRequest)]] = [:]

  private var reader: StoreReader { census.reader }

  init(migrationPath: MigrationPath, census: StoreCensus, rows: [String: Int64]) throws(SQLiteError) {
    self.migrationPath = migrationPath
    self.census = census
    self.rows = rows
    let search = DropSearch(migrationPath)
    for part in search.parts {
      for found in search.rows[part] ?? [] { try count(found, of: part) }
    }
    for (table, requests) in open {
      let values = try census.values(requests.map(\.request), in: table)
      for (request, count) in zip(requests, values) { counts[request.part, default: 0] &+= count }
    }
    // An entity without rows loses nothing.
    drops = search.parts.filter { $0.property != nil || counts[$0, default: 0] > 0 }.map { part in
      DroppedColumn(
        hop: part.hop, entity: part.entity, property: part.property, table: part.table, column: part.column,
        nonNull: counts[part] ?? 0)
    }
    let counted = drops.filter { $0.nonNull > 0 }
    warnings = counted.filter { $0.property == nil }.map(warning)
    warnings += counted.filter { $0.property != nil }.map(warning)
  }

  private mutating func count(_ found: DropSearch.Rows, of part: DroppedPart) throws(SQLiteError) {
    switch found {
    case .objects(let entity):
      let count = rows[entity] ?? 0
      if count > 0 { droppedRows[entity] = count }
      counts[part] = count
    case .values(let entity):
      guard (rows[entity] ?? 0) > 0, let number = migrationPath.sourceSchema.number(of: entity),
        let column = part.column
      else { return }
      open[part.table, default: []].append((part, StoreCensus.CountRequest(column: column, entities: [number])))
    case .pairs: counts[part] = try census.pairs(in: part.table)
    case .owned(let columns, let owner): counts[part, default: 0] &+= try ownedRows(columns, owner: owner)
    }
  }

  private func warning(_ drop: DroppedColumn) -> HopdError {
    let models = migrationPath.mappingModels[drop.hop].joined(separator: ", ")
    guard let property = drop.property else {
      return HopdError(
        .dataDropped, "the entity is dropped with \(drop.nonNull.counted("row"))",
        at: Place(hop: migrationPath.hop(to: drop.hop + 1), entity: drop.entity),
        hint: hint(drop.hop, "\(models) has no entity mapping for it"))
    }
    return HopdError(
      .dataDropped,
      "the property is dropped with \(drop.nonNull.counted("value")) (column \(drop.table).\(drop.column ?? "?"))",
      at: Place(hop: migrationPath.hop(to: drop.hop + 1), entity: drop.entity, property: property),
      hint: hint(drop.hop, "no expression of \(models) reads it"))
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

  /// Returns the remedy against a drop; `reason` is why a mapping model drops it.
  private func hint(_ hop: Int, _ reason: String) -> String {
    migrationPath.isMapped(to: hop + 1)
      ? "map it to preserve the data; \(reason)"
      : "set the renaming identifier in \(migrationPath.models[hop + 1].name) if it was renamed"
  }
}
