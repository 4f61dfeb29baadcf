// What the hooks of stages remember. It goes along from hop to hop, so that `didMigrate` knows what `willMigrate` has
// seen (docs/decisions/0069); gone when the last staged store is sealed.

import SQLite

/// The table of what stages remember.
package enum StageTables {
  /// Its name in a staged store.
  package static let name = "HOPD_STAGE"

  /// The statement that makes it, where it is not there.
  package static func creation(in schema: String) -> String {
    "CREATE TABLE IF NOT EXISTS \(qualified(schema))"
      + " (name TEXT NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, PRIMARY KEY (name, key)) WITHOUT ROWID"
  }

  /// What takes it along from one staged store to the next; nothing where the first has none.
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
  /// Is there a table of that name in a schema?
  func hasTable(_ name: String, in schema: String) throws(SQLiteError) -> Bool {
    try integer(
      "SELECT count(*) FROM \(SQLiteIdentifier.quoted(schema)).sqlite_schema WHERE type = 'table' AND name = ?",
      [.text(name)]) == 1
  }
}
