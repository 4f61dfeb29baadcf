// Makes the objects of a `RepairPlan` in a copy of the store, in one transaction. Rows that exist keep every value.

import Diagnostics
import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SQLite
import SystemPackage

/// Repairs a copy of a store.
package struct StoreRepair {
  private let plan: RepairPlan
  private let keepAlive: () -> Bool

  /// Prepares a repair; `keepAlive` is asked in long statements, and returning false stops it.
  package init(_ plan: RepairPlan, keepAlive: @escaping () -> Bool) {
    self.plan = plan
    self.keepAlive = keepAlive
  }

  /// Makes the objects in the copy at `path`, which is in rollback mode and has no side files afterwards.
  ///
  /// The copy of a store with the schema version `original` gets the next one, whatever is made.
  package func run(on path: FilePath, original: Int64, at place: Place) throws {
    do {
      let connection = try Connection(path: path, access: .readWrite)
      connection.setProgressHandler(every: 200_000, keepAlive)
      defer { connection.setProgressHandler(nil) }
      // The copy is disposable until it is verified and synced.
      try connection.execute("PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF")
      // Values of missing columns are not changes by an app, and a trigger may be a stranger's.
      connection.runsTriggers(false)
      try connection.transaction { try makeAll(connection, at: place) }
      try connection.setSchemaVersion(original &+ 1)
    } catch let error as SQLiteError where error.isInterrupt {
      throw HopdError(.interrupted, "stopped on request", at: place, hint: "retry; the store is unchanged")
    } catch let error as SQLiteError {
      throw StoreReader.explained(error, location: StoreLocation(database: place.store ?? path))
    }
  }

  private func makeAll(_ connection: Connection, at place: Place) throws {
    let (schema, writer) = (plan.schema, StoreWriter(connection: connection, schema: "main"))
    for gap in plan.gaps where gap.kind == .table {
      if let table = schema.table(named: gap.name) { try connection.execute(table.createStatement) }
    }
    for statement in plan.historyStatements { try connection.execute(statement.createStatement(in: nil)) }
    for gap in plan.gaps where gap.kind == .joinTable {
      if let join = schema.joinTable(named: gap.name) { try connection.execute(join.createStatement) }
    }
    for gap in plan.gaps where gap.kind == .column { try writer.addColumn(gap.name, to: gap.table, of: schema) }
    for fill in plan.fills {
      try connection.run(
        "UPDATE \(SQLiteIdentifier.quoted(fill.table)) SET \(SQLiteIdentifier.quoted(fill.column)) = ? WHERE Z_ENT = ?",
        [fill.value, .integer(fill.entity)])
    }
    try compute(connection)
    for gap in plan.gaps where gap.kind == .index { try makeIndex(gap, writer, at: place) }
    for trigger in schema.knownTriggers where plan.gaps.contains(where: { $0.name == trigger.name }) {
      try connection.run(trigger.createStatement(in: "main"))
    }
    try makeBookkeeping(connection, writer)
  }

  /// Computes derived attributes and filtered counts that nothing has kept.
  private func compute(_ connection: Connection) throws(SQLiteError) {
    for derivation in plan.schema.derivations
    where plan.computes(derivation.table, derivation.column, keptBy: derivation.triggers) {
      if derivation.isCount {
        let numbers = derivation.numbers.map(String.init).joined(separator: ", ")
        try connection.run(
          "UPDATE \(SQLiteIdentifier.quoted(derivation.table)) SET \(SQLiteIdentifier.quoted(derivation.column)) = 0"
            + " WHERE Z_ENT IN (\(numbers))")
      }
      if let statement = derivation.fillStatement(in: "main") { try connection.run(statement) }
    }
    for count in plan.schema.filteredCounts where plan.computes(count.table, count.column, keptBy: count.triggers) {
      for statement in count.fillStatements(in: "main") { try connection.run(statement) }
    }
  }

  /// An index of the same name with another effect is replaced: it has no content of its own.
  private func makeIndex(_ gap: SchemaGap, _ writer: StoreWriter, at place: Place) throws {
    guard let index = plan.schema.indexes.first(where: { $0.name == gap.name }) else { return }
    do {
      try writer.connection.execute("DROP INDEX IF EXISTS \(SQLiteIdentifier.quoted(index.name))")
      try writer.createIndex(index)
    } catch {
      guard error.isUniqueness else { throw error }
      throw HopdError(
        .uniquenessViolation, "\(gap.text) is missing, and rows share the values that it makes unique",
        at: place.filled(from: Place(entity: plan.schema.table(named: index.table)?.rootEntity)), cause: error,
        hint: "remove the duplicates with the app, or restore a backup")
    }
  }

  private func makeBookkeeping(_ connection: Connection, _ writer: StoreWriter) throws(SQLiteError) {
    let history = try HistoryLayout.read(from: StoreReader(connection: connection)).layout
    let reserved = HistoryLayout.Table.allCases.map { table in
      PrimaryKeyEntry(number: table.number, name: table.entityName, parent: 0, highWaterMark: 0)
    }
    for entry in plan.schema.primaryKeyEntries + reserved {
      // An entity of a model may be called TRANSACTION too.
      let gap = plan.gaps.first { gap in
        [.entityNumber, .highestKey].contains(gap.kind) && gap.name == entry.name
          && (gap.entity == nil) == entry.isReserved
      }
      guard let gap else { continue }
      let mark = entry.parent == 0 ? try highestKey(of: entry, history, connection) : 0
      if gap.kind == .entityNumber {
        try connection.run(
          "INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (?, ?, ?, ?)",
          [.integer(entry.number), .text(entry.name), .integer(entry.parent), .integer(mark)])
      } else {
        try connection.run(
          "UPDATE Z_PRIMARYKEY SET Z_MAX = ? WHERE Z_ENT = ?", [.integer(mark), .integer(entry.number)])
      }
    }
    if plan.gaps.contains(where: { $0.kind == .modelCache }) {
      try writer.createModelCache(try? ModelCache.content(for: plan.schema))
    }
  }

  /// The highest key in the table of a root entity and in references to it: no new object may get the key of a row that
  /// something still refers to.
  private func highestKey(
    of entry: PrimaryKeyEntry, _ history: HistoryLayout?, _ connection: Connection
  ) throws(SQLiteError) -> Int64 {
    var columns: [(column: String, table: String)] = []
    if let table = plan.schema.table(of: entry.name), !entry.isReserved {
      columns = [("Z_PK", table.name)] + plan.schema.references(to: table)
    } else if let table = HistoryLayout.Table.allCases.first(where: { $0.number == entry.number }) {
      columns = [("Z_PK", table.rawValue)] + (history?.references(to: table) ?? [])
    }
    var highest: Int64 = 0
    for (column, table) in columns {
      let found = try connection.integer(
        "SELECT max(\(SQLiteIdentifier.quoted(column))) FROM \(SQLiteIdentifier.quoted(table))")
      highest = max(highest, found ?? 0)
    }
    return highest
  }
}
