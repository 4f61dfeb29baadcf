// The entries that `journalctl HOPD_STORE=…` shows for one store.

import Diagnostics
import Logging
import ManagedObjectModel
import MigrationEngine
import MigrationPlanning
import PersistentStore
import StoreReplacement
import SystemPackage
import SystemdSupport
import Testing

@testable import HopdService
@testable import MigrationPipeline
@testable import StoreReplacement

@Suite struct MigrationReporterTests {
  let log = RecordedLog()
  let store = "/srv/a.sqlite"
  var reporter: MigrationReporter {
    MigrationReporter(.init(store: FilePath(store), watch: "w", job: "00ff000001"), logger: log.logger)
  }
  let facts = StoreFacts(uuid: "U-U-I-D", model: "A", version: "A", frameworkVersion: 1)
  func plan(warnings: [HopdError] = []) -> PlanSummary {
    PlanSummary(
      job: "00ff000001", from: "A", to: "A 3", hops: 2, rows: 60, bytes: 4096, warnings: warnings, dropped: [])
  }
  func hop(_ source: String, _ destination: String) -> HopReport {
    HopReport(
      source: source, destination: destination, kind: "inferred", rowsRead: 30, rowsWritten: 30, chunks: 1, seconds: 2)
  }
  func report(_ events: [MigrationEvent]) {
    var run = reporter.run()
    for event in events { run.handle(event) }
    run.end()
  }

