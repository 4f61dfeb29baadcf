// Reads a store without a change in its folder, and recognizes files that are not stores. SQLite opened read-only on a
// WAL store makes side files in its folder and leaves them, so the mode of opening is chosen here.

import CSQLite
import Diagnostics
import ManagedObjectModel
import PropertyLists
import SQLite
import SystemPackage

#if canImport(Glibc)
  import Glibc
#endif

/// A row of Z_PRIMARYKEY.
package struct PrimaryKeyEntry: Sendable, Hashable {
  /// Z_ENT.
  package let number: Int64
  /// Z_NAME.
  package let name: String
  /// Z_SUPER: the parent's number or 0.
  package let parent: Int64
  /// Z_MAX: the highest Z_PK ever assigned; 0 for subentities.
  package let highWaterMark: Int64

  /// Numbers that no entity of a model has: history from 16001, CloudKit mirroring from 17001
  /// (docs/formats/store-layout.md, "Reserved entity numbers").
  package static let reservedNumbers: PartialRangeFrom<Int64> = 16000...

  /// Whether it belongs to history, mirroring or something unknown instead of the model.
  package var isReserved: Bool { PrimaryKeyEntry.reservedNumbers.contains(number) }

  /// Creates an entry.
  package init(number: Int64, name: String, parent: Int64, highWaterMark: Int64) {
    self.number = number
    self.name = name
    self.parent = parent
    self.highWaterMark = highWaterMark
  }
}

/// An object of sqlite_master.
package struct SchemaObject: Sendable, Hashable {
  /// "table", "index", "trigger" or "view".
  package let type: String
  package let name: String
  /// The table it belongs to.
  package let table: String
  /// The text that made it; nil for automatic indexes.
  package let sql: String?
}

