// The replacement in place: steps B1 to B5 of docs/formats/replacement.md, "Mode in-place", each with its number.
// SQLite's own transaction is the commit, so inode, owner, attributes, links and mounts of the store stay; the next
// program that opens it, hopd or not, finds the complete old or the complete new content. The safety of the replacement
// depends on the order of the steps: do not change it without that section.

import Diagnostics
import DurableFiles
import PersistentStore
import SQLite
import StoreVerification
import SystemPackage

/// A step of the replacement in place that has just been done.
package enum InPlaceStep: String, Sendable, CaseIterable {
  /// B1: the backup is complete and synced, under its temporary name.
  case copied
  /// B1: it has its final name.
  case backedUp
  /// B2: store and staged store are still the same files.
  case compared
  /// B3: some pages were written, and nothing is committed.
  case writing
  /// B4: SQLite has committed.
  case committed
  /// B5: the directory is synced.
  case durable
  /// B5: read back, checked, and the log folded in.
  case confirmed
}

/// Called after each step; an error thrown here is treated like one of the step.
package typealias InPlaceObserver = (InPlaceStep) throws -> Void

/// Writes a verified store into the file of a locked one.
struct InPlaceSwap {
  let swap: StoreSwap
  private var files: any DurableFileSystem { swap.files }

  func replace(
    _ store: LockedStore, staged: FilePath, intent given: ReplacementIntent, rule: BackupRule,
    journalMode: JournalModeRule, now: Int64
  ) throws -> ReplacedStore {
    let location = store.location
    let backups = try BackupSet(location: location, rule: rule, files: files)
    let folder = backups.copyFolder(job: given.job, now: now)
    var intent = swap.announced(given, store, staged, rule, folder)
    intent.mode = .inPlace
    intent.schemaVersion = try store.schemaVersion()
    let wanted = journalMode.mode(keeping: store.journalMode)
    intent.wantedJournalMode = wanted == store.journalMode ? nil : wanted
    var isWriting = false
    var lock: BackupLock?
    defer { lock?.release() }
    do {
      // From here on the connection runs long statements, and none of them may be given up.
      try store.connection.setProgressHandler(every: 200_000) { [keepAlive = swap.keepAlive] in
        keepAlive()
        return true
      }
      try swap.intents.write(intent)
      try store.requireSameFile()
      try store.requireUnchanged()
      let source = try openStaged(staged, for: store)
      try requireSpace(store, staged, folder)
      lock = try backups.lock(making: folder.removingLastComponent(), keepAlive: swap.keepAlive)
      try backups.makeCopy(
        folder, of: store.connection, try swap.label(intent, store, backups, now), keepAlive: swap.keepAlive
      ) { try swap.inPlaceObserver(.copied) }
      try swap.inPlaceObserver(.backedUp)
      try compare(store, staged, source.identity)  // B2
      isWriting = true
      try commit(source.connection, into: store)  // B3, B4
    } catch {
      guard isWriting else { throw undone(error, store, backups, folder, staged) }
      // SQLite has rolled back, or the commit itself is in doubt: only the store can show which.
      guard content(of: store, intent) == .old else {
        throw unconfirmed(error, store, folder.appending(location.fileName))
      }
      throw undone(error, store, backups, folder, staged)
    }
    do {
      try swap.inPlaceObserver(.committed)
      try files.syncDirectory(location.directory)
      try swap.inPlaceObserver(.durable)
      try confirm(store, intent)
      try swap.inPlaceObserver(.confirmed)
    } catch {
      throw unconfirmed(error, store, folder.appending(location.fileName))
    }
    return finish(store, intent, folder, backups, rule, staged, now)
  }

  /// Opens the staged store as a source: in rollback mode, as the header's mode is copied with the first page, and with
  /// the page size of the store, as a store in WAL mode refuses another one (tools/README.md, "SQLite and files").
  private func openStaged(
    _ staged: FilePath, for store: LockedStore
  ) throws -> (connection: Connection, identity: FileIdentity) {
    guard let status = try files.status(staged) else {
      throw HopdError(.notFound, "the staged store no longer exists", at: Place(file: staged))
    }
    let connection = try HopdError.sqlite("open the staged store", staged) {
      let connection = try Connection(path: staged, access: .exclusive(keepsLog: false))
      try connection.setJournalMode(
        .delete, orReport: "the staged store does not leave its journal mode", at: Place(file: staged))
      guard try connection.integer("PRAGMA page_size") == store.pageSize else {
        throw HopdError(
          .cannotReplace, "the new store has pages of another size than the store",
          at: Place(store: store.location.database, file: staged), hint: "pass --replace rename")
      }
      return connection
    }
    return (connection, status.identity)
  }

