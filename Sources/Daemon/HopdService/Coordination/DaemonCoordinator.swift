// The loop of the daemon and the only owner of its state. Every event arrives as a message: from the watcher, from a
// job that ended, from a signal, from the timer. The loop handles a message without waiting; slow work runs on a thread
// of its own and sends a message when it is done. So the loop always responds, and the watchdog, which is pinged only
// from here, monitors it.

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
  /// The dependencies of the coordinator.
  package struct Surroundings: Sendable {
    /// The source of the configuration.
    package var source: ConfigurationSource
    /// The state directory, which must exist.
    package var stateDirectory: FilePath
    /// While this file exists, no migration begins.
    package var pauseFile: FilePath
    /// The service manager.
    package var notifier: ServiceNotifier
    /// WatchdogSec= of the unit.
    package var watchdogInterval: Duration?
    /// The work of jobs.
    package var work: any StoreWork = PipelineWork()
    /// The logger of the service.
    package var logger: Logger
    /// The level of all loggers, which a reload sets; nil if it must not change.
    package var threshold: LogThreshold?
    /// The claims that keep other daemons from the watched directories; nil if there cannot be another daemon.
    package var claims: WatchLocks?
    /// Records stores and jobs in the state database; nil for no record.
    package var recorder: StateRecorder?
    /// The kernel's pressure files.
    package var pressure = PressureFiles()
  }

  enum Message: Sendable {
    case recovered(Result<[RecoveredStore], HopdError>)
    case watch(WatchEvent, FoundStore?)
    case vanished(FilePath)
    case looked(FilePath, Result<LookResult, MigrationFailure>)
    case migrated(FilePath, Result<MigrationReport, MigrationFailure>)
    case models([String: Result<WatchModels, HopdError>], of: [Configuration.Watch])
    case modelsTouched(String)
    case modelsSeen(Configuration.Watch, ModelFolders.Finding)
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
    /// When the job began, in seconds since 1970, and who ordered it.
    var began: Int64
    var asker = "hopd"
    /// Stops this job; its parent stops all jobs.
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
  /// Stores whose interrupted job continues or whose report is still missing: they are migrated without a look.
  var interrupted: Set<FilePath> = []
  /// Notes of the stores at work, for the next daemon; nil if the state directory cannot be written.
  let notes: WorkNotes?
  /// Stores that were being worked on when a daemon was killed.
  var suspects: Suspects
  var heldBack = HeldBackStores()
  /// Watches whose directory cannot currently be read.
  var degraded: Set<String> = []
  /// When to retry models that could not be read.
  var modelsAt: ContinuousClock.Instant?
  var modelsPause = Duration.seconds(2)
  var watcher: DirectoryWatcher?
  /// Number of files per watch at the last scan; a watch has no entry before its first scan.
  var scanned: [String: Int] = [:]
  var note: String?
  /// Whether the pause file exists.
  var isPaused = false
  /// Whether the machine's pressure halts migrations, and when the pressure was last read.
  var throttle = PressureThrottle()
  var pressureAt: ContinuousClock.Instant?
  var isThrottled = true
  var isPressureMissingTold = false
  /// When closed windows open, by watch, as far as it was computed.
  var hoursUntil: [String: Int64] = [:]
  /// The folders of models, which are watched too.
  var modelFolders = ModelFolders()
  var isReloading = false
  var mustReloadAgain = false
  /// When memory is next returned; nil if nothing has happened since the last time.
  private var restsAt: ContinuousClock.Instant?
  private var restedAt: ContinuousClock.Instant?
  private var watchdog: WatchdogPolicy?
  private var timer: (at: ContinuousClock.Instant, task: Task<Void, Never>)?
  /// When the timeout was last extended, and the beats of all jobs then.
  private var extendedAt: ContinuousClock.Instant?
  private var beatsAtExtension: UInt64 = 0
  /// Removes backups that the configuration no longer keeps, and tracks the stores that a restore holds back.
  let backups = BackupKeeper()
  /// Watches whose records may contain stores that are gone.
  var unseen: Set<String> = []
  /// The last recorded facts about the daemon.
  var facts: [ServiceFact: String] = [:]
  /// The user who ordered the next job of a store; no entry for a job of the daemon.
  var askers: [FilePath: String] = [:]
  /// Keys that an operator has set for this run, with their current and configured values.
  var overrides: [String: (now: String, configured: String)] = [:]
  /// The program file of this process, as it was at the start.
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
  /// The pace of the queue.
  var pace = QueuePace()
  /// A random prefix of job names, so that they differ from those of earlier runs, whose staged files may still exist.
  let jobPrefix: String

  /// Prepares a run with a loaded setup.
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
    if let problem = scheduler.pauses.problem { surroundings.logger.error("\(problem.description.joiningLines)") }
    jobPrefix = String(repeating: "0", count: 6 - digits.count) + digits
    let now = ContinuousClock.now
    watchdog = surroundings.watchdogInterval.map { WatchdogPolicy(interval: $0, now: now) }
  }

  // MARK: Orders from outside

  /// Orders a reload of the configuration.
  package nonisolated func reload() { inbox.yield(.reload) }

  /// Orders the end of the run, at the next checkpoint of each job.
  package nonisolated func stop() { inbox.yield(.stop) }

  /// Sends a message to the loop.
  nonisolated func post(_ message: Message) { inbox.yield(message) }

  /// Runs until it is stopped; throws an error that makes a start impossible.
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
    case .models(let found, let watches): loaded(found, of: watches)
    case .modelsTouched(let watch): modelsTouched(watch)
    case .modelsSeen(let watch, let finding): modelsSeen(watch, finding)
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

  /// After each message: starts due work, reports changes, and sets the next timer.
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
    // Its thread may hang in a directory that does not respond, so a thread of its own joins it and the loop does not
    // wait.
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

  /// How long nothing must have happened before memory is returned.
  private static let restlessness = Duration.seconds(5)
  /// The shortest time between two returns of memory, however often the timer fires.
  private static let shortestRest = Duration.seconds(2)

  /// Returns memory while the daemon is idle: looks, migrations and scans of large directories need much that an idle
  /// daemon does not, and what a tick used is not needed until the next.
  private func rest(now: ContinuousClock.Instant) {
    guard phase == .ready, running.isEmpty,
      let at = restsAt ?? restedAt?.advanced(by: Self.shortestRest), at <= now
    else { return }
    restsAt = nil
    restedAt = now
    BlockingWork.run("rest") { ProgramMemory.giveBack() }
  }

  /// Extends the timeout of a start during recovery, and of a stop while its jobs make progress.
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
  /// The current state of a settled file; nil if it is gone again. A file whose status cannot be read is not gone: the
  /// look that follows either fails with the same error, which is reported and retried, or succeeds.
  init?(_ file: SettledFile) {
    let mark: StoreMark
    do {
      guard let name = file.key.lastComponent, let folder = file.folder else { return nil }
      let location = CanonicalStoreLocation(name, in: try CanonicalDirectory(folder))
      guard let fingerprint = try SourceFingerprint(of: location, files: LinuxFileSystem()) else { return nil }
      mark = StoreMark(
        fingerprint, place: FoundPlace(folder: folder.identity, file: fingerprint.database.file))
    } catch {
      mark = .unknown
    }
    self.init(key: file.key, path: file.path, watch: file.watch, mark: mark)
  }

  /// The key of a store that somebody named: its path with the links of its directory resolved.
  static func key(of path: FilePath) -> FilePath {
    let named = StoreLocation(database: path)
    guard let name = named.database.lastComponent, let folder = try? LinuxFileSystem().canonical(named.directory) else {
      return named.database
    }
    return folder.appending(name)
  }
}