/// Reads a store's tables and bookkeeping over an open connection.
package struct StoreReader {
  /// The connection; it stays with the task that opened it.
  package let connection: Connection
  /// The names of its tables in that connection.
  package let tables: SourceTables
  /// The counts that are already known.
  package let rowCountCache: RowCountCache?
  private let catalog = SchemaCatalog()
  /// Schema name in that connection: "main" or the name of an attached store; of views "temp".
  package var schema: String { tables.schemaName }

  /// Reads the store in `schema` of `connection`.
  package init(connection: Connection, schema: String = "main") {
    self.init(connection: connection, tables: .schema(schema))
  }

  /// Reads the store whose tables, or their views, are in `tables` of `connection`.
  ///
  /// With a `rowCountCache` nothing is counted twice; the tables must not change meanwhile.
  package init(connection: Connection, tables: SourceTables, rowCountCache: RowCountCache? = nil) {
    self.connection = connection
    self.tables = tables
    self.rowCountCache = rowCountCache
  }

  /// The name of a table with the schema.
  package func qualified(_ name: String) -> String { tables.qualified(name) }

  /// Returns all rows of sqlite_master, in its order, without SQLite's own tables. They are read again only if the
  /// schema has changed.
  package func schemaObjects() throws(SQLiteError) -> [SchemaObject] {
    let version = try connection.integer("PRAGMA \(SQLiteIdentifier.quoted(schema)).schema_version")
    if let version, version == catalog.version { return catalog.objects }
    catalog.objects = try connection.rows(
      "SELECT type, name, tbl_name, sql FROM \(SQLiteIdentifier.quoted(schema)).sqlite_master WHERE name NOT LIKE "
        + "'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
    ) { row in
      SchemaObject(
        type: row.text(at: 0) ?? "", name: row.text(at: 1) ?? "", table: row.text(at: 2) ?? "", sql: row.text(at: 3))
    }
    catalog.version = version
    return catalog.objects
  }

  /// Returns column names and declared types of a table, in order.
  package func columns(of table: String) throws(SQLiteError) -> [(name: String, type: String)] {
    try connection.rows(
      "SELECT name, type FROM pragma_table_info(?, ?)", [.text(table), .text(schema)]
    ) { row in
      (row.text(at: 0) ?? "", row.text(at: 1) ?? "")
    }
  }

  /// Reads Z_METADATA. A store has exactly one row with a readable property list; otherwise the error states the
  /// reason.
  package func metadata() throws -> StoreMetadata {
    let table = qualified("Z_METADATA")
    // The length is checked before the value is read: a hostile store may claim a gigabyte. SQLite knows a blob's
    // length without reading it, but a text's only after reading all of it.
    let claims = try connection.rows(
      "SELECT CASE typeof(Z_PLIST) WHEN 'blob' THEN length(Z_PLIST) ELSE -1 END FROM \(table) LIMIT 3"
    ) { $0.integer(at: 0) }
    func damaged(_ message: String, cause: (any Error)? = nil) -> HopdError {
      HopdError(
        .storeDamaged, message, cause: cause,
        hint: "restore the store from a backup, or contact the developer of the app")
    }
    if let claim = claims.first(where: { $0 > StoreMetadata.maximumBytes }) {
      throw damaged(
        "the metadata of the store has \(claim) bytes; more than \(StoreMetadata.maximumBytes) are not read")
    }
    let columns = claims.contains(-1) ? "NULL, NULL" : "Z_UUID, Z_PLIST"
    let rows = try connection.rows("SELECT \(columns) FROM \(table) LIMIT 3") { row in
      (row.text(at: 0), row.blob(at: 1))
    }
    guard rows.count == 1, let row = rows.first, let uuid = row.0, let bytes = row.1 else {
      throw damaged(
        rows.count != 1
          ? "Z_METADATA has \(rows.count) rows instead of one with a UUID and a property list"
          : claims.contains(-1)
            ? "the metadata of the store (Z_METADATA.Z_PLIST) is not a blob" : "the row of Z_METADATA has no UUID")
    }
    let value: PropertyListValue
    do {
      value = try PropertyList.decode(bytes)
    } catch {
      throw damaged("the metadata of the store (Z_METADATA.Z_PLIST) cannot be read", cause: error)
    }
    guard let entries = value.dictionary else {
      throw HopdError(
        .storeDamaged, "the metadata of the store is not a dictionary", hint: "restore the store from a backup")
    }
    return StoreMetadata(uuid: uuid, entries: entries)
  }

  /// Reads Z_PRIMARYKEY by number; reserved numbers (16000 and above: history, CloudKit) included.
  ///
  /// No model has as many entities as the bound; a table with more rows disagrees with every model anyway.
  package func primaryKeys() throws(SQLiteError) -> [PrimaryKeyEntry] {
    try connection.rows(
      "SELECT Z_ENT, Z_NAME, Z_SUPER, Z_MAX FROM \(qualified("Z_PRIMARYKEY")) ORDER BY Z_ENT LIMIT 20000"
    ) { row in
      PrimaryKeyEntry(
        number: row.integer(at: 0), name: row.text(at: 1) ?? "", parent: row.integer(at: 2),
        highWaterMark: row.integer(at: 3))
    }
  }

  /// Returns the rows of a table by entity number; a Z_ENT that is not an integer counts as 0, the number of no entity:
  /// statements do not match 2.5 with 2.
  package func rowCounts(of table: String) throws(SQLiteError) -> [Int64: Int64] {
    let pairs = try connection.rows("SELECT Z_ENT, count(*) FROM \(qualified(table)) GROUP BY Z_ENT") { row in
      (row.isInteger(at: 0) ? row.integer(at: 0) : 0, row.integer(at: 1))
    }
    return Dictionary(pairs, uniquingKeysWith: { first, second in first &+ second })
  }
}

