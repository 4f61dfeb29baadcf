import CSQLite

/// A prepared statement of one connection. Columns are read between two calls of `step`; indexes count from 0,
/// parameters from 1, as in SQLite.
package final class Statement {
  private let handle: OpaquePointer
  private let connection: Connection
  /// The statement's text.
  package let sql: String

  init(handle: OpaquePointer, connection: Connection, sql: String) {
    self.handle = handle
    self.connection = connection
    self.sql = sql
  }

  deinit { sqlite3_finalize(handle) }

  /// Binds a value to parameter `index` (from 1).
  package func bind(_ value: SQLiteValue, at index: Int32) throws(SQLiteError) {
    let code: Int32 =
      switch value {
      case .null: sqlite3_bind_null(handle, index)
      case .integer(let value): sqlite3_bind_int64(handle, index, value)
      case .real(let value): sqlite3_bind_double(handle, index, value)
      case .text(let value): bindText(value, at: index)
      case .blob(let bytes):
        bytes.isEmpty
          ? sqlite3_bind_zeroblob(handle, index, 0)
          : bytes.withUnsafeBytes {
            sqlite3_bind_blob64(handle, index, $0.baseAddress, UInt64($0.count), FunctionBox.transient)
          }
      }
    guard code == SQLITE_OK else { throw connection.error(code, sql: sql) }
  }

  /// Binds values to parameters 1, 2, 3 …
  package func bind(_ values: [SQLiteValue]) throws(SQLiteError) {
    for (offset, value) in values.enumerated() {
      try bind(value, at: Int32(offset + 1))
    }
  }

  private func bindText(_ text: String, at index: Int32) -> Int32 {
    var text = text
    return text.withUTF8 { bytes in
      bytes.withMemoryRebound(to: CChar.self) {
        sqlite3_bind_text64(handle, index, $0.baseAddress, UInt64($0.count), FunctionBox.transient, UInt8(SQLITE_UTF8))
      }
    }
  }

  /// Steps to the next row; false if there is none.
  package func step() throws(SQLiteError) -> Bool {
    switch sqlite3_step(handle) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    case let code: throw connection.error(code, sql: sql)
    }
  }

  /// Runs the statement to its end and makes it ready for the next use.
  package func run(_ values: [SQLiteValue] = []) throws(SQLiteError) {
    try bind(values)
    // Every exit resets the statement: one that is not at its end would keep its transaction open.
    defer { reset() }
    while try step() {}
  }

  /// Returns the result of `body` for the first row with these parameters, or nil if there is none; the statement is
  /// reset afterwards. A statement that returned a row may still have to commit, as `PRAGMA journal_mode = WAL` does:
  /// only its reset reports whether that worked (tools/README.md, "SQLite and files").
  func first<Result>(_ values: [SQLiteValue], _ body: (Statement) -> Result?) throws(SQLiteError) -> Result? {
    try bind(values)
    let result = try step() ? body(self) : nil
    let code = sqlite3_reset(handle)
    guard code == SQLITE_OK else { throw connection.error(code, sql: sql) }
    return result
  }

  /// Resets the statement to its start; bindings stay.
  package func reset() { sqlite3_reset(handle) }

  /// Number of result columns.
  package var columnCount: Int32 { sqlite3_column_count(handle) }
  /// Whether the column is NULL in this row.
  package func isNull(at index: Int32) -> Bool { sqlite3_column_type(handle, index) == SQLITE_NULL }
  /// Whether the column of this row holds an integer.
  package func isInteger(at index: Int32) -> Bool { sqlite3_column_type(handle, index) == SQLITE_INTEGER }
  /// The column as an integer, converted as SQLite does.
  package func integer(at index: Int32) -> Int64 { sqlite3_column_int64(handle, index) }
  /// The column as a double, converted as SQLite does.
  package func real(at index: Int32) -> Double { sqlite3_column_double(handle, index) }

  /// The column as text, or nil for NULL; bytes that are not UTF-8 are replaced.
  package func text(at index: Int32) -> String? {
    guard let pointer = sqlite3_column_text(handle, index) else { return nil }
    let count = Int(sqlite3_column_bytes(handle, index))
    return String(decoding: UnsafeBufferPointer(start: pointer, count: count), as: UTF8.self)
  }

  /// The column's bytes, or nil for NULL.
  package func blob(at index: Int32) -> [UInt8]? {
    if isNull(at: index) { return nil }
    guard let pointer = sqlite3_column_blob(handle, index) else { return [] }
    return Array(UnsafeRawBufferPointer(start: pointer, count: Int(sqlite3_column_bytes(handle, index))))
  }

  /// The column with its stored type.
  package func value(at index: Int32) -> SQLiteValue {
    switch sqlite3_column_type(handle, index) {
    case SQLITE_INTEGER: .integer(integer(at: index))
    case SQLITE_FLOAT: .real(real(at: index))
    case SQLITE_TEXT: .text(text(at: index) ?? "")
    case SQLITE_BLOB: .blob(blob(at: index) ?? [])
    default: .null
    }
  }
}
