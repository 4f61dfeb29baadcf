// The run that replaces a store: lock, plan, build, verify, swap.

import Diagnostics
import DurableFiles
import Glibc
import ManagedObjectModel
import MigrationEngine
import MigrationPlanning
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage

extension MigrationRun {
  /// Takes the store to its target in place.
  func replaceStore() throws -> MigrationReport {
    stage = .recover
    let environment = try ReplacementEnvironment(
      files: files, stateDirectory: request.stateDirectory, keepAlive: heartbeat(), index: leftovers)
    let location = request.location
    let outcome = try environment.recovery.recover(location, rule: request.backup)
    switch outcome.decision {
    case .quarantine:
      throw outcome.error ?? HopdError(.internalError, "the store is in quarantine, without a reason")
    case .completed:
      observer(.recovered(sentence: "the migration was completed before the crash"))
      if let intent = outcome.intent { return try completed(intent, outcome, environment) }
    case .resume:
      if let intent = outcome.intent {
        job = intent.job
        interrupted = intent
      }
    case .startAgain:
      observer(.recovered(sentence: "what an interrupted run had left was removed; the store is the old one"))
    case .nothingToDo: break
    }

    stage = .identify
    try checkStop()
    try MigrationPipeline(files: files).rollBackHotJournal(location, stateDirectory: request.stateDirectory)
    if let late = try MigrationPipeline(files: files).setLateLogAside(
      location, stateDirectory: request.stateDirectory, backup: request.backup, job: job,
      keepAlive: heartbeat())
    {
      lateFiles.append(late)
    }
    // Most stores are current: an inspection finds that without a change or a lock, here or in the caller.
    if !request.isKnownBehind, !request.repairs,
      try identified(
        StoreIdentifier.identify(
          request.location.store, catalog: request.catalog, target: request.target, countsRows: false)) == nil
    {
      return report(.current)
    }
    return try migrateLocked(location, environment)
  }

  /// Locks the store and migrates it.
  private func migrateLocked(
    _ location: CanonicalStoreLocation, _ environment: ReplacementEnvironment
  ) throws -> MigrationReport {
    stage = .lock
    guard let fingerprint = try SourceFingerprint(of: location, files: files) else {
      throw HopdError(.notFound, "the store no longer exists")
    }
    let lockedStore = try LockedStore(location: location, lockDirectory: environment.lockDirectory, files: files)
    defer {
      cancelSourceCheck()
      lockedStore.release()
    }
    let area = StagingArea(location: lockedStore.location, job: job, files: files)
    do {
      return try migrate(lockedStore, fingerprint: fingerprint, area: area, environment: environment)
    } catch {
      // The connection has the staged stores attached; it goes first, so that the files can.
      cancelSourceCheck()
      lockedStore.release()
      cleanUp(after: error, area: area, environment: environment)
      throw error
    }
  }

  /// A crash came between the swap and the report: the new store is in place.
  private func completed(
    _ intent: ReplacementIntent, _ outcome: RecoveryOutcome, _ environment: ReplacementEnvironment
  ) throws -> MigrationReport {
    let assessment = try StoreIdentifier.identify(
      request.location.store, catalog: request.catalog, target: request.target, countsRows: false)
    // The target may have changed since: then this is an ordinary store that is behind.
    if try identified(assessment) != nil {
      try environment.intents.remove(outcome.location)
      return try replaceStore()
    }
    var report = report(.completedBeforeCrash, backup: outcome.backups.first)
    report.job = intent.job
    report.from = intent.from.name
    report.to = intent.to.name
    finishPruning(outcome, &report)
    try environment.intents.remove(outcome.location)
    return report
  }

  /// Prunes older backups by the rule, which the interrupted run did not reach.
  private func finishPruning(_ outcome: RecoveryOutcome, _ report: inout MigrationReport) {
    do {
      let backups = try BackupSet(location: outcome.location, rule: request.backup, files: files)
      report.prunedBackups = try backups.remove {
        BackupSet.removals($0, request.backup, now: Int64(time(nil)))
      }
    } catch {
      report.warnings.append(HopdError.of(error, at: Place(store: request.name)))
    }
  }

