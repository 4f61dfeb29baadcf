// Handles orders and queries of the control socket in the loop, like every other message.

import ConfigurationInspection
import Diagnostics
import Glibc
import HopdConfiguration
import HopdControl
import Logging
import MigrationPipeline
import ServiceState
import SystemPackage
import SystemdSupport

extension DaemonCoordinator {
  /// Handles a request and sends the reply.
  func answered(_ request: ControlRequest, by requester: String, _ answer: ControlAnswer) {
    let reply: ControlReply?
    switch request {
    case .status: reply = ControlReply(.object(["status": status()]))
    case .monitor:
      return monitors.add(answer)
    case _ where phase != .ready:
      reply = .notPossible(
        "not-ready", "hopd is \(phase == .stopping || phase == .ended ? "stopping" : "starting")", hint: "retry")
    case .retry(let stores, let failed): reply = retried(failed ? nil : stores, requester)
    case .pause(let name): reply = paused(name)
    case .resume(let name, let global): reply = resumed(name, global: global)
    case .pauseNow(let store): reply = cancelled(store, requester)
    case .retryFirst(let store): reply = prioritized(store, requester)
    case .reload:
      reloading.notify(answer)
      reply = nil
    case .set(let key, let value): reply = hasSet(key, value)
    }
    if let sentence = request.sentence, reply?.error == nil {
      logger.event(.commandReceived, "command from \(requester): \(sentence)", fields: [.requester: requester])
    }
    if case .reload = request { beginReload() }
    guard let reply else { return }
    guard request.sentence != nil, let recorder = surroundings.recorder else { return answer.send(reply) }
    // The order is carried out already. The reply waits for the record, but not for long, so that the next query finds
    // the order there.
    recordFacts()
    BlockingWork.run("answer") {
      recorder.flush(within: .milliseconds(500))
      answer.send(reply)
    }
  }

  // MARK: Commands

  private static let unknownHint = "pass a watched store; to list them: `hopctl list`"

  /// Retries stores; nil means all that have failed or are deferred.
  private func retried(_ stores: [NamedStore]?, _ requester: String) -> ControlReply {
    for store in stores ?? [] where scheduler.store(store.key) == nil {
      return .notFound(store.name, hint: Self.unknownHint)
    }
    var again: [String] = []
    var results: [ControlValue] = []
    for key in stores?.map(\.key) ?? scheduler.failing {
      suspects.clear(key)
      guard let store = scheduler.store(key) else { continue }
      let stand = stand(of: store)
      if scheduler.order(key, first: false), stand != .waiting, stand != .paused {
        requesters[key] = requester
        if stand != .current { record(store, waiting(store)) }
      }
      if stand == .retrying { again.append(store.path.printable) }
      results.append(
        .object([
          "store": .string(store.path.printable), "found": .string(stand.rawValue),
          "waits": .optional(stand == .current ? nil : waits(store)),
        ]))
    }
    return ControlReply(
      .object(["stores": .strings(again.prefix(1000)), "results": .array(Array(results.prefix(1000)))]))
  }

  /// The state of a store when an order arrives.
  private enum Stand: String {
    /// At its target: there is nothing to migrate. It is still inspected, because its file may have changed unnoticed.
    case current
    case migrating, waiting, paused
    /// Failed or deferred: it is retried.
    case retrying
  }

  private func stand(of store: FoundStore) -> Stand {
    switch scheduler.state(of: store.key) {
    case .done?, nil: .current
    case .running?: .migrating
    case .waiting?: scheduler.isPaused(store) ? .paused : .waiting
    case .deferred?, .failed?, .needsAttention?, .pinned?: .retrying
    }
  }

  /// How long the migration of a store would wait for the window of its watch; nil if it would not, or needs none.
  private func waits(_ store: FoundStore) -> String? {
    switch scheduler.state(of: store.key) {
    case .waiting?, .running(.inspect)?: closedUntil(store.watch)
    case .done?, .running?, .deferred?, .failed?, .needsAttention?, .pinned?, nil: nil
    }
  }

  private func prioritized(_ named: NamedStore, _ requester: String) -> ControlReply {
    guard let store = scheduler.store(named.key) else { return .notFound(named.name, hint: Self.unknownHint) }
    let isRunning = running[named.key]?.ticket.step == .migrate
    let isCurrent = stand(of: store) == .current
    if !isRunning {
      suspects.clear(named.key)
      scheduler.order(named.key, first: true)
      if !isCurrent {
        requesters[named.key] = requester
        running[named.key]?.requester = requester
        record(store, waiting(store))
      }
    }
    let state =
      isRunning ? StoreCondition.migrating.name : isCurrent ? StoreCondition.current.name : waiting(store).name
    let until = isRunning || isCurrent ? nil : waits(store)
    return ControlReply(.object(["state": .string(state), "waits": .optional(until)]))
  }

