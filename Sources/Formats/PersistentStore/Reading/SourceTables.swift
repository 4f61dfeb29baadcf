// Names of the tables of a store within a connection: code that generates SQL over them takes their names from here.

import SQLite

/// The tables of a store within a connection.
package struct SourceTables: Sendable, Hashable {
  /// A table whose key divides rows into ranges.
  package struct Driver: Sendable, Hashable {
    /// Its name with the schema before it, quoted.
    package let table: String
    /// The key; quoted if it is a column.
    package let key: String

    /// Names a table and its key.
    package init(table: String, key: String) {
      self.table = table
      self.key = key
    }
  }

  /// The schema that has the tables.
  package let schemaName: String

  /// The tables of a schema: "main", or the name of an attached file.
  package static func schema(_ name: String) -> SourceTables { SourceTables(schemaName: name) }

  /// No tables: the store no longer exists.
  package static let gone = SourceTables.schema("")

  /// Whether there are no tables.
  package var isGone: Bool { schemaName.isEmpty }

  /// The name of a table with the schema before it, quoted.
  package func qualified(_ table: String) -> String {
    SQLiteIdentifier.quoted(schemaName) + "." + SQLiteIdentifier.quoted(table)
  }

  /// The table whose Z_PK divides the rows of an entity's table into ranges.
  package func driver(of table: String) -> Driver { Driver(table: qualified(table), key: "\"Z_PK\"") }

  /// Like `driver`, for a join table, whose rows are divided by rowid.
  package func driver(ofJoin join: String) -> Driver { Driver(table: qualified(join), key: "rowid") }
}

extension SourceTables.Driver {
  /// SQL for the least key from ?1 on: the start of a chunk.
  package var nextKey: String { "SELECT min(\(key)) FROM \(table) WHERE \(key) >= ?1" }

  /// SQL for the least and the greatest key.
  package var endKeys: String { "SELECT (SELECT min(\(key)) FROM \(table)), (SELECT max(\(key)) FROM \(table))" }
}
