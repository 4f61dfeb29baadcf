// Steps P1 to P3 of a replacement: the store is opened safely, owned by one process, and locked until the swap
// (docs/formats/replacement.md, "P1: Open safely", "P2: One owner" and "P3: Lock"). From here on nothing in this
// process may open the store by other means: closing any descriptor of it would drop the locks of the one connection.

import Diagnostics
import DurableFiles
import PersistentStore
import SQLite
import SystemPackage

/// A store that no other process can write to, with hopd's one connection to it.
///
/// It belongs to the task that made it. A refused or interrupted job releases it and leaves every file unchanged: a
/// `-wal` with committed rows stays beside the store, an empty one that SQLite made is removed with the connection. The
/// one exception is SQLite's own recovery, which happens whenever a program opens the store: a hot `-journal` is rolled
/// back. A `-shm` is not inspected: it is memory that other programs share, and a program that truncates it would end
/// this process.
package final class LockedStore {
  /// The store.
  package let location: CanonicalStoreLocation
  /// Device and inode of the database when it was opened.
  package let identity: FileIdentity
  /// How the database keeps its changes.
  package let journalMode: JournalMode
  /// Bytes of a page; a staged store has the same.
  package let pageSize: Int64

  private let files: any DurableFileSystem
  private let lock: FileLock
  private let use: HeldFile
  private let fingerprint: SourceFingerprint?
  private let directoryIdentity: FileIdentity
  private var openConnection: Connection?

  /// Holds the store at `location`, or throws and leaves it unchanged.
  ///
  /// `lockDirectory` is a directory of hopd's own, as `/run/hopd/locks`: the lock is one file there per store
  /// (directory and name), so one daemon may work on several stores of a directory. Throws `.lockedByOther`,
  /// `.storeBusy`, `.noPermission`, `.notFound`, `.notAStore` or `.storeDamaged`.
  package init(
    location: CanonicalStoreLocation, lockDirectory: FilePath, files: any DurableFileSystem = LinuxFileSystem()
  ) throws {
    self.location = location
    let database = location.database
    do {
      try LockedStore.requireNameForSideFiles(database)
      // P1: inspect it, before anything is opened.
      let (folder, found) = try LockedStore.requireStore(location, files: files)
      // P2: one owner.
      lock = try LockedStore.lock(location, lockDirectory: lockDirectory, files: files)
      // Within this process too: closing any other descriptor of the file would drop the lock.
      use = try HeldFile(found.identity)
      try files.checkWritable(location.directory)
      try files.checkWritable(database)
      // A raw descriptor of the store: the last one before SQLite's locks.
      if try files.isOpenElsewhere(database) == true {
        throw HopdError.inUse(by: try? files.holder(of: database))
      }
      // P3: the lock.
      let connection = try LockedStore.lockedConnection(location, file: found, folder: folder, files: files)
      let facts = try HopdError.sqlite("read the store", database) {
        (try connection.text("PRAGMA journal_mode"), try connection.integer("PRAGMA page_size"))
      }
      journalMode = facts.0 == "wal" ? .wal : .delete
      pageSize = facts.1 ?? 4096
      identity = found.identity
      directoryIdentity = folder.identity
      openConnection = connection
      self.files = files
      fingerprint = try SourceFingerprint(of: location, files: files)
    } catch let error as HopdError {
      throw error.located(Place(store: database))
    }
  }

  /// Throws if the file's name is too long for the names of its side files.
  private static func requireNameForSideFiles(_ database: FilePath) throws {
    guard let name = database.lastComponent, FilePath.Component(name.string) == name else {
      throw HopdError(
        .notAStore, "the file name is not UTF-8, so hopd cannot name its side files",
        hint: "rename the store together with its -wal, -shm and -journal files")
    }
    let longest = 255 - "-journal".utf8.count
    guard name.string.utf8.count <= longest else {
      throw HopdError(
        .unsuitableFile,
        "the file name has \(name.string.utf8.count) bytes: SQLite cannot make its -journal next to it",
        hint: "shorten the name to at most \(longest) bytes, together with those of its side files")
    }
  }

  /// P1: the store and its directory; throws where the store or a side file is anything but a file that SQLite made.
  private static func requireStore(
    _ location: CanonicalStoreLocation, files: any DurableFileSystem
  ) throws -> (folder: FileStatus, store: FileStatus) {
    guard let folder = try files.status(location.directory), let found = try files.status(location.database) else {
      throw HopdError(.notFound, "the store no longer exists")
    }
    guard found.kind == .regular else {
      throw HopdError(
        .notAStore, "it is \(found.kind); only regular files are stores",
        hint: "pass the file itself, not a link to it")
    }
    guard found.size > 0 else {
      // SQLite takes an empty file for a new database and writes its first page into it with the first lock.
      throw HopdError(
        .notAStore, "the file is empty", hint: "move it away first to restore a backup there; nothing was changed")
    }
    // SQLite opens these names without a check: a pipe would block the caller for ever.
    for file in location.sideFiles {
      guard let side = try files.status(file), side.kind != .regular else { continue }
      throw HopdError(
        .notAStore, "its side file is \(side.kind)", at: Place(file: file),
        hint: "move it; only SQLite's own files can have that name")
    }
    return (folder, found)
  }

  /// P3: a connection that has SQLite's exclusive lock on that very file.
  private static func lockedConnection(
    _ location: CanonicalStoreLocation, file: FileStatus, folder: FileStatus, files: any DurableFileSystem
  ) throws -> Connection {
    let database = location.database
    let hasLog = try files.status(location.writeAheadLog).map { $0.size > 0 } ?? false
    let connection: Connection
    do {
      connection = try HopdError.sqlite("open the store", database) {
        let connection = try Connection(path: database, access: .exclusive(keepsLog: hasLog))
        try connection.execute("PRAGMA synchronous = EXTRA; BEGIN EXCLUSIVE; COMMIT")
        return connection
      }
    } catch let error as HopdError where error.code == .storeBusy {
      // The connection is closed, so the file may be opened once more to find its holder.
      throw HopdError.inUse(by: try? files.holder(of: database), cause: error.cause)
    }
    guard try files.status(database)?.identity == file.identity,
      has(connection, open: file.identity, in: folder.identity)
    else {
      connection.keepWriteAheadLogOnClose()
      throw HopdError(.storeReplaced, "the store was replaced by another file while it was being opened")
    }
    return connection
  }

  /// Whether a connection has that very file open, with its side files in that directory. The path may have led
  /// elsewhere in the instant in which SQLite followed it. Where the VFS cannot report the file (a simulated disk), the
  /// path decides.
  private static func has(_ connection: Connection, open file: FileIdentity, in directory: FileIdentity) -> Bool {
    guard let open = connection.openFile else { return true }
    return FileIdentity(device: open.device, inode: open.inode) == file
      && FileIdentity(device: open.directoryDevice, inode: open.directoryInode) == directory
  }

  /// P2: hopd's own lock for a store, one per directory and name, so that the same store under two paths has one lock.
  package static func lock(
    _ location: CanonicalStoreLocation, lockDirectory: FilePath, files: any DurableFileSystem
  ) throws -> FileLock {
    guard let folder = try files.status(location.directory), let name = location.database.lastComponent else {
      throw HopdError(.notFound, "the store's directory no longer exists", at: Place(store: location.database))
    }
    let key = PathText.digest(
      Array("\(folder.identity.device):\(folder.identity.inode):".utf8)
        + PathText.bytes(of: FilePath(root: nil, [name])))
    return try FileLock(path: lockDirectory.appending("store-\(key).lock"))
  }

  /// The one connection. Throws after `release()`; a caller that keeps it longer keeps the lock.
  package var connection: Connection {
    get throws {
      guard let openConnection else {
        throw HopdError(.internalError, "the store was released already", at: Place(store: location.database))
      }
      return openConnection
    }
  }

  /// The descriptor of the store's file; nil where SQLite has none.
  var descriptor: Int32? { openConnection?.openDescriptor }

  /// Releases the store. Every statement and connection from this value must be closed by then.
  package func release() {
    // If another file has the name now, hopd must not fold its -wal in.
    if let openConnection, (try? isStillThere()) != true { openConnection.keepWriteAheadLogOnClose() }
    openConnection = nil
    use.end()
    lock.release()
  }

  deinit { release() }

  /// Throws `.storeChanged` unless database and log have the same size and the same time, to the nanosecond, as when
  /// the store was locked: the last check before the log is folded in. Locks keep others out; this notices where they
  /// did not.
  func requireUnchanged() throws {
    guard try SourceFingerprint(of: location, files: files) == fingerprint else {
      throw HopdError(
        .storeChanged, "the store was written although it was locked", at: Place(store: location.database),
        hint: "check whether its file system supports locks, then retry; nothing was changed")
    }
  }

  /// Closes the connection and keeps the lock, for the steps after the rename.
  func closeConnection() { openConnection = nil }

  /// Whether the file under the store's name, in the same directory, is still the one that was opened.
  func isStillThere() throws -> Bool {
    try files.status(location.database)?.identity == identity
      && files.status(location.directory)?.identity == directoryIdentity
  }

  /// Throws `.notFound` or `.storeReplaced` unless the file under the name is still the one that was opened.
  package func requireSameFile() throws {
    guard try files.status(location.database) != nil else {
      throw HopdError(
        .notFound, "the store was deleted while it was being migrated; hopd does not create it again",
        at: Place(store: location.database), hint: "restore it from a backup: hopctl restore")
    }
    guard try isStillThere() else {
      throw HopdError(
        .storeReplaced, "the store was replaced with another file while it was being migrated",
        at: Place(store: location.database), hint: "retry with the new file; nothing was changed")
    }
  }

  /// Throws `.cannotReplace` with every reason why the store cannot be replaced in that mode
  /// (docs/formats/replacement.md, "Choice of mode").
  package func requireReplaceable(by mode: ReplacementMode) throws {
    switch mode {
    case .rename: try requireRenameKeepsEverything()
    case .inPlace: try requireSameFile()
    }
  }

  /// Throws `.cannotReplace` with every reason why a rename cannot keep what must be kept.
  package func requireRenameKeepsEverything() throws {
    // Reads the present status: a name may have been added since the store was opened.
    guard let status = try files.status(location.database) else {
      throw HopdError(.notFound, "the store no longer exists", at: Place(store: location.database))
    }
    var reasons = ReplacementMode.obstaclesToRename(status)
    let isKeptInPlace = !reasons.isEmpty
    if journalMode == .delete, try files.status(location.sharedMemory) != nil {
      reasons.append(
        HopdError(
          .cannotReplace, "unexpected -shm file: the store is not in WAL mode",
          hint: "remove \(location.sharedMemory.printable) if no program has the store open"))
    }
    guard !reasons.isEmpty else { return }
    var refusal = ReplacementMode.renameRefused(location, reasons)
    if !isKeptInPlace { refusal.hint = nil }
    throw refusal
  }

  /// Folds the write-ahead log in for good and lets the closing of the connection remove it.
  func foldLogIn() throws {
    guard journalMode == .wal else { return }
    try HopdError.sqlite("fold the write-ahead log in", location.database) {
      let connection = try connection
      try connection.foldWriteAheadLogIn(at: Place(store: location.database))
      connection.keepWriteAheadLogOnClose(false)
    }
    try removeIndex()
  }

  /// Removes the `-shm` that a writer left. The lock shows that no program has the store open, and the log it belongs
  /// to is folded in.
  func removeIndex() throws { try files.unlinkIfPresent(location.sharedMemory) }

  /// Creates the content that the connection sees durable. After a kill the last sync of SQLite's commit may be
  /// missing: the commit is visible, and a power cut would undo it.
  func makeContentDurable() throws {
    guard journalMode == .delete else { return try foldLogIn() }
    try HopdError.sqlite("make the store's content durable", location.database) {
      // A commit that changes only the change counter; its journal replaces the former one.
      let connection = try connection
      let version = try connection.integer("PRAGMA user_version") ?? 0
      try connection.execute("PRAGMA user_version = \(version)")
    }
  }

  /// Removes the rollback journal of this connection's last commit. With exclusive locking SQLite keeps it, with a
  /// zeroed header, until the connection is closed, which happens when its last user releases it. The store stays
  /// locked.
  func removeJournal() throws {
    guard journalMode == .delete, try files.status(location.rollbackJournal) != nil else { return }
    try HopdError.sqlite("remove the rollback journal", location.database) {
      let connection = try connection
      guard try connection.text("PRAGMA journal_mode") == "delete" else { return }
      try connection.execute("PRAGMA locking_mode = NORMAL")
      // SQLite removes the journal when it leaves the mode that keeps it.
      _ = try connection.text("PRAGMA journal_mode = PERSIST")
      _ = try connection.text("PRAGMA journal_mode = DELETE")
      try connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    }
  }

  /// Sets a journal mode that the store does not have yet, and checks the result; nil changes nothing.
  func setJournalMode(_ wanted: JournalMode?) throws {
    guard let wanted, wanted != journalMode else { return }
    try HopdError.sqlite("set the journal mode", location.database) {
      try connection.setJournalMode(
        wanted, orReport: "the store did not take the journal mode \(wanted.rawValue)",
        at: Place(store: location.database))
    }
  }

  /// Bytes of the database by its page count, including the log's pages.
  func databaseBytes() throws -> Int64 {
    let pages = try HopdError.sqlite("read the store", location.database) {
      try connection.integer("PRAGMA page_count") ?? 0
    }
    return pages.multipliedReportingOverflow(by: pageSize).partialValue
  }

  /// Number of the schema's version, which every change of the schema raises.
  func schemaVersion() throws -> Int64? {
    try HopdError.sqlite("read the store", location.database) { try connection.integer("PRAGMA schema_version") }
  }

  /// Z_UUID of the store, for labels; nil where it has none.
  package var storeUUID: String? {
    try? connection.text("SELECT Z_UUID FROM Z_METADATA LIMIT 1")
  }
}

/// Marks a file as held by this process, for as long as the value lives.
private final class HeldFile {
  private let file: StoreFileUse.File
  private var isHeld = true

  init(_ identity: FileIdentity) throws {
    file = StoreFileUse.File(device: identity.device, inode: identity.inode)
    guard StoreFileUse.beginHolding(file) else {
      throw HopdError(
        .storeBusy, "the store is in use by another job of this process", hint: "retry; hopd does so automatically")
    }
  }

  func end() {
    if isHeld { StoreFileUse.endHolding(file) }
    isHeld = false
  }

  deinit { end() }
}
