// Records what happens to stores in the state database, which `hopctl status`, `list` and `history` show.

import ConfigurationInspection
import Diagnostics
import DurableFiles
import Glibc
import HopdConfiguration
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import ServiceState
import StoreReplacement
import SystemPackage

extension DaemonCoordinator {
  /// Seconds since 1970.
  static func wallTime() -> Int64 { Int64(time(nil)) }

  // MARK: Stores

  /// Records the condition of a store without a new failure.
  func record(_ store: FoundStore, _ condition: StoreCondition, version: String? = nil, target: String? = nil) {
    surroundings.recorder?.note(
      .store(
        StoreRecord(
          path: store.path.printable, watch: store.watch, condition: condition, since: Self.wallTime(),
          version: version, target: target)))
  }

  /// Records that a store was removed.
  func recordGone(_ store: FoundStore?) {
    if let store { surroundings.recorder?.note(.gone(path: store.path.printable)) }
  }

  /// Records failed work on a store: the store's condition, and the job that ended.
  func record(_ job: RunningJob, _ failure: MigrationFailure, _ verdict: JobVerdict, now: ContinuousClock.Instant) {
    if job.ticket.step == .migrate || verdict.isNews, verdict != .forgotten {
      metrics.counts.ended(verdict.result(failure.error, stage: failure.stage))
    }
    guard let recorder = surroundings.recorder else { return }
    let error = failure.error
    record(job.ticket.store, failure, verdict, now: now)
    // An inspection with the same result as the last one is not recorded as a job.
    guard error.code != .interrupted || job.ticket.step == .migrate, verdict.isNews || job.ticket.step == .migrate
    else { return }
    let ended = Self.wallTime()
    recorder.note(
      .job(
        JobRecord(
          job: job.subject.job, path: job.subject.store.printable, watch: job.subject.watch, began: job.began,
          ended: ended, from: failure.from, to: failure.to,
          microseconds: (ended &- job.began) &* 1_000_000, requester: job.requester,
          result: verdict.result(error, stage: failure.stage), code: error.code.name, reason: error.headline)))
  }

  /// Records the condition of a store after a failure.
  func record(_ store: FoundStore, _ failure: MigrationFailure, _ verdict: JobVerdict, now: ContinuousClock.Instant) {
    guard let recorder = surroundings.recorder else { return }
    guard var condition = verdict.condition else { return recordGone(store) }
    if condition == .waiting { condition = waiting(store) }
    let error = failure.error
    var record = StoreRecord(
      path: store.path.printable, watch: store.watch, condition: condition, since: Self.wallTime(),
      version: failure.from, target: failure.to)
    if error.code != .interrupted {
      let next = NextCommand(
        store: store.path, watch: store.watch, configuration: surroundings.source.file,
        stateDirectory: surroundings.stateDirectory, isInstalled: surroundings.source == .installed)
      record.failure = StoreFailure(
        code: error.code.name, reason: error.headlineOfStore,
        hint: error.hint(inWatch: store.watch)?.printableLine ?? "",
        command: next.text(error), attempts: verdict.attempts(times: scheduler.times(store.key)),
        nextAttempt: verdict.until.map { Self.wallTime() &+ max(0, ($0 - now).components.seconds) })
    }
    recorder.note(.store(record))
  }

  /// Records a successful migration.
  func record(_ job: RunningJob, _ report: MigrationReport) {
    let rows = report.rows.values.reduce(0, &+)
    if report.result != .current {
      metrics.counts.migrated(rows: rows, hops: report.hops.map(\.seconds), at: Self.wallTime())
    }
    guard let recorder = surroundings.recorder else { return }
    record(job.ticket.store, .current, version: report.to, target: report.to)
    guard report.result != .current else { return }
    recorder.note(
      .job(
        JobRecord(
          job: report.job, path: job.subject.store.printable, watch: job.subject.watch, began: job.began,
          ended: Self.wallTime(), from: report.from, to: report.to, rows: rows,
          microseconds: Int64(MigrationReporter.microseconds(report.seconds)) ?? 0, requester: job.requester,
          result: MigrationResult.migrated.rawValue, backup: report.backup?.printable)))
  }

  // MARK: The daemon

  /// Records that the daemon starts.
  func recordStart() {
    guard let recorder = surroundings.recorder else { return }
    recorder.onLoss { [self] in post(.stateLost) }
    recorder.note(.service(.stopped, nil))
    let fixed: [ServiceFact: String] = [
      .program: HopdVersion.text, .process: String(getpid()), .started: String(Self.wallTime()),
      .boot: (try? LinuxFileSystem().bootIdentifier()) ?? "", .file: programFile?.text ?? "",
    ]
    for (fact, value) in fixed { recorder.note(.service(fact, value)) }
    recordConfiguration()
  }

