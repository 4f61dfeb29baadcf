// The guarded swap. Here is the mode `rename`: steps A1 to A8 of docs/formats/replacement.md, "Mode rename", each with
// its number. At any moment the store is the complete old one or the complete new one. The safety of the swap depends
// on the order of the calls: do not change it without that section.

import Diagnostics
import DurableFiles
import PersistentStore
import SQLite
import StoreVerification
import SystemPackage

/// A store whose new version is in place, durable and read back: only with this in hand may success be reported.
package struct ReplacedStore: Sendable {
  /// The store.
  package let location: CanonicalStoreLocation
  /// Its version now.
  package let version: StoreVersionMark
  /// The old store; nil where none is kept.
  package let backup: FilePath?
  /// Older generations that the rule removed.
  package let removedBackups: [BackupRemoval]
  /// The file that was put in place; nil where another one already had its name when it was read back.
  package var fingerprint: SourceFingerprint?
  /// Failures after the success: a backup not copied, an old one not removed.
  package var warnings: [HopdError]
}

/// Journal mode of the new store.
package enum JournalModeRule: String, Sendable, Hashable, CaseIterable {
  /// The old store's mode.
  case keep
  /// Write-ahead log.
  case wal
  /// Rollback journal.
  case delete

  /// The mode of a new store whose old one had `old`.
  package func mode(keeping old: JournalMode) -> JournalMode {
    switch self {
    case .keep: old
    case .wal: .wal
    case .delete: .delete
    }
  }
}

/// A step of the swap that has just been done.
package enum SwapStep: String, Sendable, CaseIterable {
  /// A1: the staged store has attributes and journal mode and is synced.
  case sealed
  /// A2: the old store's log is folded in.
  case folded
  /// Within A3: for this instant the store is not locked.
  case unlocked
  /// A3: locked again, nothing was committed meanwhile, no side file is left.
  case relocked
  /// A4: both files are still the same.
  case compared
  /// A5: the old store has its second name, synced.
  case backedUp
  /// A6: the new store has the store's name.
  case renamed
  /// A7: the rename is durable.
  case durable
  /// A8: read back.
  case confirmed
}

/// Called after each step; an error thrown here is treated like one of the step.
package typealias SwapObserver = (SwapStep) throws -> Void

