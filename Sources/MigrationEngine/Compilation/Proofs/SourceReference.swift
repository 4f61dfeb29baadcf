// References of the source that may be copied unchanged, but for an offset. Looking each one up costs more than the
// rest of a hop, so one check per column finds out whether every reference leads to an object which its mapping takes.

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

  /// Does every reference of the column lead to an object of that very entity?
  ///
  /// Quick where the column has an index, as every to-one of a store has: keys come in order, and each once. Of a view
  /// it often follows from what it shows.
  package func isSound(
    in space: SourceTables, of connection: Connection, memory: ReferenceMemory = ReferenceMemory()
  ) throws(SQLiteError) -> Bool {
    let name = space.qualified("")
    if let answer = memory.answer(self, in: name) { return answer }
    let answer = try finds(space, connection, memory)
    memory.keep(answer, for: self, in: name)
    return answer
  }

  private func finds(
    _ space: SourceTables, _ connection: Connection, _ memory: ReferenceMemory
  ) throws(SQLiteError) -> Bool {
    if space.isViews {
      if try followsFromSource(of: space, connection, memory) { return true }
    } else if try VerifiedReferences(connection: connection, schema: space.schemaName).contains(self) {
      return true
    }
    if try isWithinDenseKeys(in: space, connection, memory) { return true }
    let key = SQLiteIdentifier.quoted(column)
    let broken = try connection.value(
      "SELECT 1 FROM (SELECT DISTINCT \(key) AS k FROM \(space.qualified(table)) WHERE \(key) IS NOT NULL)"
        + " AS q WHERE NOT EXISTS (SELECT 1 FROM \(space.qualified(targetTable)) AS x"
        + " WHERE x.\"Z_PK\" = q.k AND x.\"Z_ENT\" = \(targetNumber)) LIMIT 1")
    return broken == nil
  }

  /// Where an entity's keys have no gaps, whatever is between the first and the last is one of them: no look-ups are
  /// needed.
  private func isWithinDenseKeys(
    in space: SourceTables, _ connection: Connection, _ memory: ReferenceMemory
  ) throws(SQLiteError) -> Bool {
    if space.isViews { return false }
    let target = space.qualified(targetTable)
    guard let keys = try memory.denseKeys(of: target, number: targetNumber, connection) else { return false }
    if memory.counts?.isWithin(keys, column: column, of: space.qualified(table)) == true { return true }
    let key = SQLiteIdentifier.quoted(column)
    let other = try connection.value(
      "SELECT 1 FROM \(space.qualified(table)) WHERE \(key) IS NOT NULL AND (\(key) NOT BETWEEN \(keys.lowerBound)"
        + " AND \(keys.upperBound) OR typeof(\(key)) <> 'integer') LIMIT 1")
    return other == nil
  }

  /// A view that carries the column has no reference that the column below has not, and one that takes all rows of an
  /// entity lacks none of its objects: what is sound below is sound in the view.
  func followsFromSource(
    of space: SourceTables, _ connection: Connection, _ memory: ReferenceMemory
  ) throws(SQLiteError) -> Bool {
    guard let source = space.source, let origin = space.origin(of: table), let key = origin.carried[column],
      let target = space.origin(of: targetTable), let number = target.whole[targetNumber]
    else { return false }
    // Both rows are made of one row.
    if key == "Z_PK" { return origin.table == target.table && origin.numbers == [number] }
    return try SourceReference(table: origin.table, column: key, targetTable: target.table, targetNumber: number)
      .isSound(in: source, of: connection, memory: memory)
  }

  /// Asks a space about a column once, whoever wants to know it how often; one that is gone has nothing sound.
  static func asking(
    _ space: SourceTables, of connection: Connection, memory: ReferenceMemory
  ) -> (SourceReference) throws(SQLiteError) -> Bool {
    { reference throws(SQLiteError) in
      space.isGone ? false : try reference.isSound(in: space, of: connection, memory: memory)
    }
  }
}

/// What was found out about references, by space: views ask what they lie over, and several hops lie over the same
/// store.
package final class ReferenceMemory {
  private var answers: [String: [SourceReference: Bool]] = [:]
  /// Keys of an entity by table and number; none where they have gaps.
  private var keys: [String: [Int64: ClosedRange<Int64>?]] = [:]
  /// What was counted in the same tables.
  let counts: RowCountCache?

  /// Remembers nothing yet; `counts` has what was counted in the same tables.
  package init(counts: RowCountCache? = nil) { self.counts = counts }

  /// Forgets everything: the tables may be others now.
  package func forget() {
    answers = [:]
    keys = [:]
  }

  /// The keys of an entity's objects where all between the least and the largest of the table are theirs.
  func denseKeys(of table: String, number: Int64, _ connection: Connection) throws(SQLiteError) -> ClosedRange<Int64>? {
    if let known = keys[table]?[number] { return known }
    var found: ClosedRange<Int64>?
    // Ends first, and one at a time: that costs nothing, and tells how many rows there must be.
    let low = try connection.integer("SELECT min(\"Z_PK\") FROM \(table)")
    let high = try connection.integer("SELECT max(\"Z_PK\") FROM \(table)")
    if let low, let high, low > 0, high >= low {
      if let rows = counts?.rows(of: table) {
        if rows == [number: high - low + 1] { found = low...high }
      } else if try connection.integer("SELECT count(*) FROM \(table)") == high - low + 1,
        try connection.value("SELECT 1 FROM \(table) WHERE \"Z_ENT\" IS NOT \(number) LIMIT 1") == nil
      {
        found = low...high
      }
    }
    keys[table, default: [:]][number] = .some(found)
    return found
  }

  func answer(_ reference: SourceReference, in space: String) -> Bool? { answers[space]?[reference] }

  func keep(_ answer: Bool, for reference: SourceReference, in space: String) {
    answers[space, default: [:]][reference] = answer
  }
}