  private func cancelled(_ named: NamedStore, _ requester: String) -> ControlReply {
    guard let store = scheduler.store(named.key) else { return .notFound(named.name, hint: Self.unknownHint) }
    scheduler.changePauses { $0.pause(store: named.key) }
    recordPaused()
    let job = running[named.key].flatMap { $0.ticket.step == .migrate ? $0 : nil }
    if job != nil {
      running[named.key]?.isCancelled = true
      running[named.key]?.requester = requester
      job?.stop.stop()
    } else if case .waiting? = scheduler.state(of: named.key) {
      record(store, waiting(store))
    }
    return ControlReply(.object(["running": .boolean(job != nil)]))
  }

  /// Reports that a job ended because an operator cancelled it.
  func reportCancelled(_ job: RunningJob) {
    let name = job.subject.store.printable
    logger.event(
      .migrationInterrupted, "the migration of \(name) stopped at a checkpoint: requested by \(job.requester)",
      fields: [
        .store: name, .watch: job.subject.watch, .job: job.subject.job, .result: "interrupted",
        .requester: job.requester,
        .hint: "run `hopctl resume \(job.subject.store.string.quotedForShell)` to continue from the checkpoint",
      ])
  }

  private func paused(_ named: NamedStore?) -> ControlReply {
    let before = pausedNames
    guard let named else {
      scheduler.changePauses { $0.pause(all: true) }
      return pauseAnswer(before)
    }
    if setup.configuration.watch(named: named.name) != nil {
      scheduler.changePauses { $0.pause(watch: named.name) }
    } else if scheduler.store(named.key) != nil {
      scheduler.changePauses { $0.pause(store: named.key) }
    } else {
      return .notFound(named.name, hint: "pass a watch of the configuration, or a store in a watched directory")
    }
    return pauseAnswer(before)
  }

  private func resumed(_ named: NamedStore?, global: Bool) -> ControlReply {
    let before = pausedNames
    guard let named else {
      let wasPaused = scheduler.changePauses { global ? $0.resumeGlobal() : $0.resume() }
      guard wasPaused || !global else {
        return .notPossible(
          "not-paused", "no global pause is in effect",
          hint: "run `hopctl resume NAME`; paused: \(before.isEmpty ? "nothing" : before.joined(separator: ", "))")
      }
      return pauseAnswer(before)
    }
    guard scheduler.changePauses({ $0.resume(watch: named.name, store: named.key) }) else {
      return .notPossible(
        "not-paused", "\(FilePath(named.name).printable) is not paused",
        hint:
          "run `hopctl resume NAME`; paused: \(pausedNames.isEmpty ? "nothing" : pausedNames.joined(separator: ", "))")
    }
    return pauseAnswer(before)
  }

  /// The reply with what is paused now, and which pauses the order began or ended.
  private func pauseAnswer(_ before: [String]) -> ControlReply {
    recordPaused()
    if let problem = scheduler.pauses.problem {
      return .notPossible(problem.code.name, problem.message, hint: problem.hint)
    }
    let now = pausedNames
    let changed = now.filter { !before.contains($0) } + before.filter { !now.contains($0) }
    return ControlReply(.object(["paused": .strings(now), "changed": .strings(changed)]))
  }

  private func hasSet(_ key: String, _ value: String) -> ControlReply {
    if key == "throttle", ["on", "off"].contains(value) {
      let before = throttle.isOn ? "on" : "off"
      throttle.isOn = value == "on"
      settings.set(key, to: value, before: before)
      return ControlReply(.object(["key": .string(key), "value": .string(value), "before": .string(before)]))
    }
    guard let before = setup.override(key, value) else {
      let known = ConfigurationKey.settable + ["throttle"]
      guard known.contains(key) else {
        return .notPossible(
          "usage", "\(key.printableLine) cannot be changed at run time",
          hint: NearestName.hint(NearestName.among(known, to: key), of: known)
            + "; change other keys in the configuration and run `hopctl reload`")
      }
      return .notPossible(
        "usage", "invalid value for \(key): \(value.printableLine)",
        hint: "set jobs = 1 to \(setup.mostJobs) (a MiB of memory_limit for each), memory_limit = \"64MiB\", "
          + "log_level = trace debug info notice warning error, io_pressure, cpu_pressure, memory_pressure = 0 to 100, "
          + "throttle = on off")
    }
    settings.set(key, to: setup.configuration.setting(key) ?? value, before: before)
    throttle.warnIfMissing(setup.configuration.throttle)
    scheduler.setJobs(setup.configuration.daemon.jobs)
    surroundings.threshold?.level = setup.configuration.daemon.logLevel.level
    return ControlReply(.object(["key": .string(key), "value": .string(value), "before": .string(before)]))
  }

