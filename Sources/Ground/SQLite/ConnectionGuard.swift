// The limits of statements and schemas on a connection, for every file: bounds of sizes, and an inspection of every
// prepared statement. They are in one place, so that they can be read and tested as a list.

import CLinux
import CSQLite

/// The guard of one connection.
final class ConnectionGuard {
  /// Bytes beyond the file's size for values that hopd's statements compute from its values.
  static let room: Int64 = 64 << 20
  /// The longest statement, also the text of a table: two thousand columns with the longest names are shorter.
  static let statementBytes: Int32 = 16 << 20
  /// The longest text of a table, index, view or trigger in the schema of a file: for a view SQLite uses eighty times
  /// as much memory.
  static let schemaStatementBytes: Int32 = 1 << 20
  /// Nesting of triggers that start triggers. Core Data's own start none.
  static let triggerDepth: Int32 = 8

  /// Whether the statement being prepared is an ATTACH or DETACH of hopd. SQLite holds the address.
  private let attaches: UnsafeMutablePointer<Int32>

  init() {
    attaches = .allocate(capacity: 1)
    attaches.initialize(to: 0)
  }

  /// Runs after the connection was closed.
  deinit { attaches.deallocate() }

  /// Sets the bounds and installs the inspection. `isReading`: only temporary tables are written.
  func begin(_ handle: OpaquePointer, isReading: Bool) throws(SQLiteError) {
    limitStatements(of: handle, readingSchema: true)
    sqlite3_limit(handle, SQLITE_LIMIT_TRIGGER_DEPTH, Self.triggerDepth)
    sqlite3_limit(handle, SQLITE_LIMIT_WORKER_THREADS, 0)
    let code = clinux_sqlite3_guard(handle, isReading ? 1 : 0, attaches)
    guard code == SQLITE_OK else {
      throw SQLiteError(extendedCode: code, message: String(cString: sqlite3_errmsg(handle)))
    }
  }

  /// Bounds the text of statements: to the size of schemas while one is read, otherwise to that of hopd's statements.
  func limitStatements(of handle: OpaquePointer, readingSchema: Bool) {
    sqlite3_limit(handle, SQLITE_LIMIT_SQL_LENGTH, readingSchema ? Self.schemaStatementBytes : Self.statementBytes)
  }

  /// Bounds values by the file: none of its values is longer, but an expression in its schema could make a longer one.
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
