// Counts rows by conditions, all conditions in one pass over a table and each of them once. Reading a row costs more
// than evaluating one more condition, so callers pass their conditions together.

import SQLite

/// Counts rows of a store that does not change meanwhile, and keeps every result.
final class RowCounter {
  let reader: StoreReader
  let rowCountCache: RowCountCache

  /// The alias of the row's table within conditions.
  static let row = "s"

  init(reader: StoreReader) {
    self.reader = reader
    rowCountCache = reader.rowCountCache ?? RowCountCache()
  }

  /// Returns the number of rows of a table.
  func total(of table: String) throws(SQLiteError) -> Int64 {
    let name = reader.qualified(table)
    if let total = rowCountCache.total(of: name) { return total }
    let total = try reader.connection.integer("SELECT count(*) FROM \(name)") ?? 0
    rowCountCache.keep(total: total, of: name)
    return total
  }

  /// Whether the condition was already counted.
  func knows(_ condition: String, in table: String) -> Bool {
    rowCountCache.count(condition, in: reader.qualified(table)) != nil
  }

  /// Returns the number of rows that fulfil each condition; new conditions are counted together.
  func counts(_ conditions: [String], in table: String) throws(SQLiteError) -> [Int64] {
    let name = reader.qualified(table)
    var asked: Set<String> = []
    let new = conditions.filter { rowCountCache.count($0, in: name) == nil && asked.insert($0).inserted }
    var rest = new[...]
    while !rest.isEmpty {
      let part = Array(rest.prefix(400))
      rest = rest.dropFirst(400)
      keep(try answers(part, in: name), to: part, in: name)
    }
    return conditions.map { rowCountCache.count($0, in: name) ?? 0 }
  }

  /// Returns the number of rows of a table, and of those that fulfil each condition, in one pass.
  private func answers(_ conditions: [String], in name: String) throws(SQLiteError) -> [Int64] {
    let terms = ["count(*)"] + conditions.map { "count(*) FILTER (WHERE \($0))" }
    let width = Int32(clamping: conditions.count)
    return try reader.connection.rows("SELECT \(terms.joined(separator: ", ")) FROM \(name) AS \(Self.row)") { row in
      (0...width).map { row.integer(at: $0) }
    }.first ?? []
  }

  /// Keeps the answers to conditions: the number of all rows, and one number for each condition.
  private func keep(_ answers: [Int64], to conditions: [String], in name: String) {
    rowCountCache.keep(total: answers.first ?? 0, of: name)
    for (condition, count) in zip(conditions, answers.dropFirst()) {
      rowCountCache.keep(count, for: condition, in: name)
    }
  }

  /// A column of a row within a condition.
  static func column(_ name: String) -> String { "\(row).\(SQLiteIdentifier.quoted(name))" }
}