extension StoreReader {
  /// Opens a store without a change in its folder, runs `body`, and closes it.
  ///
  /// Without a `-wal` with content the file is opened `immutable`. Otherwise it is read without locks with the log in
  /// memory, and the files are compared before and after: a concurrent writer gives `store-busy`. A hot rollback
  /// journal gives `store-busy` too, because only a writer may roll it back and the file is not readable without that.
  ///
  /// With `attachedAs` the store is attached under that name to a connection that may also write other files: a
  /// connection opened read-only cannot attach a writable database.
  package static func withUnchangedStore<Result>(
    at location: StoreLocation, attachedAs schema: String? = nil, _ body: (StoreReader) throws -> Result
  ) throws -> Result {
    let place = Place(store: location.database)
    let before = try stamps(of: location)
    let file = StoreFileUse.File(device: before.device, inode: before.inode)
    func busy(_ message: String, cause: (any Error)? = nil, _ hint: String) -> HopdError {
      HopdError(.storeBusy, message, at: place, cause: cause, hint: hint)
    }
    guard StoreFileUse.beginReading(file) else {
      throw busy("the store is being migrated by this process", "retry when it has finished")
    }
    defer { StoreFileUse.endReading(file) }
    try checkHeader(of: location)
    if before.journalBytes > 0 {
      throw busy(
        "found a rollback journal next to the store: a program is writing, or crashed while writing",
        "let the app finish, or open the store once with its app or sqlite3 so that the journal is rolled back")
    }
    do {
      let access: Connection.Access = before.logBytes > 0 ? .unlocked : .immutable
      let connection: Connection
      if let schema {
        connection = try Connection(path: location.database, access: .memory)
        try connection.attachUnchanged(location.database, as: schema, access: access)
      } else {
        connection = try Connection(path: location.database, access: access)
      }
      let result = try body(StoreReader(connection: connection, schema: schema ?? "main"))
      guard try stamps(of: location) == before else {
        throw busy("the store was written while it was read", "retry when the app has finished")
      }
      return result
    } catch let error as SQLiteError {
      // A torn read looks like damage; a second comparison of the files distinguishes it from real damage.
      if let after = try? stamps(of: location), after != before {
        throw busy("the store was written while it was read", cause: error, "retry when the app has finished")
      }
      throw explained(error, location: location)
    } catch let error as HopdError {
      throw error.located(place)
    }
  }

  /// Whether the header of a store's database states that it has a write-ahead log. An `immutable` connection cannot
  /// report it: without a log it returns `delete` (tools/README.md, "SQLite and files").
  package static func keepsWriteAheadLog(_ location: StoreLocation) throws(HopdError) -> Bool {
    try firstBytes(of: location.database, count: 20).suffix(1) == [2]
  }

  private struct FileStamps: Equatable {
    let device: UInt64
    let inode: UInt64
    let bytes: Int64
    var modified: [Int64]
    var logBytes: Int64 = 0
    var journalBytes: Int64 = 0

    init(_ status: stat) {
      device = UInt64(status.st_dev)
      inode = UInt64(status.st_ino)
      bytes = Int64(status.st_size)
      modified = FileStamps.modified(status)
    }

    static func modified(_ status: stat) -> [Int64] {
      [Int64(status.st_mtim.tv_sec), Int64(status.st_mtim.tv_nsec)]
    }
  }