  @Test func aWholeLife() throws {
    reporter.queued(facts, to: "A 3")
    report([
      .identified(facts), .planned(plan()), .hopStarted(index: 0, hops: 2, from: "A", to: "A 2"),
      .hopFinished(hop("A", "A 2")), .hopStarted(index: 1, hops: 2, from: "A 2", to: "A 3"),
      .hopFinished(hop("A 2", "A 3")), .verifying, .verified(checks: 9), .replacing,
    ])
    reporter.finished(.sample(FilePath(store)))
    // One entry for a casual reader, and the steps for a search.
    #expect(log.kinds(of: store) == [.storeMigrated])
    #expect(
      log.entries.compactMap(\.kind) == [
        .storeQueued, .migrationStarted, .hopFinished, .hopFinished, .storeMigrated,
      ])
    #expect(log.all(.hopFinished).map { $0[.hop] } == ["1", "2"])
    #expect(log.all(.hopFinished).map { $0[.hops] } == ["2", "2"])
    let begun = try #require(log.all(.migrationStarted).first)
    #expect(begun[.from] == "A" && begun[.to] == "A 3" && begun[.hops] == "2" && begun[.rows] == "60")
    #expect(begun.text == "the migration of /srv/a.sqlite from A to A 3 started: 2 hops, 60 rows")
    let done = try #require(log.all(.storeMigrated).first)
    #expect(done.level == .notice)
    #expect(done[.rows] == "30" && done[.microseconds] == "1250000" && done[.result] == "migrated")
    #expect(done[.backup] == "/srv/.a.hopd-backups/1/a.sqlite" && done[.storeUUID] == "U-U-I-D")
    #expect(Set(log.entries.compactMap { $0[.job] }) == ["00ff000001"])
  }

  @Test func whatPoliciesWriteIsAnEntryAndStatementsAreForDebugging() throws {
    report([
      .identified(facts), .planned(plan()), .hopStarted(index: 1, hops: 2, from: "A 2", to: "A 3"),
      .note(.policyOutput(policy: "App.BookPolicy", mapping: "BookToBook", line: "three\u{1b}[2J books")),
      .note(.statement(sql: "INSERT INTO x", seconds: 0.5, rows: 7)), .note(.decision("so it is")),
    ])
    let line = try #require(log.all(.policyOutput).first)
    #expect(line.text.contains("policy App.BookPolicy, BookToBook: three\\x1b[2J books"))
    #expect(line[.policy] == "App.BookPolicy" && line[.mapping] == "BookToBook")
    #expect(line[.hop] == "2" && line[.store] == store)
    #expect(
      log.entries.contains {
        $0.level == .debug && $0.text.contains("500000 µs, 7 rows: INSERT INTO x") && $0[.store] == store
          && $0[.microseconds] == "500000" && $0[.rows] == "7"
      })
    #expect(log.entries.contains { $0.level == .trace && $0.text.contains("so it is") && $0[.store] == store })
  }

  @Test func aResumedRunSaysSoOnceAndCountsItsHops() throws {
    report([
      .identified(facts), .planned(plan()), .hopStarted(index: 1, hops: 2, from: "A 2", to: "A 3"),
      .resumed(hop: 1, hops: 2), .hopFinished(hop("A 2", "A 3")),
    ])
    let begun = log.all(.migrationStarted)
    #expect(begun.count == 1)
    #expect(try #require(begun.first).text.contains("resumed at hop 2 of 2"))
    #expect(begun.first?.level == .info)
    #expect(log.all(.hopFinished).map { $0[.hop] } == ["2"])
  }

  @Test func warningsStandInTheOneEntryOfTheStore() throws {
    let warning = HopdError(
      .dataDropped, "12 values are dropped", at: Place(entity: "Book", property: "shelf"))
    report([
      .planned(plan(warnings: Array(repeating: warning, count: 25))),
      .hopStarted(index: 0, hops: 2, from: "A", to: "B"),
    ])
    var report = MigrationReport.sample(FilePath(store))
    report.warnings =
      [HopdError(.modelCacheLeftEmpty, "nothing to be done")] + Array(repeating: warning, count: 25)
    reporter.finished(report)
    #expect(try #require(log.all(.migrationStarted).first).level == .debug)
    let done = try #require(log.all(.storeMigrated).first)
    #expect(done.text.contains("Book.shelf: 12 values are dropped"))
    #expect(done.text.contains("and 5 more warnings") && !done.text.contains("nothing to be done"))
  }

  @Test func aRunWithoutWorkIsNotLoggedAboveDebug() {
    report([.identified(facts)])
    reporter.finished(.sample(FilePath(store), result: .current))
    reporter.current(facts)
    #expect(log.entries.allSatisfy { $0.level <= .debug })
    #expect(log.all(.storeCurrent).count == 2)
  }

  @Test func aRefusalNamesReasonAndHint() throws {
    let error = HopdError(
      .noRoute, "no way leads from A to A 3", hint: "add a version in between",
      reasons: [HopdError(.noRoute, "it is required now", at: Place(hop: "A → A 2", entity: "Book", property: "title"))]
    )
    let now = ContinuousClock.now
    reporter.failed(
      MigrationFailure(stage: .plan, error: error, from: "A", to: "A 3", storeUUID: "U"), .refused(isNews: true),
      now: now)
    let entry = try #require(log.entries.first)
    #expect(entry.kind == .storeRefused && entry.level == .error)
    #expect(entry[.result] == "refused" && entry[.error] == "no-route" && entry[.hint] == "add a version in between")
    #expect(entry[.from] == "A" && entry[.to] == "A 3" && entry[.storeUUID] == "U")
    #expect(entry.text.contains("/srv/a.sqlite") && entry.text.contains("Book.title: it is required now"))
  }

  @Test func everyFailureHasAHintAndNothingOldIsReportedAgain() {
    let now = ContinuousClock.now
    let error = HopdError(.storeBusy, "the store is in use")
    let until = now.advanced(by: .seconds(30))
    let verdicts: [(JobVerdict, JournalMessage, String, Bool)] = [
      (.deferred(until: until, isNews: true), .storeDeferred, "deferred", true),
      (.deferred(until: until, isNews: false), .storeDeferred, "deferred", false),
      (.retry(until: until, attempt: 1, attempts: 5, isNews: true), .migrationFailed, "failed", true),
      (.retry(until: until, attempt: 2, attempts: 5, isNews: false), .migrationFailed, "failed", false),
      (.retry(until: until, attempt: 3, attempts: nil, isNews: true), .migrationFailed, "failed", true),
      (.lasting(until: until, attempt: 5), .migrationFailed, "failed", true),
      (.gaveUp(attempts: 5), .migrationFailed, "failed", true),
      (.refused(isNews: true), .storeRefused, "refused", true),
      (.refused(isNews: false), .storeRefused, "refused", false),
    ]
    for (verdict, kind, result, isLoud) in verdicts {
      let log = RecordedLog()
      MigrationReporter(.init(store: FilePath(store), watch: "w", job: "1"), logger: log.logger)
        .failed(MigrationFailure(stage: .identify, error: error), verdict, now: now)
      let entry = log.entries.first
      #expect(entry?.kind == kind && entry?[.result] == result && entry?[.hint]?.isEmpty == false, "\(verdict)")
      #expect(((entry?.level ?? .trace) > .debug) == isLoud, "\(verdict)")
    }
  }

  @Test("Lines of a policy that have entries of their own are not quoted again, unless the journal is without them")
  func quotesOnce() throws {
    func quote(_ line: String) -> HopdError { HopdError(.noRoute, "the program wrote: \(line)") }
    let error = HopdError(.noRoute, "the policy ended", reasons: [quote("Traceback"), quote("NameError")])
    let failure = MigrationFailure(stage: .migrate, error: error)
    for (level, isQuoted) in [(Logger.Level.info, false), (.warning, true)] {
      let log = RecordedLog()
      var logger = log.logger
      logger.logLevel = level
      MigrationReporter(.init(store: FilePath(store), watch: "w", job: "1"), logger: logger).failed(
        failure, .refused(isNews: true), reported: ["Traceback"], now: .now)
      let text = try #require(log.entries.first).text
      #expect(text.contains("Traceback") == isQuoted && text.contains("NameError"), "\(level): \(text)")
    }
  }

  @Test func attemptsAndTheTimeOfTheNextOneAreReported() throws {
    let now = ContinuousClock.now
    let failure = MigrationFailure(stage: .migrate, error: HopdError(.noSpace, "the disk is full"))
    reporter.failed(
      failure, .retry(until: now.advanced(by: .seconds(90)), attempt: 3, attempts: nil, isNews: true), now: now)
    reporter.failed(failure, .lasting(until: now.advanced(by: .seconds(90)), attempt: 5), now: now)
    let (first, last) = (try #require(log.entries.first), try #require(log.entries.last))
    #expect(first[.attempt] == "3" && first.text.contains("attempt 3") && first.text.contains("next attempt in 1m30s"))
    let next = try #require(first[.next])
    #expect(next.count == 20 && next.hasSuffix("Z") && next.contains("T"), "\(next)")
    #expect(first.level == .warning && last.level == .error)
    #expect(last[.attempt] == "5" && last.text.contains("failed 5 times (external cause"))
  }

  /// A directory that is made anew under the running unit is read-only for it until the unit is restarted.
  @Test func aReadOnlyDirectoryNamesTheRestart() throws {
    let cause = HopdError(
      .noPermission, "cannot write here", at: Place(file: "/srv"), cause: Errno.readOnlyFileSystem, hint: "x")
    reporter.failed(MigrationFailure(stage: .lock, error: cause), .refused(isNews: true), now: .now)
    let hint = try #require(log.entries.first?[.hint])
    #expect(
      hint.contains("systemctl restart hopd") && hint.contains("hopctl check-config --drop-in --install")
        && hint.contains("/srv"), "\(hint)")
  }

  @Test func anInterruptedRunSaysThatItGoesOn() throws {
    reporter.failed(
      MigrationFailure(stage: .migrate, error: HopdError(.interrupted, "stopped on request")), .queued, now: .now)
    let entry = try #require(log.entries.first)
    #expect(entry.kind == .migrationInterrupted && entry.level == .notice && entry[.result] == "interrupted")
  }

  @Test func aFileNameForgesNothing() throws {
    let name = FilePath("/srv/a\nREADY=1\u{1b}[31m.sqlite")
    MigrationReporter(.init(store: name, watch: "w", job: "1"), logger: log.logger).queued(facts, to: "A 3")
    let entry = try #require(log.entries.first)
    #expect(!entry.text.contains("\n") && !entry.text.contains("\u{1b}"))
    #expect(entry[.store] == "/srv/a\\x0aREADY=1\\x1b[31m.sqlite")
  }

  @Test func whatAFailureIsToTheScheduler() {
    func outcome(_ code: HopdError.Code, _ stage: MigrationStage = .plan) -> JobOutcome {
      JobOutcome(MigrationFailure(stage: stage, error: HopdError(code, "text")))
    }
    #expect(outcome(.storeBusy) == .busy(code: "store-busy"))
    #expect(outcome(.interrupted) == .interrupted)
    #expect(outcome(.noSpace) == .outside(code: "no-space"))
    #expect(outcome(.noRoute) == .refused(reason: "no-route text"))
    // A cause outside the store is never final.
    for code in [
      HopdError.Code.noPermission, .inputOutput, .cannotReplace, .externalDataMissing, .replacementUnconfirmed,
    ] {
      #expect(outcome(code) == .outside(code: code.name))
    }
    #expect(outcome(.notFound, .identify) == .gone)
    #expect(outcome(.notFound, .replace) == .refused(reason: "not-found text"))
  }

  @Test func eachRemovedBackupHasAnEntry() {
    let log = RecordedLog()
    var report = MigrationReport.sample("/srv/a.sqlite")
    let folders: [FilePath] = ["/srv/.a.sqlite.hopd-backups/1", "/srv/.a.sqlite.hopd-backups/2"]
    report.prunedBackups = folders.map {
      BackupRemoval(
        generation: BackupGeneration(directory: $0, database: $0.appending("a.sqlite"), record: nil, bytes: 1),
        reason: .keep)
    }
    MigrationReporter(MigrationReporter.Subject(store: "/srv/a.sqlite", watch: "w", job: "j"), logger: log.logger)
      .finished(report)
    let entries = log.all(.backupPruned)
    #expect(entries.map { $0[.backup] } == folders.map(\.string))
    #expect(entries.allSatisfy { $0[.result] == "keep" && $0.text.contains("keep") })
    #expect(entries.allSatisfy { $0[.store] == "/srv/a.sqlite" && $0[.job] == "00ff000001" })
  }
}
