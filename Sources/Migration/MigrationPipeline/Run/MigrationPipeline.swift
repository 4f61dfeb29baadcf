// The stages in order for one store. Everything dangerous is elsewhere; this file defines the order, the clean-up when
// a stage fails, and the reports to the caller. It blocks its thread from start to end: callers give it one of their
// own.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import MigrationEngine
import MigrationPlanning
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage

extension HopdError.Code {
  /// The output of `--output` exists already.
  package static let outputExists = HopdError.Code("output-exists", exit: .cannotCreate)
  /// A mapping model names a policy that is bound to no program.
  package static let policyNotBound = HopdError.Code("policy-not-bound", exit: .configuration)
}

/// Migrates one store at a time.
package struct MigrationPipeline: Sendable {
  let files: any DurableFileSystem
  private let leftovers = LeftoverIndex()

  /// Creates a pipeline on a file system.
  package init(files: any DurableFileSystem = LinuxFileSystem()) { self.files = files }

  /// Migrates one store to its target, and returns when that is durable.
  ///
  /// On a failure the store is the complete old one; where its code is `interrupted` the next call continues from the
  /// last checkpoint. `observer` is called on the calling thread.
  package func run(
    _ request: MigrationRequest, stop: StopSignal, observer: @escaping (MigrationEvent) -> Void
  ) throws(MigrationFailure) -> MigrationReport {
    let run = MigrationRun(request: request, files: files, stop: stop, observer: observer)
    run.leftovers = leftovers
    do {
      let report = try SignsOfLife.shown(to: run.heartbeat()) {
        request.output == nil ? try run.replaceStore() : try run.writeCopy()
      }
      if let end = run.progress.finished() { observer(end) }
      return report
    } catch {
      throw run.failure(error)
    }
  }

  /// Recovers a store after a crash, without migrating it, as hopd does at its start.
  ///
  /// A store without any trace of hopd is not opened. Returns nil when there was nothing to do. `keepAlive` is called
  /// repeatedly while a large store is checked. With `dropsStagedOfRenamed`, what was staged for a store that has
  /// another name in its folder now is removed; with `discardsCheckpoints`, also staged work that could continue.
  package func recover(
    _ location: CanonicalStoreLocation, stateDirectory: FilePath, backup: BackupRule,
    dropsStagedOfRenamed: Bool = false, discardsCheckpoints: Bool = false, keepAlive: @escaping () -> Bool = { true }
  ) throws(MigrationFailure) -> RecoveryOutcome? {
    try recovering(location) {
      let outcome = try SignsOfLife.shown(to: keepAlive) {
        var recovery = try ReplacementEnvironment(files: files, stateDirectory: stateDirectory, keepAlive: keepAlive)
          .recovery
        recovery.dropsStagedOfRenamed = dropsStagedOfRenamed
        recovery.discardsCheckpoints = discardsCheckpoints
        return try recovery.recover(location, rule: backup)
      }
      if case .nothingToDo = outcome.decision { return nil }
      return outcome
    }
  }

  /// Returns what `recover` would find and do at a store; changes nothing.
  package func examine(
    _ location: CanonicalStoreLocation, stateDirectory: FilePath, backup: BackupRule, discardsCheckpoints: Bool = false
  ) throws(MigrationFailure) -> RecoveryOutcome {
    try recovering(location) {
      var recovery = try ReplacementEnvironment(files: files, stateDirectory: stateDirectory).recovery
      recovery.discardsCheckpoints = discardsCheckpoints
      return try recovery.examine(location, rule: backup)
    }
  }

  private func recovering<Result>(
    _ location: CanonicalStoreLocation, _ body: () throws -> Result
  ) throws(MigrationFailure) -> Result {
    do { return try body() } catch {
      throw MigrationFailure(
        stage: .recover, error: HopdError.of(error, at: Place(store: location.database)), from: nil, to: nil,
        storeUUID: nil)
    }
  }

  /// Lets SQLite roll back the transaction of a writer that died, so that the store can be inspected: an inspection
  /// that changes nothing cannot ignore a hot journal. Throws `.storeBusy` where the writer lives.
  package func rollBackHotJournal(_ location: CanonicalStoreLocation, stateDirectory: FilePath) throws {
    guard try StoreReader.hasHotJournal(location.store) else { return }
    let environment = try ReplacementEnvironment(files: files, stateDirectory: stateDirectory)
    try LockedStore(location: location, lockDirectory: environment.lockDirectory, files: files).release()
  }

  /// Sets aside a log that provably belongs to the store before its migration and arrived afterwards; returns the
  /// warning to report, or nil. Call it before a store with a log is inspected: opening such a store ruins it.
  package func setLateLogAside(
    _ location: CanonicalStoreLocation, stateDirectory: FilePath, backup: BackupRule, job: String,
    keepAlive: @escaping () -> Bool
  ) throws -> HopdError? {
    // Most stores have no log, and then nothing else is checked.
    guard let status = try files.status(location.writeAheadLog), status.size > 0 else { return nil }
    let environment = try ReplacementEnvironment(files: files, stateDirectory: stateDirectory)
    let backups = try BackupSet(location: location, rule: backup, files: files)
    // Whoever has the lock may release it before the store is opened, so the store is not opened at all then.
    let lock = try LockedStore.lock(location, lockDirectory: environment.lockDirectory, files: files)
    defer { lock.release() }
    return try LateFiles(
      location: location, files: files, identify: ReplacementEnvironment.identify, keepAlive: keepAlive
    ).setAsideIfProven(backups: backups, job: job)
  }

  /// Stores that an intent record in the state directory refers to.
  package func storesWithIntents(stateDirectory: FilePath) throws -> [CanonicalStoreLocation] {
    let environment = try ReplacementEnvironment(files: files, stateDirectory: stateDirectory)
    return try environment.intents.all().compactMap { entry in
      guard case .record(let intent) = entry.finding else { return nil }
      return CanonicalStoreLocation(unresolved: intent.store.path, files: files)
    }
  }
}
