// Counts rows by conditions, all conditions in one pass over a table and each of them once. Reading a row costs more
// than evaluating one more condition, so callers pass their conditions together.

import SQLite

/// Counts rows of a store that does not change meanwhile, and keeps every result.
final class RowCounter {
  private let reader: StoreReader
  private let memory: RowCountCache

  /// The alias of the row's table within conditions.
  static let row = "s"

  init(reader: StoreReader) {
    self.reader = reader
    memory = reader.memory ?? RowCountCache()
  }

  /// Returns the number of rows of a table.
  func total(of table: String) throws(SQLiteError) -> Int64 {
    let name = reader.qualified(table)
    if let total = memory.total(of: name) { return total }
    let total = try reader.connection.integer("SELECT count(*) FROM \(name)") ?? 0
    memory.keep(total: total, of: name)
    return total
  }

  /// Whether the condition was already counted.
  func knows(_ condition: String, in table: String) -> Bool {
    memory.count(condition, in: reader.qualified(table)) != nil
  }

  /// Returns the number of rows that fulfil each condition; new conditions are counted together.
  func counts(_ conditions: [String], in table: String) throws(SQLiteError) -> [Int64] {
    let name = reader.qualified(table)
    var asked: Set<String> = []
    let new = conditions.filter { memory.count($0, in: name) == nil && asked.insert($0).inserted }
    var rest = new[...]
    while !rest.isEmpty {
      let part = Array(rest.prefix(400))
      rest = rest.dropFirst(400)
      let terms = part.map { "count(*) FILTER (WHERE \($0))" }
      let width = Int32(clamping: part.count)
      let answers =
        try reader.connection.rows(
          "SELECT count(*), \(terms.joined(separator: ", ")) FROM \(name) AS \(RowCounter.row)"
        ) { row in (0...width).map { row.integer(at: $0) } }.first ?? []
      memory.keep(total: answers.first ?? 0, of: name)
      for (condition, count) in zip(part, answers.dropFirst()) { memory.keep(count, for: condition, in: name) }
    }
    return conditions.map { memory.count($0, in: name) ?? 0 }
  }

  /// A column of a row within a condition.
  static func column(_ name: String) -> String { "\(row).\(SQLiteIdentifier.quoted(name))" }
}