  // MARK: Pauses

  /// The condition of a waiting store: `paused` or `waiting`.
  func waiting(_ store: FoundStore) -> StoreCondition { scheduler.isPaused(store) ? .paused : .waiting }

  /// Names of what is paused, for display.
  var pausedNames: [String] {
    let pauses = scheduler.pauses
    return (pauseFile.isThere ? [pauseFile.path.printable] : []) + (pauses.all ? ["everything"] : [])
      + pauses.watches.sorted() + pauses.stores.map { scheduler.store($0)?.path.printable ?? $0.printable }.sorted()
  }

  private func recordPaused() {
    for store in scheduler.waitingForMigration { record(store, waiting(store)) }
  }

  // MARK: Status

  /// The daemon's current state as the interface's type `Status`.
  func status() -> ControlValue {
    let counts = scheduler.counts
    let line = statusLine()
    var settings = ["throttle": ControlValue.string(throttle.isOn ? "on" : "off")]
    for key in ConfigurationKey.settable { settings[key] = .optional(setup.configuration.setting(key)) }
    return .object([
      "version": .string(ProgramVersion.number), "process": .integer(Int64(getpid())),
      "phase": .string("\(phase)"), "line": .string(line.text),
      "counts": .object([
        "stores": .integer(Int64(line.stores)), "toInspect": .integer(Int64(counts.inspecting)),
        "waiting": .integer(Int64(counts.waiting + quarantined.count)), "migrating": .integer(Int64(counts.migrating)),
        "retrying": .integer(Int64(counts.deferred)), "failed": .integer(Int64(counts.attention)),
        "pinned": .integer(Int64(counts.pinned)),
      ]),
      "work": .array(
        running.values.filter(\.isMigration).sorted { $0.ticket.ordinal < $1.ticket.ordinal }
          .map { Self.work($0, isHalted: isHalted($0.ticket.store)) }),
      "paused": .strings(pausedNames), "unavailable": .strings(unavailableWatches), "waits": .strings(waits),
      "note": .optional(note), "remaining": .optional(queueRemaining),
      "settings": .object(settings),
    ])
  }

  private static func work(_ job: RunningJob, isHalted: Bool) -> ControlValue {
    let known = job.monitor.snapshot
    let progress = known.progress
    let rate = progress?.rowsPerSecond ?? 0
    return .object([
      "job": .string(job.subject.job), "store": .string(job.subject.store.printable),
      "watch": .string(job.subject.watch), "from": .optional(known.from), "to": .optional(known.to),
      "activity": .string(isHalted ? StatusLine.paused : known.activity ?? progress?.part.rawValue ?? "planning"),
      "subject": .string(progress?.subject ?? ""), "hop": .integer(Int64(progress.map { $0.hop + 1 } ?? 0)),
      "hops": .integer(Int64(progress?.hops ?? 0)), "rows": .integer(progress?.rows ?? 0),
      "totalRows": .integer(progress?.totalRows ?? 0), "fraction": .number(progress?.fraction ?? 0),
      "rowsPerSecond": .number(rate), "remaining": .optional(progress?.remaining),
      "requestedBy": .string(job.requester),
    ])
  }

  func publishMetrics(now: ContinuousClock.Instant) {
    guard phase == .ready else { return }
    metrics.publish(
      to: setup.configuration.daemon.metricsFile, stateDirectory: surroundings.stateDirectory, at: Self.wallTime(),
      now: now
    ) {
      let counts = scheduler.counts
      var gauges = Metrics.Gauges()
      gauges.queueDepth = Int64(counts.waiting + counts.migrating + quarantined.count)
      gauges.watches = Int64(setup.configuration.watches.count)
      gauges.unavailable = Int64(unavailableWatches.count)
      gauges.isPaused = pauseFile.isThere || !scheduler.pauses.isEmpty
      gauges.isThrottled = throttle.isHalting
      let backups = setup.configuration.watches.compactMap { watch -> MetricsWriter.Subject? in
        setup.root(ofWatch: watch.name).map { (root: $0, recursive: watch.recursive, rule: watch.migration.backup) }
      }
      return (gauges, backups)
    }
  }

  /// Seconds until the queue is empty; nil if that is not known or the queue is empty.
  var queueRemaining: Double? {
    let counts = scheduler.counts
    guard counts.waiting + counts.migrating > 0 else { return nil }
    let working = running.values.filter(\.isMigration).map { $0.monitor.snapshot.progress?.remaining }
    return pace.remaining(
      waiting: max(0, counts.waiting - scheduler.haltedCount), jobs: setup.configuration.daemon.jobs, working: working)
  }
}
