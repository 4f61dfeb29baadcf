// Objects that a rule removes from the migrated store and keeps: whole rows with their violations. hopd's own tables in
// the staged store hold them, committed with the removal, until the hop is complete; then they move to a database of
// their own.

import Diagnostics
import PersistentStore
import SQLite
import SystemPackage

/// The tables of quarantined objects in a staged store.
package struct QuarantineTables {
  /// The keys of the objects that are being removed; dropped when a round of removal ends.
  static let keysTable = "HOPD_INVALID"
  /// One row per violation.
  static let violationsTable = "HOPD_VIOLATIONS"
  /// The prefix of each table with kept rows.
  static let rowsPrefix = "HOPD_KEPT_"

  private let connection: Connection
  private let schema: String

  /// The tables of the staged store under `schema`.
  package init(connection: Connection, schema: String) {
    self.connection = connection
    self.schema = schema
  }

  private func qualified(_ name: String) -> String {
    SQLiteIdentifier.quoted(schema) + "." + SQLiteIdentifier.quoted(name)
  }

  /// Records a violation for each row that `rows` (FROM … AS d WHERE …) finds.
  func note(_ rule: ValidationRule, rows: String) throws(SQLiteError) {
    if try !connection.hasTable(Self.violationsTable, in: schema) {
      try connection.run(
        "CREATE TABLE \(qualified(Self.violationsTable)) (\"table\" TEXT, \"key\" INTEGER, entity TEXT, property TEXT,"
          + " code INTEGER)")
    }
    let values = [SQLiteValue.text(rule.table), .text(rule.entity), .text(rule.property)].map(\.literal)
    try connection.run(
      "INSERT INTO \(qualified(Self.violationsTable)) SELECT \(values[0]), d.\"Z_PK\", \(values[1]), \(values[2]),"
        + " \(rule.code.rawValue) \(rows)")
  }

  /// Keeps the recorded rows among those whose keys `keys` finds, with their current values.
  func keep(_ table: EntityTable, keys: String) throws(SQLiteError) {
    guard try connection.hasTable(Self.violationsTable, in: schema) else { return }
    let kept = Self.rowsPrefix + table.name
    if try !connection.hasTable(kept, in: schema) {
      // The same columns and types, so that every value keeps its form.
      let columns = table.columns.map { "\(SQLiteIdentifier.quoted($0.name)) \($0.declaredType)" }
      let plain = columns.map { $0.hasSuffix(" INTEGER PRIMARY KEY") ? String($0.dropLast(12)) : $0 }
      try connection.run("CREATE TABLE \(qualified(kept)) (\(plain.joined(separator: ", ")))")
    }
    let names = table.columns.map { SQLiteIdentifier.quoted($0.name) }.joined(separator: ", ")
    try connection.run(
      "INSERT INTO \(qualified(kept)) (\(names)) SELECT \(names) FROM \(qualified(table.name)) WHERE \"Z_PK\" IN "
        + "(\(keys))"
        + " AND \"Z_PK\" IN (SELECT \"key\" FROM \(qualified(Self.violationsTable)) WHERE \"table\" ="
        + " \(SQLiteValue.text(table.name).literal))")
  }

  /// Copies the kept rows into the existing database at `path`, which may be empty, as tables "hop N VIOLATIONS" and
  /// "hop N <table>"; a second call replaces them. Returns the number of objects.
  package func export(hop: Int, to path: FilePath) throws -> Int64 {
    guard try connection.hasTable(Self.violationsTable, in: schema) else { return 0 }
    let side = "hopd_quarantine"
    try connection.attach(path, as: side)
    defer { try? connection.detach(side) }
    var objects: Int64 = 0
    try connection.transaction {
      for table in try tables() {
        let name =
          "hop \(hop + 1) "
          + (table == Self.violationsTable ? "VIOLATIONS" : String(table.dropFirst(Self.rowsPrefix.count)))
        let copy = SQLiteIdentifier.quoted(side) + "." + SQLiteIdentifier.quoted(name)
        try connection.run("DROP TABLE IF EXISTS \(copy)")
        try connection.run("CREATE TABLE \(copy) AS SELECT * FROM \(qualified(table))")
        if table != Self.violationsTable { objects &+= try connection.integer("SELECT count(*) FROM \(copy)") ?? 0 }
      }
    }
    return objects
  }

  private func tables() throws(SQLiteError) -> [String] {
    try connection.rows("SELECT name FROM \(qualified("sqlite_master")) WHERE type = 'table' ORDER BY name") {
      $0.text(at: 0) ?? ""
    }.filter { $0 == Self.violationsTable || $0.hasPrefix(Self.rowsPrefix) }
  }
}
