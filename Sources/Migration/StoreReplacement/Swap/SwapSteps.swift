// The single steps of the swap, and how each of them is undone.

import Diagnostics
import DurableFiles
import PersistentStore
import SQLite
import SystemPackage

extension StoreSwap {
  /// The steps done so far that an abort must undo.
  struct Undo {
    /// The staged file that was sealed.
    var staged: FileIdentity?
    /// Whether the store's log was folded in: its header has rollback mode then.
    var isFolded = false
    /// The backup's directory, set before it is made.
    var folder: FilePath?
    /// The lock for making the backup.
    var lock: BackupLock?
  }

  /// A1: sets the journal mode in the header and the attributes, and syncs. Returns the file's identity.
  func seal(_ staged: FilePath, like store: LockedStore, journalMode: JournalModeRule) throws -> FileIdentity {
    let wanted = journalMode.mode(keeping: store.journalMode)
    let location = StoreLocation(database: staged)
    // A header that does not state a write-ahead log states a rollback journal.
    let isInLogMode = (try? StoreReader.keepsWriteAheadLog(location)) ?? true
    if wanted == .wal || isInLogMode { try setJournalMode(wanted, of: staged) }
    for file in location.sideFiles where try files.status(file) != nil {
      throw HopdError(.internalError, "the staged store still has a side file", at: Place(file: file))
    }
    do {
      try files.copyAttributes(from: store.location.database, to: staged)
    } catch let error as HopdError where error.code != .inputOutput && error.code != .noSpace {
      throw StagingArea.attributesLost(store.location, error)
    }
    try files.syncFile(staged)
    guard let status = try files.status(staged) else {
      throw HopdError(.notFound, "the staged store no longer exists", at: Place(file: staged))
    }
    try observer(.sealed)
    return status.identity
  }

  private func setJournalMode(_ wanted: JournalMode, of staged: FilePath) throws {
    try HopdError.sqlite("set the journal mode of the staged store", staged) {
      let connection = try Connection(path: staged, access: .exclusive(keepsLog: false))
      try connection.setJournalMode(
        wanted, orReport: "the staged store did not take the journal mode \(wanted.rawValue)", at: Place(file: staged))
    }
  }

  /// A2: the log is folded into the store, and the result is checked: on an I/O error the pragma reports none and
  /// returns `wal` (tools/README.md, "SQLite and files").
  func foldLog(of store: LockedStore, _ undo: inout Undo) throws {
    let location = store.location
    undo.isFolded = store.journalMode == .wal
    try HopdError.sqlite("fold the write-ahead log in", location.database) {
      try store.connection.setJournalMode(
        .delete, orReport: "the write-ahead log could not be folded into the store",
        at: Place(store: location.database))
    }
    if undo.isFolded { try store.removeIndex() }
    for file in [location.writeAheadLog, location.sharedMemory] where try files.status(file) != nil {
      throw changed(location, "\(file.printable) is there although the log was folded in")
    }
    try observer(.folded)
  }

  /// A3: the lock is released for an instant, so that SQLite removes its side file now and not by its path after the
  /// rename. A commit in that instant changes `data_version`.
  func clearSideFiles(of store: LockedStore) throws {
    let location = store.location
    try HopdError.sqlite("lock the store again", location.database) {
      let connection = try store.connection
      try connection.execute("PRAGMA locking_mode = NORMAL; BEGIN EXCLUSIVE")
      let before = try connection.integer("PRAGMA data_version")
      try connection.execute("ROLLBACK")
      try observer(.unlocked)
      if try files.status(location.rollbackJournal) != nil {
        // A program with journal_mode=PERSIST leaves a journal with a zeroed header; SQLite removes it on this change.
        _ = try connection.text("PRAGMA journal_mode = PERSIST")
        _ = try connection.text("PRAGMA journal_mode = DELETE")
      }
      try connection.execute("BEGIN EXCLUSIVE")
      guard
        try connection.integer("PRAGMA data_version") == before,
        try connection.text("PRAGMA journal_mode") == "delete"
      else { throw changed(location, "another program committed to it") }
    }
    for file in location.sideFiles where try files.status(file) != nil {
      throw changed(location, "\(file.printable) appeared")
    }
    try observer(.relocked)
  }

  /// A4: both names still refer to the same files.
  func compare(_ store: LockedStore, _ staged: FilePath, _ new: FileIdentity) throws {
    try store.requireSameFile()
    guard try files.status(staged)?.identity == new else {
      throw HopdError(
        .storeChanged, "the staged store was replaced by another file",
        at: Place(store: store.location.database, file: staged))
    }
    try observer(.compared)
  }

