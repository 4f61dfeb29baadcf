// Inspects one store after a crash, lets `Recovery` decide, and carries the decision out. Every act may be cut off and
// repeated: after a kill during recovery, recovery starts from the beginning.

import Diagnostics
import DurableFiles
import PersistentStore
import SQLite
import SystemPackage

/// The result of recovery at one store.
package struct RecoveryOutcome: Sendable {
  /// The store.
  package let location: CanonicalStoreLocation
  /// The findings; nil where there was nothing of hopd's and the store was not opened.
  package let findings: RecoveryFindings?
  /// The decision, carried out.
  package let decision: RecoveryDecision
  /// The intent, if one was readable. After `.completed` remove it when the report is written; after `.resume` continue
  /// with its job.
  package let intent: ReplacementIntent?
  /// Complete old stores, newest first, for a message to the administrator.
  package let backups: [FilePath]
  /// For a quarantine: the error, with the next command to type.
  package let error: HopdError?
  /// The present name of the store that the record is of, if it was renamed within its folder.
  package var renamed: FilePath?
}

/// Recovers stores, one at a time.
package struct RecoveryRunner {
  let files: any DurableFileSystem
  let intents: IntentStore
  let lockDirectory: FilePath
  let identify: (Connection) throws -> String
  let keepAlive: () -> Bool
  let index: LeftoverIndex?
  /// Whether what was staged for a store is removed if the store has another name in its folder now.
  package var dropsStagedOfRenamed = false
  /// Whether staged work that could continue is removed like stale work.
  package var discardsCheckpoints = false

  /// `identify` is the same as `StoreSwap`'s. Long checks call `keepAlive` repeatedly to feed a watchdog; they give up
  /// when it returns false. With an `index` the directory of a store without a record is not listed for each store.
  package init(
    files: any DurableFileSystem, intents: IntentStore, lockDirectory: FilePath,
    identify: @escaping (Connection) throws -> String, keepAlive: @escaping () -> Bool = { true },
    index: LeftoverIndex? = nil
  ) {
    self.index = index
    self.files = files
    self.intents = intents
    self.lockDirectory = lockDirectory
    self.identify = identify
    self.keepAlive = keepAlive
  }

  /// Recovers the store at `location`. A store without any trace of hopd is not opened.
  ///
  /// `planFingerprint` is the plan that would be run now, if it is known: staged work of another one goes. Throws
  /// `.lockedByOther` and `.storeBusy` if it must be retried later.
  package func recover(
    _ location: CanonicalStoreLocation, planFingerprint: String? = nil, rule: BackupRule = BackupRule()
  ) throws -> RecoveryOutcome {
    try recover(location, planFingerprint: planFingerprint, rule: rule, acts: true)
  }

  func recover(
    _ location: CanonicalStoreLocation, planFingerprint: String?, rule: BackupRule, acts: Bool
  ) throws -> RecoveryOutcome {
    try intents.requireNoInterruptedNamesake(of: location)
    let record = try intents.read(location)
    var intent: ReplacementIntent?
    if case .record(let found) = record { intent = found }

    let hasDirectory = try files.status(location.directory)?.kind == .directory
    let backups = try BackupSet(location: location, rule: rule, files: files)
    let leftovers = hasDirectory ? try leftovers(of: location, record) : []
    let unfinished = hasDirectory ? try backups.unfinished() : []
    // A missing store without a trace needs no recovery; the code that opens it reports that it is missing.
    if case .none = record, leftovers.isEmpty, unfinished.isEmpty {
      return RecoveryOutcome(
        location: location, findings: nil, decision: .nothingToDo, intent: nil, backups: [], error: nil)
    }

    var findings = RecoveryFindings(
      store: .missing, intent: record.kind, staged: .none, hasUnfinishedBackup: !unfinished.isEmpty,
      lostWriteAheadLogMode: false)
    let jobBackup = hasDirectory ? try intent.flatMap { try note($0, backups, in: &findings) } : nil
    if !leftovers.isEmpty {
      // Asked before the store is opened: opening may fold a log in.
      let mayResume = try mayResume(intent, leftovers, of: location, planFingerprint: planFingerprint)
      findings.staged = mayResume ? .resumable : .stale
    }
    var store: LockedStore?
    if findings.intent != .newer, hasDirectory, try files.status(location.database) != nil {
      if acts {
        store = try inspect(location, intent, &findings)
      } else {
        try inspectUnchanged(location, intent, &findings)
      }
    }
    defer { store?.release() }
    if discardsCheckpoints, findings.staged == .resumable {
      // The record was read before the store was locked, and a job may have continued since.
      if acts { try requireUnchanged(intent, of: location) }
      findings.staged = .stale
    }
    var decision = Recovery.decide(findings)
    var renamed: FilePath?
    if case .quarantine(let reason) = decision, reason == .storeMissing || reason == .unknownVersion, let intent {
      renamed = try nameNow(of: intent, in: location)
    }
    if acts, dropsStagedOfRenamed, renamed != nil, let intent {
      // The record stays until its files are gone. The file of objects that were set aside stays too.
      try drop(leftovers.filter { $0.job == intent.job }, in: location, store)
      try intents.remove(location)
      decision = .startAgain([.dropStaged, .removeIntent])
    } else if acts {
      try act(decision, location, leftovers, unfinished, jobBackup, backups, store, intent)
    }
    if acts, let store { removeColdJournal(store) }
    let old = hasDirectory ? try backups.generations().map(\.database) : []
    return RecoveryOutcome(
      location: location, findings: findings, decision: decision, intent: intent, backups: old,
      error: explain(decision, location, record, old, leftovers, renamed), renamed: renamed)
  }

  /// Whether the record's job may continue with what is staged.
  private func mayResume(
    _ intent: ReplacementIntent?, _ leftovers: [StagingArea.Leftover], of location: CanonicalStoreLocation,
    planFingerprint: String?
  ) throws -> Bool {
    guard let intent, leftovers.allSatisfy({ $0.job == intent.job }) else { return false }
    return intent.allowsResume(
      planFingerprint: planFingerprint, source: try SourceFingerprint(of: location, files: files),
      bootIdentifier: try files.bootIdentifier())
  }

  private func requireUnchanged(_ intent: ReplacementIntent?, of location: CanonicalStoreLocation) throws {
    if case .record(let now) = try intents.read(location), now == intent { return }
    throw HopdError(
      .storeBusy, "another job was running on the store at the same time", at: Place(store: location.database),
      hint: "retry")
  }

  /// Notes what a record says of mode and backups; returns the complete backup of its job.
  private func note(
    _ intent: ReplacementIntent, _ backups: BackupSet, in findings: inout RecoveryFindings
  ) throws -> FilePath? {
    findings.mode = intent.mode ?? .rename
    findings.keepsBackup = intent.keepsBackup ?? true
    let jobBackup = try backups.generations().first { $0.record?.job == intent.job }?.directory
    findings.hasJobBackup = jobBackup != nil
    findings.hasBackupToMove = try backups.generationsToMove().contains { $0.record?.job == intent.job }
    return jobBackup
  }

  /// The name under which the file that a job began with is now in its folder; nil if it is not there.
  private func nameNow(of intent: ReplacementIntent, in location: CanonicalStoreLocation) throws -> FilePath? {
    guard try files.status(location.directory)?.kind == .directory else { return nil }
    return try files.names(in: location.directory).first { name in
      try name != location.database.lastComponent && !StoreLocation.isAuxiliaryFile(fileName: name.string)
        && files.status(location.directory.appending(name))?.identity == intent.source.database.file
    }.map { location.directory.appending($0) }
  }

  private func drop(
    _ leftovers: [StagingArea.Leftover], in location: CanonicalStoreLocation, _ store: LockedStore?
  ) throws {
    for leftover in leftovers {
      if AddedFileList.isList(leftover.path) {
        let version = try store?.connection.integer("PRAGMA schema_version")
        try AddedFileList.withdraw(leftover.path, of: location, schemaVersion: version, files: files)
      }
      // A new store that did not get its name has its external files there.
      try files.removeTree(StoreLocation(database: leftover.path).supportDirectory, deepest: 2)
      try StagingArea.remove(leftover.path, files: files)
    }
    try files.syncDirectory(location.directory)
  }

  /// Removes a rollback journal whose header is zeroed: a kill between SQLite's commit and its last unlink leaves one.
  /// SQLite itself removes it, and only under its lock; the store is not used afterwards.
  private func removeColdJournal(_ store: LockedStore) {
    guard (try? files.status(store.location.rollbackJournal)) ?? nil != nil,
      (try? StoreReader.hasHotJournal(store.location.store)) == false, let connection = try? store.connection,
      (try? connection.text("PRAGMA journal_mode")) == "delete"
    else { return }
    // If this fails the journal stays: SQLite ignores one whose header is zeroed.
    try? connection.execute("PRAGMA locking_mode = NORMAL; BEGIN EXCLUSIVE; ROLLBACK")
    _ = try? connection.text("PRAGMA journal_mode = PERSIST")
    _ = try? connection.text("PRAGMA journal_mode = DELETE")
  }

  private func leftovers(of location: CanonicalStoreLocation, _ record: IntentStore.Finding) throws -> [StagingArea
    .Leftover]
  {
    guard case .none = record, let index else { return try StagingArea.leftovers(of: location, files: files) }
    // Scratch may be gone since the directory was listed.
    return try StagingArea.leftovers(of: location, among: index.names(in: location.directory, files: files)).filter {
      let staged = StoreLocation(database: $0.path)
      return try ([staged.database] + staged.sideFiles).contains { try files.status($0) != nil }
    }
  }

  /// Holds the store and determines its content.
  private func inspect(
    _ location: CanonicalStoreLocation, _ intent: ReplacementIntent?, _ findings: inout RecoveryFindings
  ) throws -> LockedStore? {
    do {
      let store = try LockedStore(location: location, lockDirectory: lockDirectory, files: files)
      findings.store = try content(of: store, intent)
      findings.lostWriteAheadLogMode = intent?.journalMode == .wal && store.journalMode == .delete
      findings.lacksJournalMode = intent?.wantedJournalMode.map { $0 != store.journalMode } ?? false
      return store
    } catch let error as HopdError where error.code == .storeDamaged || error.code == .notAStore {
      findings.store = .damaged
    } catch let error as HopdError where error.code == .notFound {
      findings.store = .missing
    }
    return nil
  }

  private func content(of store: LockedStore, _ intent: ReplacementIntent?) throws -> RecoveryFindings.Store {
    let connection = try store.connection
    connection.setProgressHandler(every: 200_000, keepAlive)
    defer { connection.setProgressHandler(nil) }
    return try HopdError.sqlite("check the store", store.location.database) {
      try content(of: connection, store.identity, intent)
    }
  }

  func content(
    of connection: Connection, _ identity: FileIdentity, _ intent: ReplacementIntent?
  ) throws -> RecoveryFindings.Store {
    guard try connection.text("PRAGMA quick_check(1)") == "ok" else { return .damaged }
    let digest: String? = try identifyIfPossible(connection)
    guard let intent else { return .other }
    return intent.content(
      digest: digest, schemaVersion: try connection.integer("PRAGMA schema_version"),
      isSourceFile: identity == intent.source.database.file)
  }

  private func identifyIfPossible(_ connection: Connection) throws -> String? {
    do {
      return try identify(connection)
    } catch let error as HopdError where error.code.isRetryable {
      throw error
    } catch let error as SQLiteError where error.isPassing {
      throw error
    } catch {
      return nil  // no version can be read: neither the old nor the new one
    }
  }

  private func act(
    _ decision: RecoveryDecision, _ location: CanonicalStoreLocation, _ leftovers: [StagingArea.Leftover],
    _ unfinished: [FilePath], _ jobBackup: FilePath?, _ backups: BackupSet, _ store: LockedStore?,
    _ intent: ReplacementIntent?
  ) throws {
    let actions: [RecoveryAction]
    switch decision {
    case .nothingToDo, .quarantine: return
    case .startAgain(let list), .resume(let list), .completed(let list): actions = list
    }
    // By its record the store is the old one, so the objects that its migration had set aside are still in it. Their
    // file is removed first: if this is cut off, the record still exists. Without a record the file stays, to be safe.
    if case .startAgain = decision, let intent {
      let area = StagingArea(location: location, job: intent.job, files: files)
      try QuarantineFile(area: area, files: files).withdraw()
    }
    for action in actions {
      switch action {
      case .syncDirectory: try files.syncDirectory(location.directory)
      case .dropStaged: try drop(leftovers, in: location, store)
      case .dropUnfinishedBackup:
        for folder in unfinished { try backups.remove(folder) }
      case .dropJobBackup: if let jobBackup { try backups.remove(jobBackup) }
      case .moveBackup:
        // A generation that cannot be moved now stays in its place; the next replacement moves it.
        let lock = try backups.lock(keepAlive: { _ = keepAlive() })
        defer { lock.release() }
        for generation in try backups.generationsToMove() where generation.record?.job == intent?.job {
          _ = try? backups.moveElsewhere(generation.directory)
        }
      case .makeContentDurable: try store?.makeContentDurable()
      case .setJournalMode:
        if let store, let wanted = intent?.wantedJournalMode, wanted != store.journalMode { try set(wanted, of: store) }
      case .restoreWriteAheadLogMode: if let store { try set(.wal, of: store) }
      case .removeIntent: try intents.remove(location)
      }
    }
  }

  /// Sets a journal mode. A refusal is not a failure, because either mode is normal. After an error of the disk the
  /// record stays, because the mode is stored only there.
  private func set(_ mode: JournalMode, of store: LockedStore) throws {
    guard let connection = try? store.connection else { return }
    do { _ = try connection.text("PRAGMA journal_mode = \(mode.rawValue)") } catch {
      // SQLITE_NOMEM, SQLITE_IOERR, SQLITE_FULL
      guard [7, 10, 13].contains(error.code) else { return }
      throw HopdError.storeError(error, "set the journal mode", store.location.database)
    }
  }

  private func explain(
    _ decision: RecoveryDecision, _ location: CanonicalStoreLocation, _ record: IntentStore.Finding,
    _ backups: [FilePath], _ leftovers: [StagingArea.Leftover], _ renamed: FilePath?
  ) -> HopdError? {
    guard case .quarantine(let reason) = decision else { return nil }
    if let renamed {
      return HopdError(
        .storeQuarantined, "the store was renamed while it was migrated: it is \(renamed.printable) now",
        at: Place(store: location.database),
        hint:
          "run `hopctl recover \(location.database.quotedForShell) --yes` to remove the staged files of the old name")
    }
    if case .newer(let error) = record { return error.located(Place(store: location.database)) }
    // There may never have been a store; but if there was one, its staged store may be all that is left of it.
    if case .none = record, reason == .storeMissing, backups.isEmpty, let first = leftovers.first {
      return HopdError(
        .storeQuarantined,
        "no such store, and no record of a migration: `hopctl create` or --output was interrupted",
        at: Place(store: location.database, file: first.path),
        hint: first.path.lastComponent?.string.hasSuffix("-new.tmp") == true
          ? "run the same command again: it removes what is left"
          : "start over; remove the remaining files with rm \(first.path.quotedForShell)*")
    }
    let message =
      switch reason {
      case .storeMissing: "the store is missing; hopd does not create it again"
      case .storeDamaged: "the store is damaged; nothing was changed"
      case .unknownVersion: "the store matches neither the source nor the target version; nothing was changed"
      case .newerIntent: "a newer hopd has been used here; nothing was changed"
      }
    let hint =
      backups.first.map { "run `hopctl restore` to restore the newest backup, \($0.printable)" }
      ?? "restore a backup of your own; hopd has none of this store"
    return HopdError(.storeQuarantined, message, at: Place(store: location.database), hint: hint)
  }
}

