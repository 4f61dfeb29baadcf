// Starts jobs on threads, takes in their results, and reports both to the operator.

import Diagnostics
import Glibc
import HopdConfiguration
import Logging
import MigrationPipeline
import ServiceState
import StoreReplacement
import StoreWatching
import SystemPackage
import SystemdSupport

extension DaemonCoordinator {
  /// Starts work in every free slot.
  func dispatch(now: ContinuousClock.Instant) {
    scheduler.wake(now: now)
    updateHalts(now: now)
    let haltsAll = pauseFile.isThere || throttle.isHalting || scheduler.pauses.all
    while let ticket = scheduler.start(haltingMigrations: haltsAll) { begin(ticket, now: now) }
  }

  private func begin(_ ticket: JobTicket, now: ContinuousClock.Instant) {
    let job = name(ofJob: ticket.job)
    guard let order = setup.order(for: ticket.store, job: job, stateDirectory: surroundings.stateDirectory) else {
      // The watch was removed while the store waited.
      _ = scheduler.finished(ticket.store.key, .gone, now: now)
      return
    }
    let subject = MigrationReporter.Subject(store: ticket.store.path, watch: ticket.store.watch, job: job)
    if refusesSuspect(ticket, subject, now: now) { return }
    let monitor = JobMonitor()
    let requester =
      ticket.step == .migrate ? requesters.removeValue(forKey: ticket.store.key) : requesters[ticket.store.key]
    let stop = StopSignal(parent: stopSignal)
    running[ticket.store.key] = RunningJob(
      ticket: ticket, subject: subject, monitor: monitor, began: Self.wallTime(), requester: requester ?? "hopd",
      stop: stop)
    let work = surroundings.work
    switch ticket.step {
    case .inspect:
      run("inspect", ticket, order, Message.inspected) { request throws(MigrationFailure) in
        try work.inspect(request, stop: stop) { monitor.beat() }
      }
    case .migrate:
      record(ticket.store, .migrating)
      let reporter = MigrationReporter(subject, logger: logger)
      run("job", ticket, order, Message.migrated) { request throws(MigrationFailure) in
        // The job's thread writes the entries, so that they are in the order of the events.
        var entries = reporter.run()
        defer { entries.end() }
        let report = try work.migrate(request, stop: stop) { event in
          monitor.note(event)
          entries.handle(event)
        }
        entries.end()
        reporter.finished(report)
        return report
      }
    }
  }

  /// Works on a store on a thread of its own, and sends the result to the loop.
  private func run<Outcome: Sendable>(
    _ label: String, _ ticket: JobTicket, _ order: StoreOrder,
    _ message: @escaping @Sendable (FilePath, Result<Outcome, MigrationFailure>) -> Message,
    _ body: @escaping @Sendable (MigrationRequest) throws(MigrationFailure) -> Outcome
  ) {
    let (claims, watch) = (surroundings.claims, setup.directories.first { $0.name == ticket.store.watch })
    BlockingWork.run(label) { [self] in
      let slot = notes?.begin(ticket.store.key, ticket.step)
      let result = Result { () throws(MigrationFailure) in
        let request: MigrationRequest
        do throws(HopdError) {
          // A directory that was created or replaced after the start is claimed with its first store.
          if let claims, let watch { try claims.require(watch) }
          request = try order.request()
        } catch {
          throw MigrationFailure(stage: .lock, error: error)
        }
        return try body(request)
      }
      if let slot { notes?.end(slot) }
      post(message(ticket.store.key, result))
    }
  }

  func inspected(_ key: FilePath, _ result: Result<InspectionResult, MigrationFailure>) {
    guard let job = running.removeValue(forKey: key) else { return }
    survived(job.ticket)
    defer { if scheduler.isSettled(key) { requesters[key] = nil } }
    let reporter = MigrationReporter(job.subject, logger: logger)
    let now = ContinuousClock.now
    switch result {
    case .success(.current(let facts)):
      _ = scheduler.finished(key, .current, now: now)
      knownFailures[job.subject.store.printable] = nil
      record(job.ticket.store, .current, version: facts?.version, target: facts?.version)
      reporter.current(facts)
    case .success(.behind(let facts, let target)):
      if case .queued = scheduler.finished(key, .behind, now: now) {
        record(job.ticket.store, waiting(job.ticket.store), version: facts.version, target: target)
        reporter.queued(facts, to: target)
      }
    // A cancelled inspection is not reported.
    case .failure(let failure): failed(job, failure, isReported: failure.error.code != .interrupted, now: now)
    }
  }

  func migrated(_ key: FilePath, _ result: Result<MigrationReport, MigrationFailure>) {
    guard let job = running.removeValue(forKey: key) else { return }
    survived(job.ticket)
    let now = ContinuousClock.now
    switch result {
    case .success(let report):
      pace.note(seconds: report.seconds)
      if let fingerprint = report.fingerprint { scheduler.replaced(key, by: fingerprint) }
      _ = scheduler.finished(key, report.result == .current ? .current : .migrated, now: now)
      record(job, report)
      tellMigrated(job.subject, report)
    case .failure(let failure):
      let isCancelled = job.isCancelled && failure.error.code == .interrupted
      failed(job, failure, isReported: !isCancelled, now: now)
      if isCancelled { reportCancelled(job) }
      if failure.error.code == .internalError {
        note = "internal error while migrating \(job.subject.store.lastComponent?.string ?? "a store")"
      }
    }
  }

