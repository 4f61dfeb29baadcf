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
    updateHolds(now: now)
    while let ticket = scheduler.start(holdingMigrations: holdsAll) { begin(ticket, now: now) }
  }

  private func begin(_ ticket: JobTicket, now: ContinuousClock.Instant) {
    let job = name(ofJob: ticket.job)
    guard let order = setup.order(for: ticket.store, job: job, stateDirectory: surroundings.stateDirectory) else {
      // The watch was removed while the store waited.
      _ = scheduler.finished(ticket.store.key, .gone, now: now)
      return
    }
    let subject = MigrationReporter.Subject(store: ticket.store.path, watch: ticket.store.watch, job: job)
    if bars(ticket, subject, now: now) { return }
    let monitor = JobMonitor()
    running[ticket.store.key] = RunningJob(
      ticket: ticket, subject: subject, monitor: monitor, began: Self.wallTime(),
      asker: (ticket.step == .migrate ? askers.removeValue(forKey: ticket.store.key) : askers[ticket.store.key])
        ?? "hopd", stop: StopSignal(parent: stopSignal))
    let stop = running[ticket.store.key]?.stop ?? stopSignal
    if ticket.step == .migrate { record(ticket.store, .migrating) }
    switch ticket.step {
    case .look: look(ticket, order, monitor, stop: stop)
    case .migrate: migrate(ticket, order, subject, monitor, stop: stop)
    }
  }

  /// Returns a call that claims the watch's directory: a directory that was created or replaced after the start is
  /// claimed with its first store.
  private func claim(for ticket: JobTicket) -> @Sendable () throws(MigrationFailure) -> Void {
    let (claims, watch) = (surroundings.claims, setup.directories.first { $0.name == ticket.store.watch })
    return { () throws(MigrationFailure) in
      guard let claims, let watch else { return }
      do throws(HopdError) { try claims.require(watch) } catch { throw MigrationFailure(stage: .lock, error: error) }
    }
  }

  /// Looks at a store on a thread of its own.
  private func look(_ ticket: JobTicket, _ order: StoreOrder, _ monitor: JobMonitor, stop: StopSignal) {
    let (work, key, notes, claim) = (surroundings.work, ticket.store.key, notes, claim(for: ticket))
    BlockingWork.run("look") { [self] in
      let slot = notes?.begin(key, .look)
      let result: Result<LookResult, MigrationFailure>
      do throws(MigrationFailure) {
        try claim()
        result = .success(try work.look(order.located(), stop: stop) { monitor.beat() })
      } catch {
        result = .failure(error)
      }
      if let slot { notes?.end(slot) }
      post(.looked(key, result))
    }
  }

  /// Migrates a store on a thread of its own.
  private func migrate(
    _ ticket: JobTicket, _ order: StoreOrder, _ subject: MigrationReporter.Subject, _ monitor: JobMonitor,
    stop: StopSignal
  ) {
    let (work, key, notes, claim) = (surroundings.work, ticket.store.key, notes, claim(for: ticket))
    let reporter = MigrationReporter(subject, logger: logger)
    BlockingWork.run("job") { [self] in
      // The job's thread writes the entries, so that they are in the order of the events.
      let teller = EventTeller(reporter.run(), monitor)
      let slot = notes?.begin(key, .migrate)
      let result: Result<MigrationReport, MigrationFailure>
      do throws(MigrationFailure) {
        try claim()
        let report = try work.migrate(order.located(), stop: stop) { teller.handle($0) }
        teller.end()
        reporter.finished(report)
        result = .success(report)
      } catch {
        teller.end()
        result = .failure(error)
      }
      if let slot { notes?.end(slot) }
      post(.migrated(key, result))
    }
  }

  func looked(_ key: FilePath, _ result: Result<LookResult, MigrationFailure>) {
    guard let job = running.removeValue(forKey: key) else { return }
    survived(job.ticket)
    defer { if scheduler.isSettled(key) { askers[key] = nil } }
    let reporter = MigrationReporter(job.subject, logger: logger)
    let now = ContinuousClock.now
    switch result {
    case .success(.current(let facts)):
      _ = scheduler.finished(key, .current, now: now)
      record(job.ticket.store, .current, version: facts?.version, target: facts?.version)
      reporter.current(facts)
    case .success(.behind(let facts, let target)):
      if case .queued = scheduler.finished(key, .behind, now: now) {
        record(job.ticket.store, waiting(job.ticket.store), version: facts.version, target: target)
        reporter.queued(facts, to: target)
      }
    case .failure(let failure):
      if failure.error.code == .pinned { backups.heldBack(job.ticket.store) }
      let verdict = scheduler.finished(key, JobOutcome(failure), now: now)
      record(job, failure, verdict, now: now)
      // A cancelled look is not reported.
      if failure.error.code != .interrupted { reporter.failed(failure, verdict, now: now) }
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
    case .failure(let failure):
      if failure.error.code == .pinned { backups.heldBack(job.ticket.store) }
      let verdict = scheduler.finished(key, JobOutcome(failure), now: now)
      record(job, failure, verdict, now: now)
      if job.isCancelled, failure.error.code == .interrupted {
        tellCancelled(job)
      } else {
        MigrationReporter(job.subject, logger: logger).failed(failure, verdict, now: now)
      }
      if failure.error.code == .internalError {
        note = "a bug of hopd stopped the migration of \(job.subject.store.lastComponent?.string ?? "a store")"
      }
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
    line.jobs = running.values.filter { $0.ticket.step == .migrate }.sorted { $0.ticket.ordinal < $1.ticket.ordinal }
      .map { job in
        let known = job.monitor.snapshot
        return StatusLine.Job(
          ordinal: job.ticket.ordinal,
          name: job.subject.store.lastComponent.map { FilePath($0.string).printable } ?? "",
          from: known.from, to: known.to, progress: known.progress, activity: known.activity)
      }
    line.batch = scheduler.batch
    // The scheduler gets scanned files only after they have settled, so the larger number counts.
    line.stores = max(counts.known, scanned.values.reduce(0, &+))
    line.toLookAt = counts.looking
    line.toDo = counts.waiting + heldBack.count
    line.unserved = unservedWatches
    line.deferred = counts.deferred
    line.attention = counts.attention
    line.isPaused = isPaused || scheduler.pauses.all
    line.waits = waitsText
    line.note = note
    line.queueRemaining = queueRemaining
    return line
  }

  func tellStatus(now: ContinuousClock.Instant) {
    switch phase {
    case .ready where !isReloading:
      if notifier.takesStatus(now: now) { notifier.status(statusLine().text, now: now) }
    case .recovering, .scanning, .ready, .stopping, .ended: break
    }
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

extension StoreOrder {
  fileprivate func located() throws(MigrationFailure) -> MigrationRequest {
    do throws(HopdError) { return try request() } catch { throw MigrationFailure(stage: .lock, error: error) }
  }
}

/// Passes the events of one run to the journal and the monitor; used on the thread of its job only.
private final class EventTeller {
  private var run: MigrationReporter.Run
  private let monitor: JobMonitor

  init(_ run: MigrationReporter.Run, _ monitor: JobMonitor) {
    self.run = run
    self.monitor = monitor
  }

  func handle(_ event: MigrationEvent) {
    monitor.note(event)
    run.handle(event)
  }

  func end() { run.end() }
}