  /// After the confirmation: the backup is moved to its place, unless it is there (`isMoved`), and old ones are
  /// removed. Failures here do not undo a success.
  func finish(
    _ location: CanonicalStoreLocation, _ version: StoreVersionMark, _ folder: FilePath, _ backups: BackupSet,
    _ rule: BackupRule, _ now: Int64
  ) -> ReplacedStore {
    var kept: FilePath? = folder
    var removed: [BackupRemoval] = []
    var warnings: [HopdError] = []
    func warn(_ message: String, _ error: any Error) {
      warnings.append(HopdError(.inputOutput, message, at: Place(store: location.database), cause: error))
    }
    if rule.keep <= 0 {
      do {
        try backups.remove(folder)
        kept = nil
      } catch { warn("the old store could not be removed", error) }
    } else {
      do {
        // This one, and those that an earlier run could not move.
        for generation in try backups.generationsToMove() {
          let moved = try backups.moveElsewhere(generation.directory)
          if generation.directory == folder { kept = moved }
        }
      } catch {
        warn("cannot copy the backup to its directory; it remains next to the store", error)
      }
    }
    do {
      let found = try backups.folders()
      removed = try backups.prune(rule, now: now, among: found)
      warnings += backups.unreadableLabels(among: found)
    } catch { warn("old backups could not be removed", error) }
    return ReplacedStore(
      location: location, version: version, backup: kept?.appending(location.fileName), removedBackups: removed,
      warnings: warnings)
  }

  // MARK: Undo

  func changed(_ location: CanonicalStoreLocation, _ what: String) -> HopdError {
    HopdError(
      .storeChanged, "the store changed while it was being replaced: \(what)", at: Place(store: location.database),
      hint: "retry, which starts over from the current store; nothing was replaced")
  }

  func unconfirmed(_ error: any Error, _ store: LockedStore, _ old: FilePath) -> HopdError {
    if let connection = try? store.connection, connection.isInTransaction { try? connection.execute("ROLLBACK") }
    store.closeConnection()
    return HopdError(
      .replacementUnconfirmed, "the new store is in place but could not be confirmed",
      at: Place(store: store.location.database), cause: error,
      hint: "run it again to finish; the old store is in \(old.printable)")
  }

  /// Undoes everything that was done before the rename, and returns the error to throw.
  func undone(_ error: any Error, _ undo: Undo, _ store: LockedStore, _ backups: BackupSet, _ staged: FilePath)
    -> any Error
  {
    let location = store.location
    var rollback = Rollback()
    let isStillThere = (try? store.isStillThere()) == true
    if let connection = try? store.connection {
      if connection.isInTransaction { try? connection.execute("ROLLBACK") }
      // If another file has this name, it must not even be tried: side files go by the path. Either mode is normal for
      // a Core Data store; but the record must stay while it alone holds the former mode.
      if undo.isFolded, isStillThere {
        rollback.attempt("set the store's journal mode to WAL again") {
          // Without shared memory for its index a log needs exclusive locking, which A3 gave up.
          try connection.execute("PRAGMA locking_mode = EXCLUSIVE")
          try connection.setJournalMode(
            .wal, orReport: "SQLite keeps the mode", at: Place(store: location.database))
        }
      }
    }
    if let folder = undo.folder {
      rollback.attempt("remove the second name of the store") {
        if try files.status(folder) != nil {
          try backups.remove(folder)
        } else if try files.status(backups.directory) != nil, try files.names(in: backups.directory).isEmpty {
          try files.removeDirectory(backups.directory)
        }
      }
    }
    // The staged store may now be the last copy of the rows: it and the intent that names it stay.
    if let refusal = rollback.refusal(error, isStillThere, staged) { return refusal }
    return rollback.end(error, location, staged, self)
  }
}

/// The undoing of a replacement that failed: it undoes what it can, and adds the rest to the error.
struct Rollback {
  private var leftovers: [HopdError] = []

  /// Undoes one thing.
  mutating func attempt(_ what: String, _ body: () throws -> Void) {
    do { try body() } catch {
      leftovers.append(HopdError(.inputOutput, "cannot \(what); the next run retries", cause: error))
    }
  }

  /// The error to throw where the store's file is another one or gone, and the staged store is kept; nil elsewhere.
  func refusal(_ error: any Error, _ isStillThere: Bool, _ staged: FilePath) -> HopdError? {
    guard var refusal = error as? HopdError,
      refusal.code == .storeReplaced || (refusal.code == .notFound && !isStillThere)
    else { return nil }
    refusal.hint = [refusal.hint, "the migrated copy is \(staged.printable)"].compactMap { $0 }
      .joined(separator: "; ")
    refusal.reasons += leftovers
    return refusal
  }

  /// Removes the staged store and then, if nothing is left, the record; returns the error to throw.
  mutating func end(
    _ error: any Error, _ location: CanonicalStoreLocation, _ staged: FilePath, _ swap: StoreSwap
  ) -> any Error {
    attempt("remove the staged store") { try StagingArea.remove(staged, files: swap.files) }
    attempt("sync the directory") { try swap.files.syncDirectory(location.directory) }
    if leftovers.isEmpty {
      attempt("remove the intent record") { try swap.intents.remove(location) }
    }
    guard !leftovers.isEmpty else { return error }
    var failure =
      error as? HopdError
      ?? HopdError(.inputOutput, "the replacement was abandoned", at: Place(store: location.database), cause: error)
    failure.reasons += leftovers
    return failure
  }
}