  private static func stamps(of location: StoreLocation) throws(HopdError) -> FileStamps {
    let place = Place(store: location.database)
    guard let status = try status(of: location.database, place) else {
      throw HopdError(.notFound, "no such file or directory", at: place, hint: "check the path")
    }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw HopdError(
        .notAStore, "not a regular file", at: place,
        hint: "pass a regular file, not a symbolic link, directory, pipe or device")
    }
    var stamps = FileStamps(status)
    for file in location.sideFiles {
      guard let status = try self.status(of: file, place), status.st_mode & S_IFMT != S_IFREG else { continue }
      throw HopdError(
        .notAStore, "its side file \(file.printable) is not a regular file", at: place,
        hint: "move it; only SQLite's own files can have that name")
    }
    if let status = try self.status(of: location.writeAheadLog, place) {
      stamps.logBytes = Int64(status.st_size)
      stamps.modified += FileStamps.modified(status)
    }
    if let status = try self.status(of: location.rollbackJournal, place) {
      // A journal with a zeroed header is not hot: PERSIST mode leaves such files.
      stamps.journalBytes = try isHotJournal(location.rollbackJournal) ? Int64(status.st_size) : 0
    }
    return stamps
  }

  /// The status of a store's file; nil where there is none. A log that cannot be inspected may hold the newest rows, so
  /// every error but its absence is thrown.
  private static func status(of file: FilePath, _ store: Place) throws(HopdError) -> stat? {
    if let status = file.linkStatus() { return status }
    let code = Errno(rawValue: errno)
    switch code {
    case .noSuchFileOrDirectory, .notDirectory, .fileNameTooLong, .tooManySymbolicLinkLevels: return nil
    case .permissionDenied:
      throw HopdError(
        .noPermission, "permission denied: cannot read the store", at: store,
        hint: "check the access to its directory: ls -lad \(file.removingLastComponent().quotedForShell)")
    default:
      throw HopdError(
        .inputOutput, "\(file.printable) cannot be inspected", at: store, cause: code,
        hint: "check the kernel log: dmesg")
    }
  }

  /// Whether a store has a rollback journal with content, of a running writer or of one that died.
  package static func hasHotJournal(_ location: StoreLocation) throws(HopdError) -> Bool {
    guard let status = try status(of: location.rollbackJournal, Place(store: location.database)),
      status.st_mode & S_IFMT == S_IFREG
    else { return false }
    return try isHotJournal(location.rollbackJournal)
  }

  private static func isHotJournal(_ path: FilePath) throws(HopdError) -> Bool {
    let bytes = try firstBytes(of: path, count: 8)
    return bytes.count == 8 && bytes.contains { $0 != 0 }
  }

  /// The error of a file that cannot be opened for reading. A user without access gets the command that grants it.
  private static func unreadable(_ path: FilePath, _ code: Errno) -> HopdError {
    let place = Place(store: path)
    guard code == .permissionDenied else {
      return HopdError(
        code == .ioError ? .inputOutput : .noPermission, "cannot be read: \(code)", at: place,
        hint: code == .ioError ? "check the kernel log: dmesg" : "check the access to it: ls -la \(path.quotedForShell)"
      )
    }
    let user = AccountName.ofUser(geteuid())
    var hint = "check the access to its directory: ls -lad \(path.removingLastComponent().quotedForShell)"
    if let status = path.linkStatus() {
      hint =
        status.st_uid == geteuid()
        ? "it belongs to that user, but is not readable: chmod u+rw \(path.quotedForShell)"
        : "chown \(user.quotedForShell) \(path.quotedForShell) gives it to that user"
    }
    return HopdError(.noPermission, "user \(user) cannot read it: \(code) (EACCES)", at: place, hint: hint)
  }

  private static func firstBytes(of path: FilePath, count: Int) throws(HopdError) -> [UInt8] {
    let descriptor = path.openForReading()
    guard descriptor >= 0 else {
      throw unreadable(path, Errno(rawValue: errno))
    }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: count)
    let got = bytes.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
    guard got >= 0 else {
      throw HopdError(
        .inputOutput, "cannot be read", at: Place(store: path), cause: Errno(rawValue: errno),
        hint: "check the kernel log: dmesg")
    }
    return Array(bytes.prefix(got))
  }

  /// Distinguishes an empty file, a foreign file, a truncated database and an encrypted one from a SQLite database.
  private static func checkHeader(of location: StoreLocation) throws(HopdError) {
    let place = Place(store: location.database)
    let header = try firstBytes(of: location.database, count: 100)
    if header.isEmpty {
      throw HopdError(
        .notAStore, "the file is empty", at: place, hint: "check that this is the right file; stores are never empty")
    }
    guard header.starts(with: Array("SQLite format 3\0".utf8)) else {
      if let store = AtomicStoreKind(of: location.database) { throw store.refusal(place) }
      // An encrypted database has no header at all: whole pages of noise (SQLCipher and similar).
      let isPaged = location.database.linkStatus().map { $0.st_size >= 1024 && $0.st_size % 512 == 0 } ?? false
      let distinct = Set(header).count
      if isPaged, header.count == 100, distinct > 60 {
        throw HopdError(
          .storeEncrypted, "the file looks like an encrypted database", at: place,
          hint: "decrypt it first")
      }
      throw HopdError(
        .notAStore, "the file is not a SQLite database", at: place,
        hint: "check that this is the right file")
    }
    guard header.count == 100 else {
      throw HopdError(
        .storeDamaged, "the database header is truncated", at: place, hint: "restore the store from a backup")
    }
  }
}

// Translates SQLite's errors about a store to errors with the next thing to do, in the same form for every stage that
// reads a store.

extension HopdError.Code {
  /// The file is not a SQLite database, or a SQLite database that no Core Data made.
  package static let notAStore = HopdError.Code("not-a-store", exit: .dataError)
  /// SQLite finds the file damaged, or its bookkeeping is inconsistent.
  package static let storeDamaged = HopdError.Code("store-damaged", exit: .dataError)
  /// The header is not SQLite's, but the file has the form of an encrypted database.
  package static let storeEncrypted = HopdError.Code("store-encrypted", exit: .dataError)
  /// The store's tables need features that plain SQLite does not have.
  package static let schemaForeign = HopdError.Code("schema-foreign", exit: .dataError)
  /// A value has more bytes than the run may load into memory.
  package static let valueTooLarge = HopdError.Code("value-too-large", exit: .dataError)
  /// The rollback journal belongs to a transaction over several files, or claims to.
  package static let journalForeign = HopdError.Code("journal-foreign", exit: .dataError)
  /// Another process holds the store, or changed it while it was read.
  package static let storeBusy = HopdError.Code("store-busy", exit: .unavailable, isRetryable: true)
}

