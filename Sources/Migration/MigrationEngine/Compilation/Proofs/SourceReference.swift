// References of the source that may be copied unchanged, except for an offset. Looking each one up costs more than the
// rest of a hop, so one check per column finds out whether every reference leads to an object of its mapping.

import PersistentStore
import SQLite

/// A column of the source that holds keys of one entity's objects.
package struct SourceReference: Sendable, Hashable {
  /// The table that has the column.
  package let table: String
  /// The column's name.
  package let column: String
  /// The table of the objects it points to.
  package let targetTable: String
  /// The Z_ENT of these objects.
  package let targetNumber: Int64

  /// Whether every reference of the column leads to an object of exactly that entity.
  ///
  /// Fast if the column has an index, as every to-one of a store has: keys are read in order, and each once.
  package func isSound(
    in tables: SourceTables, of connection: Connection, references: ReferenceCache = ReferenceCache()
  ) throws(SQLiteError) -> Bool {
    let name = tables.qualified("")
    if let answer = references.answer(self, in: name) { return answer }
    let answer = try finds(tables, connection, references)
    references.keep(answer, for: self, in: name)
    return answer
  }

  private func finds(
    _ tables: SourceTables, _ connection: Connection, _ references: ReferenceCache
  ) throws(SQLiteError) -> Bool {
    if try VerifiedReferences(connection: connection, schema: tables.schemaName).contains(self) { return true }
    if try isWithinDenseKeys(in: tables, connection, references) { return true }
    let key = SQLiteIdentifier.quoted(column)
    let broken = try connection.value(
      "SELECT 1 FROM (SELECT DISTINCT \(key) AS k FROM \(tables.qualified(table)) WHERE \(key) IS NOT NULL)"
        + " AS q WHERE NOT EXISTS (SELECT 1 FROM \(tables.qualified(targetTable)) AS x"
        + " WHERE x.\"Z_PK\" = q.k AND x.\"Z_ENT\" = \(targetNumber)) LIMIT 1")
    return broken == nil
  }

  /// Whether all references are in the key range of an entity without gaps: every key of the range is an object, so no
  /// look-ups are needed.
  private func isWithinDenseKeys(
    in tables: SourceTables, _ connection: Connection, _ references: ReferenceCache
  ) throws(SQLiteError) -> Bool {
    let target = tables.qualified(targetTable)
    guard let keys = try references.denseKeys(of: target, number: targetNumber, connection) else { return false }
    if references.counts?.isWithin(keys, column: column, of: tables.qualified(table)) == true { return true }
    let key = SQLiteIdentifier.quoted(column)
    let other = try connection.value(
      "SELECT 1 FROM \(tables.qualified(table)) WHERE \(key) IS NOT NULL AND (\(key) NOT BETWEEN \(keys.lowerBound)"
        + " AND \(keys.upperBound) OR typeof(\(key)) <> 'integer') LIMIT 1")
    return other == nil
  }

  /// Whether the reference, of a store that a hop has written, follows from one in the hop's source. A carried column
  /// has only references of that column, and a table with all rows of an entity lacks none of its objects.
  func follows(
    from written: WrittenTables, _ connection: Connection, _ references: ReferenceCache
  ) throws(SQLiteError) -> Bool {
    guard let origin = written.origin(of: table), let key = origin.carried[column],
      let target = written.origin(of: targetTable), let number = target.whole[targetNumber]
    else { return false }
    // Both rows are made of one row.
    if key == "Z_PK" { return origin.table == target.table && origin.numbers == [number] }
    return try SourceReference(table: origin.table, column: key, targetTable: target.table, targetNumber: number)
      .isSound(in: written.source, of: connection, references: references)
  }

  /// Returns a check for the references of a space. For a store that no longer exists, it returns false.
  static func asking(
    _ tables: SourceTables, of connection: Connection, references: ReferenceCache
  ) -> (SourceReference) throws(SQLiteError) -> Bool {
    { reference throws(SQLiteError) in
      tables.isGone ? false : try reference.isSound(in: tables, of: connection, references: references)
    }
  }
}

/// The results of checks, by the schemas of stores.
package final class ReferenceCache {
  private var answers: [String: [SourceReference: Bool]] = [:]
  /// The keys of an entity by table and number; nil if they have gaps.
  private var keys: [String: [Int64: ClosedRange<Int64>?]] = [:]
  /// The counts made in the same tables.
  let counts: RowCountCache?

  /// Creates an empty cache; `counts` has the counts made in the same tables.
  package init(counts: RowCountCache? = nil) { self.counts = counts }

  /// Removes all results, because the tables may have changed.
  package func forget() {
    answers = [:]
    keys = [:]
  }

  /// Returns the keys of an entity's objects if they include every key between the least and the greatest of the table.
  func denseKeys(of table: String, number: Int64, _ connection: Connection) throws(SQLiteError) -> ClosedRange<Int64>? {
    if let known = keys[table]?[number] { return known }
    var found: ClosedRange<Int64>?
    // The two ends first, each by its own query: that is cheap, and shows how many rows there must be.
    var ends = counts?.keyEnds(of: table)
    if ends == nil {
      ends = KeyEnds(
        low: try connection.integer("SELECT min(\"Z_PK\") FROM \(table)"),
        high: try connection.integer("SELECT max(\"Z_PK\") FROM \(table)"))
    }
    if let low = ends?.low, let high = ends?.high, low > 0, high >= low {
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

  func answer(_ reference: SourceReference, in tables: String) -> Bool? { answers[tables]?[reference] }

  func keep(_ answer: Bool, for reference: SourceReference, in tables: String) {
    answers[tables, default: [:]][reference] = answer
  }
}
