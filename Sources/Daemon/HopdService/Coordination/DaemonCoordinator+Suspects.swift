// Handles stores that were being worked on when an earlier daemon was killed: they come after all others, one at a
// time, and are refused after the third kill.

import Diagnostics
import HopdConfiguration
import Logging
import MigrationPipeline
import PersistentStore
import ServiceState
import StoreReplacement
import SystemPackage
import SystemdSupport

extension DaemonCoordinator {
  /// Counts and logs the unfinished work of the previous daemon.
  func countCrashes() {
    guard let notes, !notes.unfinished.isEmpty else { return }
    suspects.add(notes.unfinished) { setup.modelsMark(ofWatch: watch(ofStore: $0)) }
    for work in notes.unfinished {
      let models = setup.modelsMark(ofWatch: watch(ofStore: work.store))
      let crashes = suspects.crashCount(of: work.store, models: models)
      let what = work.step == .inspect ? "inspecting" : "migrating"
      logger.detail(
        .warning,
        "hopd was killed while \(what) \(work.store.printable) (\(crashes) of \(CrashSuspects.limit)); moving it to "
          + "the end of the queue",
        fields: [.store: work.store.printable, .count: String(crashes)])
    }
  }

  /// Takes in a settled store: a suspect waits, any other store is queued.
  func admit(_ store: FoundStore, now: ContinuousClock.Instant) {
    quarantined.noteFound(now: now)
    if !suspects.isEmpty {
      let crashCount = suspects.crashCount(of: store.key, models: setup.modelsMark(ofWatch: store.watch))
      if crashCount > 0, crashCount < CrashSuspects.limit {
        record(store, .waiting)
        return quarantined.append(store, now: now)
      }
      quarantined.remove(store.key)
    }
    enqueue(store, now: now)
  }

  private func enqueue(_ store: FoundStore, now: ContinuousClock.Instant) {
    let continues = interrupted.remove(store.key) != nil
    if scheduler.found(store, step: continues ? .migrate : .inspect, now: now) { record(store, waiting(store)) }
  }

  var isIdle: Bool {
    let counts = scheduler.counts
    return counts.inspecting == 0 && counts.waiting == 0 && counts.migrating == 0
  }

  /// Queues the next suspect when it is due.
  func releaseSuspects(now: ContinuousClock.Instant) {
    guard let due = quarantined.due(isIdle: isIdle), due <= now, let store = quarantined.next(now: now) else { return }
    enqueue(store, now: now)
  }

  /// Clears all suspects, because another configuration is in force.
  func resetSuspects(now: ContinuousClock.Instant) {
    suspects.clear()
    for store in quarantined.removeAll() { enqueue(store, now: now) }
  }

  /// Refuses a store that has killed the daemon too often; returns true if it did.
  func refusesSuspect(_ ticket: JobTicket, _ subject: MigrationReporter.Subject, now: ContinuousClock.Instant) -> Bool {
    guard !suspects.isEmpty else { return false }
    let crashCount = suspects.crashCount(of: ticket.store.key, models: setup.modelsMark(ofWatch: ticket.store.watch))
    guard crashCount >= CrashSuspects.limit else { return false }
    let failure = MigrationFailure(
      stage: .identify, error: CrashSuspects.refusal(ticket.store.path, crashCount: crashCount))
    let verdict = scheduler.finished(ticket.store.key, JobOutcome(failure), now: now)
    record(ticket.store, failure, verdict, now: now)
    report(subject, failure, verdict, now: now)
    return true
  }

  private func watch(ofStore path: FilePath) -> String {
    // The key of a store contains no links, so the directory's links are resolved too.
    setup.configuration.watches.first { watch in
      path.starts(with: FoundStore.key(of: watch.directory.appending("store")).removingLastComponent())
    }?.name ?? ""
  }
}
