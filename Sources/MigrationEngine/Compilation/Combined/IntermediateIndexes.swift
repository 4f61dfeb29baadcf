// Indexes of a staged store that the next pass reads. Staged stores between passes have none, because most passes read
// whole tables by key. A mapping model that follows relationships from their other end gets the ones that it needs. The
// user's store is never changed: it has its own indexes.

import PersistentStore
import SQLite

/// Creates the indexes that a program uses to look rows up.
struct IntermediateIndexes {
  let connection: Connection
  /// The tables that the program reads: a staged store, or views over one.
  let source: SourceTables

  /// Core Data's names begin with Z or A.
  private static let prefix = "HOPD_SOURCE_"

  private struct Candidate {
    let name: String
    let table: String
    let column: String
  }

  /// Creates the missing indexes. `followed` is the source's layout if statements outside the program read objects: the
  /// indexes by which they follow relationships are added.
  func make(
    for program: HopProgram, destination: StoreSchema, readsObjects followed: StoreSchema?
  ) throws(SQLiteError) {
    var base = source
    while let below = base.source { base = below }
    guard !base.isGone, base.schemaName.hasPrefix(StagedStore.schemaPrefix) else { return }
    let tables = try connection.rows(
      "SELECT name, sql FROM \(SQLiteIdentifier.quoted(base.schemaName)).sqlite_schema WHERE type = 'table'"
        + " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE 'HOPD\\_%' ESCAPE '\\' ORDER BY name"
    ) { row in (name: row.text(at: 0) ?? "", sql: row.text(at: 1) ?? "") }
    let candidates = try candidates(tables.map(\.name), in: base.schemaName)
    var wanted = try used(by: program, base: base.schemaName, tables: tables.map(\.sql), candidates, destination)
    if let followed {
      // The tables under a view's columns are not determined; for views all candidates are created.
      let columns = Set(
        followed.indexes.filter { !$0.isUnique && $0.columns.allSatisfy(\.suffix.isEmpty) }.flatMap { index in
          index.columns.map { [index.table, $0.name] }
        })
      wanted.formUnion(
        candidates.filter { source.isViews || columns.contains([$0.table, $0.column]) }.map(\.name))
    }
    for candidate in candidates where wanted.contains(candidate.name) {
      try connection.execute(Self.statement(candidate, in: base.schemaName))
    }
  }

  private static func statement(_ candidate: Candidate, in schema: String) -> String {
    "CREATE INDEX IF NOT EXISTS \(SQLiteIdentifier.quoted(schema)).\(SQLiteIdentifier.quoted(candidate.name))"
      + " ON \(SQLiteIdentifier.quoted(candidate.table)) (\(SQLiteIdentifier.quoted(candidate.column)))"
  }

  /// Returns the columns that may hold keys: integer columns except those that every object has. Join tables begin with
  /// an index of the first column, so they need only the others.
  private func candidates(_ tables: [String], in schema: String) throws(SQLiteError) -> [Candidate] {
    var result: [Candidate] = []
    for table in tables where !["Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE"].contains(table) {
      let columns = try connection.rows(
        "SELECT name, type, pk FROM pragma_table_info(?, ?)", [.text(table), .text(schema)]
      ) { row in (name: row.text(at: 0) ?? "", type: row.text(at: 1) ?? "", key: row.integer(at: 2)) }
      for column in columns
      where column.type == "INTEGER" && column.key != 1 && !["Z_ENT", "Z_OPT"].contains(column.name) {
        result.append(Candidate(name: "\(Self.prefix)\(result.count)", table: table, column: column.name))
      }
    }
    return result
  }

  /// Returns the candidates that SQLite would use, probed in memory on tables without rows.
  private func used(
    by program: HopProgram, base: String, tables: [String], _ candidates: [Candidate], _ destination: StoreSchema
  ) throws(SQLiteError) -> Set<String> {
    let trial = try QueryPlanProbe()
    try trial.attach(base)
    let start = "CREATE TABLE "
    for sql in tables where sql.hasPrefix(start) {
      try trial.connection.execute("\(start)\(SQLiteIdentifier.quoted(base)).\(sql.dropFirst(start.count))")
    }
    for candidate in candidates { try trial.connection.execute(Self.statement(candidate, in: base)) }
    let views = try connection.rows(
      "SELECT sql FROM sqlite_temp_schema WHERE type = 'view' ORDER BY rowid"
    ) { row in row.text(at: 0) ?? "" }
    for sql in views where sql.hasPrefix("CREATE VIEW ") {
      try trial.connection.execute("CREATE TEMP VIEW \(sql.dropFirst("CREATE VIEW ".count))")
    }
    try trial.attach(program.destination)
    try trial.create(destination, in: program.destination, withIndexes: false)
    for sql in program.scratch { try trial.connection.run(sql) }
    if program.usesPairs { try MappedScratch.prepareRun(trial.connection) }
    var indexes: Set<String> = []
    for step in program.steps {
      try trial.prepare(step)
      for sql in step.statements { indexes.formUnion(try trial.lookups(of: sql).indexes) }
    }
    return indexes
  }
}
