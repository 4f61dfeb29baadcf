// The work on one store of a fleet: an inspection, and where needed a migration. The store's own metadata decides
// whether there is anything to do, never a ledger: after a worker was killed after the rename, the next one finds the
// store current.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import StoreReplacement
import SystemPackage

/// Migrates single stores; from any thread.
package struct StoreTask: Sendable {
  /// Creates the request for a store; throws where its path is invalid.
  package typealias Requests = @Sendable (StoreLine) throws -> MigrationRequest

  private let pipeline = MigrationPipeline()
  private let requests: Requests
  private let run: String
  /// Stores of which a killed run left a record: these are recovered even if they look current.
  private let unfinished: Set<FilePath>

  /// Prepares the work of the run named `run`; its records are in `stateDirectory`.
  package init(run: String, stateDirectory: FilePath, requests: @escaping Requests) throws {
    self.run = run
    self.requests = requests
    unfinished = Set(try pipeline.storesWithIntents(stateDirectory: stateDirectory).map(\.database))
  }

  /// Migrates the store, which is complete afterwards, the old one or the new one, whatever the result.
  package func migrate(_ line: StoreLine, stop: StopSignal) -> ResultLine {
    ResultLine.timed(line, run: run) { result in
      guard !line.hasNoPath else {
        result.error = line.error
        return
      }
      do {
        try work(line, stop, &result)
      } catch let failure as MigrationFailure {
        result.note(failure.error)
        if let from = failure.from { result.from = from }
        if let to = failure.to { result.to = to }
      } catch {
        result.note(HopdError.of(error, at: Place(store: FilePath(line.store))))
      }
    }
  }

  private func work(_ line: StoreLine, _ stop: StopSignal, _ result: inout ResultLine) throws {
    var request = try requests(line)
    let isUnfinished = unfinished.contains(request.location.database)
    // A store that cannot be inspected without a change, as with a hot journal, is left to the pipeline, which has its
    // lock.
    let assessment = try? StoreIdentifier.identify(
      request.location.store, catalog: request.catalog, target: request.target, countsRows: false)
    if let assessment {
      result.storeUUID = assessment.metadata?.uuid ?? result.storeUUID
      result.model = assessment.version?.modelName ?? result.model
      result.from = assessment.version?.model.name ?? result.from
      result.to = assessment.target?.model.name ?? result.to
      if assessment.state == .current, !isUnfinished {
        result.result = .current
        return
      }
      request.isKnownBehind = assessment.state == .behind
    }
    let report = try pipeline.run(request, stop: stop) { _ in }
    result.result = report.result == .current ? .current : .migrated
    (result.from, result.to, result.storeUUID) = (report.from, report.to, report.storeUUID)
    result.rows = report.rows.values.reduce(0, &+)
    result.backup = report.backup?.string
    let dropped = report.dropped.reduce(Int64(0)) { $0 &+ $1.nonNull }
    guard dropped > 0 else { return }
    result.dropped = dropped
    result.drops = report.dropped.filter { $0.nonNull > 0 }.reduce(into: [:]) { drops, drop in
      drops[[drop.entity, drop.property].compactMap(\.self).joined(separator: "."), default: 0] &+= drop.nonNull
    }
  }
}

extension ResultLine {
  /// The line that `work` fills in, with the time that it took.
  fileprivate static func timed(_ line: StoreLine, run: String, _ work: (inout ResultLine) -> Void) -> ResultLine {
    let start = ContinuousClock.now
    var result = ResultLine(
      store: line.store, result: .failed, from: line.version, to: line.targetVersion, model: line.model,
      storeUUID: line.storeUUID, size: line.size, seconds: 0, time: .now, run: run)
    work(&result)
    result.seconds = ((ContinuousClock.now - start).seconds * 10_000).rounded() / 10_000
    result.time = .now
    return result
  }

  /// Notes why the store was not migrated.
  fileprivate mutating func note(_ error: HopdError) {
    result = error.isRetryable ? .waiting : .failed
    self.error = LineError(error)
  }
}

extension HopdError {
  /// Whether the same command may migrate the store later, without any action by a person. A pinned store waits for a
  /// person: a scheduler that repeats the command would repeat it forever.
  package var isRetryable: Bool {
    code != .pinned && (code.isRetryable || code.exit == .unavailable || code.exit == .temporaryFailure)
  }
}

extension StoreLine {
  /// Whether a restore has pinned the store, so a run does not migrate it; `error` says how to unpin it.
  package var isPinned: Bool { error?.code == HopdError.Code.pinned.name }

  /// Returns the line with `error` if a pin keeps the store from the target of its request. Most stores cost one look
  /// for the file of the pin; only a store that has one is identified again, because the manifest may be old.
  package func notingPin(_ request: MigrationRequest) -> StoreLine {
    guard state == StoreState.behind.rawValue, error == nil else { return self }
    var line = self
    do {
      guard try PinStore(location: request.location, files: LinuxFileSystem()).read() != nil else { return self }
      let found = try StoreIdentifier.identify(
        request.location.store, catalog: request.catalog, target: request.target, countsRows: false)
      let pin = try MigrationPipeline().pinInEffect(request.location, found, rule: request.pinRule)
      line.error = pin.map { LineError($0.refusal(request.location.database)) }
    } catch {
      line.error = LineError(HopdError.of(error, at: Place(store: FilePath(store))))
    }
    return line
  }
}
