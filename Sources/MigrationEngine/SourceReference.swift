// References of the source that may be taken over as they are. A to-one's object has the key of the one it points to, plus an
// offset; looking each of them up costs more than all the rest of a hop, so it is found out once per column that every
// reference leads to an object which its mapping takes.

import PersistentStore
import SQLite

/// A column of the source with keys of one entity's objects.
package struct SourceReference: Sendable, Hashable {
  /// The table that has the column.
  package let table: String
  /// Its name.
  package let column: String
  /// Table of the objects it points to.
  package let targetTable: String
  /// Their Z_ENT.
  package let targetNumber: Int64

  /// Names a column.
  package init(table: String, column: String, targetTable: String, targetNumber: Int64) {
    self.table = table
    self.column = column
    self.targetTable = targetTable
    self.targetNumber = targetNumber
  }

  /// Does every reference of the column lead to an object of that very entity?
  ///
  /// Quick where the column has an index, as every to-one of a store has: keys come in order, and each once.
  package func isSound(in space: TableSpace, of connection: Connection) throws(SQLiteError) -> Bool {
    let key = SQLiteIdentifier.quoted(column)
    let broken = try connection.value(
      "SELECT 1 FROM (SELECT DISTINCT \(key) AS k FROM \(space.qualified(table)) WHERE \(key) IS NOT NULL)"
        + " AS q WHERE NOT EXISTS (SELECT 1 FROM \(space.qualified(targetTable)) AS x"
        + " WHERE x.\"Z_PK\" = q.k AND x.\"Z_ENT\" = \(targetNumber)) LIMIT 1")
    return broken == nil
  }
}
