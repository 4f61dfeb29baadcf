// What a connection lets statements and schemas do, whatever file it has open: bounds of sizes, and a look at every
// statement that is prepared. Here in one place, so that it can be read and tested as a list.

import CLinux
import CSQLite

/// The guard of one connection.
final class ConnectionGuard {
  /// Room beyond the file for what statements of hopd's make of its values.
  static let room: Int64 = 64 << 20
  /// The longest statement, also the text of a table: two thousand columns with the longest names take less.
  static let statementBytes: Int32 = 16 << 20
  /// The longest text of a table, index, view or trigger in the schema of a file: SQLite keeps eighty times as much of
  /// a view in memory.
  static let schemaStatementBytes: Int32 = 1 << 20
  /// Triggers that start triggers. Core Data's own start none.
  static let triggerDepth: Int32 = 8

  /// Whether the statement that is being prepared is our own ATTACH or DETACH. SQLite holds the address.
  private let attaches: UnsafeMutablePointer<Int32>

  init() {
    attaches = .allocate(capacity: 1)
    attaches.initialize(to: 0)
  }

  /// After the connection was closed.
  deinit { attaches.deallocate() }

  /// Sets the bounds, and watches from now on. `isReading`: nothing but temporary tables is written.
  func begin(_ handle: OpaquePointer, isReading: Bool) throws(SQLiteError) {
    limitStatements(of: handle, readingSchema: true)
    sqlite3_limit(handle, SQLITE_LIMIT_TRIGGER_DEPTH, Self.triggerDepth)
    sqlite3_limit(handle, SQLITE_LIMIT_WORKER_THREADS, 0)
    let code = clinux_sqlite3_guard(handle, isReading ? 1 : 0, attaches)
    guard code == SQLITE_OK else {
      throw SQLiteError(extendedCode: code, message: String(cString: sqlite3_errmsg(handle)))
    }
  }

  /// Bounds the text of statements: to what schemas have while one is read, else to what ours take.
  func limitStatements(of handle: OpaquePointer, readingSchema: Bool) {
    sqlite3_limit(handle, SQLITE_LIMIT_SQL_LENGTH, readingSchema ? Self.schemaStatementBytes : Self.statementBytes)
  }

  /// No value of a file is longer than the file; an expression in its schema may want to be.
  func limitValues(of handle: OpaquePointer, fileBytes: Int64) {
    let (sum, overflow) = max(0, fileBytes).addingReportingOverflow(Self.room)
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, overflow ? .max : Int32(clamping: sum))
  }

  /// Runs `body`, which may attach and detach.
  func attaching<Result>(_ body: () throws(SQLiteError) -> Result) throws(SQLiteError) -> Result {
    attaches.pointee = 1
    defer { attaches.pointee = 0 }
    return try body()
  }
}