  private func migrate(
    _ lockedStore: LockedStore, fingerprint: SourceFingerprint, area: StagingArea, environment: ReplacementEnvironment
  ) throws -> MigrationReport {
    replacement = try StoreSwap.safeMode(request.replacement, for: lockedStore)
    if replacement != request.replacement ?? .rename, request.takesNotes {
      observer(.note(.decision("the store is replaced in place, because no lease can be had on its file")))
    }
    try lockedStore.requireReplaceable(by: replacement)
    let reader = StoreReader(connection: try lockedStore.connection)
    reader.connection.setProgressHandler(every: 200_000, heartbeat())
    if let most = request.engine.valueMax { reader.connection.limitValues(toBytes: most) }
    // The state may have changed since the inspection without the lock: only this one counts.
    let assessment = try StoreIdentifier.identify(
      reader: reader, location: lockedStore.location.store, catalog: request.catalog, target: request.target,
      countsRows: false)
    let behind = try identified(assessment)
    let repaired = try repaired(reader, assessment, in: area, replaces: true)
    guard let store = behind else {
      guard let repaired, let metadata = assessment.metadata else { return report(.current) }
      return try replace(
        lockedStore, reading: reader, with: repaired, metadata: metadata, fingerprint: fingerprint, area: area,
        environment: environment)
    }
    return try migrate(
      store, lockedStore, reading: reader, repaired, fingerprint: fingerprint, area: area, environment: environment)
  }

  /// Makes the hops, from the store or from a repaired copy of it, and replaces the store.
  private func migrate(
    _ store: IdentifiedStore, _ lockedStore: LockedStore, reading source: StoreReader, _ repaired: RepairedStore?,
    fingerprint: SourceFingerprint, area: StagingArea, environment: ReplacementEnvironment
  ) throws -> MigrationReport {
    let reader = repaired?.reader ?? source
    let (plan, execution) = try plan(store, reader: reader, checksSource: repaired == nil)
    let pin = try requireNotPinned(lockedStore, store, target: plan.target)
    if replacement == .rename { try area.proveAttributesCanBeKept() }
    try requireSpace(execution.estimate, area: area, hops: plan.hops.indices)

    var intent = try newIntent(lockedStore, store, plan, execution, fingerprint)
    let chain = chain(
      plan, execution, area, reader, source: fingerprint.text, boot: intent.bootIdentifier, base: repaired?.path)
    let (outcome, verified) = try reportingSourceDamage(reader) {
      try build(chain, intent: &intent, environment: environment)
    }

    if let repaired {
      try repaired.close()
      try area.remove(repaired.path)
    }
    stage = .replace
    observer(.replacing)
    try area.releaseDiskSpace(for: .commit)
    quarantine = try QuarantineFile(area: area, files: files).publish(
      attributesOf: lockedStore.location.database, mayDiffer: replacement == .inPlace)
    hasSwapBegun = true
    let replaced = try swap(environment).replace(
      lockedStore, with: verified, intent: intent, backup: request.backup, journalMode: request.journalMode,
      now: Int64(time(nil)))

    stage = .report
    // What cannot be removed now keeps the record, so that the next start removes it.
    let isClean: Bool
    do {
      try chain.removeInput()
      isClean = try !chain.hasStagedStores()
    } catch { isClean = false }
    var report = report(
      .migrated, plan: plan, outcome: outcome, verified: verified, backup: replaced.backup, warnings: replaced.warnings)
    add(repaired, to: &report)
    note(replaced, lockedStore, pin, &report)
    if isClean { try? environment.intents.remove(lockedStore.location, afterSuccess: true) }
    return report
  }

  /// The record of a replacement before anything is staged.
  private func newIntent(
    _ lockedStore: LockedStore, _ store: IdentifiedStore, _ plan: MigrationPlan, _ execution: ChainExecution,
    _ fingerprint: SourceFingerprint
  ) throws -> ReplacementIntent {
    ReplacementIntent(
      location: lockedStore.location, job: job, planFingerprint: execution.fingerprint, source: fingerprint,
      bootIdentifier: try files.bootIdentifier(), staged: nil, journalMode: lockedStore.journalMode,
      from: StoreVersionMark(store.version), to: StoreVersionMark(plan.target), storeUUID: store.metadata.uuid,
      startedAt: Int64(time(nil)))
  }

