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
  /// Quick where the column has an index, as every to-one of a store has: keys come in order, and each once. Of a view it
  /// often follows from what it shows.
  package func isSound(in space: TableSpace, of connection: Connection) throws(SQLiteError) -> Bool {
    if space.isViews {
      if try followsFromSource(of: space, connection) { return true }
    } else if try SoundReferences(connection: connection, schema: space.schemaName).contains(self) {
      return true
    }
    let key = SQLiteIdentifier.quoted(column)
    let broken = try connection.value(
      "SELECT 1 FROM (SELECT DISTINCT \(key) AS k FROM \(space.qualified(table)) WHERE \(key) IS NOT NULL)"
        + " AS q WHERE NOT EXISTS (SELECT 1 FROM \(space.qualified(targetTable)) AS x"
        + " WHERE x.\"Z_PK\" = q.k AND x.\"Z_ENT\" = \(targetNumber)) LIMIT 1")
    return broken == nil
  }

  /// A view that carries the column has no reference that the column below has not, and one that takes all rows of an entity
  /// lacks none of its objects: what is sound below is sound in the view.
  func followsFromSource(of space: TableSpace, _ connection: Connection) throws(SQLiteError) -> Bool {
    guard let source = space.source, let origin = space.origin(of: table), let key = origin.carried[column],
      let target = space.origin(of: targetTable), let number = target.whole[targetNumber]
    else { return false }
    // Both rows are made of one row.
    if key == "Z_PK" { return origin.table == target.table && origin.numbers == [number] }
    return try SourceReference(table: origin.table, column: key, targetTable: target.table, targetNumber: number)
      .isSound(in: source, of: connection)
  }

  /// Asks a space about a column once, whoever wants to know it how often; one that is gone has nothing sound.
  static func asking(
    _ space: TableSpace, of connection: Connection
  ) -> (SourceReference) throws(SQLiteError) -> Bool {
    var known: [SourceReference: Bool] = [:]
    return { reference throws(SQLiteError) in
      if space.isGone { return false }
      if let answer = known[reference] { return answer }
      let answer = try reference.isSound(in: space, of: connection)
      known[reference] = answer
      return answer
    }
  }
}