  /// Throws unless everything that is still to be written fits, before the first byte is written.
  private func requireSpace(_ store: LockedStore, _ staged: FilePath, _ folder: FilePath) throws {
    let location = store.location
    let bytes = try store.databaseBytes()
    let size = try files.status(staged)?.size ?? 0
    var base = folder.removingLastComponent()
    while try files.status(base) == nil { base.removeLastComponent() }
    let isBeside = try files.status(base)?.identity.device == files.status(location.directory)?.identity.device
    if !isBeside { try StagingArea.requireSpace(bytes, at: base, for: location, files: files) }
    try StagingArea.requireSpace(
      ReplacementMode.bytesToCommit(
        store: bytes, staged: size, backup: isBeside ? bytes : 0, journalMode: store.journalMode),
      at: location.directory, for: location, files: files)
  }

  /// B2: both names still refer to the same files, and no other program wrote to the store.
  private func compare(_ store: LockedStore, _ staged: FilePath, _ source: FileIdentity) throws {
    try store.requireSameFile()
    try store.requireUnchanged()
    guard try files.status(staged)?.identity == source else {
      throw HopdError(
        .storeChanged, "the staged store was replaced by another file",
        at: Place(store: store.location.database, file: staged))
    }
    try swap.inPlaceObserver(.compared)
  }

  /// B3 and B4: the pages, and SQLite's commit as the last step.
  private func commit(_ source: Connection, into store: LockedStore) throws {
    let location = store.location
    try HopdError.sqlite("write the new store into the old one", location.database) {
      try store.connection.replaceContent(with: source, pagesPerStep: swap.pagesPerStep) { _, _ in
        swap.keepAlive()
        try swap.inPlaceObserver(.writing)
      }
    }
  }

  /// B5: a reader finds the new version, sound; the log is folded in, and the journal mode is the wanted one.
  private func confirm(_ store: LockedStore, _ intent: ReplacementIntent) throws {
    let location = store.location
    try HopdError.sqlite("read the new store back", location.database) {
      let connection = try store.connection
      try connection.execute("PRAGMA shrink_memory")  // from the file, not from what was to be written
      try swap.requireSound(connection, intent.to, at: location)
      try store.foldLogIn()
      try store.setJournalMode(intent.wantedJournalMode)
    }
    // A journal that stays is harmless to any program that opens the store, so this is no reason to fail.
    try? store.removeJournal()
    store.closeConnection()
  }

  /// The content of the store after a step of the commit failed; nil where it cannot be determined for certain.
  private func content(of store: LockedStore, _ intent: ReplacementIntent) -> RecoveryFindings.Store? {
    do {
      // The next program that opens the store must not find frames of a commit whose sync failed: the content that this
      // connection sees is made durable.
      if store.journalMode == .wal { try store.foldLogIn() }
      let connection = try store.connection
      guard try connection.text("PRAGMA quick_check(1)") == "ok" else { return nil }
      return intent.content(
        digest: try swap.identify(connection), schemaVersion: try store.schemaVersion(), isSourceFile: false)
    } catch {
      return nil
    }
  }

  private func finish(
    _ store: LockedStore, _ intent: ReplacementIntent, _ folder: FilePath, _ backups: BackupSet, _ rule: BackupRule,
    _ staged: FilePath, _ now: Int64
  ) -> ReplacedStore {
    let location = store.location
    var result = swap.finish(location, intent.to, folder, backups, rule, now)
    do {
      try StagingArea.remove(staged, files: files)
      try files.syncDirectory(location.directory)  // before the record goes, or a power cut leaves it to nobody
    } catch {
      result.warnings.append(
        HopdError(
          .inputOutput, "the staged store could not be removed; the next run does it", at: Place(file: staged),
          cause: error))
    }
    if let found = try? SourceFingerprint(of: location, files: files), found.database.file == store.identity {
      result.fingerprint = found
    }
    return result
  }

  // MARK: Undo

  private func unconfirmed(_ error: any Error, _ store: LockedStore, _ old: FilePath) -> HopdError {
    store.closeConnection()
    return HopdError(
      .replacementUnconfirmed, "the new store was written, but that it is in place for good could not be confirmed",
      at: Place(store: store.location.database), cause: error,
      hint: "run it again to finish; the store is either the complete old or new one, and the old one is in "
        + "\(old.printable)")
  }

  /// Undoes everything while the store holds its old content, and returns the error to throw.
  private func undone(
    _ error: any Error, _ store: LockedStore, _ backups: BackupSet, _ folder: FilePath, _ staged: FilePath
  ) -> any Error {
    let location = store.location
    var rollback = Rollback()
    // The staged store and the backup may now be the last copies of the rows: they and the intent stay.
    if let refusal = rollback.refusal(error, (try? store.isStillThere()) == true, staged) { return refusal }
    rollback.attempt("remove the backup that was being made") { try backups.removeMade(folder) }
    return rollback.end(error, location, staged, swap)
  }
}
