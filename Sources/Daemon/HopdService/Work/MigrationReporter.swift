// Writes the journal entries of one store: queued, started, each hop, and the result. It runs on the job's thread, so
// that entries are in the order of the events. It never handles values of users' attributes: events, reports and errors
// contain names, keys and counts.

import Diagnostics
import Logging
import ManagedObjectModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import PolicyHost
import StoreReplacement
import SystemPackage
import SystemdSupport

/// Writes journal entries about one store.
package struct MigrationReporter: Sendable {
  /// The common fields of the entries of one job.
  package struct Subject: Sendable {
    /// The store, as the configuration names it.
    package var store: FilePath
    /// Name of its watch.
    package var watch: String
    /// Name of the job.
    package var job: String
  }

  private let subject: Subject
  let logger: Logger

  /// Reports one job to `logger`.
  init(_ subject: Subject, logger: Logger) { (self.subject, self.logger) = (subject, logger) }

  var name: String { subject.store.printable }

  // MARK: Before the migration

  /// Reports that an inspection found a store that needs a migration.
  package func queued(_ facts: StoreFacts, to target: String) {
    logger.event(
      .storeQueued, "\(name) has version \(facts.version) and is queued for migration to \(target)",
      fields: fields([.storeUUID: facts.uuid, .from: facts.version, .to: target]))
  }

  /// Reports that an inspection found a current store.
  package func current(_ facts: StoreFacts?) {
    logger.event(
      .storeCurrent, "\(name) is current" + (facts.map { " (\($0.version))" } ?? ""),
      fields: fields([.storeUUID: facts?.uuid, .from: facts?.version, .result: "current"]))
  }

  /// Reports that recovery cleaned up after a crash.
  package func recovered(_ sentence: String) {
    logger.event(.crashRecovered, "\(name) was recovered after an interruption: \(sentence)", fields: fields([:]))
  }

  // MARK: During the migration

  /// Reports the events of one run, in order; used on the thread of the job only.
  package struct Run {
    private var reporter: MigrationReporter
    private var facts: StoreFacts?
    private var plan: PlanSummary?
    /// The running hop, from 0, and the number of hops.
    private var hop = 0
    private var hops = 0
    /// A hop has begun, but the start of the migration is not reported yet: the next event shows whether the migration
    /// resumes.
    private var owesStart = false
    private var hasStarted = false

    init(_ reporter: MigrationReporter) { self.reporter = reporter }

    /// Reports an event if it is worth an entry.
    package mutating func handle(_ event: MigrationEvent) {
      // `alive` does not show whether the run resumes, so it does not report the start.
      if case .alive = event { return }
      if case .note(let note) = event { return write(note) }
      if case .resumed(let hop, let hops) = event { start(resumedAt: hop, of: hops) }
      end()
      switch event {
      case .identified(let facts): self.facts = facts
      case .recovered(let sentence): reporter.recovered(sentence)
      case .planned(let plan):
        self.plan = plan
        reporter = reporter.renamed(job: plan.job)
      case .hopStarted(let index, let hops, _, _):
        (hop, self.hops) = (index, hops)
        owesStart = !hasStarted
      case .hopFinished(let report): finished(report)
      case .verified(let checks): detail(.debug, "\(checks) checks passed")
      case .resumed, .progress, .advanced, .verifying, .replacing, .alive, .note: break
      }
    }

    private func detail(
      _ level: Logger.Level, _ text: @autoclosure () -> String,
      _ fields: @autoclosure () -> [JournalField: String?] = [:]
    ) {
      reporter.logger.detail(
        level, "\(reporter.name): \(text())",
        fields: reporter.fields(fields().merging([.storeUUID: facts?.uuid]) { $1 }))
    }

    /// Writes debug entries, and the output of policies.
    private func write(_ note: HopNote) {
      switch note {
      case .statement(let sql, let seconds, let rows):
        let time = MigrationReporter.microseconds(seconds)
        detail(
          .debug, "\(time) µs\(rows.map { ", \($0) rows" } ?? ""): \(sql)",
          [.microseconds: time, .rows: rows.map { String($0) }])
      case .remark(let remark): detail(.debug, remark)
      case .decision(let sentence): detail(.trace, sentence)
      case .policyOutput(let policy, let mapping, let line):
        reporter.logger.event(
          .policyOutput,
          "\(reporter.name): policy \(policy), \(mapping): \(line.escapingControls(keepingNewlines: false))",
          fields: reporter.fields([
            .storeUUID: facts?.uuid, .policy: policy, .mapping: mapping, .hop: String(hop &+ 1), .hops: String(hops),
          ]))
      }
    }

    /// Reports rows that broke the rules of the destination: one entry for each kind, because a user may miss this
    /// data.
    private func write(_ rows: InvalidRows, in report: HopReport) {
      let what =
        switch rows.rule {
        case .fail, .skip: "skipped"
        case .default: "replaced by the default"
        case .quarantine: "moved to quarantine"
        }
      reporter.logger.event(
        .invalidRows,
        "\(reporter.name): hop \(report.title): \(rows.count) rows of \(rows.entity) violate "
          + "the rule "
          + "of \(rows.property) (Core Data \(rows.code.rawValue)) and were \(what)",
        fields: reporter.fields([
          .storeUUID: facts?.uuid, .from: report.source, .to: report.destination, .hop: String(hop &+ 1),
          .hops: String(hops), .entity: rows.entity, .count: String(rows.count), .result: rows.rule.rawValue,
        ]))
    }

    /// Reports the start at the end of the run, if it was not reported yet.
    package mutating func end() {
      if owesStart { start(resumedAt: nil, of: hops) }
    }

    private mutating func start(resumedAt hop: Int?, of hops: Int) {
      owesStart = false
      guard !hasStarted else { return }
      hasStarted = true
      let way = plan.map { " from \($0.from) to \($0.to)" } ?? ""
      let size = "\(hops) \(hops == 1 ? "hop" : "hops")" + (plan.map { ", \($0.rows) rows" } ?? "")
      var text =
        hop.map { "the migration of \(reporter.name)\(way) resumed at hop \($0 &+ 1) of \(hops): \(size)" }
        ?? "the migration of \(reporter.name)\(way) started: \(size)"
      text += MigrationReporter.lines(plan?.warnings ?? [])
      reporter.logger.event(
        // Normally a store has one entry, at its end, which also has the warnings. A run that resumes after an
        // interruption is worth an entry of its own.
        .migrationStarted, text, level: hop == nil ? nil : .info,
        fields: reporter.fields([
          .storeUUID: facts?.uuid, .from: plan?.from, .to: plan?.to, .hops: String(hops),
          .rows: plan.map { String($0.rows) }, .bytes: plan.map { String($0.bytes) },
        ]))
    }

    private func finished(_ report: HopReport) {
      for rows in report.tallies.invalidRows { write(rows, in: report) }
      reporter.logger.event(
        .hopFinished,
        "\(reporter.name): hop \(hop &+ 1) of \(hops), \(report.title), "
          + "\(report.rowsWritten) rows in \(StatusLine.elapsed(seconds: report.seconds))",
        fields: reporter.fields([
          .storeUUID: facts?.uuid, .from: report.source, .to: report.destination, .hop: String(hop &+ 1),
          .hops: String(hops), .rows: String(report.rowsWritten),
          .microseconds: MigrationReporter.microseconds(report.seconds),
        ]))
    }
  }

  /// The reporter of one run.
  package func run() -> Run { Run(self) }

  // MARK: After the migration

  /// Reports that the run succeeded.
  package func finished(_ report: MigrationReport) { renamed(job: report.job).write(report) }

  /// The reporter with the final name of the job: a resumed job keeps the name of the interrupted run.
  func renamed(job: String) -> MigrationReporter {
    MigrationReporter(Subject(store: subject.store, watch: subject.watch, job: job), logger: logger)
  }

  /// The fields of the entry about a migration.
  func fields(of report: MigrationReport) -> [JournalField: String] {
    renamed(job: report.job).fields([
      .storeUUID: report.storeUUID, .from: report.from, .to: report.to, .hops: String(report.hops.count),
      .rows: String(report.rows.values.reduce(0, &+)), .microseconds: Self.microseconds(report.seconds),
      .backup: report.backup.map(\.printable) ?? "none", .result: MigrationResult.migrated.rawValue,
    ])
  }

  private func write(_ report: MigrationReport) {
    switch report.result {
    case .current:
      logger.event(
        .storeCurrent, "\(name) is current (\(report.to))",
        fields: fields([.storeUUID: report.storeUUID, .to: report.to, .result: report.result.rawValue]))
    case .migrated, .completedBeforeCrash, .repaired:
      let rows = report.rows.values.reduce(0, &+)
      var text =
        report.result == .migrated
        ? "\(name) was migrated from \(report.from) to \(report.to): \(rows) rows, "
          + "\(report.hops.count) \(report.hops.count == 1 ? "hop" : "hops"), "
          + StatusLine.elapsed(seconds: report.seconds)
        : "\(name) was migrated from \(report.from) to \(report.to) before an interruption; it is complete"
      if let quarantine = report.quarantine { text += "; quarantine: \(quarantine.printable)" }
      if let backup = report.backup { text += "; backup: \(backup.printable)" }
      // The omitted copy of the model needs no action.
      text += Self.lines(report.warnings.filter { $0.code != .modelCacheLeftEmpty })
      logger.event(.storeMigrated, text, fields: fields(of: report))
      for pruned in report.prunedBackups { removed(pruned, .backupPruned) }
      if let pin = report.releasedPin { released(pin, report) }
    }
  }

  /// Reports that a run or an inspection ended with an error; the verdict says what follows, and whether it is news.
  /// The lines in `reported` have entries of their own, so the error does not repeat them. Returns the fields of the
  /// entry if an operator must act: its level is error.
  @discardableResult
  package func failed(
    _ failure: MigrationFailure, _ verdict: JobVerdict, reported: [String] = [], now: ContinuousClock.Instant
  ) -> [JournalField: String]? {
    let hasReported = logger.logLevel <= JournalMessage.policyOutput.level
    let error = failure.error.located(Place(store: subject.store)).withoutQuotes(of: hasReported ? reported : [])
    guard let entry = entry(failure, error, verdict, now: now) else {
      logger.debug("\(error.description)")
      return nil
    }
    var values: [JournalField: String?] = [
      .storeUUID: failure.storeUUID, .from: failure.from, .to: failure.to, .error: error.code.name,
      .hint: entry.hint ?? hint(error), .result: entry.result, .attempt: entry.attempt.map { String($0) },
      // The text of a hop's error already names the entity; the field is for filters.
      .entity: error.place.entity,
    ]
    if let next = entry.next { values[.next] = NextAttempt.text(next, now: now) }
    let fields = fields(values)
    logger.event(entry.kind, entry.text, level: entry.level, fields: fields)
    return (entry.level ?? entry.kind.level) == .error ? fields : nil
  }

  /// The journal entry about an error.
  private struct FailureEntry {
    var kind: JournalMessage
    var result: String
    var text: String
    /// Nil for the level of the kind.
    var level: Logger.Level?
    var next: ContinuousClock.Instant?
    var attempt: Int?
    /// Nil for the error's own.
    var hint: String?
  }

  /// The journal entry about an error; nil if it is not worth one.
  private func entry(
    _ failure: MigrationFailure, _ error: HopdError, _ verdict: JobVerdict, now: ContinuousClock.Instant
  ) -> FailureEntry? {
    let what = error.description
    // Before anything is written, the store is refused; afterwards, its migration has failed.
    let isEarly = [.identify, .lock, .recover, .plan].contains(failure.stage)
    let (kind, word) = isEarly ? (JournalMessage.storeRefused, "refused") : (.migrationFailed, "failed")
    // A cause outside the store that does not pass by itself, such as a missing permission, is an error at once, but is
    // still retried.
    let isRefusal = failure.error.liesOutsideTheStore && !failure.error.code.isRetryable
    func refusal(_ until: ContinuousClock.Instant, _ attempt: Int, isNews: Bool) -> FailureEntry {
      FailureEntry(
        kind: kind, result: word,
        text: "\(word) (store unchanged; \(again(until, now: now)), sooner if the store changes): \(what)",
        level: isNews ? nil : .debug,
        next: until, attempt: attempt)
    }
    switch verdict {
    case .pinned(let isNews):
      return FailureEntry(kind: .storePinned, result: "pinned", text: what, level: isNews ? nil : .debug)
    case .retry(let until, let attempt, nil, let isNews) where isRefusal:
      return refusal(until, attempt, isNews: isNews)
    case .lasting(let until, let attempt, let isNews) where isRefusal:
      // The first attempt was reported as an error.
      return refusal(until, attempt, isNews: isNews && attempt == 1)
    case .deferred(let until, let isNews):
      return FailureEntry(
        kind: .storeDeferred, result: "deferred", text: "deferred (\(again(until, now: now))): \(what)",
        level: isNews ? nil : .debug, next: until)
    case .retry(let until, let attempt, let attempts, let isNews):
      let of = attempts.map { " of \($0)" } ?? ""
      return FailureEntry(
        kind: .migrationFailed, result: "failed",
        text: "failed (attempt \(attempt)\(of); \(again(until, now: now))): \(what)",
        level: isNews ? .warning : .debug, next: until, attempt: attempt)
    case .lasting(let until, let attempt, let isNews):
      return FailureEntry(
        kind: .migrationFailed, result: "failed",
        text: "failed \(attempt) times (external cause; \(again(until, now: now)), sooner if it is fixed): \(what)",
        level: isNews ? nil : .debug, next: until, attempt: attempt)
    case .gaveUp(let attempts, let isNews):
      return FailureEntry(
        kind: .migrationFailed, result: "failed",
        text:
          "gave up after \(attempts) \(attempts == 1 ? "attempt" : "attempts") (retried when the file changes or on "
          + "reload): \(what)", level: isNews ? nil : .debug, attempt: attempts)
    case .refused(let isNews):
      return FailureEntry(
        kind: kind, result: word, text: "\(word) (store unchanged): \(what)", level: isNews ? nil : .debug)
    case .queued where error.code == .interrupted:
      return FailureEntry(
        kind: .migrationInterrupted, result: "interrupted",
        text: "the migration of \(name) stopped at a checkpoint", level: .notice,
        hint: "start hopd again; it continues from the checkpoint")
    case .settled, .queued, .forgotten: return nil
    }
  }

  /// The text "next attempt in 5m00s".
  private func again(_ until: ContinuousClock.Instant, now: ContinuousClock.Instant) -> String {
    "next attempt in " + StatusLine.duration(seconds: (until - now).seconds)
  }

  // MARK: Private helpers

  /// The maximum number of findings in one entry, so that people can read it.
  private static let mostFindings = 20

  /// The warnings as lines below the text of an entry.
  private static func lines(_ warnings: [HopdError]) -> String {
    let rest = warnings.count - mostFindings
    return warnings.prefix(mostFindings).map { "\n  warning: \($0.headline)" }.joined()
      + (rest > 0 ? "\n  and \(rest) more warnings; run `hopctl plan` for all" : "")
  }

  private func hint(_ error: HopdError) -> String {
    if error.isReadOnlyFileSystem {
      let directory = subject.store.removingLastComponent().printable
      return
        "the service cannot write here. If ReadWritePaths= of the unit names the directory or one above it, the "
        + "directory was made "
        + "or mounted after hopd started: `systemctl restart hopd`. If not, `hopctl check-config --drop-in --install` "
        + "writes the drop-in for \(directory)"
    }
    if let hint = error.hint(inWatch: subject.watch) { return hint }
    if error.code == .noPermission {
      return "grant the user of hopd write access to the file and its directory; under systemd also add the "
        + "directory to ReadWritePaths= of the unit"
    }
    return "run `hopctl identify \(subject.store.quotedForShell)`; "
      + "to ignore the file, add it to `exclude` of the watch \(subject.watch)"
  }

  func fields(_ values: [JournalField: String?]) -> [JournalField: String] {
    var fields: [JournalField: String] = [.store: name]
    let all = values.merging([.watch: subject.watch, .job: subject.job]) { first, _ in first }
    for (field, value) in all where value?.isEmpty == false { fields[field] = value }
    return fields
  }

  static func microseconds(_ seconds: Double) -> String {
    String(seconds > 0 && seconds < 1e12 ? max(1, Int64(seconds * 1e6)) : 1)
  }
}
