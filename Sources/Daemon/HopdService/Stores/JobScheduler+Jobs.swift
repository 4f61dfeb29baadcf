// Starts jobs, and decides from their outcomes when a store is retried.

import DequeModule
import DurableFiles
import HeapModule
import HopdConfiguration
import StoreReplacement
import SystemPackage

extension JobScheduler {
  /// Starts the next piece of work; nil if nothing waits or every slot is taken. Inspections continue while migrations
  /// are halted.
  package mutating func start(haltingMigrations isHalted: Bool = false) -> JobTicket? {
    if !isHalted, counts.migrating < jobs, let item = nextMigration() {
      lastOrdinal += 1
      return begin(item.key, .migrate, ordinal: lastOrdinal)
    }
    if runningInspections < jobs, let key = Self.next(&inspections, .inspect, entries) {
      runningInspections += 1
      return begin(key, .inspect, ordinal: 0)
    }
    return nil
  }

  /// The next migration that may begin. The judge ends before the entries change, so that they are not copied for it.
  private mutating func nextMigration() -> Item? {
    let judge = judge
    return migrations.next(closed: judge.standsStill, judge: judge.verdict)
  }

  /// Queues deferred stores that are due, behind those that already wait.
  package mutating func wake(now: Instant) {
    while let first = alarms.min, first.until <= now {
      alarms.removeMin()
      guard let entry = entries[first.item.key], entry.turn == first.item.turn,
        case .deferred(let step, _) = entry.state
      else { continue }
      enqueue(first.item.key, step, newJob: false)
    }
  }

  /// When `wake` next has something to do.
  package mutating func nextAlarm() -> Instant? {
    while let first = alarms.min {
      if let entry = entries[first.item.key], entry.turn == first.item.turn, case .deferred = entry.state {
        return first.until
      }
      alarms.removeMin()
    }
    return nil
  }

  /// Takes in the outcome of a piece of work; returns what follows.
  package mutating func finished(_ key: FilePath, _ outcome: JobOutcome, now: Instant) -> JobVerdict {
    guard var entry = entries[key], case .running(let step) = entry.state else { return .forgotten }
    if step == .inspect { runningInspections -= 1 }
    defer {
      if counts.migrating == 0, counts.waiting == 0 { lastOrdinal = 0 }
    }
    let again = entry.foundAgain
    let mustInspectAgain = entry.mustInspectAgain || again != nil
    if let again { entry.store = again }
    entry.foundAgain = nil
    entry.mustInspectAgain = false
    entries[key] = entry
    if entry.isGone || outcome == .gone { return finishedGone(key, outcome, entry, again) }
    switch outcome {
    case .current, .migrated, .gone:
      entries[key]?.resetFailures()
      entries[key]?.reported = nil
      settle(key, .done, inspectAgain: mustInspectAgain)
      return .settled
    case .behind:
      enqueue(key, .migrate, newJob: false)
      return .queued
    case .interrupted:
      enqueue(key, step, newJob: false)
      return .queued
    case .busy(let code):
      entries[key]?.busyTimes &+= 1
      let until = now.advanced(by: rule(of: entry).pause(after: entry.busyTimes &+ 1))
      let isNews = report(key, "busy \(code)")
      postpone(key, step, until: until)
      return .deferred(until: until, isNews: isNews)
    case .failed(let code):
      guard entry.failures &+ 1 < rule(of: entry).attempts else {
        entries[key]?.failures = entry.failures &+ 1
        let isNews = report(key, "failed \(code)")
        settle(key, .needsAttention, inspectAgain: mustInspectAgain)
        return .gaveUp(attempts: entry.failures &+ 1, isNews: isNews)
      }
      return tryAgain(key, step, entry, code, attempts: rule(of: entry).attempts, now: now)
    case .outside(let code):
      let isLasting = entry.failures &+ 1 == rule(of: entry).attempts
      let verdict = tryAgain(key, step, entry, code, attempts: nil, isFinal: isLasting, now: now)
      if isLasting, case .retry(let until, let attempt, _, let isNews) = verdict {
        return .lasting(until: until, attempt: attempt, isNews: isNews)
      }
      return verdict
    case .pinned:
      let isNews = report(key, "held back")
      settle(key, .pinned, inspectAgain: mustInspectAgain)
      return .pinned(isNews: isNews)
    case .refused(let reason):
      let isNews = report(key, reason)
      settle(key, .failed, inspectAgain: mustInspectAgain)
      return .refused(isNews: isNews)
    }
  }

  /// Handles a store that disappeared during a step; `again` is a new file in its place.
  private mutating func finishedGone(
    _ key: FilePath, _ outcome: JobOutcome, _ entry: Entry, _ again: FoundStore?
  ) -> JobVerdict {
    forget(key)
    if let again, !entry.isGone {
      entries[key] = Entry(store: again, state: .done, job: 0)
      counts.known += 1
      enqueue(key, .inspect, newJob: true)
    }
    return outcome == .gone ? .forgotten : verdictOfGone(outcome)
  }

  /// Schedules a failed step again after a pause. `attempts` is the limit of attempts, nil for none.
  private mutating func tryAgain(
    _ key: FilePath, _ step: JobStep, _ entry: Entry, _ code: String, attempts: Int?, isFinal: Bool = false,
    now: Instant
  ) -> JobVerdict {
    let failures = entry.failures &+ 1
    entries[key]?.failures = failures
    let until = now.advanced(by: rule(of: entry).pause(after: failures))
    let isNews = report(key, "failed \(code)", isFinal: isFinal)
    postpone(key, step, until: until)
    return .retry(until: until, attempt: failures, attempts: attempts, isNews: isNews)
  }
}