extension StoreReader {
  /// The meaning of a SQLite error for a store.
  package static func explained(_ error: SQLiteError, location: StoreLocation) -> HopdError {
    let place = Place(store: location.database)
    if let refusal = error.refusal { return refused(refusal, cause: error, at: place) }
    if error.isInterrupt {
      return HopdError(.interrupted, "stopped on request", at: place, hint: "retry; the store is unchanged")
    }
    func meaning(_ code: HopdError.Code, _ message: String, _ hint: String) -> HopdError {
      HopdError(code, message, at: place, cause: error, hint: hint)
    }
    if error.isBusy {
      return meaning(.storeBusy, "another process has the store open", "close the app that uses it, or retry later")
    }
    if error.isDamage { return meaning(.storeDamaged, "the database is damaged", HopdError.damageHint) }
    if error.isFull { return meaning(.noSpace, "the disk is full", "free space and retry") }
    if [SQLITE_READONLY, SQLITE_PERM, SQLITE_AUTH].contains(error.code) {
      return meaning(.noPermission, "the store or its directory cannot be written", "grant hopd write access to both")
    }
    if error.code == SQLITE_CANTOPEN {
      return meaning(.notFound, "the store cannot be opened", "check that it is a readable regular file")
    }
    if error.isInputOutput { return meaning(.inputOutput, "the disk reports an error", error.inputOutputHint) }
    if error.message.hasPrefix("no such table: ") || error.message.hasPrefix("no such column: ") {
      return meaning(
        .storeDamaged, "the store lacks a table or column of Core Data's bookkeeping",
        "restore the store from a backup")
    }
    if error.isTooLarge { return valueTooLarge(error, at: place) }
    if error.isForeignSchema { return foreignSchema(error, at: place) }
    return meaning(.internalError, "SQLite refused a statement", "please report this")
  }

  /// The refusal of a store with a value that would fill the memory: SQLite has up to four copies of it.
  package static func valueTooLarge(_ error: SQLiteError, at place: Place) -> HopdError {
    HopdError(
      .valueTooLarge, "the store contains a value that is larger than memory_limit allows", at: place, cause: error,
      hint:
        "set memory_limit to at least the size of the largest value (the minimum is 256 MiB), and MemoryMax= of the "
        + "service to four times as much; or migrate this store with `hopctl migrate`")
  }

  /// The meaning of a refusal by the VFS (CLinux/storevfs.c).
  package static func refused(_ refusal: VFSRefusal, cause: SQLiteError, at place: Place) -> HopdError {
    switch refusal {
    case .superJournal:
      HopdError(
        .journalForeign, "the rollback journal next to the store names another file, which SQLite would delete",
        at: place, cause: cause,
        hint: "open the store once with its app, if that wrote it together with other databases and crashed; "
          + "otherwise move the -journal file and check where it came from")
    case .foreignName:
      HopdError(
        .notAStore, "a side file of the store is not a regular file, or belongs to another database", at: place,
        cause: cause, hint: "move it; only SQLite's own files can have that name")
    case .exchangedDirectory:
      HopdError(
        .storeBusy, "a directory in the path of the store was replaced with a symbolic link while it was being opened",
        at: place, cause: cause, hint: "check who can write to the parent directories; hopd retries")
    case .largeSchema:
      HopdError(
        .schemaForeign,
        "the schema has more than \(VFSRefusal.schemaObjects) tables, indexes, views and triggers, or is too large",
        at: place, cause: cause, hint: "open it with the program that created it; Core Data does not create such stores"
      )
    }
  }

  /// The refusal of a store that plain SQLite cannot read: another program added tables or columns of its own kind.
  package static func foreignSchema(_ error: SQLiteError, at place: Place) -> HopdError {
    HopdError(
      .schemaForeign, "the store uses SQLite features that Core Data does not use", at: place, cause: error,
      hint: "open it with the program that changed it and undo that, or restore a backup")
  }
}