  /// Builds the staged store and verifies it. Continues the work of an interrupted run where possible; if that fails
  /// for a reason of its own, everything is built again: a retry must finish.
  private func build(
    _ chain: HopChain, intent: inout ReplacementIntent, environment: ReplacementEnvironment
  ) throws -> (HopChain.Outcome, VerifiedStore) {
    let hasLeftovers = try chain.hasStagedStores()
    do {
      if let sealed = try finished(chain) {
        // The interrupted run had reached the verification.
        intent.sealed = sealed
        try environment.intents.write(intent)
        let outcome = HopChain.Outcome(staged: chain.staged, wasResumed: true)
        return (outcome, try verify(outcome.staged, chain: chain))
      }
      return try finish(chain.run, chain, &intent, environment)
    } catch {
      let failure = HopdError.of(error, at: Place(store: request.name))
      guard hasLeftovers, ![.interrupted, .noSpace].contains(failure.code) else { throw error }
      observer(.recovered(sentence: "the staged files of the migration are unusable (\(failure.code)); it starts over"))
      return try finish(chain.startOver, chain, &intent, environment)
    }
  }

  private func finish(
    _ run: () throws -> HopChain.Outcome, _ chain: HopChain, _ intent: inout ReplacementIntent,
    _ environment: ReplacementEnvironment
  ) throws -> (HopChain.Outcome, VerifiedStore) {
    intent.sealed = nil
    try environment.intents.write(intent)
    stage = .migrate
    let outcome = try run()
    intent.sealed = try files.status(outcome.staged).map(SourceFingerprint.Stamp.init)
    try environment.intents.write(intent)
    return (outcome, try verify(outcome.staged, chain: chain))
  }

  /// The staged store that an interrupted run of the same plan had finished, if it still exists unchanged.
  private func finished(_ chain: HopChain) throws -> SourceFingerprint.Stamp? {
    guard let interrupted, interrupted.planFingerprint == chain.execution.fingerprint, let sealed = interrupted.sealed,
      let status = try files.status(chain.staged), SourceFingerprint.Stamp(status) == sealed
    else { return nil }
    return sealed
  }

  /// Space that the staged stores take already is not needed again when a run is continued.
  func requireSpace(_ estimate: MigrationEstimate, area: StagingArea, hops: Range<Int>) throws {
    let there = try area.allocatedBytes(hops: hops)
    let needed = estimate.diskNeeded(
      replacing: replacement, keepsBackupElsewhere: request.backup.directory != nil, there: 0)
    try area.requireSpace(max(0, needed &- there))
    // The space that the commit in place needs beside the staged store is reserved in a file of its own.
    if needed > estimate.diskNeeded { try area.reserveDiskSpace(needed - estimate.diskNeeded, for: .commit) }
  }

  /// After a failure nothing of hopd's stays, with two exceptions: an interrupted run is continued from its checkpoint,
  /// and where the store's own file is in doubt everything is kept as evidence for recovery.
  private func cleanUp(after error: any Error, area: StagingArea, environment: ReplacementEnvironment) {
    let isInterrupt = (error as? SQLiteError)?.isInterrupt == true
    let code = isInterrupt ? .interrupted : (error as? HopdError)?.code
    let keeps: [HopdError.Code] = [.interrupted, .replacementUnconfirmed, .storeReplaced, .notFound]
    try? area.releaseDiskSpace(for: .commit)
    if let code, keeps.contains(code) { return }
    // Failing to clean up must not hide the failure itself: the record stays then, and recovery cleans up at the next
    // start.
    do {
      try area.removeAll()
      try QuarantineFile(area: area, files: files).withdraw()
      // A swap that was begun has removed its record, or keeps it because it could not undo everything.
      if !hasSwapBegun { try environment.intents.remove(area.location) }
    } catch {}
  }

  func swap(_ environment: ReplacementEnvironment) -> StoreSwap {
    let showLife = heartbeat()
    return StoreSwap(
      files: files, intents: environment.intents, identify: ReplacementEnvironment.identify, mode: replacement,
      keepAlive: { _ = showLife() },
      inPlaceObserver: { [progress] step in
        switch step {
        case .backedUp: progress.replaced(share: 1.0 / 3)
        case .committed: progress.replaced(share: 2.0 / 3)
        case .copied, .compared, .writing, .durable, .confirmed: break
        }
      })
  }
}

extension SourceFingerprint {
  /// The fingerprint as a checkpoint keeps it.
  fileprivate var text: String {
    let stamps = [database, log].compactMap { $0 }
    return stamps.map { "\($0.file.device):\($0.file.inode):\($0.size):\($0.modified)" }.joined(separator: " ")
  }
}
