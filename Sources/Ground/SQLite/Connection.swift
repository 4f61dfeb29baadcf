// A connection to one database file and its attached databases. It stays in the task that opened it: the class is
// deliberately not Sendable.

import CLinux
import CSQLite
import Glibc
import SystemPackage

/// A SQLite connection, hardened for files from strangers.
package final class Connection {
  let handle: OpaquePointer
  let watch = ConnectionGuard()
  var progress: ProgressBox?
  /// SQLite holds the address of its number.
  var tally: RowTally?
  var functions: [AnyObject] = []
  /// The error that a registered function threw in its last failed call.
  var functionFailure: (any Error)?

  /// The page cache of each database of a connection, in KiB; sorting uses as much again. It should hold the pages that
  /// each row looks up (the keys of objects by distinct values), or each look-up reads a page (docs/decisions/0154).
  package static let cacheKibibytes: Int64 = 6144

  /// Memory statistics are off: they take a lock on every allocation, which costs a hundredth of a migration, a
  /// twenty-fifth of one with policies. Set with the first connection; if SQLite is already initialized, it continues
  /// to count.
  private static let isConfigured = clinux_sqlite3_without_statistics() == 0

  /// Registers the VFS of every connection (CLinux/storevfs.c), once for the process.
  private static let vfsCode = clinux_register_store_vfs()
  /// Registers the VFS of connections that read through another connection's file (CLinux/readervfs.c).
  private static let readerCode = clinux_register_reader_vfs()

  /// How a database is opened.
  package enum Access: Sendable, Hashable {
    /// Read only, through SQLite's locks; not for a database in WAL mode, whose index would be in shared memory.
    case readOnly
    /// Read and write; the file must exist and not be in WAL mode.
    case readWrite
    /// Read and write; a missing file is created.
    case create
    /// Read and write with `locking_mode = EXCLUSIVE`: a lock is kept once it is taken, and no other connection may
    /// have a WAL store open. The mode is set before the first access, so the log's index is in the heap
    /// (sqlite.org/wal.html, section 8): a `-shm` is neither made nor read nor removed. With `keepsLog`, from the first
    /// moment on, closing leaves a `-wal` unchanged.
    case exclusive(keepsLog: Bool)
    /// Read only, without locks and side files: correct only if there is no `-wal` with content.
    case immutable
    /// Read only, without locks; a `-wal` is read into memory. Nothing in the folder changes, but a concurrent writer
    /// is not noticed: the caller compares the files before and after.
    case unlocked
    /// hopd's own record, which other processes read meanwhile: the index of its log is in shared memory. A writer
    /// creates the file if it is missing, and leaves log and index there when it closes, because a reader without the
    /// right to write in the directory cannot make them.
    case shared(writes: Bool)
    /// A private database in memory.
    case memory

    /// Whether files from strangers are opened with it, for reading only.
    var isOfStranger: Bool {
      switch self {
      case .readOnly, .immutable, .unlocked: true
      case .shared(let writes): !writes
      case .readWrite, .create, .exclusive, .memory: false
      }
    }
  }

  /// Opens `path`.
  ///
  /// Symbolic links are refused. `trusted_schema` is off, `mmap_size` 0, `cell_size_check` on, CHECK constraints are
  /// not evaluated, DEFENSIVE is set, and `ConnectionGuard` watches: the schema of a foreign store cannot run any of
  /// hopd's functions (tools/README.md, "Hostile stores").
  package convenience init(path: FilePath, access: Access, busyTimeout: Duration = .zero) throws(SQLiteError) {
    try self.init(path: path, access: access, busyTimeout: busyTimeout, vfs: CLINUX_STORE_VFS)
  }

  /// Opens `path` on a named VFS; nil is SQLite's own, which other programs use: tests play such programs.
  init(path: FilePath, access: Access, busyTimeout: Duration = .zero, vfs: String?) throws(SQLiteError) {
    let (name, flags) = Connection.opening(path, access)
    _ = Connection.isConfigured
    guard Connection.vfsCode == SQLITE_OK else {
      throw SQLiteError(extendedCode: Connection.vfsCode, message: "the VFS of connections cannot be registered")
    }
    // Drops a refusal of an earlier call that SQLite ignored.
    _ = clinux_store_vfs_take_refusal()
    var opened: OpaquePointer?
    let code = sqlite3_open_v2(name, &opened, flags, vfs)
    guard code == SQLITE_OK, let opened else {
      let message = opened.map { String(cString: sqlite3_errmsg($0)) } ?? String(cString: sqlite3_errstr(code))
      sqlite3_close_v2(opened)
      throw SQLiteError(extendedCode: code, message: message, refusal: VFSRefusal.taken())
    }
    handle = opened
    sqlite3_busy_timeout(handle, Int32(clamping: busyTimeout.components.seconds * 1000))
    _ = clinux_sqlite3_db_config_flag(handle, SQLITE_DBCONFIG_DEFENSIVE, 1)
    _ = clinux_sqlite3_db_config_flag(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    _ = clinux_sqlite3_db_config_flag(handle, SQLITE_DBCONFIG_DQS_DML, 0)
    _ = clinux_sqlite3_db_config_flag(handle, SQLITE_DBCONFIG_DQS_DDL, 0)
    try watch.begin(handle, isReading: access.isOfStranger)
    if access.isOfStranger {
      let bytes = [path, FilePath(path.string + "-wal")].reduce(Int64(0)) { $0 &+ Connection.bytes(of: $1) }
      watch.limitValues(of: handle, fileBytes: bytes)
    }
    if access == .unlocked {
      // Closing must not checkpoint the -wal: nothing in the folder may change.
      _ = clinux_sqlite3_db_config_flag(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
      // With exclusive locking the WAL index is in memory and no -shm is made (sqlite.org/wal.html, section 8).
      try execute("PRAGMA locking_mode = EXCLUSIVE")
    }
    if access == .shared(writes: true) {
      var keeps: Int32 = 1
      sqlite3_file_control(handle, "main", SQLITE_FCNTL_PERSIST_WAL, &keeps)
    }
    if case .exclusive(let keepsLog) = access {
      if keepsLog { keepWriteAheadLogOnClose() }
      try execute("PRAGMA locking_mode = EXCLUSIVE")
    }
    try execute(
      "PRAGMA mmap_size = 0; PRAGMA cell_size_check = ON; PRAGMA ignore_check_constraints = ON; "
        + "PRAGMA cache_size = -\(Self.cacheKibibytes); PRAGMA temp.cache_size = -\(Self.cacheKibibytes)")
    // Setting the size of its cache has read the schema.
    endSchemaReading(of: "main")
  }

  /// The name that SQLite opens, as a URI, and the flags.
  private static func opening(_ path: FilePath, _ access: Access) -> (name: String, flags: Int32) {
    var flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_URI
    var parameters = ""
    switch access {
    case .readOnly: flags |= SQLITE_OPEN_READONLY | SQLITE_OPEN_NOFOLLOW
    case .readWrite, .exclusive: flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW
    case .create: flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW
    case .immutable:
      flags |= SQLITE_OPEN_READONLY | SQLITE_OPEN_NOFOLLOW
      parameters = "?immutable=1"
    case .unlocked:
      flags |= SQLITE_OPEN_READONLY | SQLITE_OPEN_NOFOLLOW
      // The VFS without locks, not `nolock=1`: with that, SQLite refuses a log.
      parameters = "?vfs=\(CLINUX_STORE_VFS_WITHOUT_LOCKS)"
    case .shared(let writes):
      flags |= (writes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOFOLLOW
      parameters = "?vfs=\(CLINUX_STORE_VFS_SHARED)"
    case .memory: flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY
    }
    return (access == .memory ? "file::memory:" : Connection.uri(path) + parameters, flags)
  }

  deinit { sqlite3_close_v2(handle) }

  /// The open file of one connection, through which another connection of any thread can read.
  ///
  /// `@unchecked Sendable`: the pointer is used only for reads, by calls that several threads may make at once.
  package struct BorrowedFile: @unchecked Sendable {
    fileprivate let pointer: UnsafeMutableRawPointer
    /// Its size.
    package let bytes: Int64
  }

  /// Returns the file of a schema; nil if the schema is in memory.
  package func borrowedFile(of schema: String) throws(SQLiteError) -> BorrowedFile? {
    let prefix = "PRAGMA \(SQLiteIdentifier.quoted(schema))."
    guard let pointer = clinux_store_vfs_file(handle, schema), let pages = try integer("\(prefix)page_count"),
      let size = try integer("\(prefix)page_size")
    else { return nil }
    return BorrowedFile(pointer: pointer, bytes: pages.multipliedReportingOverflow(by: size).partialValue)
  }

  /// Opens a database for reading through the open file of another connection. It takes no lock and has no descriptor
  /// of its own, so the other connection must stay open, nothing may write meanwhile, and the content of a log is not
  /// visible.
  package convenience init(reading file: BorrowedFile) throws(SQLiteError) {
    guard Connection.readerCode == SQLITE_OK else {
      throw SQLiteError(extendedCode: Connection.readerCode, message: "the VFS of readers cannot be registered")
    }
    clinux_reader_vfs_reads(file.pointer)
    defer { clinux_reader_vfs_reads(nil) }
    try self.init(path: "reader", access: .immutable, vfs: CLINUX_READER_VFS)
    watch.limitValues(of: handle, fileBytes: file.bytes)
  }

  private static func bytes(of path: FilePath) -> Int64 {
    path.withPlatformString { clinux_file_bytes($0) }
  }

  /// If true, closing the last connection keeps a `-wal` instead of checkpointing and removing it; `false` restores
  /// SQLite's default.
  package func keepWriteAheadLogOnClose(_ keep: Bool = true) {
    _ = clinux_sqlite3_db_config_flag(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep ? 1 : 0)
  }

  /// Whether statements of this connection start triggers; SQLite's default is true.
  package func runsTriggers(_ runs: Bool) {
    _ = clinux_sqlite3_db_config_flag(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, runs ? 1 : 0)
  }

  /// Sets the number of the schema's version, which DEFENSIVE forbids otherwise; no other connection may have the file
  /// open.
  package func setSchemaVersion(_ version: Int64) throws(SQLiteError) {
    _ = clinux_sqlite3_db_config_flag(handle, SQLITE_DBCONFIG_DEFENSIVE, 0)
    defer { _ = clinux_sqlite3_db_config_flag(handle, SQLITE_DBCONFIG_DEFENSIVE, 1) }
    try execute("PRAGMA schema_version = \(version & 0x7fff_ffff)")
  }

  /// If true, databases that this connection creates from now on have SQLite's schema format 1, as stores of the first
  /// iPhones do, instead of 4.
  package func makesOldestFileFormat(_ oldest: Bool) {
    _ = clinux_sqlite3_db_config_flag(handle, SQLITE_DBCONFIG_LEGACY_FILE_FORMAT, oldest ? 1 : 0)
  }

  /// The path as a `file:` URI; each byte that is not plain is escaped, so any file name is valid.
  package static func uri(_ path: FilePath) -> String {
    path.withPlatformString { pointer in
      UnsafeRawBufferPointer(start: pointer, count: strlen(pointer)).reduce(into: "file:") { text, byte in
        if SQLiteIdentifier.isPlain(byte) || "/.-".utf8.contains(byte) {
          text.unicodeScalars.append(Unicode.Scalar(byte))
        } else {
          text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }
      }
    }
  }

  // MARK: Statements

  /// Runs one or several statements and ignores their rows.
  package func execute(_ sql: String) throws(SQLiteError) {
    let code = sqlite3_exec(handle, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw error(code, sql: sql) }
  }

  /// Prepares one statement.
  package func prepare(_ sql: String) throws(SQLiteError) -> Statement {
    var statement: OpaquePointer?
    let code = sqlite3_prepare_v2(handle, sql, -1, &statement, nil)
    guard code == SQLITE_OK else { throw error(code, sql: sql) }
    guard let statement else {
      throw SQLiteError(extendedCode: SQLITE_MISUSE, message: "no statement in the text", sql: sql)
    }
    return Statement(handle: statement, connection: self, sql: sql)
  }

  /// Runs one statement with its parameters.
  package func run(_ sql: String, _ values: [SQLiteValue] = []) throws(SQLiteError) {
    try prepare(sql).run(values)
  }

  /// Returns every row of a query, mapped by `body`.
  package func rows<Result>(
    _ sql: String, _ values: [SQLiteValue] = [], _ body: (Statement) throws(SQLiteError) -> Result
  ) throws(SQLiteError) -> [Result] {
    let statement = try prepare(sql)
    try statement.bind(values)
    var results: [Result] = []
    while try statement.step() {
      results.append(try body(statement))
    }
    return results
  }

  /// Returns the first column of the first row; nil if there is no row.
  package func value(_ sql: String, _ values: [SQLiteValue] = []) throws(SQLiteError) -> SQLiteValue? {
    try prepare(sql).first(values) { $0.value(at: 0) }
  }

  /// Returns the first column of the first row as an integer; 0 for NULL, nil if there is no row.
  package func integer(_ sql: String, _ values: [SQLiteValue] = []) throws(SQLiteError) -> Int64? {
    try prepare(sql).first(values) { $0.integer(at: 0) }
  }

  /// Returns the first column of the first row as text; nil for NULL or no row.
  package func text(_ sql: String, _ values: [SQLiteValue] = []) throws(SQLiteError) -> String? {
    try prepare(sql).first(values) { $0.text(at: 0) }
  }

  /// Number of rows that the last statement inserted, updated or deleted.
  package var changes: Int64 { sqlite3_changes64(handle) }

  /// Returns the number of pages written to all database files of the connection since the last call.
  package func takePagesWritten() -> Int64 {
    var (current, highest): (Int32, Int32) = (0, 0)
    guard sqlite3_db_status(handle, SQLITE_DBSTATUS_CACHE_WRITE, &current, &highest, 1) == SQLITE_OK else { return 0 }
    return Int64(max(0, current))
  }

  /// Whether a transaction is open.
  package var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

  /// Runs `body` inside a transaction; any error rolls back.
  package func transaction<Result, Failure: Error>(
    _ begin: String = "BEGIN", _ body: () throws(Failure) -> Result
  ) throws -> Result {
    try execute(begin)
    do {
      let result = try body()
      try execute("COMMIT")
      return result
    } catch {
      // SQLite rolls back by itself on some errors (full disk, I/O); a second ROLLBACK would hide the first error.
      if isInTransaction { try? execute("ROLLBACK") }
      throw error
    }
  }

  /// Bounds the bytes of one value: SQLite fails with SQLITE_TOOBIG on a larger one before it reads it. A statement
  /// that passes a value on has up to four copies of it in memory.
  package func limitValues(toBytes bytes: Int64) {
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, Int32(clamping: max(1, bytes)))
  }

  /// The open file of this connection and the directory that it was opened in; nil for one in memory, or if the default
  /// VFS is not SQLite's own.
  package var openFile: OpenFile? {
    var found = clinux_store_identity()
    guard sqlite3_file_control(handle, "main", Int32(CLINUX_FCNTL_IDENTITY), &found) == SQLITE_OK else { return nil }
    return OpenFile(
      device: found.device, inode: found.inode, directoryDevice: found.directory_device,
      directoryInode: found.directory_inode)
  }

  /// The descriptor of the open file, which belongs to SQLite; nil for a database in memory, or if the default VFS is
  /// not SQLite's own.
  package var openDescriptor: Int32? {
    let descriptor = clinux_store_vfs_descriptor(handle, "main")
    return descriptor >= 0 ? descriptor : nil
  }

  /// A file by device and inode, with its directory.
  package struct OpenFile: Hashable, Sendable {
    /// Device of the file.
    package let device: UInt64
    /// Inode of the file.
    package let inode: UInt64
    /// Device of the directory that holds its side files.
    package let directoryDevice: UInt64
    /// Inode of that directory.
    package let directoryInode: UInt64
  }

  /// Ends the bounds on reads before a database's schema is known. A database in memory has none.
  func endSchemaReading(of schema: String) {
    _ = sqlite3_file_control(handle, schema, Int32(CLINUX_FCNTL_SCHEMA_IS_READ), nil)
    watch.limitStatements(of: handle, readingSchema: false)
  }

  // MARK: Attached databases

  /// Attaches a database under a schema name. The file must exist; an empty one becomes a new database.
  package func attach(_ path: FilePath, as schema: String) throws(SQLiteError) {
    let name = Connection.uri(path) + "?mode=rw"
    try attach(name: name, as: schema)
  }

  /// Attaches an empty database in memory, which ends with the connection.
  package func attachMemory(as schema: String) throws(SQLiteError) { try attach(name: ":memory:", as: schema) }

  /// Attaches the database with a name in SQLite's syntax.
  private func attach(name: String, as schema: String) throws(SQLiteError) {
    watch.limitStatements(of: handle, readingSchema: true)
    defer { watch.limitStatements(of: handle, readingSchema: false) }
    try watch.attaching { () throws(SQLiteError) in
      try run("ATTACH DATABASE ? AS \(SQLiteIdentifier.quoted(schema))", [.text(name)])
    }
    try execute("PRAGMA \(SQLiteIdentifier.quoted(schema)).cache_size = -\(Self.cacheKibibytes)")
    endSchemaReading(of: schema)
  }

  /// Attaches a database read only, without changes in its folder; `access` is `.immutable` or `.unlocked`.
  package func attachUnchanged(_ path: FilePath, as schema: String, access: Access) throws(SQLiteError) {
    var name = Connection.uri(path) + "?mode=ro"
    if access == .unlocked {
      _ = clinux_sqlite3_db_config_flag(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
      // Without a schema name the mode also applies to databases attached from now on.
      try execute("PRAGMA locking_mode = EXCLUSIVE")
      name += "&vfs=\(CLINUX_STORE_VFS_WITHOUT_LOCKS)"
    } else {
      name += "&immutable=1"
    }
    try attach(name: name, as: schema)
  }

  /// Detaches a schema.
  package func detach(_ schema: String) throws(SQLiteError) {
    try watch.attaching { () throws(SQLiteError) in
      try execute("DETACH DATABASE \(SQLiteIdentifier.quoted(schema))")
    }
  }
}

final class ProgressBox {
  let body: () -> Bool
  init(_ body: @escaping () -> Bool) { self.body = body }
}
