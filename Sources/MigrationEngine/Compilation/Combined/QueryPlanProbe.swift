// Finds how SQLite would run statements over tables that need not exist: it makes the schema in an empty database in
// memory, and reads EXPLAIN QUERY PLAN. Core Data's stores have no statistics, so SQLite decides there as it does here.

import Expressions
import PersistentStore
import SQLite
import SystemPackage

/// A connection on which statements are probed.
final class QueryPlanProbe {
  let connection: Connection

  /// The query plan of one statement.
  struct Lookups {
    /// The tables that are scanned, materialised or given an automatic index, in SQLite's words.
    var scans: [String] = []
    /// The names of the indexes that are used.
    var indexes: Set<String> = []
  }

  init() throws(SQLiteError) {
    connection = try Connection(path: "", access: .memory)
    try HopViews.registerFunctions(on: connection)
    try ValidationFunctions.register(on: connection)
    try connection.registerNullFunction(ExternalDataForm.contentFunction.text, argumentCount: 1)
    try connection.registerNullFunction(ExpressionFunctions.evaluate.text, argumentCount: -1)
  }

  /// Attaches an empty database.
  func attach(_ schema: String) throws(SQLiteError) {
    try connection.attachMemory(as: schema)
  }

  /// Creates the tables of a layout, with or without the indexes by which relationships are followed.
  func create(_ layout: StoreSchema, in schema: String, withIndexes: Bool) throws(SQLiteError) {
    try StoreWriter(connection: connection, schema: schema).createTables(layout)
    guard withIndexes else { return }
    for index in layout.indexes { try connection.execute(index.createStatement(in: schema)) }
  }

  /// Returns the query plan of a statement.
  func lookups(of sql: String) throws(SQLiteError) -> Lookups {
    var result = Lookups()
    let lines = try connection.rows("EXPLAIN QUERY PLAN \(sql)") { row in row.text(at: 3) ?? "" }
    for line in lines {
      let isPlain =
        line.hasPrefix("SCAN CONSTANT ROW") || line.hasPrefix("SCAN HOPD_")
        || Self.end(of: "VIRTUAL TABLE", in: line) != nil
      let isWhole =
        ["SCAN ", "MATERIALIZE ", "CO-ROUTINE "].contains(where: line.hasPrefix)
        || Self.end(of: " AUTOMATIC ", in: line) != nil
      if isWhole, !isPlain { result.scans.append(line) }
      for word in ["USING INDEX ", "USING COVERING INDEX "] {
        guard let end = Self.end(of: word, in: line) else { continue }
        result.indexes.insert(String(line[end...].prefix { $0 != " " }))
      }
    }
    return result
  }

  /// Returns where the first `word` in `line` ends. The standard library's search took a twelfth of a plan's time.
  private static func end(of word: String, in line: String) -> String.Index? {
    let (bytes, first) = (line.utf8, word.utf8.first)
    var start = bytes.startIndex
    while start < bytes.endIndex {
      if bytes[start] == first, bytes[start...].starts(with: word.utf8) {
        return bytes.index(start, offsetBy: word.utf8.count)
      }
      start = bytes.index(after: start)
    }
    return nil
  }

  /// Executes a step's schema changes, for the steps after it.
  func prepare(_ step: HopProgram.Step) throws(SQLiteError) {
    if case .update(let update) = step, update.effect == .schema { try connection.run(update.sql) }
  }
}

extension HopProgram.Step {
  /// The statements that it runs over rows; the next key of a range is always found by the key itself.
  var statements: [String] {
    switch self {
    case .copy(let copy): [copy.nextKey, copy.insert]
    case .chunks(let chunks): [chunks.nextKey] + chunks.actions.map(\.sql)
    case .update(let update): update.effect == .schema ? [] : [update.sql]
    case .policy, .validate, .table, .index, .trigger: []
    }
  }
}
