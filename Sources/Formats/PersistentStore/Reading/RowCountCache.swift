// Counts of tables that do not change while they are in use: a chain inspects the rows between its hops more than once,
// as the result of one hop, as the source of the next, and for verification.

import SQLite

/// Caches counts by table for all readers of the same store over one connection.
package final class RowCountCache {
  private var totals: [String: Int64] = [:]
  private var counts: [String: [String: Int64]] = [:]
  fileprivate var ends: [String: KeyEnds] = [:]
  private var rows: [String: [Int64: Int64]] = [:]

  /// Creates an empty cache.
  package init() {}

  /// Drops everything, because the tables may have changed.
  package func forget() {
    totals = [:]
    counts = [:]
    ends = [:]
    rows = [:]
  }

  /// The ends of a table's keys, by its name with the schema; nil if they were not read.
  package func keyEnds(of table: String) -> KeyEnds? { ends[table] }

  /// The number of rows of a table, by its name with the schema.
  func total(of table: String) -> Int64? { totals[table] }

  /// The rows of a table by Z_ENT, without numbers that no row has.
  package func rows(of table: String) -> [Int64: Int64]? { rows[table] }

  /// Keeps the rows of a table by Z_ENT; `found` contains all of them.
  package func keep(rows found: [Int64: Int64], of table: String) {
    rows[table] = found
    totals[table] = found.values.reduce(0, &+)
  }

  /// Whether a column is known to have only keys within a range, and NULLs.
  package func isWithin(_ keys: ClosedRange<Int64>, column: String, of table: String) -> Bool {
    count(RowKeys.outside(keys, RowCounter.column(column)), in: table) == 0
  }

  /// Whether a column is known to have a value in every row.
  package func isPresent(_ column: String, of table: String) -> Bool {
    count("\(RowCounter.column(column)) IS NULL", in: table) == 0
  }

  /// Records that a column has a value in every row.
  package func keepPresent(_ column: String, of table: String) {
    keep(0, for: "\(RowCounter.column(column)) IS NULL", in: table)
  }

  /// Keeps a total.
  func keep(total: Int64, of table: String) { totals[table] = total }

  /// The number of rows of a table for which a condition holds; nil if it was not counted.
  package func count(_ condition: String, in table: String) -> Int64? { counts[table]?[condition] }

  /// Keeps a count.
  package func keep(_ count: Int64, for condition: String, in table: String) {
    counts[table, default: [:]][condition] = count
  }
}

/// The lowest and the highest Z_PK of a table; nil if it has no rows.
package struct KeyEnds: Sendable, Hashable {
  /// The lowest key.
  package let low: Int64?
  /// The highest key.
  package let high: Int64?

  /// Creates the ends of a table's keys.
  package init(low: Int64?, high: Int64?) {
    self.low = low
    self.high = high
  }
}

extension StoreReader {
  /// Returns the ends of a table's keys; reads them only once if the reader has a cache.
  package func keyEnds(of table: String) throws(SQLiteError) -> KeyEnds {
    let name = qualified(table)
    if let known = rowCountCache?.ends[name] { return known }
    // Two separate queries each find their key at one end of the table; a combined one would read all of it.
    let found =
      try connection.rows("SELECT (SELECT min(\"Z_PK\") FROM \(name)), (SELECT max(\"Z_PK\") FROM \(name))") { row in
        KeyEnds(low: row.isNull(at: 0) ? nil : row.integer(at: 0), high: row.isNull(at: 1) ? nil : row.integer(at: 1))
      }.first ?? KeyEnds(low: nil, high: nil)
    rowCountCache?.ends[name] = found
    return found
  }
}