extension DurableRecord.Finding {
  /// The record's kind, as a finding.
  fileprivate var kind: RecoveryFindings.Intent {
    switch self {
    case .none: .none
    case .record: .readable
    case .unreadable: .unreadable
    case .newer: .newer
    }
  }
}

// An inspection of a store as recovery would make it, without changes: neither to hopd's files nor by the repairs that
// SQLite itself makes when it opens the store.

extension RecoveryRunner {
  /// Returns what `recover` would find and decide, and changes nothing. Throws `.storeBusy` where only a writer could
  /// find out.
  package func examine(
    _ location: CanonicalStoreLocation, planFingerprint: String? = nil, rule: BackupRule = BackupRule()
  ) throws -> RecoveryOutcome {
    try recover(location, planFingerprint: planFingerprint, rule: rule, acts: false)
  }

  func inspectUnchanged(
    _ location: CanonicalStoreLocation, _ intent: ReplacementIntent?, _ findings: inout RecoveryFindings
  ) throws {
    guard let status = try files.status(location.database) else { return }
    guard status.kind == .regular, status.size > 0 else {
      findings.store = .damaged
      return
    }
    do {
      let found = try StoreReader.withUnchangedStore(at: location.store) { reader in
        let connection = reader.connection
        connection.setProgressHandler(every: 200_000, keepAlive)
        defer { connection.setProgressHandler(nil) }
        let store = try content(of: connection, status.identity, intent)
        return (store, try StoreReader.keepsWriteAheadLog(location.store) ? JournalMode.wal : .delete)
      }
      findings.store = found.0
      findings.lostWriteAheadLogMode = intent?.journalMode == .wal && found.1 == .delete
      findings.lacksJournalMode = intent?.wantedJournalMode.map { $0 != found.1 } ?? false
    } catch let error as HopdError
      where [HopdError.Code.storeDamaged, .notAStore].contains(error.code) || error.code.exit == .dataError
    {
      findings.store = .damaged
    } catch let error as HopdError where error.code == .notFound {
      // A file that exists and cannot be opened for now, as with too many open files, is not missing.
      guard try files.status(location.database) == nil else { throw error }
      findings.store = .missing
    }
  }
}
