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
    case failuresKnown([String: KnownFailure])
    case recovered(Result<[RecoveredStore], HopdError>)
    case watch(WatchEvent, FoundStore?)
    case vanished(FilePath)
    case inspected(FilePath, Result<InspectionResult, MigrationFailure>)
    case migrated(FilePath, Result<MigrationReport, MigrationFailure>)
    case models([String: Result<WatchModels, HopdError>], of: [Configuration.Watch])
    case modelsTouched(String)
    case modelsSeen(Configuration.Watch, ModelFolders.Finding)
    case reload
    case reloaded(Result<DaemonSetup, HopdError>)
    case stop
    case tick
    case stateLost
    case control(ControlRequest, by: String, ControlAnswer)
  }

  enum Phase { case recovering, scanning, ready, stopping, ended }

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
  /// Stores whose interrupted job continues or whose report is still missing: they are migrated without an inspection.
  var interrupted: Set<FilePath> = []
  /// The user who ordered the next job of a store; no entry for a job of the daemon.
  var requesters: [FilePath: String] = [:]
  /// Failures that the previous daemon reported, by path, until the store is inspected.
  var knownFailures: [String: KnownFailure] = [:]
  /// Runs the commands of watches.
  let commands: StoreCommands
  /// Notes of the stores at work, for the next daemon; nil if the state directory cannot be written.
  let notes: WorkNotes?
  /// Stores that were being worked on when a daemon was killed.
  var suspects: CrashSuspects
  var quarantined = QuarantinedStores()
  var watcher: DirectoryWatcher?
  var watches = WatchStates()
  /// The folders of models, which are watched too.
  var modelFolders = ModelFolders()
  var modelRetry = ModelRetry()
  var reloading = ReloadState()
  var settings = RunSettings()
  var pauseFile: PauseFile
  var throttle: MigrationThrottle
  var hours = WatchHours()
  /// The pace of the queue.
  var pace = QueuePace()
  var note: String?
  var monitors = StatusMonitors()
  var metrics: MetricsPublisher
  private var liveness: Liveness
  private var memory = IdleMemory()
  private var timer = LoopTimer()
  /// Removes backups that the configuration no longer keeps, and tracks the pinned stores.
  let backups = BackupKeeper()
  /// The program file of this process, as it was at the start.
  let programFile = ProgramFile.own
  /// A random prefix of job names, so that they differ from those of earlier runs, whose staged files may still exist.
  let jobPrefix: String

  /// Prepares a run with a loaded setup.
  package init(_ surroundings: Surroundings, setup: DaemonSetup) {
    self.surroundings = surroundings
    self.setup = setup
    let logger = surroundings.logger
    pauseFile = PauseFile(surroundings.pauseFile)
    throttle = MigrationThrottle(surroundings.pressure, logger: logger)
    metrics = MetricsPublisher(logger: logger)
    commands = StoreCommands(stateDirectory: surroundings.stateDirectory, logger: logger)
    liveness = Liveness(watchdog: surroundings.watchdogInterval, surroundings.notifier, logger: logger)
    notes = WorkNotes(
      stateDirectory: surroundings.stateDirectory, boot: (try? LinuxFileSystem().bootIdentifier()) ?? "")
    suspects = CrashSuspects(stateDirectory: surroundings.stateDirectory)
    scheduler = JobScheduler(jobs: setup.configuration.daemon.jobs, rules: setup.retryRules)
    scheduler.migrations.priorities = setup.priorities
    (messages, inbox) = AsyncStream.makeStream(of: Message.self)
    let digits = String(UInt32.random(in: 0..<(1 << 24)), radix: 16)
    scheduler.pauses = Pauses(stateDirectory: surroundings.stateDirectory)
    if let problem = scheduler.pauses.problem { logger.error("\(problem.description.joiningLines)") }
    jobPrefix = String(repeating: "0", count: 6 - digits.count) + digits
  }

  // MARK: Commands

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
    timer.cancel()
    inbox.finish()
    notes?.remove()
    recordEnd()
    // Stores may have ended just now. systemd ends what still runs with the service.
    commands.finish(within: .seconds(5))
  }

  func handle(_ message: Message) throws {
    if case .tick = message {} else { memory.used() }
    switch message {
    case .failuresKnown(let failures): knownFailures = failures
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
      quarantined.remove(key)
    case .models(let found, let watches): loaded(found, of: watches)
    case .modelsTouched(let watch): modelsTouched(watch)
    case .modelsSeen(let watch, let finding): modelsSeen(watch, finding)
    case .inspected(let key, let result): inspected(key, result)
    case .migrated(let key, let result): migrated(key, result)
    case .reload: beginReload()
    case .reloaded(let result): reloaded(result)
    case .stop: beginStop()
    case .tick: break
    case .stateLost: recordAnew()
    case .control(let request, let requester, let answer): answered(request, by: requester, answer)
    }
  }

  /// After each message: starts due work, reports changes, and sets the next timer.
  private func afterwards() {
    let now = ContinuousClock.now
    if phase == .ready {
      retryModels(now: now)
      inspectModels(now: now)
      releaseSuspects(now: now)
      dispatch(now: now)
    }
    let jobs = Array(running.values)
    if phase == .stopping, !jobs.contains(where: \.isMigration) { phase = .ended }
    recordUnseen()
    recordFacts()
    liveness.feed(jobs, now: now)
    if phase == .recovering || phase == .stopping {
      liveness.extendTimeout(isStopping: phase == .stopping, jobs, now: now)
    }
    publishStatus(now: now)
    monitors.send(now: now) { status() }
    publishMetrics(now: now)
    if phase == .ready, jobs.isEmpty { memory.giveBack(now: now) }
    setTimer(now: now)
  }

  // MARK: Stop

  private func beginStop() {
    guard phase != .stopping, phase != .ended else { return }
    phase = .stopping
    stopSignal.stop()
    notes?.stop()
    let names = running.values.filter(\.isMigration).compactMap { $0.subject.store.lastComponent?.string }
    let text = names.isEmpty ? "stopping" : "finishing chunk of \(names.sorted().joined(separator: ", "))"
    logger.event(.serviceStopping, text)
    notifier.stopping(text)
    // Its thread may hang in a directory that does not respond, so a thread of its own joins it and the loop does not
    // wait.
    if let watcher { BlockingWork.run("watcher-stop") { watcher.stop() } }
    watcher = nil
  }

  func setTimer(now: ContinuousClock.Instant) {
    func soon(_ seconds: Int, if isWanted: Bool) -> ContinuousClock.Instant? {
      isWanted ? now.advanced(by: .seconds(seconds)) : nil
    }
    var next = [
      liveness.tick.map { now.advanced(by: $0) }, soon(1, if: !running.isEmpty), soon(2, if: pauseFile.isThere),
      soon(5, if: phase == .recovering), monitors.due(now: now),
    ]
    if phase == .ready {
      next += [
        metrics.due, scheduler.nextAlarm(), modelRetry.due, modelFolders.nextDue, nextHour(now: now),
        soon(1, if: throttle.isHalting), quarantined.due(isIdle: isIdle), notifier.nextStatus,
        running.isEmpty ? memory.due : nil,
      ]
    }
    if let at = next.compactMap(\.self).min() { timer.set(at, now: now) { [inbox] in inbox.yield(.tick) } }
  }
}

extension FoundStore {
  /// The current state of a settled file; nil if it was removed. A file whose status cannot be read still exists: the
  /// inspection that follows either fails with the same error, which is reported and retried, or succeeds.
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

  /// The key of a store named in a command: its path with the links of its directory resolved.
  static func key(of path: FilePath) -> FilePath {
    let named = StoreLocation(database: path)
    guard let name = named.database.lastComponent, let folder = try? LinuxFileSystem().canonical(named.directory) else {
      return named.database
    }
    return folder.appending(name)
  }
}
