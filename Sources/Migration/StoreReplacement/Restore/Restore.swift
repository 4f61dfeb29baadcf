// The restore of a backup: a copy of the backup replaces the store in the same guarded way as a migrated store, and the
// present store becomes a backup of its own. Restoring the wrong backup loses nothing.

import Diagnostics
import DurableFiles
import PersistentStore
import SQLite
import SystemPackage

extension HopdError.Code {
  /// The backup is of another store than the one that it would replace.
  package static let otherStore = HopdError.Code("other-store", exit: .dataError)
  /// The file of the backup is of another version than its label says.
  package static let otherVersion = HopdError.Code("other-version", exit: .dataError)
  /// External files of the store differ from those of the backup: one of the two is damaged.
  package static let externalDataDiffers = HopdError.Code("external-data-differs", exit: .dataError)
}

/// The options of a restore.
package struct RestoreOptions: Sendable, Hashable {
  /// Whether the store is pinned to the version of the backup.
  package var pins = true
  /// Whether it continues where the backup is of another store or not what its label says, and where external files
  /// differ.
  package var force = false
  /// The restore of a set that the pin belongs to.
  package var group: String?
  /// The version that the store must have; nil for any.
  package var expected: StoreVersionMark?

  /// By default pins the store, and refuses a backup of another store or version and differing external files.
  package init(
    pins: Bool = true, force: Bool = false, group: String? = nil, expected: StoreVersionMark? = nil
  ) {
    self.pins = pins
    self.force = force
    self.group = group
    self.expected = expected
  }
}

/// A restored store.
package struct RestoredStore: Sendable {
  /// How it was replaced, with its present version and the backup of the former store.
  package var replaced: ReplacedStore
  /// Its pin; nil where none was wanted.
  package var pin: RestorePin?
  /// Names of external files that differ from the backup's and were left as they are.
  package var differingFiles: [String]
}

