// A worker: it migrates its share of the stores on several threads, until all were tried or it is stopped. Every result
// is written to a file at once; the worker itself keeps only counts.

import Diagnostics
import MigrationPipeline
import Synchronization

/// Works through a share.
package final class FleetWorker: Sendable {
  /// When a worker stops early.
  package struct Limits: Sendable {
    /// No store is begun after this time, and those at work stop at a checkpoint.
    package var deadline: Duration?
    package var failures: FailureLimit?
    /// Threads.
    package var jobs: Int

    /// Makes limits.
    package init(deadline: Duration? = nil, failures: FailureLimit? = nil, jobs: Int) {
      self.deadline = deadline
      self.failures = failures
      self.jobs = jobs
    }
  }

  /// How far a worker is.
  package struct Tally: Sendable, Hashable {
    package var migrated = 0
    package var current = 0
    package var failed = 0
    package var waiting = 0

    /// Stores that were tried.
    package var tried: Int { migrated + current + failed + waiting }

    mutating func count(_ result: StoreResult, _ difference: Int = 1) {
      switch result {
      case .migrated: migrated += difference
      case .current: current += difference
      case .failed: failed += difference
      case .waiting: waiting += difference
      }
    }
  }

  /// The work on one store; from any thread.
  package typealias Task = @Sendable (_ store: StoreLine, _ stop: StopSignal) -> ResultLine

  private struct State {
    var tally = Tally()
    /// Busy stores, for one more try at the end.
    var busy: [StoreLine] = []
    var failure: HopdError?
    var stopped: RunOutcome.Stop?
    /// What the stores have lost, by entity and property.
    var drops: [String: Int64] = [:]
  }

  /// The minimum pause before the last attempt at busy stores.
  private static let pause = Duration.seconds(2)

  private let task: Task
  private let keep: @Sendable (ResultLine) throws(HopdError) -> Void
  private let limits: Limits
  /// Set by a signal: the worker is to end.
  private let signal: StopSignal
  private let own: StopSignal
  private let state = Mutex(State())
  private let start = ContinuousClock.now

  /// Prepares a worker that `signal` stops. `keep` gets each result, on the store's thread, and keeps it so that a kill
  /// right after it does not lose it.
  package init(
    task: @escaping Task, limits: Limits, signal: StopSignal,
    keep: @escaping @Sendable (ResultLine) throws(HopdError) -> Void
  ) {
    self.task = task
    self.limits = limits
    self.signal = signal
    self.keep = keep
    own = StopSignal(parent: signal)
  }

  /// Works through the stores, and returns how it ended: everything but the exit status of a run whose sample is all
  /// that was wanted. `observer` is called after each store, on its thread. Throws where results cannot be written.
  package func run(
    _ stores: [StoreLine], observer: @escaping @Sendable (Tally, ResultLine) -> Void
  ) throws(HopdError) -> RunOutcome {
    let alarm = limits.deadline.map { Alarm(after: $0, own) }
    defer { alarm?.cancel() }
    tryAll(stores, of: stores.count, isLast: false, observer)
    let busy = state.withLock { state in
      defer { state.busy = [] }
      return state.busy
    }
    if !busy.isEmpty, wait() { tryAll(busy, of: stores.count, isLast: true, observer) }
    return try state.withLock { state throws(HopdError) in
      if let failure = state.failure { throw failure }
      let tally = state.tally
      let untried = stores.count - tally.tried
      var stopped = state.stopped
      if stopped == nil, own.isStopping, untried + tally.waiting > 0 {
        stopped = signal.isStopping ? .signal : .deadline
      }
      return RunOutcome(
        exit: Self.exit(tally, untried: untried, stopped).rawValue, stopped: stopped, migrated: tally.migrated,
        current: tally.current, failed: tally.failed, waiting: tally.waiting, untried: untried,
        seconds: ((ContinuousClock.now - start).seconds * 1000).rounded() / 1000,
        drops: state.drops.isEmpty ? nil : state.drops)
    }
  }

  /// The contract with schedulers: 0 all done, 65 the rest needs a person, 75 the same command continues.
  private static func exit(_ tally: Tally, untried: Int, _ stopped: RunOutcome.Stop?) -> ExitStatus {
    if stopped == .failures { return .dataError }
    if untried + tally.waiting > 0 { return .temporaryFailure }
    return tally.failed > 0 ? .dataError : .success
  }

  private func tryAll(
    _ stores: [StoreLine], of all: Int, isLast: Bool,
    _ observer: @escaping @Sendable (Tally, ResultLine) -> Void
  ) {
    Workers.run(stores.count, threads: limits.jobs) { [self] index in
      guard !own.isStopping else { return }
      let result = task(stores[index], own)
      let tally: Tally? = state.withLock { state in
        // A busy store is tried once more, and counted then.
        if !isLast, result.result == .waiting, !own.isStopping, result.error?.code != "no-space" {
          state.busy.append(stores[index])
          return nil
        }
        state.tally.count(result.result)
        state.drops.merge(result.drops ?? [:], uniquingKeysWith: &+)
        if let limit = limits.failures, limit.isExceeded(by: state.tally.failed, of: all), state.stopped == nil {
          state.stopped = .failures
        }
        return state.tally
      }
      guard let tally else { return }
      do throws(HopdError) { try keep(result) } catch {
        state.withLock { $0.failure = $0.failure ?? error }
        own.stop()
      }
      if state.withLock({ $0.stopped }) != nil { own.stop() }
      observer(tally, result)
    }
  }

  /// Waits before the last attempt; false where the worker is to stop.
  private func wait() -> Bool {
    Alarm.sleep(Self.pause, unless: own)
    return !own.isStopping
  }
}