  /// Records the watches of a new configuration.
  func recordConfiguration() {
    let watches = setup.configuration.watches.map(\.name)
    surroundings.recorder?.note(.onlyWatches(watches))
    self.watches.markUnseen(watches)
  }

  /// Records everything again after the database was lost. Each store is inspected again, because only the store itself
  /// shows its version.
  func recordAnew() {
    recordStart()
    scheduler.configure(
      jobs: setup.configuration.daemon.jobs, rules: setup.retryRules, priorities: setup.priorities)
  }

  /// Records as gone the stores that were not found, once every file of a watch was inspected.
  func recordUnseen() {
    let counts = scheduler.counts
    guard let recorder = surroundings.recorder, phase == .ready, counts.inspecting == 0 else { return }
    let unseen = watches.takeUnseen(known: counts.known + quarantined.count, unavailable: unavailableWatches)
    if !unseen.isEmpty { recorder.note(.unseen(watches: unseen)) }
  }

  /// Records the changed facts about the daemon itself.
  func recordFacts() {
    guard let recorder = surroundings.recorder else { return }
    var now: [ServiceFact: String] = [:]
    let unavailable = unavailable.sorted { $0.key < $1.key }
    let lists: [(ServiceFact, [String])] = [
      (.unavailable, unavailable.map(\.key)), (.unavailableReasons, unavailable.map(\.value)),
      (.note, note.map { [$0] } ?? []),
      (.waits, waits), (.windows, closedWatches.map { "\($0.name) \($0.until)" }), (.paused, pausedNames),
      (.changed, settings.lines), (.skipped, watches.links.sorted { $0.key < $1.key }.map(\.value)),
    ]
    for (fact, lines) in lists where !lines.isEmpty { now[fact] = lines.joined(separator: "\n") }
    now[.configuration] = setup.files.map(\.printable).joined(separator: "\n")
    recorder.note(now)
  }

  /// Records that the daemon ends on request.
  func recordEnd() {
    surroundings.recorder?.note(.service(.process, nil))
    surroundings.recorder?.note(.service(.stopped, String(Self.wallTime())))
  }
}

extension JobVerdict {
  /// The condition of the store; nil if the store was forgotten.
  fileprivate var condition: StoreCondition? {
    switch self {
    case .settled: .current
    case .queued: .waiting
    case .deferred: .busy
    case .pinned: .pinned
    case .retry, .lasting: .retrying
    case .refused, .gaveUp: .failed
    case .forgotten: nil
    }
  }

  /// Time of the next attempt.
  fileprivate var until: ContinuousClock.Instant? {
    switch self {
    case .deferred(let until, _), .retry(let until, _, _, _), .lasting(let until, _, _): until
    case .settled, .queued, .pinned, .refused, .gaveUp, .forgotten: nil
    }
  }

  /// Number of failed attempts in a row, of which `times` had the same cause; 0 if they are not counted.
  fileprivate func attempts(times: Int) -> Int64 {
    switch self {
    case .retry(_, let attempt, _, _), .lasting(_, let attempt, _): Int64(attempt)
    case .gaveUp(let attempt, _): Int64(max(attempt, times))
    case .deferred, .refused: Int64(times)
    case .settled, .queued, .pinned, .forgotten: 0
    }
  }

  /// Whether the verdict is worth reporting.
  fileprivate var isNews: Bool {
    switch self {
    case .deferred(_, let isNews), .retry(_, _, _, let isNews), .lasting(_, _, let isNews), .pinned(let isNews),
      .refused(let isNews), .gaveUp(_, let isNews):
      isNews
    case .settled, .queued, .forgotten: false
    }
  }

  /// The result of the job, in the words of `HOPD_RESULT`.
  fileprivate func result(_ error: HopdError, stage: MigrationStage) -> String {
    if error.code == .interrupted { return "interrupted" }
    switch self {
    case .deferred: return "deferred"
    case .pinned: return "pinned"
    case .refused: return [.identify, .lock, .recover, .plan].contains(stage) ? "refused" : "failed"
    case .settled, .queued, .retry, .lasting, .gaveUp, .forgotten: return "failed"
    }
  }
}

extension HopdError {
  /// Message and reasons in one line, without the store, which the record already names.
  var headlineOfStore: String {
    var rest = self
    if rest.place.file == rest.place.store { rest.place.file = nil }
    rest.place.store = nil
    return ([rest.headline] + reasons.prefix(3).map(\.headlineOfStore)).joined(separator: "; ")
  }
}