/// Puts backups back.
package struct Restore {
  /// The value in place of a plan's fingerprint in the intent record of a restore.
  package static let planFingerprint = "restore"
  /// In the name of the copy beside the store.
  private static let copyName = "restore"

  private var swap: StoreSwap
  private let lockDirectory: FilePath
  private var files: any DurableFileSystem { swap.files }

  /// Works with the swap's files, intents and `identify`.
  package init(swap: StoreSwap, lockDirectory: FilePath) {
    self.swap = swap
    self.swap.backupClass = .restore
    self.lockDirectory = lockDirectory
  }

  /// Replaces the store at `location` by the old store in `database` (of a `BackupGeneration`, or any other closed
  /// copy, by its canonical path); where there is none, the copy is put there. `now` is seconds since 1970. `rule` only
  /// gives the places of backups: a restore removes none.
  ///
  /// A store that SQLite cannot read is not overwritten: the hint shows how to move it first.
  package func restore(
    _ database: FilePath, to location: CanonicalStoreLocation, job: String, backup rule: BackupRule, now: Int64,
    options: RestoreOptions = RestoreOptions()
  ) throws -> RestoredStore {
    let source = StoreLocation(database: database)
    if let found = try files.status(location.database), try files.status(database)?.identity == found.identity {
      throw HopdError(
        .otherStore, "the backup is the store itself", at: Place(store: location.database, file: database),
        hint: "list its backups with `hopctl backups \(location.database.quotedForShell)`; nothing was changed")
    }
    for file in [source.writeAheadLog, source.rollbackJournal] where (try files.status(file)?.size ?? 0) > 0 {
      throw HopdError(
        .notAStore, "the backup was left open by a program: some of its rows are in a side file", at: Place(file: file),
        hint: "open and close it once: sqlite3 \(source.database.quotedForShell) 'PRAGMA quick_check'")
    }
    let job = Job(
      name: job, source: source, location: location, rule: BackupRule(keep: .max, directory: rule.directory), now: now,
      options: options)
    // Whether there is a store is only known under the lock; `LockedStore` assumes that there is one.
    guard let fingerprint = try SourceFingerprint(of: location, files: files) else {
      return try placeWhereNoneIs(job)
    }
    let store: LockedStore
    do {
      store = try LockedStore(location: location, lockDirectory: lockDirectory, files: files)
    } catch let error as HopdError where error.code == .storeDamaged {
      throw Self.askingToMoveAway(error)
    }
    defer { store.release() }
    return try replace(store, fingerprint, job)
  }

  /// The parameters of one restore.
  private struct Job {
    let name: String
    let source: StoreLocation
    let location: CanonicalStoreLocation
    let rule: BackupRule
    let now: Int64
    let options: RestoreOptions
  }

  /// The copy beside the store.
  private struct Copy {
    let path: FilePath
    let version: StoreVersionMark
    let storeUUID: String?
  }

  private func replace(_ store: LockedStore, _ fingerprint: SourceFingerprint, _ job: Job) throws -> RestoredStore {
    let area = StagingArea(location: job.location, job: job.name, files: files)
    let copy = try stage(job, in: area)
    let intent: ReplacementIntent
    let differing: [String]
    let pins = PinStore(location: job.location, files: files)
    let former: RestorePin?
    do {
      try requireSameStore(store, copy, job)
      let current = try currentVersion(store, job)
      if let expected = job.options.expected, expected.digest != current.digest {
        throw HopdError(
          .storeChanged, "the store is of \(current.name) now, and no longer of \(expected.name)",
          at: Place(store: job.location.database), hint: "run the same command again; nothing was changed")
      }
      intent = ReplacementIntent(
        location: job.location, job: job.name, planFingerprint: Restore.planFingerprint, source: fingerprint,
        bootIdentifier: try files.bootIdentifier(), staged: copy.path, journalMode: store.journalMode,
        from: current, to: copy.version, storeUUID: store.storeUUID, startedAt: job.now)
      differing = try bringExternalDataBack(job)
      former = try formerPin(pins)
      if job.options.pins {
        let over = former?.matching(storeUUID: store.storeUUID, digest: current.digest)
        try pins.write(pin(copy, job, replaced: [current], over: over))
      }
    } catch {
      try? area.remove(copy.path)
      throw error
    }
    let mode: JournalModeRule = record(of: job.source).map { $0.journalMode == .wal ? .wal : .delete } ?? .keep
    var result: ReplacedStore
    do {
      result = try swap.replace(
        store, by: copy.path, intent: intent, rule: job.rule, journalMode: mode, now: job.now)
    } catch {
      // The pin of a restore that was not made holds nothing back, but the pin that existed before must survive it.
      if job.options.pins, (error as? HopdError)?.code != .replacementUnconfirmed { putBack(former, pins) }
      throw error
    }
    try swap.intents.remove(job.location)
    let pin = settle(pins, job, &result)
    return RestoredStore(replaced: result, pin: pin, differingFiles: differing)
  }

  /// Settles the pin after the restore. If none is wanted, a former one must not hold this store back.
  private func settle(_ pins: PinStore, _ job: Job, _ result: inout ReplacedStore) -> RestorePin? {
    do {
      if job.options.pins { return try pins.read() }
      try pins.remove()
    } catch {
      result.warnings.append(
        HopdError(
          .inputOutput, "the pin of the store cannot be read or removed", at: Place(store: job.location.database),
          cause: error))
    }
    return nil
  }

  /// The pin that the store has. A damaged one says nothing that could be kept; a newer hopd's is not overwritten.
  private func formerPin(_ pins: PinStore) throws -> RestorePin? {
    do { return try pins.read() } catch let error as HopdError where error.code == .recordUnreadable { return nil }
  }

  private func putBack(_ former: RestorePin?, _ pins: PinStore) {
    if let former { try? pins.write(former) } else { _ = try? pins.remove() }
  }

  /// The pin that holds the store at the version of its copy, against the version that is replaced now, and those that
  /// a restore before this one had replaced, without its own.
  private func pin(
    _ copy: Copy, _ job: Job, replaced: [StoreVersionMark], over former: RestorePin?
  ) -> RestorePin {
    var versions = replaced
    for version in former?.replaced ?? [] where !versions.contains(where: { $0.digest == version.digest }) {
      versions.append(version)
    }
    versions.removeAll { $0.digest == copy.version.digest }
    // A pin against every version stays one.
    if let former, former.replaced.isEmpty { versions = [] }
    var pin = RestorePin(
      storeUUID: copy.storeUUID, restored: copy.version, replaced: versions, restoredAt: job.now, job: job.name,
      group: job.options.group)
    pin.former = former.map {
      var last = $0
      last.former = nil
      return [last]
    }
    return pin
  }

  /// Throws `.otherStore` where the identifiers of backup and store differ.
  private func requireSameStore(_ store: LockedStore, _ copy: Copy, _ job: Job) throws {
    guard !job.options.force, let own = store.storeUUID, let other = copy.storeUUID, own != other else { return }
    let label = record(of: job.source).map { ", the store of \($0.store.path.printable)" } ?? ""
    throw HopdError(
      .otherStore, "the backup is of another store: its UUID is \(other)\(label); the UUID of the store here is \(own)",
      at: Place(store: job.location.database, file: job.source.database),
      hint: "choose another one (`hopctl backups` lists them), or pass --anyway; nothing was changed")
  }

  /// Copies lost external files back, and returns which of the existing ones differ from the backup's.
  ///
  /// An external file never changes under its name. Where it has, one of the two is damaged, and only a person can
  /// decide which: nothing is overwritten, and nothing is restored unless the operator asked for it.
  private func bringExternalDataBack(_ job: Job) throws -> [String] {
    let data = RestoredExternalData(source: job.source, destination: job.location, files: files)
    let differing = try data.differingFiles()
    guard differing.isEmpty || job.options.force else {
      let count =
        differing.count == 1
        ? "1 external file of the store differs" : "\(differing.count) external files of the store differ"
      throw HopdError(
        .externalDataDiffers, "\(count) from the backup's, so one of the two is damaged",
        at: Place(store: job.location.database),
        hint:
          "move the file away and restore again, or pass --anyway to restore the "
          + "database alone; "
          + "nothing was changed",
        reasons: differing.prefix(20).map {
          HopdError(
            .externalDataDiffers, "it differs from \(job.source.externalDataDirectory.appending($0).printable)",
            at: Place(file: job.location.externalDataDirectory.appending($0)))
        }
          + (differing.count > 20
            ? [HopdError(.externalDataDiffers, "and \(differing.count - 20) more files")] : []))
    }
    try data.bringBack()
    // The sweep may have removed the backup meanwhile, its database first: then files that the store has lost may be
    // missing in it too.
    guard try files.status(job.source.database) != nil else {
      throw HopdError(
        .notFound, "the backup was removed while it was being restored", at: Place(file: job.source.database),
        hint: "choose another one: hopctl backups \(job.location.database.quotedForShell)")
    }
    return differing
  }

  /// The copy beside the store, checked, with its version.
  private func stage(_ job: Job, in area: StagingArea) throws -> Copy {
    let source = job.source
    guard let status = try files.status(source.database) else {
      throw HopdError(.notFound, "the backup does not exist", at: Place(file: source.database))
    }
    try area.requireSpace(status.size)
    // Removes copies of restores that were killed; the leftovers of a migration are left to recovery.
    for leftover in try StagingArea.leftovers(of: area.location, files: files) {
      if leftover.path.lastComponent?.string.hasSuffix("-\(Restore.copyName).tmp") == true {
        try area.remove(leftover.path)
      }
    }
    let path = area.path(named: Restore.copyName)
    try files.copyFile(from: source.database, to: path)
    do {
      let facts = try HopdError.sqlite("read the backup", source.database) {
        let connection = try Connection(path: path, access: .exclusive(keepsLog: false))
        guard try connection.text("PRAGMA quick_check(1)") == "ok" else {
          throw HopdError(.storeDamaged, "the backup is damaged", at: Place(file: source.database))
        }
        let uuid = try? connection.text("SELECT Z_UUID FROM Z_METADATA LIMIT 1")
        return (digest: try swap.identify(connection), uuid: uuid)
      }
      let name = try name(of: facts.digest, job)
      return Copy(path: path, version: StoreVersionMark(name: name, digest: facts.digest), storeUUID: facts.uuid)
    } catch {
      try? area.remove(path)
      throw error
    }
  }

  /// The name of the copy's version. Throws `.otherVersion` where the label of the backup says another one: what it
  /// says of the file is not to be believed then.
  private func name(of digest: String, _ job: Job) throws -> String {
    let label = record(of: job.source)?.from
    if let label, label.digest == digest { return label.name }
    let known = knownName(digest, job)
    guard let label else { return known ?? "the version of the backup" }
    guard job.options.force else {
      throw HopdError(
        .otherVersion,
        "the backup is labeled \(label.name), but the file has a different version"
          + (known.map { ", \($0)" } ?? ""),
        at: Place(store: job.location.database, file: job.source.database),
        hint: "choose another one: hopctl backups \(job.location.database.quotedForShell); or pass --anyway to restore "
          + "its content; nothing was changed")
    }
    return known ?? "a version that its label does not name"
  }

  private func placeWhereNoneIs(_ job: Job) throws -> RestoredStore {
    let (source, location) = (job.source, job.location)
    // SQLite would play a log without its database into the restored one and ruin it for good (tools/README.md,
    // "SQLite and files").
    for file in location.sideFiles where try files.status(file) != nil {
      throw HopdError(
        .cannotReplace, "the store is missing, but one of its side files exists", at: Place(file: file),
        hint: "move \(file.printable) away, then restore again")
    }
    let lock = try LockedStore.lock(location, lockDirectory: lockDirectory, files: files)
    defer { lock.release() }
    guard try files.status(location.database) == nil else {
      throw HopdError(
        .storeChanged, "a store was created during the restore", at: Place(store: location.database),
        hint: "restore again; the current store becomes a backup")
    }
    let area = StagingArea(location: location, job: job.name, files: files)
    let copy = try stage(job, in: area)
    let record = record(of: source)
    let pins = PinStore(location: location, files: files)
    // Until the store has its name, a sweep would treat the pin as that of a store that is gone.
    let backups = BackupSet(location: location, base: nil, files: files)
    let backupLock = try job.options.pins ? backups.lock(making: backups.directory) : nil
    defer { backupLock?.release() }
    let former = try formerPin(pins)
    var isPinned = false
    var differing: [String] = []
    do {
      try prepareCopy(copy, record, job)
      differing = try bringExternalDataBack(job)
      if job.options.pins {
        // The version that had replaced the backup's version is the one that the store had.
        let isOver = former.map { $0.storeUUID == copy.storeUUID } ?? false
        isPinned = true
        try pins.write(pin(copy, job, replaced: record.map { [$0.to] } ?? [], over: isOver ? former : nil))
      }
      try files.renameNoReplace(copy.path, to: location.database)
      try files.syncDirectory(location.directory)
    } catch {
      if isPinned, (try? files.status(location.database)) ?? nil == nil { putBack(former, pins) }
      try? area.remove(copy.path)
      throw error
    }
    // No program could open it until now; the intent for the former file is obsolete.
    try swap.intents.remove(location)
    var result = ReplacedStore(
      location: location, version: copy.version, backup: nil, removedBackups: [], warnings: [])
    let pin = settle(pins, job, &result)
    return RestoredStore(replaced: result, pin: pin, differingFiles: differing)
  }

  /// Sets journal mode and attributes of the backup, for a copy that is put where no store is.
  private func prepareCopy(_ copy: Copy, _ record: BackupRecord?, _ job: Job) throws {
    if record?.journalMode == .wal {
      try HopdError.sqlite("set the journal mode", copy.path) {
        let connection = try Connection(path: copy.path, access: .exclusive(keepsLog: false))
        try connection.setJournalMode(
          .wal, orReport: "the copy did not take the journal mode wal", at: Place(file: copy.path))
      }
    }
    do {
      try files.copyAttributes(from: job.source.database, to: copy.path)
    } catch let error as HopdError where error.code == .noPermission {
      throw HopdError(
        .noPermission, "owner, mode or attributes of the backup cannot be given to the restored store",
        at: Place(store: job.location.database), cause: error,
        hint: "run `hopctl restore` as root or as the owner of the store")
    }
    try files.syncFile(copy.path)
  }

  private func currentVersion(_ store: LockedStore, _ job: Job) throws -> StoreVersionMark {
    let digest: String
    do { digest = try swap.identify(store.connection) } catch let error as SQLiteError {
      let error = StoreReader.explained(error, location: job.location.store)
      throw error.code == .storeDamaged ? Self.askingToMoveAway(error) : error
    } catch let error as HopdError where error.code.exit == .dataError {
      throw Self.askingToMoveAway(error)
    }
    return StoreVersionMark(name: knownName(digest, job) ?? BackupRecord.replacedByRestore, digest: digest)
  }

  private static func askingToMoveAway(_ error: HopdError) -> HopdError {
    var error = error
    error.hint = "move the damaged file and its -wal, -shm and -journal files away, then restore again"
    return error
  }

  /// The name of a version, if a label of the store's backups contains it.
  private func knownName(_ digest: String, _ job: Job) -> String? {
    let backups = try? BackupSet(location: job.location, rule: job.rule, files: files)
    let labels = ((try? backups?.generations()) ?? []).compactMap(\.record) + [record(of: job.source)].compactMap { $0 }
    return labels.flatMap { [$0.to, $0.from] }.first {
      $0.digest == digest && $0.name != BackupRecord.replacedByRestore
    }?.name
  }

  private func record(of source: StoreLocation) -> BackupRecord? {
    BackupSet.record(in: source.directory, files: files)
  }
}