  private func failed(_ job: RunningJob, _ failure: MigrationFailure, isReported: Bool, now: ContinuousClock.Instant) {
    if failure.error.code == .pinned { backups.pinned(job.ticket.store) }
    let verdict = scheduler.finished(job.ticket.store.key, JobOutcome(failure), now: now)
    record(job, failure, verdict, now: now)
    if isReported {
      report(job.subject, failure, verdict, reported: job.monitor.snapshot.policyLines, now: now)
    }
  }

  /// Notes that work has ended without a kill.
  private func survived(_ ticket: JobTicket) {
    if phase != .stopping { suspects.survived(ticket.store.key, ticket.step) }
  }

  private func name(ofJob number: UInt64) -> String {
    let digits = String(number, radix: 16)
    return jobPrefix + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
  }

  // MARK: Status

  func statusLine() -> StatusLine {
    var line = StatusLine()
    let counts = scheduler.counts
    line.jobs = running.values.filter(\.isMigration).sorted { $0.ticket.ordinal < $1.ticket.ordinal }
      .map { job in
        let known = job.monitor.snapshot
        return StatusLine.Job(
          ordinal: job.ticket.ordinal,
          name: job.subject.store.lastComponent.map { FilePath($0.string).printable } ?? "",
          from: known.from, to: known.to, progress: known.progress,
          activity: isHalted(job.ticket.store) ? StatusLine.paused : known.activity)
      }
    line.batch = scheduler.batch
    // The scheduler gets scanned files only after they have settled, so the larger number counts.
    line.stores = max(counts.known, watches.fileCount)
    line.toInspect = counts.inspecting
    line.toDo = counts.waiting + quarantined.count
    line.unavailable = unavailableWatches
    line.deferred = counts.deferred
    line.pinned = counts.pinned
    line.attention = counts.attention
    line.isPaused = pauseFile.isThere || scheduler.pauses.all
    line.waits = waitsText
    line.note = note
    line.queueRemaining = queueRemaining
    return line
  }

  func publishStatus(now: ContinuousClock.Instant) {
    guard phase == .ready, !reloading.isRunning, notifier.takesStatus(now: now) else { return }
    notifier.status(statusLine().text, now: now)
  }

  func log(_ kind: JournalMessage, _ watch: String, _ text: String, _ error: HopdError?) {
    var fields: [JournalField: String] = [.watch: watch]
    if let directory = setup.configuration.watch(named: watch)?.directory { fields[.directory] = directory.printable }
    if let error {
      fields[.error] = error.code.name
      fields[.hint] = error.hint
    }
    logger.event(kind, error.map { "\(text): \($0)" } ?? text, fields: fields)
  }
}

extension DaemonCoordinator {
  /// Checks pauses, hours and pressure, and halts running migrations or lets them continue. Outside its hours a watch
  /// only begins no new ones.
  private func updateHalts(now: ContinuousClock.Instant) {
    let configuration = setup.configuration
    pauseFile.update(logger)
    scheduler.close(hours.closed(configuration.watches, at: Self.wallTime()))
    let hasWork = scheduler.counts.waiting > 0 || running.values.contains(where: \.isMigration)
    throttle.update(configuration.throttle, hasWork: hasWork, now: now)
    for job in running.values where job.isMigration { job.stop.pause(isHalted(job.ticket.store)) }
  }

  /// Whether the migration of a store must halt.
  func isHalted(_ store: FoundStore) -> Bool { pauseFile.isThere || throttle.isHalting || scheduler.isPaused(store) }

  /// When to check the hours again; nil if no store waits for them.
  func nextHour(now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
    guard !scheduler.closed.isEmpty, scheduler.counts.waiting > 0 else { return nil }
    let closed = setup.configuration.watches.filter { scheduler.closed.contains($0.name) }
    return now.advanced(by: hours.pause(closed, at: Self.wallTime()))
  }

  /// What migrations wait for, such as "I/O pressure above 40%" or "library until 22:00".
  var waits: [String] { (throttle.reason.map { [$0] } ?? []) + hourWaits }

  /// How long the migrations of a watch wait for its window, such as "until 22:00"; nil while they may begin.
  func closedUntil(_ watch: String) -> String? {
    guard scheduler.closed.contains(watch), let window = setup.configuration.watch(named: watch)?.window else {
      return nil
    }
    // The zone is named if it is not the system's.
    return "until \(window.opensAt)" + (window.zone.name.map { " \($0)" } ?? "")
  }

  /// Watches with migrations that wait for their window, and how long, in the order of the configuration.
  var closedWatches: [(name: String, until: String)] {
    let waiting = scheduler.waitingForTheirHour()
    if waiting.isEmpty { return [] }
    return setup.configuration.watches.compactMap { watch in
      waiting.contains(watch.name) ? closedUntil(watch.name).map { (watch.name, $0) } : nil
    }
  }

  /// The same as text, in one line if it is the same for all watches.
  private var hourWaits: [String] {
    let closed = closedWatches
    if let first = closed.first?.until, closed.count == setup.configuration.watches.count,
      closed.allSatisfy({ $0.until == first })
    {
      return [first]
    }
    return closed.map { "\($0.name) \($0.until)" }
  }

  /// The same for the status line.
  var waitsText: [String] {
    (throttle.detail.map { ["throttled: \($0)"] } ?? [])
      + (hourWaits.isEmpty ? [] : ["waiting \(hourWaits.joined(separator: ", "))"])
  }
}
