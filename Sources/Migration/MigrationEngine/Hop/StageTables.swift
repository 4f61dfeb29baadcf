// The values that the hooks of stages store. They are copied from hop to hop, so that `didMigrate` can read the values
// that `willMigrate` stored (docs/decisions/0068), and dropped when the last staged store is sealed.

import SQLite

/// The table of stages' values.
package enum StageTables {
  /// The table's name in a staged store.
  package static let name = "HOPD_STAGE"

  /// Returns the statement that creates it if it does not exist.
  package static func creation(in schema: String) -> String {
    "CREATE TABLE IF NOT EXISTS \(qualified(schema))"
      + " (name TEXT NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, PRIMARY KEY (name, key)) WITHOUT ROWID"
  }

  /// Copies it from one staged store to the next; does nothing if the first has none.
  static func carrying(from source: String, to destination: String, _ connection: Connection) throws(SQLiteError)
    -> [String]
  {
    guard try connection.hasTable(name, in: source) else { return [] }
    return [
      creation(in: destination), "INSERT INTO \(qualified(destination)) SELECT * FROM \(qualified(source))",
    ]
  }

  private static func qualified(_ schema: String) -> String {
    SQLiteIdentifier.quoted(schema) + "." + SQLiteIdentifier.quoted(name)
  }
}

extension Connection {
  /// Whether a schema has a table of that name.
  func hasTable(_ name: String, in schema: String) throws(SQLiteError) -> Bool {
    try integer(
      "SELECT count(*) FROM \(SQLiteIdentifier.quoted(schema)).sqlite_schema WHERE type = 'table' AND name = ?",
      [.text(name)]) == 1
  }
}
