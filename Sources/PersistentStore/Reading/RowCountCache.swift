// What was counted in tables that do not change while they are asked: a chain inspects the rows between its hops more
// than once, as what one hop must have made, as what the next one reads, and as what its result is verified against.

import SQLite

/// Answers to counting questions by table, shared by all who read the same store over one connection.
package final class RowCountCache {
  private var totals: [String: Int64] = [:]
  private var counts: [String: [String: Int64]] = [:]
  fileprivate var ends: [String: KeyEnds] = [:]
  private var rows: [String: [Int64: Int64]] = [:]
  private var books: [String: StoreBooks] = [:]

  /// Remembers nothing yet.
  package init() {}

  /// Forgets everything: the tables may be others now.
  package func forget() {
    totals = [:]
    counts = [:]
    ends = [:]
    rows = [:]
    books = [:]
  }

  /// Keeps what a store in `space` says of itself, where it has no tables for that: views of a hop that is not written.
  package func keep(_ found: StoreBooks, of space: SourceTables) { books[space.qualified(StoreBooks.table)] = found }

  /// What the store in `space` says of itself, where it was kept.
  func books(of space: SourceTables) -> StoreBooks? { books[space.qualified(StoreBooks.table)] }

  /// All rows of a table, whose name has its schema before it.
  func total(of table: String) -> Int64? { totals[table] }

  /// The rows of a table by Z_ENT, without the numbers that none has.
  package func rows(of table: String) -> [Int64: Int64]? { rows[table] }

  /// Keeps the rows of a table by Z_ENT, all of them.
  package func keep(rows found: [Int64: Int64], of table: String) {
    rows[table] = found
    totals[table] = found.values.reduce(0, &+)
  }

  /// Was it found that a column has nothing but keys from the first to the last of a range, and NULLs?
  package func isWithin(_ keys: ClosedRange<Int64>, column: String, of table: String) -> Bool {
    count(RowKeys.outside(keys, RowCounter.column(column)), in: table) == 0
  }

  /// Was it found that a column has a value in every row?
  func isPresent(_ column: String, of table: String) -> Bool {
    count("\(RowCounter.column(column)) IS NULL", in: table) == 0
  }

  /// Keeps that a column has a value in every row.
  package func keepPresent(_ column: String, of table: String) {
    keep(0, for: "\(RowCounter.column(column)) IS NULL", in: table)
  }

  /// Keeps a total.
  func keep(total: Int64, of table: String) { totals[table] = total }

  /// The rows of a table for which a condition holds.
  package func count(_ condition: String, in table: String) -> Int64? { counts[table]?[condition] }

  /// Keeps a count.
  package func keep(_ count: Int64, for condition: String, in table: String) {
    counts[table, default: [:]][condition] = count
  }
}

/// What a store says of itself beside its rows: the content of Z_METADATA and Z_PRIMARYKEY.
package struct StoreBooks: Sendable {
  fileprivate static let table = "Z_METADATA"

  let metadata: StoreMetadata
  let primaryKeys: [PrimaryKeyEntry]

  /// Makes books; the entries of Z_PRIMARYKEY by number.
  package init(metadata: StoreMetadata, primaryKeys: [PrimaryKeyEntry]) {
    self.metadata = metadata
    self.primaryKeys = primaryKeys.sorted { $0.number < $1.number }
  }
}

/// The least and the greatest Z_PK of a table; nil where it has no rows.
package struct KeyEnds: Sendable, Hashable {
  /// The least key.
  package let low: Int64?
  /// The greatest key.
  package let high: Int64?
}

extension StoreReader {
  /// The ends of a table's keys, asked for once where there is a memory.
  package func keyEnds(of table: String) throws(SQLiteError) -> KeyEnds {
    let name = qualified(table)
    if let known = memory?.ends[name] { return known }
    if let below = try keyEndsBelow(table) {
      memory?.ends[name] = below
      return below
    }
    // Each by itself is found at one end of the table; both in one question would read all of it.
    let found =
      try connection.rows("SELECT (SELECT min(\"Z_PK\") FROM \(name)), (SELECT max(\"Z_PK\") FROM \(name))") { row in
        KeyEnds(low: row.isNull(at: 0) ? nil : row.integer(at: 0), high: row.isNull(at: 1) ? nil : row.integer(at: 1))
      }.first ?? KeyEnds(low: nil, high: nil)
    memory?.ends[name] = found
    return found
  }

  /// Those of the table below, where a view shows all of its rows under their keys.
  private func keyEndsBelow(_ table: String) throws(SQLiteError) -> KeyEnds? {
    guard let memory, let below = space.source, let origin = space.origin(of: table), origin.showsAllRows,
      origin.carried["Z_PK"] == "Z_PK", let counts = memory.rows(of: below.qualified(origin.table)),
      origin.numbers.isSuperset(of: counts.keys)
    else { return nil }
    return try StoreReader(connection: connection, space: below, memory: memory).keyEnds(of: origin.table)
  }
}
