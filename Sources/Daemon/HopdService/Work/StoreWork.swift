// The blocking work on a store: an inspection, a migration, recovery. It runs on threads of its own, never on Swift's
// pool, whose few threads the watchdog and the signals need. It is behind a protocol, so that the coordinator can be
// tested without a store.

import Diagnostics
import Dispatch
import DurableFiles
import Glibc
import ManagedObjectModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import SQLite
import StoreReplacement
import SystemPackage

/// The result of an inspection.
package enum InspectionResult: Sendable {
  /// The store is at its target.
  case current(StoreFacts?)
  /// The store needs a migration to the version `target`.
  case behind(StoreFacts, target: String)
}

/// The result of a store's recovery after a crash.
package struct RecoveredStore: Sendable {
  /// The store under its canonical path.
  package var store: FilePath
  /// What was done, as text for the journal; nil if nothing was done.
  package var sentence: String?
  /// The error of a store that needs an administrator or could not be recovered now.
  package var failure: MigrationFailure?
  /// Whether its job must continue, or its report is still missing.
  package var continues = false
}

/// The blocking work of the daemon.
package protocol StoreWork: Sendable {
  /// Identifies the store's version. Calls `beat` while it reads. It changes no data, but first completes what SQLite
  /// or an earlier migration left: it rolls back a hot journal and sets a late log aside.
  func inspect(
    _ request: MigrationRequest, stop: StopSignal, beat: @escaping () -> Void
  ) throws(MigrationFailure) -> InspectionResult
  /// Migrates the store to its target.
  func migrate(
    _ request: MigrationRequest, stop: StopSignal, observer: @escaping (MigrationEvent) -> Void
  ) throws(MigrationFailure) -> MigrationReport
  /// Recovers each store that a crash interrupted. `around` receives each store with its recovery, and runs it or not.
  func recover(
    stateDirectory: FilePath, backup: (FilePath) -> BackupRule,
    around: (FilePath, () -> RecoveredStore) -> RecoveredStore?
  ) throws(HopdError) -> [RecoveredStore]
}

