// Temporary indexes for policies, which request the members of one owner at a time: a staged store gets its own indexes
// last, and an intermediate one gets none. Created at the first use, dropped before the store is sealed.

import MigrationEngine
import SQLite

/// The temporary indexes of one hop.
final class PolicyIndexes {
  /// Core Data's names begin with Z or A, so these names are free.
  static let prefix = "HOPD_INDEX_"

  private struct Wanted: Hashable {
    let schema: String
    let table: String
    let columns: [String]
  }

  private let connection: Connection
  /// Staged stores only: the user's own store is never written, and has its indexes from Core Data.
  private let writable: Set<String>
  private var done: Set<Wanted> = []

  init(connection: Connection, writable: Set<String>) {
    self.connection = connection
    self.writable = writable
  }

  /// Creates an index that begins with `columns` if the schema is a staged store without one.
  func ensure(_ schema: String, table: String, columns: [String]) throws(SQLiteError) {
    let wanted = Wanted(schema: schema, table: table, columns: columns)
    guard writable.contains(schema), done.insert(wanted).inserted else { return }
    if try isThere(wanted) { return }
    let name = Self.prefix + "\(done.count)_\(table)"
    let list = columns.map(SQLiteIdentifier.quoted).joined(separator: ", ")
    try connection.execute(
      "CREATE INDEX IF NOT EXISTS \(SQLiteIdentifier.quoted(schema)).\(SQLiteIdentifier.quoted(name))"
        + " ON \(SQLiteIdentifier.quoted(table)) (\(list))")
  }

  private func isThere(_ wanted: Wanted) throws(SQLiteError) -> Bool {
    let schema = SQLiteIdentifier.quoted(wanted.schema)
    let indexes = try connection.rows("PRAGMA \(schema).index_list(\(SQLiteIdentifier.quoted(wanted.table)))") {
      (row) throws(SQLiteError) in (name: row.text(at: 1) ?? "", isPartial: row.integer(at: 4) != 0)
    }
    for index in indexes where !index.isPartial {
      let columns = try connection.rows("PRAGMA \(schema).index_info(\(SQLiteIdentifier.quoted(index.name)))") {
        (row) throws(SQLiteError) in row.text(at: 2) ?? ""
      }
      if columns.starts(with: wanted.columns) { return true }
    }
    return false
  }

  /// Drops all temporary indexes of a schema.
  static func drop(from schema: String, of connection: Connection) throws(SQLiteError) {
    let quoted = SQLiteIdentifier.quoted(schema)
    let names = try connection.rows(
      "SELECT name FROM \(quoted).sqlite_schema WHERE type = 'index' AND name GLOB '\(prefix)*'"
    ) { (row) throws(SQLiteError) in row.text(at: 0) ?? "" }
    for name in names { try connection.execute("DROP INDEX \(quoted).\(SQLiteIdentifier.quoted(name))") }
  }
}
