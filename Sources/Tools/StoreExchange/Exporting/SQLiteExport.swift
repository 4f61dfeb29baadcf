// Writes the clean schema with its objects into a database. SQLite copies the values by itself, so that each arrives as
// it is stored, text that is not UTF-8 included; only the forms that an export has of its own are computed.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import PersistentStore
import SQLite
import SystemPackage

/// Exports a store to a SQLite database.
package struct SQLiteExport {
  private let reader: StoreReader
  private let schema: CleanSchema
  private let options: ExportOptions
  private let external: ExternalDataDirectory?
  private var connection: Connection { reader.connection }

  /// The name of the new database in the reader's connection.
  private static let database = "target"

  /// Creates an export of an open store, which must be attached to its connection.
  package init(
    of schema: CleanSchema, in reader: StoreReader, options: ExportOptions, external: ExternalDataDirectory?
  ) {
    self.reader = reader
    self.schema = schema
    self.options = options
    self.external = external
  }

  /// The result of an export.
  package struct Written: Sendable {
    /// Objects by entity.
    package var objects: [String: Int64] = [:]
    /// Pairs of many-to-many relationships.
    package var pairs: Int64 = 0
    package var warnings: [HopdError] = []

    /// All objects.
    package var count: Int64 { objects.values.reduce(0, &+) }
  }

  /// Writes the database at `path`, an empty file.
  package func write(to path: FilePath, progress: ExchangeProgress) throws -> Written {
    let values = ExportedValue(options: options, external: external)
    try values.register(on: connection)
    do {
      try connection.attach(path, as: Self.database)
      // The file gets its name when it is complete: it needs no journal on disk, and no sync before.
      try connection.execute(
        "PRAGMA foreign_keys = OFF; PRAGMA \"\(Self.database)\".journal_mode = MEMORY;"
          + " PRAGMA \"\(Self.database)\".synchronous = OFF")
      var written = Written()
      let broken = try BrokenRules(of: schema, in: reader, options: options)
      written.warnings += broken.warnings
      // The test of a rule reads values, too; a missing one counts once.
      values.missing.count = 0
      values.archives.count = 0
      try fill(&written, leavingOut: broken, progress)
      written.warnings += [values.missing.warning, values.archives.warning].compactMap(\.self)
      try connection.detach(Self.database)
      return written
    } catch let error as SQLiteError {
      if let failure = connection.takeFunctionFailure() { throw failure }
      if error.isInterrupt {
        throw HopdError(.interrupted, "stopped on request", cause: error, hint: "run the command again")
      }
      throw error
    }
  }

  private func fill(
    _ written: inout Written, leavingOut broken: BrokenRules, _ progress: ExchangeProgress
  ) throws {
    let statements = CleanStatements(schema: schema, options: options, keeps: broken.keeps)
    for table in schema.tables { try connection.execute(statements.create(table, in: Self.database)) }
    for join in schema.joins { try connection.execute(statements.create(join, in: Self.database)) }
    for table in schema.tables { try copy(table, into: &written, progress) }
    for join in schema.joins { try copy(join, into: &written) }
    for index in statements.indexes(in: Self.database) {
      do {
        try connection.execute(index.statement)
      } catch {
        guard index.isUnique, error.isUniqueness, let table = index.table else { throw error }
        written.warnings.append(
          BrokenRules.leftOut(
            "UNIQUE (\(index.columns.joined(separator: ", ")))", table, "objects of the store repeat a value"))
      }
    }
    for view in statements.views(in: Self.database) { try connection.execute(view) }
    try connection.execute("CREATE TABLE \(qualified(CleanSchema.mappingTable)) (mapping TEXT NOT NULL)")
    try connection.run(
      "INSERT INTO \(qualified(CleanSchema.mappingTable)) VALUES (?)",
      [.text(ExportMappingText.database(schema, options: options))])
    let dangling = try connection.rows("PRAGMA \"\(Self.database)\".foreign_key_check") { $0.text(at: 0) ?? "" }
    guard dangling.isEmpty else {
      throw HopdError(.internalError, "\(dangling.count) foreign keys of the export have no target")
    }
  }

  private func quoted(_ name: String) -> String { SQLiteIdentifier.quoted(name) }

  private func qualified(_ name: String) -> String { "\"\(Self.database)\".\(quoted(name))" }

  // MARK: Rows

  private static let chunk = 20_000

  private func copy(_ table: CleanTable, into written: inout Written, _ progress: ExchangeProgress) throws {
    let names = [table.keyColumn] + [table.entityColumn].compactMap(\.self) + table.columns.map(\.name)
    var values = ["s.\"Z_PK\""]
    if table.entityColumn != nil { values.append(table.entityExpression) }
    values += table.columns.map(\.source)
    let stored = reader.qualified(table.stored.name)
    let insert = try connection.prepare(
      "INSERT INTO \(qualified(table.name)) (\(names.map(quoted).joined(separator: ", ")))"
        + " SELECT \(values.joined(separator: ", ")) FROM \(table.rows(in: reader))"
        + " AND s.\"Z_PK\" > ? AND s.\"Z_PK\" <= ?")
    let next = try connection.prepare(
      "SELECT max(k) FROM (SELECT \"Z_PK\" AS k FROM \(stored) WHERE \"Z_PK\" > ?"
        + " ORDER BY \"Z_PK\" LIMIT \(Self.chunk))")
    // Keys of hostile stores may be anything, the smallest one included.
    var last = try connection.integer("SELECT min(\"Z_PK\") FROM \(stored)") ?? 0
    var isFirst = true
    var done = written.count
    while true {
      let before = isFirst && last > .min ? last - 1 : last
      isFirst = false
      guard let end = try next.firstInteger(.integer(before)) else { break }
      try connection.transaction { try insert.run([.integer(before), .integer(end)]) }
      done &+= connection.changes
      try progress.report(done)
      last = end
    }
    let counts = try connection.rows(
      "SELECT \(table.entityColumn.map(quoted) ?? SQLiteIdentifier.literal(table.stored.rootEntity)), count(*)"
        + " FROM \(qualified(table.name)) GROUP BY 1"
    ) { ($0.text(at: 0) ?? "", $0.integer(at: 1)) }
    written.objects.merge(counts, uniquingKeysWith: &+)
  }

  private func copy(_ join: CleanJoin, into written: inout Written) throws {
    let names =
      [join.owner.column, join.target.column] + [join.position, join.inversePosition].compactMap(\.self)
    // A store without the primary key of a join table may have a pair twice.
    try connection.run(
      "INSERT OR IGNORE INTO \(qualified(join.name)) (\(names.map(quoted).joined(separator: ", "))) \(join.source)")
    written.pairs &+= connection.changes
  }
}

extension Statement {
  /// Returns the first column of the first row; nil for NULL or no row. The statement is reset.
  func firstInteger(_ value: SQLiteValue) throws(SQLiteError) -> Int64? {
    try bind([value])
    defer { reset() }
    guard try step(), !isNull(at: 0) else { return nil }
    return integer(at: 0)
  }
}
