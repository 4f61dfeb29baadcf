// The loop of the daemon and the one owner of its state. Everything that happens arrives as a message: what the watcher
// saw, a job that ended, a signal, the time. A message is dealt with without waiting for anything; what takes time runs
// on a thread of its own and sends a message when it is done. So the loop always answers, and the watchdog, which is
// fed from here and nowhere else, speaks for it.

import ConfigurationInspection
import Diagnostics
import DurableFiles
import HopdConfiguration
import HopdControl
import Logging
import MigrationPipeline
import PersistentStore
import ServiceState
import StoreReplacement
import StoreWatching
import SystemPackage
import SystemdSupport

/// Coordinates watchers, queue, jobs and the service manager.
package actor DaemonCoordinator {
  /// What the coordinator needs from outside.
  package struct Surroundings: Sendable {
    /// Where the configuration comes from.
    package var source: ConfigurationSource
    /// State of the daemon; it exists.
    package var stateDirectory: FilePath
    /// While this file exists no migration begins.
    package var pauseFile: FilePath
    /// The service manager.
    package var notifier: ServiceNotifier
    /// WatchdogSec= of the unit.
    package var watchdogInterval: Duration?
    /// What jobs do.
    package var work: any StoreWork = PipelineWork()
    /// Log of the service.
    package var logger: Logger
    /// Changes the level of all loggers; nil leaves it.
    package var threshold: LogThreshold?
    /// Keeps other daemons from the watched directories; nil for a daemon that is alone by nature.
    package var claims: WatchLocks?
    /// Where what happens is recorded; nil where nobody asks.
    package var recorder: StateRecorder?
    /// Where the kernel tells the pressure.
    package var pressure = PressureFiles()
  }

  enum Message: Sendable {
    case recovered(Result<[RecoveredStore], HopdError>)
    case watch(WatchEvent, FoundStore?)
    case vanished(FilePath)
    case looked(FilePath, Result<LookResult, JobFailure>)
    case migrated(FilePath, Result<MigrationReport, JobFailure>)
    case models([String: Result<WatchModels, HopdError>], of: [Configuration.Watch])
    case modelsTouched(String)
    case modelsSeen(Configuration.Watch, ModelFolders.Finding)
    case compared(String, [FilePath: Circumstances.Change])
    case reload
    case reloaded(Result<DaemonSetup, HopdError>)
    case stop
    case tick
    case stateLost
    case control(ControlRequest, ControlPeer, ControlAnswer)
  }

  enum Phase { case recovering, scanning, ready, stopping, ended }

  struct RunningJob {
    var ticket: JobTicket
    var subject: MigrationReporter.Subject
    var monitor: JobMonitor
    var isHungReported = false
    /// When it began, in seconds since 1970, and who asked for it.
    var began: Int64
    var asker = "hopd"
    /// Stops this job alone, or with all others.
    var stop: StopSignal
    var isCancelled = false
  }

  let surroundings: Surroundings
  let stopSignal = StopSignal()
  private let messages: AsyncStream<Message>
  private let inbox: AsyncStream<Message>.Continuation
  var logger: Logger { surroundings.logger }
  var notifier: ServiceNotifier { surroundings.notifier }

  var phase = Phase.recovering
  var setup: DaemonSetup
  var scheduler: JobScheduler
  var running: [FilePath: RunningJob] = [:]
  /// Stores whose interrupted job goes on or whose report is still to be written: they are migrated without a look.
  var interrupted: Set<FilePath> = []
  /// Which stores are in hand, for the daemon after this one; nil where the state directory cannot be written.
  let notes: WorkNotes?
  /// Stores that were in hand when a daemon was killed.
  var suspects: Suspects
  var heldBack = HeldBackStores()
  /// What stood around stores that failed for a reason outside of them.
  var around: [FilePath: (watch: String, circumstances: Circumstances)] = [:]
  /// Watches whose stores are being compared with it.
  var comparing: Set<String> = []
  /// Watches whose directory cannot be read now.
  var degraded: Set<String> = []
  /// When models that could not be read are looked for again.
  var modelsAt: ContinuousClock.Instant?
  var modelsPause = Duration.seconds(2)
  var watcher: DirectoryWatcher?
  /// Files per watch by the last scan; a watch is missing until its first one.
  var scanned: [String: Int] = [:]
  var note: String?
  /// Is the pause file there?
  var isPaused = false
  /// Does the pressure of the machine halt migrations, and when was it last read?
  var throttle = PressureThrottle()
  var pressureAt: ContinuousClock.Instant?
  var isThrottled = true
  var isPressureMissingTold = false
  /// When the windows of watches open that are closed, as far as somebody asked.
  var hoursUntil: [String: Int64] = [:]
  /// The folders of models, which are watched as well.
  var modelFolders = ModelFolders()
  var isReloading = false
  var mustReloadAgain = false
  /// When memory is given back, where anything has happened since it last was.
  private var restsAt: ContinuousClock.Instant?
  private var restedAt: ContinuousClock.Instant?
  private var watchdog: WatchdogPolicy?
  private var timer: (at: ContinuousClock.Instant, task: Task<Void, Never>)?
  /// For the extension of the stop's time limit: beats of all jobs when it was last extended.
  private var extendedAt: ContinuousClock.Instant?
  private var beatsAtExtension: UInt64 = 0
  /// Removes backups that the configuration no longer keeps, and knows the stores that a restore holds back.
  let backups = BackupKeeper()
  /// Watches of which stores may be recorded that are gone since.
  var unseen: Set<String> = []
  /// Facts about the daemon as they were last recorded.
  var facts: [ServiceFact: String] = [:]
  /// Who asked for the next job of a store, where it was not the daemon.
  var askers: [FilePath: String] = [:]
  /// What an operator has set for this run: keys with their values, and with those that are configured.
  var overrides: [String: (now: String, configured: String)] = [:]
  /// The file that this process was started from, as it was at the start.
  let programFile = ProgramFile.own
  /// Clients that wait for the end of a reload.
  var reloadWaiters: [ControlAnswer] = []
  /// Clients that read a status each second.
  var monitors: [ControlAnswer] = []
  var monitoredAt: ContinuousClock.Instant?
  /// The numbers for Prometheus.
  var metrics = Metrics()
  let metricsWriter: MetricsWriter
  var metricsAt: ContinuousClock.Instant?
  var metricsTold: Metrics?
  /// How fast the queue moves.
  var pace = QueuePace()
  /// Names of jobs differ between runs of the daemon: staged files of an earlier run carry them.
  let jobPrefix: String

  /// Prepares a run with a setup that was read already.
  package init(_ surroundings: Surroundings, setup: DaemonSetup) {
    self.surroundings = surroundings
    self.setup = setup
    metricsWriter = MetricsWriter(logger: surroundings.logger)
    notes = WorkNotes(
      stateDirectory: surroundings.stateDirectory, boot: (try? LinuxFileSystem().bootIdentifier()) ?? "")
    suspects = Suspects(stateDirectory: surroundings.stateDirectory)
    scheduler = JobScheduler(jobs: setup.configuration.daemon.jobs, rules: setup.retryRules)
    scheduler.migrations.priorities = setup.priorities
    (messages, inbox) = AsyncStream.makeStream(of: Message.self)
    let digits = String(UInt32.random(in: 0..<(1 << 24)), radix: 16)
    scheduler.pauses = Pauses(stateDirectory: surroundings.stateDirectory)
    jobPrefix = String(repeating: "0", count: 6 - digits.count) + digits
    let now = ContinuousClock.now
    watchdog = surroundings.watchdogInterval.map { WatchdogPolicy(interval: $0, now: now) }
  }

  // MARK: Orders from outside

  /// Reads the configuration again.
  package nonisolated func reload() { inbox.yield(.reload) }

  /// Ends the run at the next chunk of each job.
  package nonisolated func stop() { inbox.yield(.stop) }

  /// Leaves a message for the loop.
  nonisolated func post(_ message: Message) { inbox.yield(message) }

  /// Runs until it is stopped; throws what makes a start impossible.
  package func run() async throws {
    begin()
    for await message in messages {
      try handle(message)
      afterwards()
      if phase == .ended { break }
    }
    timer?.task.cancel()
    inbox.finish()
    notes?.remove()
    recordEnd()
  }

  func handle(_ message: Message) throws {
    if case .tick = message {} else { restsAt = .now.advanced(by: Self.restlessness) }
    switch message {
    case .recovered(let result):
      switch result {
      case .success(let stores): recovered(stores)
      case .failure(let error): throw error
      }
      if phase == .recovering { try watch() }
    case .watch(let event, let store): handle(event, store)
    case .vanished(let key):
      recordGone(scheduler.store(key))
      scheduler.vanished(key)
      heldBack.remove(key)
      around[key] = nil
    case .models(let found, let watches): loaded(found, of: watches)
    case .modelsTouched(let watch): modelsTouched(watch)
    case .modelsSeen(let watch, let finding): modelsSeen(watch, finding)
    case .compared(let watch, let changes): compared(watch, changes)
    case .looked(let key, let result): looked(key, result)
    case .migrated(let key, let result): migrated(key, result)
    case .reload: beginReload()
    case .reloaded(let result): reloaded(result)
    case .stop: beginStop()
    case .tick: break
    case .stateLost: recordAnew()
    case .control(let request, let peer, let answer): answered(request, peer, answer)
    }
  }

  /// What follows every message: time, work, words, and the next moment to look.
  private func afterwards() {
    let now = ContinuousClock.now
    if phase == .ready {
      retryModels(now: now)
      lookAtModels(now: now)
      releaseSuspects(now: now)
      dispatch(now: now)
    }
    if phase == .stopping, !running.values.contains(where: { $0.ticket.step == .migrate }) { phase = .ended }
    recordUnseen()
    recordFacts()
    feedWatchdog(now: now)
    extendTimeout(now: now)
    tellStatus(now: now)
    tellMonitors(now: now)
    tellMetrics(now: now)
    rest(now: now)
    setTimer(now: now)
  }

  // MARK: Stop

  private func beginStop() {
    guard phase != .stopping, phase != .ended else { return }
    phase = .stopping
    stopSignal.stop()
    notes?.stop()
    let names = running.values.filter { $0.ticket.step == .migrate }.compactMap {
      $0.subject.store.lastComponent?.string
    }
    let text = names.isEmpty ? "stopping" : "finishing chunk of \(names.sorted().joined(separator: ", "))"
    logger.event(.serviceStopping, text)
    notifier.stopping(text)
    // Joining its thread may take as long as a directory that does not answer; nobody has to wait for it.
    if let watcher { BlockingWork.run("watcher-stop") { watcher.stop() } }
    watcher = nil
  }

  // MARK: Time

  private func feedWatchdog(now: ContinuousClock.Instant) {
    guard var policy = watchdog else { return }
    let beats = Dictionary(
      running.values.map { ("\($0.subject.job) \($0.subject.store.printable)", $0.monitor.snapshot.beats) }
    ) { first, _ in first }
    if policy.shouldPing(now: now, beats: beats) { notifier.watchdogPing() }
    let hung = Set(policy.hungJobs(now: now))
    watchdog = policy
    for (key, job) in running where !job.isHungReported {
      guard hung.contains("\(job.subject.job) \(job.subject.store.printable)") else { continue }
      running[key]?.isHungReported = true
      logger.event(
        .serviceFailed,
        "\(job.subject.store.printable) made no progress for a whole watchdog interval; the watchdog is no longer fed",
        fields: [.store: job.subject.store.printable, .job: job.subject.job, .watch: job.subject.watch])
    }
  }

  /// How long nothing must have happened before memory is given back.
  private static let restlessness = Duration.seconds(5)
  /// How long it is kept at least, however often the time is looked at.
  private static let shortestRest = Duration.seconds(2)

  /// Most of what looks, migrations and scans of large directories have needed is not needed while nothing happens; and
  /// what a tick has run is not needed until the next.
  private func rest(now: ContinuousClock.Instant) {
    guard phase == .ready, running.isEmpty,
      let at = restsAt ?? restedAt?.advanced(by: Self.shortestRest), at <= now
    else { return }
    restsAt = nil
    restedAt = now
    BlockingWork.run("rest") { ProgramMemory.giveBack() }
  }

  /// A start that recovers, and a stop whose jobs still move, ask for more time.
  private func extendTimeout(now: ContinuousClock.Instant) {
    guard phase == .recovering || phase == .stopping else { return }
    if let last = extendedAt, now < last.advanced(by: .seconds(5)) { return }
    let beats = running.values.reduce(UInt64(0)) { $0 &+ $1.monitor.snapshot.beats }
    if phase == .stopping, extendedAt != nil, beats == beatsAtExtension { return }
    extendedAt = now
    beatsAtExtension = beats
    notifier.extendTimeout(microseconds: 60_000_000)
  }

  func setTimer(now: ContinuousClock.Instant) {
    func soon(_ seconds: Int, if isWanted: Bool) -> ContinuousClock.Instant? {
      isWanted ? now.advanced(by: .seconds(seconds)) : nil
    }
    var next = [
      watchdog.map { now.advanced(by: $0.tick) }, soon(1, if: !running.isEmpty), soon(2, if: isPaused),
      soon(5, if: phase == .recovering),
      monitors.isEmpty ? nil : (monitoredAt ?? now).advanced(by: .seconds(1)),
    ]
    if phase == .ready {
      next += [
        metricsAt, scheduler.nextAlarm(), modelsAt, modelFolders.nextDue, nextHour(now: now),
        soon(1, if: throttle.isHolding), heldBack.due(isIdle: isIdle), notifier.nextStatus,
        running.isEmpty ? restsAt : nil,
      ]
    }
    guard let at = next.compactMap(\.self).min() else { return }
    if let timer, timer.at > now, timer.at <= at { return }
    timer?.task.cancel()
    let inbox = inbox
    timer = (
      at,
      Task {
        do { try await Task.sleep(until: at, clock: .continuous) } catch { return }
        inbox.yield(.tick)
      }
    )
  }
}

extension FoundStore {
  /// A file that came to rest, as it is now; nil when it is gone again. A file whose status cannot be read is not
  /// gone: the look that follows fails the same way, which is reported and tried again, or it finds the disk well.
  init?(_ file: SettledFile) {
    let location = StoreLocation(database: file.path)
    let mark: StoreMark
    do {
      guard let fingerprint = try SourceFingerprint(of: location, files: LinuxFileSystem()) else { return nil }
      mark = StoreMark(fingerprint)
    } catch {
      mark = .unknown
    }
    self.init(key: FoundStore.key(of: file.path), path: file.path, watch: file.watch, mark: mark)
  }

  /// The path with the links of its directory resolved.
  static func key(of path: FilePath) -> FilePath {
    CanonicalStoreLocation(evenIfGone: path.lexicallyNormalized()).database
  }
}