/// The work as the pipeline does it.
package struct PipelineWork: StoreWork {
  /// The lower bound of the size limit of one value, in bytes: apps may keep videos in their rows.
  private static let valueFloor: Int64 = 256 << 20
  private let pipeline = MigrationPipeline()

  package func inspect(
    _ request: MigrationRequest, stop: StopSignal, beat: @escaping () -> Void
  ) throws(MigrationFailure) -> InspectionResult {
    var facts: StoreFacts?
    func failure(_ error: HopdError) -> MigrationFailure {
      MigrationFailure(
        stage: .identify, error: error.located(Place(store: request.name)), from: facts?.version,
        storeUUID: facts?.uuid)
    }
    do {
      let location = request.location
      try StoreArrival.requireComplete(location.store)
      try pipeline.rollBackHotJournal(location, stateDirectory: request.stateDirectory)
      // Thrown as a retryable error: the next inspection finds the store without its late log.
      if let late = try pipeline.setLateLogAside(
        location, stateDirectory: request.stateDirectory, backup: request.backup, job: request.job,
        keepAlive: {
          beat()
          return !stop.isStopping
        })
      {
        throw late
      }
      let assessment = try StoreReader.withUnchangedStore(at: location.store) { reader in
        reader.connection.setProgressHandler {
          beat()
          return !stop.isStopping
        }
        return try StoreIdentifier.identify(
          reader: reader, location: location.store, catalog: request.catalog, target: request.target,
          countsRows: false)
      }
      facts = assessment.facts
      guard try assessment.storeBehind() != nil, let facts, let target = assessment.target else {
        // Shown, so that the operator can unpin it; a pin that cannot be read is no obstacle to a store at its target.
        if let pin = try? pipeline.pinInEffect(location, assessment, rule: request.pinRule) {
          throw pin.refusal(request.name)
        }
        return .current(facts)
      }
      if let pin = try pipeline.pinInEffect(location, assessment, rule: request.pinRule) {
        throw pin.refusal(request.name)
      }
      return .behind(facts, target: target.model.name)
    } catch {
      if stop.isStopping { throw failure(HopdError(.interrupted, "stopped on request")) }
      throw failure(HopdError.of(error, at: Place(store: request.name)))
    }
  }

  package func migrate(
    _ request: MigrationRequest, stop: StopSignal, observer: @escaping (MigrationEvent) -> Void
  ) throws(MigrationFailure) -> MigrationReport {
    do throws(HopdError) { try StoreArrival.requireComplete(request.location.store) } catch {
      throw MigrationFailure(stage: .lock, error: error)
    }
    // The daemon queues only stores that an inspection found to be behind.
    var request = request
    request.isKnownBehind = true
    request.engine.valueMax = max(PipelineWork.valueFloor, request.engine.memoryLimit)
    return try pipeline.run(request, stop: stop, observer: observer)
  }

  package func recover(
    stateDirectory: FilePath, backup: (FilePath) -> BackupRule,
    around: (FilePath, () -> RecoveredStore) -> RecoveredStore?
  ) throws(HopdError) -> [RecoveredStore] {
    let stores: [CanonicalStoreLocation]
    do {
      stores = try pipeline.storesWithIntents(stateDirectory: stateDirectory)
    } catch {
      throw error as? HopdError
        ?? HopdError(
          .internalError, "cannot read the state directory", at: Place(file: stateDirectory), cause: error)
    }
    return stores.compactMap { location in
      let rule = backup(location.database)
      return around(location.database) { recover(location, stateDirectory: stateDirectory, backup: rule) }
    }
  }

  private func recover(_ location: CanonicalStoreLocation, stateDirectory: FilePath, backup: BackupRule)
    -> RecoveredStore
  {
    let path = location.database
    do throws(MigrationFailure) {
      let outcome = try pipeline.recover(location, stateDirectory: stateDirectory, backup: backup)
      switch outcome?.decision {
      case nil, .nothingToDo: return RecoveredStore(store: path)
      // Not reported here: the migration reports that it resumes.
      case .resume: return RecoveredStore(store: path, continues: true)
      case .startAgain:
        return RecoveredStore(
          store: path, sentence: "the old store is in place, temporary files were removed", continues: true)
      case .completed: return RecoveredStore(store: path, sentence: "the new store is in place", continues: true)
      case .quarantine:
        let error = outcome?.error ?? HopdError(.internalError, "the store is in quarantine, without a reason")
        let intent = outcome?.intent
        return RecoveredStore(
          store: path,
          failure: MigrationFailure(
            stage: .recover, error: error.located(Place(store: path)), from: intent?.from.name, to: intent?.to.name,
            storeUUID: intent?.storeUUID))
      }
    } catch {
      return RecoveredStore(store: path, failure: error)
    }
  }
}

/// Threads for work that blocks.
enum BlockingWork {
  /// Runs `body` on a thread of its own: a new serial queue never waits for the work of another one.
  static func run(_ label: String, _ body: @escaping @Sendable () -> Void) {
    DispatchQueue(label: "hopd.\(label)").async(execute: body)
  }
}

extension HopdError {
  /// Whether the cause of this failure is outside the store, so that a migration may succeed once the cause is removed.
  /// Such a failure is never final.
  var liesOutsideTheStore: Bool {
    let outside: [Code] = [
      .noSpace, .inputOutput, .noPermission, .cannotReplace, .externalDataMissing, .replacementUnconfirmed,
    ]
    return outside.contains(code)
  }
}

extension JobOutcome {
  /// The scheduler's outcome of a failure.
  init(_ failure: MigrationFailure) {
    let error = failure.error
    self =
      switch error.code {
      case .interrupted: .interrupted
      case .notFound where error.place.file == nil && [.identify, .lock].contains(failure.stage):
        // SQLite also says of a store that is there that it cannot be opened.
        Self.isGone(error.place.store) ? .gone : .failed(code: error.code.name)
      case .pinned: .pinned
      case let code where code.exit == .unavailable: .busy(code: code.name)
      case let code where error.liesOutsideTheStore: .outside(code: code.name)
      case let code where code.isRetryable: .failed(code: code.name)
      // The text is part of the reason, because a store may be refused for a different reason than before.
      case let code: .refused(reason: "\(code.name) \(error.message)")
      }
  }

  private static func isGone(_ store: FilePath?) -> Bool {
    guard let store, store.linkStatus() == nil else { return store == nil }
    return errno == ENOENT || errno == ENOTDIR
  }
}
