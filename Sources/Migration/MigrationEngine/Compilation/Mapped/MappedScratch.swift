// hopd's own tables of a hop with mapping models: groups, expanded pairs and associations inside the staged store, and
// the pairs of one chunk in the connection's temporary database. A sealed store has none of them.

import Diagnostics
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

/// The tables apart from the store's own.
struct MappedScratch: Sendable, Hashable {
  /// The mappings that drop duplicates.
  let deduplicated: [AssociationRange]

  /// The objects that deduplication dropped, kept for the report until the store is sealed.
  static let mergedTable = "HOPD_MERGED"
  /// The violations that validation settled, kept in the same way.
  static let settledTable = "HOPD_SETTLED"
  /// The pairs of the current chunk: keys and numbers of both ends, the order of the targets and of the owners.
  static let pairs = "temp.\"HOPD_PAIRS\""
  /// The objects of the current chunk whose relationship is set, also to nothing.
  static let owners = "temp.\"HOPD_OWNERS\""

  /// Creates the tables that live as long as the connection; their content is never needed again.
  static func prepareRun(_ connection: Connection) throws(SQLiteError) {
    try connection.execute(
      "CREATE TEMP TABLE IF NOT EXISTS HOPD_PAIRS (owner INTEGER, target INTEGER, owner_entity INTEGER,"
        + " target_entity INTEGER, position, inverse_position, number INTEGER, PRIMARY KEY (owner, target));"
        + " CREATE INDEX IF NOT EXISTS temp.HOPD_PAIRS_TARGET ON HOPD_PAIRS (target);"
        + " CREATE TEMP TABLE IF NOT EXISTS HOPD_OWNERS (owner INTEGER PRIMARY KEY)")
  }

  /// Removes all these tables from a staged store whose hop begins again.
  func clear(_ connection: Connection, schema: String) throws(SQLiteError) {
    try Self.drop(connection, schema: schema, tables: "NOT LIKE 'sqlite\\_%'")
  }

  /// Records the objects that deduplication dropped, and removes every other table of hopd's except the checkpoint.
  func keepResults(_ connection: Connection, schema: String, usesPairs: Bool) throws(SQLiteError) {
    let table = SQLiteIdentifier.quoted(schema) + "." + Self.mergedTable
    try connection.execute("CREATE TABLE \(table) (mapping TEXT, dropped INTEGER)")
    for (mapping, dropped) in try merged(connection, schema: schema) {
      try connection.run("INSERT INTO \(table) VALUES (?, ?)", [.text(mapping), .integer(dropped)])
    }
    try clearRun(connection, schema: schema, usesPairs: usesPairs)
  }

  /// Returns how many objects deduplication dropped, by mapping; mappings that dropped none are left out.
  func merged(_ connection: Connection, schema: String) throws(SQLiteError) -> [String: Int64] {
    var merged: [String: Int64] = [:]
    for range in deduplicated {
      let table = SQLiteIdentifier.quoted(AssociationLayout.groupTable(range.index))
      let dropped = try connection.integer(
        "SELECT coalesce(sum(members - 1), 0) FROM \(SQLiteIdentifier.quoted(schema)).\(table) WHERE members > 1")
      if let dropped, dropped > 0 { merged[range.mapping.name] = dropped }
    }
    return merged
  }

  /// Removes every table of hopd's except the checkpoint and what the report needs.
  func clearRun(_ connection: Connection, schema: String, usesPairs: Bool) throws(SQLiteError) {
    try Self.drop(connection, schema: schema) {
      [
        Self.mergedTable, Self.settledTable, CheckpointTable.name, QuarantineTables.violationsTable, StageTables.name,
      ].contains($0)
        || $0.hasPrefix(QuarantineTables.rowsPrefix)
    }
    guard usesPairs else { return }
    try connection.execute("DROP TABLE IF EXISTS \(Self.pairs); DROP TABLE IF EXISTS \(Self.owners)")
  }

  /// Removes hopd's own tables from a staged store; Core Data's tables begin with Z or A.
  static func drop(
    _ connection: Connection, schema: String, tables pattern: String = "LIKE 'HOPD\\_%'",
    keeping: (String) -> Bool = { _ in false }
  ) throws(SQLiteError) {
    let prefix = SQLiteIdentifier.quoted(schema) + "."
    let names = try connection.rows(
      "SELECT name FROM \(prefix)sqlite_master WHERE type = 'table' AND name \(pattern) ESCAPE '\\'"
    ) { row in row.text(at: 0) ?? "" }
    for name in names where !keeping(name) {
      try connection.execute("DROP TABLE IF EXISTS \(prefix)\(SQLiteIdentifier.quoted(name))")
    }
  }

  /// Records the violations that validation settled, for the report of this run or a later one.
  func keep(_ invalid: [InvalidRows], _ connection: Connection, schema: String) throws(SQLiteError) {
    let table = SQLiteIdentifier.quoted(schema) + "." + Self.settledTable
    try connection.execute(
      "CREATE TABLE IF NOT EXISTS \(table) "
        + "(entity TEXT, property TEXT, code INTEGER, rule TEXT, rows INTEGER, keys TEXT, cleared TEXT)")
    for rows in invalid {
      try connection.run(
        "INSERT INTO \(table) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
          .text(rows.entity), .text(rows.property), .integer(Int64(rows.code.rawValue)), .text(rows.rule.rawValue),
          .integer(rows.count), .text(rows.keys.map(String.init).joined(separator: " ")),
          .text(
            rows.clearedReferences.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: "\n")),
        ])
    }
  }

  /// Returns the counts of source objects that made no object of their own, and of invalid objects.
  func tallies(_ connection: Connection, schema: String) throws(SQLiteError) -> HopTallies {
    let prefix = SQLiteIdentifier.quoted(schema) + "."
    var tallies = HopTallies()
    let merged = try connection.rows("SELECT mapping, dropped FROM \(prefix)\(Self.mergedTable) ORDER BY rowid") {
      row in
      (row.text(at: 0) ?? "", row.integer(at: 1))
    }
    for (mapping, dropped) in merged { tallies.merged[mapping] = dropped }
    tallies.invalidRows = try connection.rows("SELECT * FROM \(prefix)\(Self.settledTable) ORDER BY rowid") { row in
      InvalidRows(
        entity: row.text(at: 0) ?? "", property: row.text(at: 1) ?? "",
        code: ValidationErrorCode(rawValue: Int(clamping: row.integer(at: 2))) ?? .missingValue,
        rule: InvalidRowsRule(rawValue: row.text(at: 3) ?? "") ?? .fail, count: row.integer(at: 4),
        keys: (row.text(at: 5) ?? "").split(separator: " ").compactMap { Int64($0) },
        clearedReferences: Self.references(row.text(at: 6) ?? ""))
    }
    return tallies
  }

  /// Reads lines of "Entity.relationship count".
  private static func references(_ lines: String) -> [String: Int64] {
    let pairs = lines.split(separator: "\n").compactMap { line -> (String, Int64)? in
      guard let space = line.utf8.lastIndex(of: 0x20), let count = Int64(line[line.index(after: space)...]) else {
        return nil
      }
      return (String(line[..<space]), count)
    }
    return Dictionary(pairs, uniquingKeysWith: +)
  }
}