/// Puts verified stores in place of locked ones.
package struct StoreSwap {
  let files: any DurableFileSystem
  let intents: IntentStore
  let identify: (Connection) throws -> String
  let observer: SwapObserver
  private let mode: ReplacementMode?
  let keepAlive: () -> Void
  let inPlaceObserver: InPlaceObserver
  /// How long the swap waits for programs that have the store open and hold no lock on it.
  var patience = Duration.seconds(10)
  /// Whether the swap checks for such programs. Only tests that read the files in the middle of a swap turn it off.
  var asksForOpeners = true
  /// Pages that a replacement in place writes between two calls of `keepAlive`.
  let pagesPerStep: Int32
  /// The class in the labels of the generations; a restore sets its own.
  package var backupClass = BackupClass.migration

  /// `identify` reads the digest of the version hashes from a connection, as in `StoreVersionMark.digest`. Without a
  /// `mode` each store is replaced in the one that is safe for it. A replacement in place calls `keepAlive` repeatedly
  /// while it writes, to feed a watchdog; it cannot be stopped there.
  package init(
    files: any DurableFileSystem, intents: IntentStore, identify: @escaping (Connection) throws -> String,
    mode: ReplacementMode? = .rename, keepAlive: @escaping () -> Void = {}, observer: @escaping SwapObserver = { _ in },
    inPlaceObserver: @escaping InPlaceObserver = { _ in }, pagesPerStep: Int32 = 1000
  ) {
    self.mode = mode
    self.keepAlive = keepAlive
    self.inPlaceObserver = inPlaceObserver
    self.pagesPerStep = pagesPerStep
    self.files = files
    self.intents = intents
    self.identify = identify
    self.observer = observer
  }

  /// Replaces the locked store and returns when that is durable and was read back.
  ///
  /// Every other statement and connection that reads through `store` must be finished. `now` is seconds since 1970. On
  /// success: report, then `IntentStore.remove`, then `store.release()`. On an error before the rename the old store is
  /// in place, the backup's link, the staged store and the intent are removed (if the file under the store's name was
  /// taken away or replaced, staged store and intent are kept as evidence). On `.replacementUnconfirmed` the new store
  /// is in place, or SQLite's commit of a replacement in place is in doubt, and the intent is kept: recovery confirms
  /// it.
  package func replace(
    _ store: LockedStore, with verified: VerifiedStore, intent: ReplacementIntent, backup: BackupRule,
    journalMode: JournalModeRule = .keep, now: Int64
  ) throws -> ReplacedStore {
    try replace(store, by: verified.staged, intent: intent, rule: backup, journalMode: journalMode, now: now)
  }

  /// The same for a staged store that its caller has checked.
  func replace(
    _ store: LockedStore, by staged: FilePath, intent: ReplacementIntent, rule: BackupRule,
    journalMode: JournalModeRule, now: Int64
  ) throws -> ReplacedStore {
    let location = store.location
    guard staged.removingLastComponent() == location.directory else {
      throw HopdError(
        .internalError, "the staged store is not next to the store", at: Place(store: location.database, file: staged))
    }
    switch try mode ?? StoreSwap.safeMode(nil, for: store) {
    case .rename:
      return try rename(store, staged: staged, intent: intent, rule: rule, journalMode: journalMode, now: now)
    case .inPlace:
      return try InPlaceSwap(swap: self).replace(
        store, staged: staged, intent: intent, rule: rule, journalMode: journalMode, now: now)
    }
  }

  /// Replaces the store by renaming the staged one to its name: steps A1 to A8.
  private func rename(
    _ store: LockedStore, staged: FilePath, intent given: ReplacementIntent, rule: BackupRule,
    journalMode: JournalModeRule, now: Int64
  ) throws -> ReplacedStore {
    let location = store.location
    let backups = try BackupSet(location: location, rule: rule, files: files)
    let folder = backups.folder(job: given.job, now: now)
    let old = folder.appending(location.fileName)

    let intent = announced(given, store, staged, rule, folder)
    var undo = Undo()
    var (isRenaming, opened) = (false, false)
    defer { undo.lock?.release() }
    do {
      try store.requireRenameKeepsEverything()
      try intents.write(intent)
      try store.requireSameFile()  // A2 takes the log away by its path: it must still be this store's
      try store.requireUnchanged()
      let new = try seal(staged, like: store, journalMode: journalMode)
      undo.staged = new
      try foldLog(of: store, &undo)
      try clearSideFiles(of: store)
      var lease = try holdAlone(store)
      try compare(store, staged, new)
      try keepOld(store, intent, backups, folder, now, &undo)
      try files.syncDirectory(location.directory)  // A5: the backup's name and that of the staged store are for good
      try observer(.backedUp)
      lease = try stillAlone(lease, store)
      isRenaming = true
      try files.rename(staged, to: location.database)  // A6
      opened = lease.map { !$0.isWhole } ?? false
    } catch {
      // A rename that returns an error may have been made all the same (a network file system). Where that cannot be
      // read either, the backup may be the only old store, so nothing is taken back.
      let isOld = !isRenaming || (try? files.status(location.database)).map { $0?.identity != undo.staged } ?? false
      guard isOld else { throw unconfirmed(error, store, old) }
      throw undone(error, undo, store, backups, staged)
    }
    let late: [HopdError]
    do {
      late = try settle(store, intent, old: old, placed: undo.staged, wasOpened: opened)
    } catch {
      throw unconfirmed(error, store, old)
    }
    var result = finish(location, intent.to, folder, backups, rule, now)
    result.warnings += late
    if let found = try? SourceFingerprint(of: location, files: files), found.database.file == undo.staged {
      result.fingerprint = found
    }
    return result
  }

  /// A7 and A8: the rename becomes durable, files that arrived late are set aside, and the new store is confirmed.
  private func settle(
    _ store: LockedStore, _ intent: ReplacementIntent, old: FilePath, placed: FileIdentity?, wasOpened: Bool
  ) throws -> [HopdError] {
    let location = store.location
    try observer(.renamed)
    try files.syncDirectory(location.directory)  // A7
    try observer(.durable)
    let late = try LateFiles(location: location, files: files, identify: identify)
      .setAsideAfterSwap(job: intent.job, old: old, placed: placed)
    if wasOpened { waitUntilClosed(store) }
    try confirm(store, intent.to)  // A8
    try observer(.confirmed)
    return late
  }

  /// A5: the old store gets its second name; the folder of backups stays locked until the end.
  private func keepOld(
    _ store: LockedStore, _ intent: ReplacementIntent, _ backups: BackupSet, _ folder: FilePath, _ now: Int64,
    _ undo: inout Undo
  ) throws {
    try backups.requireTrusted(backups.directory)
    undo.folder = folder
    // Its name is synced with that of the staged store, at the end of A5.
    if try files.status(backups.directory) == nil { try files.makeDirectory(backups.directory, mode: 0o700) }
    undo.lock = try backups.lock(making: backups.directory, keepAlive: keepAlive)
    try backups.make(folder, try label(intent, store, backups, now))
  }

  /// The record of a replacement that begins now.
  func announced(
    _ given: ReplacementIntent, _ store: LockedStore, _ staged: FilePath, _ rule: BackupRule, _ folder: FilePath
  ) -> ReplacementIntent {
    var intent = given
    intent.keepsBackup = rule.keep > 0 ? nil : false
    intent.stage = .replacing
    intent.staged = PathText(staged)
    intent.backup = PathText(folder.appending(store.location.fileName))
    intent.journalMode = store.journalMode
    return intent
  }

  /// The label of the generation that a replacement makes. The store is locked, so its number is unique.
  func label(
    _ intent: ReplacementIntent, _ store: LockedStore, _ backups: BackupSet, _ now: Int64
  ) throws -> BackupRecord {
    // A replacement in place writes into the store's own file.
    let placed = intent.mode == nil ? try intent.staged.flatMap { try files.status($0.path) } : nil
    return BackupRecord(
      store: PathText(store.location.database), job: intent.job, from: intent.from, to: intent.to, createdAt: now,
      storeUUID: intent.storeUUID, journalMode: store.journalMode, placed: placed.map(SourceFingerprint.Stamp.init),
      number: try backups.nextNumber(now: now), madeBy: backupClass)
  }
}
