// What is done with a store on a thread of its own: a look, a migration, recovery. All of it blocks, so it never runs
// on Swift's own pool, whose few threads the watchdog and the signals need. Behind a protocol, so that the coordinator
// can be tested without a store.

import Diagnostics
import Dispatch
import DurableFiles
import ManagedObjectModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import SQLite
import StoreReplacement
import SystemPackage

/// Why a piece of work ended without a result.
package struct JobFailure: Error, Sendable {
  /// Where in the migration path.
  package var stage: MigrationStage
  /// What happened.
  package var error: HopdError
  /// The version the store is at and the wanted one, as far as known.
  package var from: String?
  package var to: String?
  /// Z_UUID of the store, if it is known.
  package var storeUUID: String?
  /// What stood around the store, where the cause lies there.
  package var circumstances: Circumstances?
}

extension JobFailure {
  init(_ failure: MigrationFailure) {
    self.init(
      stage: failure.stage, error: failure.error, from: failure.from, to: failure.to, storeUUID: failure.storeUUID)
  }
}

/// What a look found.
package enum LookResult: Sendable {
  /// The store is at its target.
  case current(StoreFacts?)
  /// It needs a migration to that version.
  case behind(StoreFacts, target: String)
}

/// A store that a crash left something of.
package struct RecoveredStore: Sendable {
  /// The store under its canonical path.
  package var store: FilePath
  /// What was done, in words; nil where nothing was.
  package var sentence: String?
  /// It needs an administrator, or could not be looked at now.
  package var failure: JobFailure?
  /// Is its job to go on, or its report still to be written?
  package var goesOn = false
}

/// The blocking work of the daemon.
package protocol StoreWork: Sendable {
  /// Which version has the store? Changes nothing. Beats while it reads.
  func look(
    _ request: MigrationRequest, stop: StopSignal, beat: @escaping () -> Void
  ) throws(JobFailure) -> LookResult
  /// Takes the store to its target.
  func migrate(
    _ request: MigrationRequest, stop: StopSignal, observer: @escaping (MigrationEvent) -> Void
  ) throws(JobFailure) -> MigrationReport
  /// Puts in order what a crash left, store by store. `around` is given each store with its work, and does the work or
  /// leaves it.
  func recover(
    stateDirectory: FilePath, backup: (FilePath) -> BackupRule,
    around: (FilePath, () -> RecoveredStore) -> RecoveredStore?
  ) throws(HopdError) -> [RecoveredStore]
}

/// The work done by the pipeline.
package struct PipelineWork: StoreWork {
  /// A value may always have so many bytes: videos that an app keeps in its rows.
  private static let valueFloor: Int64 = 256 << 20
  private let pipeline = MigrationPipeline()

  package func look(
    _ request: MigrationRequest, stop: StopSignal, beat: @escaping () -> Void
  ) throws(JobFailure) -> LookResult {
    var facts: StoreFacts?
    func failure(_ error: HopdError) -> JobFailure {
      JobFailure(
        stage: .identify, error: error.located(Place(store: request.location.database)), from: facts?.version, to: nil,
        storeUUID: facts?.uuid)
    }
    do {
      try StoreArrival.requireComplete(request.location)
      let location = CanonicalStoreLocation(evenIfGone: request.location.database)
      try pipeline.rollBackHotJournal(location, stateDirectory: request.stateDirectory)
      // Told as a reason to look again: the next look finds the store alone.
      if let late = try pipeline.setLateLogAside(
        location, stateDirectory: request.stateDirectory, backup: request.backup, job: request.job,
        keepAlive: {
          beat()
          return !stop.isStopping
        })
      {
        throw late
      }
      let assessment = try StoreReader.withUnchangedStore(at: request.location) { reader in
        reader.connection.setProgressHandler {
          beat()
          return !stop.isStopping
        }
        return try StoreIdentifier.identify(
          reader: reader, location: request.location, catalog: request.catalog, target: request.target,
          countsRows: false)
      }
      if let metadata = assessment.metadata, let version = assessment.version {
        facts = StoreFacts(
          uuid: metadata.uuid, model: version.modelName, version: version.model.name,
          frameworkVersion: metadata.frameworkVersion)
      }
      switch assessment.state {
      case .current: return .current(facts)
      case .behind:
        guard let facts, let target = assessment.target else { break }
        if let pin = try pipeline.heldBack(location, assessment) {
          throw pin.refusal(request.location.database)
        }
        return .behind(facts, target: target.model.name)
      case .newer, .unknown, .notAStore, .damaged, .encrypted: break
      }
      throw assessment.explanation
        ?? HopdError(.internalError, "the store is \(assessment.state.rawValue), without a reason")
    } catch {
      if stop.isStopping { throw failure(HopdError(.interrupted, "stopped on request")) }
      throw failure(error as? HopdError ?? HopdError(.internalError, "an unexpected error", cause: error))
    }
  }

  package func migrate(
    _ request: MigrationRequest, stop: StopSignal, observer: @escaping (MigrationEvent) -> Void
  ) throws(JobFailure) -> MigrationReport {
    do throws(HopdError) { try StoreArrival.requireComplete(request.location) } catch {
      throw JobFailure(stage: .lock, error: error)
    }
    // The daemon looks at a store before it queues it.
    var request = request
    request.isKnownBehind = true
    request.engine.valueMax = max(PipelineWork.valueFloor, request.engine.memoryLimit)
    do throws(MigrationFailure) {
      return try pipeline.run(request, stop: stop, observer: observer)
    } catch {
      throw JobFailure(error)
    }
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
          .internalError, "the state directory cannot be read", at: Place(file: stateDirectory), cause: error)
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
      // Nothing to report yet: the migration reports that it resumes.
      case .resume: return RecoveredStore(store: path, goesOn: true)
      case .startAgain:
        return RecoveredStore(
          store: path, sentence: "the old store is in place and leftovers are removed", goesOn: true)
      case .completed: return RecoveredStore(store: path, sentence: "the new store is in place", goesOn: true)
      case .quarantine:
        let error = outcome?.error ?? HopdError(.internalError, "the store is in quarantine, without a reason")
        let intent = outcome?.intent
        return RecoveredStore(
          store: path,
          failure: JobFailure(
            stage: .recover, error: error.located(Place(store: path)), from: intent?.from.name, to: intent?.to.name,
            storeUUID: intent?.storeUUID))
      }
    } catch {
      return RecoveredStore(store: path, failure: JobFailure(error))
    }
  }
}

/// Threads for work that blocks.
enum BlockingWork {
  /// Runs `body` on a thread of its own: a new serial queue never waits behind another one's work.
  static func run(_ label: String, _ body: @escaping @Sendable () -> Void) {
    DispatchQueue(label: "hopd.\(label)").async(execute: body)
  }
}

extension JobOutcome {
  /// A failure as the scheduler sees it.
  init(_ failure: JobFailure) {
    let error = failure.error
    self =
      switch error.code {
      case .interrupted: .interrupted
      case .notFound where error.place.file == nil && [.identify, .lock].contains(failure.stage): .gone
      case let code where code.exit == .unavailable: .busy(code: code.name)
      case let code where error.liesOutsideTheStore: .outside(code: code.name)
      case let code where code.isRetryable: .failed(code: code.name)
      // The text is part of it: a store may be refused for another reason than before.
      case let code: .refused(reason: "\(code.name) \(error.message)")
      }
  }
}
