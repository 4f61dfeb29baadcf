// A backup back in its place: the backup's copy goes the same guarded way as a migrated store, and the store that is
// there now becomes a backup of its own. Nothing is lost by restoring the wrong one.

import Diagnostics
import DurableFiles
import PersistentStore
import SQLite
import SystemPackage

/// Puts backups back.
package struct Restore {
  /// What stands for the plan in the intent record of a restore.
  package static let planFingerprint = "restore"
  /// In the name of the copy beside the store.
  private static let copyName = "restore"

  private let swap: StoreSwap
  private let lockDirectory: FilePath
  private var files: any DurableFileSystem { swap.files }

  /// Works with the swap's files, intents and `identify`.
  package init(swap: StoreSwap, lockDirectory: FilePath) {
    self.swap = swap
    self.lockDirectory = lockDirectory
  }

  /// Puts the old store in `database` (of a `BackupGeneration`, or any other closed copy) in place of the store at
  /// `location`; where there is none, it is put there. `now` is seconds since 1970.
  ///
  /// A store that SQLite cannot read is not written over: the refusal says how to move it away first.
  package func restore(
    _ database: FilePath, to given: StoreLocation, job: String, backup rule: BackupRule, now: Int64
  ) throws -> ReplacedStore {
    let directory = try files.canonical(given.directory)
    guard let name = given.database.lastComponent else {
      throw HopdError(.notFound, "no store is named", at: Place(store: given.database))
    }
    let location = StoreLocation(database: directory.appending(name))
    let source = StoreLocation(database: try files.canonical(database))
    for file in [source.writeAheadLog, source.rollbackJournal] where (try files.status(file)?.size ?? 0) > 0 {
      throw HopdError(
        .notAStore, "the backup was left open by a program: rows of it lie in a side file", at: Place(file: file),
        hint: "open and close it once: sqlite3 \(source.database.printable) 'PRAGMA quick_check'")
    }
    // Whether there is a store is only known under the lock; `HeldStore` takes it for a store that is there.
    guard let fingerprint = try SourceFingerprint(of: location, files: files) else {
      return try placeWhereNoneIs(source, location, job, rule, now)
    }
    let held: HeldStore
    do {
      held = try HeldStore(location: location, lockDirectory: lockDirectory, files: files)
    } catch var error as HopdError where error.code == .storeDamaged {
      error.hint = "move the damaged file and its -wal, -shm and -journal files away, then restore again"
      throw error
    }
    defer { held.release() }
    let area = StagingArea(location: location, job: job, files: files)
    let copy = try stage(source, in: area)
    let intent: ReplacementIntent
    do {
      intent = ReplacementIntent(
        location: location, job: job, planFingerprint: Restore.planFingerprint, source: fingerprint,
        bootIdentifier: try files.bootIdentifier(), staged: copy.path, journalMode: held.journalMode,
        from: try currentVersion(held), to: copy.version, storeUUID: held.storeUUID, startedAt: now)
      try RestoredExternalData(source: source, destination: location, files: files).bringBack()
    } catch {
      try? area.remove(copy.path)
      throw error
    }
    let mode: JournalModeRule = record(of: source).map { $0.journalMode == .wal ? .wal : .delete } ?? .keep
    let result = try swap.swap(held, staged: copy.path, intent: intent, rule: rule, journalMode: mode, now: now)
    try swap.intents.remove(location)
    return result
  }

  /// The copy beside the store, checked, with its version.
  private func stage(_ source: StoreLocation, in area: StagingArea) throws -> (
    path: FilePath, version: StoreVersionMark
  ) {
    guard let status = try files.status(source.database) else {
      throw HopdError(.notFound, "the backup is not there", at: Place(file: source.database))
    }
    try area.requireSpace(status.size)
    // Copies of restores that were killed; what a migration has left is for recovery to judge.
    for leftover in try StagingArea.leftovers(of: area.location, files: files) {
      if leftover.path.lastComponent?.string.hasSuffix("-\(Restore.copyName).tmp") == true {
        try area.remove(leftover.path)
      }
    }
    let path = area.path(named: Restore.copyName)
    try files.copyFile(from: source.database, to: path)
    do {
      let digest = try HopdError.sqlite("read the backup", source.database) {
        let connection = try Connection(path: path, access: .exclusive(keepsLog: false))
        guard try connection.text("PRAGMA quick_check(1)") == "ok" else {
          throw HopdError(.storeDamaged, "the backup is damaged", at: Place(file: source.database))
        }
        return try swap.identify(connection)
      }
      return (path, StoreVersionMark(name: record(of: source)?.from.name ?? "of the backup", digest: digest))
    } catch {
      try? area.remove(path)
      throw error
    }
  }

  private func placeWhereNoneIs(
    _ source: StoreLocation, _ location: StoreLocation, _ job: String, _ rule: BackupRule, _ now: Int64
  ) throws -> ReplacedStore {
    // A log without its database would be played into the restored one and ruin it for good [measured].
    for file in location.sideFiles where try files.status(file) != nil {
      throw HopdError(
        .cannotReplace, "the store is missing but a side file of it is still there", at: Place(file: file),
        hint: "move \(file.printable) away, then restore again")
    }
    let lock = try HeldStore.lock(location, lockDirectory: lockDirectory, files: files)
    defer { lock.release() }
    guard try files.status(location.database) == nil else {
      throw HopdError(
        .storeChanged, "a store appeared while the backup was to be put back", at: Place(store: location.database),
        hint: "restore again: the store that is there now becomes a backup")
    }
    let area = StagingArea(location: location, job: job, files: files)
    let copy = try stage(source, in: area)
    let record = record(of: source)
    do {
      if record?.journalMode == .wal {
        try HopdError.sqlite("set the journal mode", copy.path) {
          let connection = try Connection(path: copy.path, access: .exclusive(keepsLog: false))
          try connection.setJournalMode(
            .wal, orTell: "the copy did not take the journal mode wal", at: Place(file: copy.path))
        }
      }
      do {
        try files.copyAttributes(from: source.database, to: copy.path)
      } catch let error as HopdError where error.code == .noPermission {
        throw HopdError(
          .noPermission, "owner, mode or attributes of the backup cannot be given to the restored store",
          at: Place(store: location.database), cause: error, hint: "run hopctl restore as root or as the store's owner")
      }
      try files.syncFile(copy.path)
      try RestoredExternalData(source: source, destination: location, files: files).bringBack()
      try files.renameNoReplace(copy.path, to: location.database)
      try files.syncDirectory(location.directory)
    } catch {
      try? area.remove(copy.path)
      throw error
    }
    // It was out of the way of every program until now; what the intent said of the former file is over.
    try swap.intents.remove(location)
    return ReplacedStore(
      location: location, version: copy.version, backup: nil, removedBackups: [], warnings: [])
  }

  private func currentVersion(_ held: HeldStore) throws -> StoreVersionMark {
    StoreVersionMark(name: "before the restore", digest: try swap.identify(held.connection))
  }

  private func record(of source: StoreLocation) -> BackupRecord? {
    BackupSet.record(in: source.directory, files: files)
  }
}
