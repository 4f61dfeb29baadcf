// What the service manager learns of the daemon's life: pings of the watchdog, and more time for a start or a stop.

import Diagnostics
import Logging
import SystemdSupport

/// Pings the watchdog and extends the timeout while jobs make progress.
struct Liveness {
  private let notifier: ServiceNotifier
  private let logger: Logger
  private var watchdog: WatchdogPolicy?
  /// Hung jobs that were logged.
  private var hung: Set<String> = []
  /// When the timeout was last extended, and the beats of all jobs then.
  private var extended: (at: ContinuousClock.Instant, beats: UInt64)?

  init(watchdog interval: Duration?, _ notifier: ServiceNotifier, logger: Logger) {
    (self.notifier, self.logger) = (notifier, logger)
    watchdog = interval.map { WatchdogPolicy(interval: $0, now: .now) }
  }

  /// The interval at which to feed the watchdog; nil if there is none.
  var tick: Duration? { watchdog?.tick }

  /// Pings the watchdog, unless a job makes no progress.
  mutating func feed(_ jobs: [RunningJob], now: ContinuousClock.Instant) {
    let names = jobs.map { "\($0.subject.job) \($0.subject.store.printable)" }
    let beats = Dictionary(zip(names, jobs.map(\.monitor.snapshot.beats))) { first, _ in first }
    if watchdog?.shouldPing(now: now, beats: beats) == true { notifier.watchdogPing() }
    let stuck = Set(watchdog?.hungJobs(now: now) ?? [])
    for (name, job) in zip(names, jobs) where stuck.contains(name) && hung.insert(name).inserted {
      let store = job.subject.store.printable
      logger.event(
        .serviceFailed,
        "\(store) made no progress for a whole watchdog interval; hopd stops notifying the watchdog",
        fields: [.store: store, .job: job.subject.job, .watch: job.subject.watch])
    }
  }

  /// Extends the timeout of a start, or of a stop while its jobs make progress.
  mutating func extendTimeout(isStopping: Bool, _ jobs: [RunningJob], now: ContinuousClock.Instant) {
    if let extended, now < extended.at.advanced(by: .seconds(5)) { return }
    let beats = jobs.reduce(UInt64(0)) { $0 &+ $1.monitor.snapshot.beats }
    if isStopping, beats == extended?.beats { return }
    extended = (now, beats)
    notifier.extendTimeout(microseconds: 60_000_000)
  }
}
