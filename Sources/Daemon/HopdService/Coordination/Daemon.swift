// Runs the daemon from its command line to its exit status: logging, configuration, state directory, and the services
// that run until a signal ends them.

import ConfigurationInspection
import Diagnostics
import DurableFiles
import Glibc
import HopdConfiguration
import HopdControl
import Logging
import MigrationPipeline
import SQLite
import ServiceLifecycle
import ServiceState
import SystemPackage
import SystemdSupport
import UnixSignals

/// The output of `hopd --version`.
package enum HopdVersion {
  /// One line with the versions that matter for a bug report.
  package static var text: String { ProgramVersion.text(program: "hopd", sqlite: Connection.libraryVersion) }
}

/// A run of hopd.
package struct Daemon: Sendable {
  /// The source of the configuration.
  package var source: ConfigurationSource
  /// The directory of intent records and locks; nil for $STATE_DIRECTORY, or /var/lib/hopd if that is not set.
  package var stateDirectory: FilePath?

  /// A run with the installed configuration, or with one file instead.
  package init(configurationFile: String? = nil, stateDirectory: String? = nil) {
    source = configurationFile.map { .file(Self.absolute($0)) } ?? .installed
    self.stateDirectory = stateDirectory.map { Self.absolute($0) }
  }

  /// Opens everything that the configuration names, prints what is wrong, and returns the exit status. With
  /// `forReload`, a missing directory that a watch can wait for is only a warning.
  package func check(forReload: Bool = false) -> Int32 {
    do throws(HopdError) {
      let loaded = try source.load()
      for warning in loaded.warnings { Self.print("warning: \(warning)", asError: true) }
      var file: FilePath?
      if case .file(let path) = source { file = path }
      let inspection = ConfigurationInspection(loaded, unit: UnitFile.serving(file))
      let findings = inspection.findings()
      for obstacle in forReload ? findings.obstacles : [] { Self.print("warning: \(obstacle)", asError: true) }
      if let error = ConfigurationInspection.error(findings, waits: forReload) { throw error }
      guard loaded.configuration.isConfigured else { throw ConfigurationInspection.notConfigured(loaded.files) }
      let files = loaded.files.map(\.printable).joined(separator: ", ")
      Self.print("the configuration is valid: \(files.isEmpty ? "no file" : files)", asError: false)
      return ExitStatus.success.rawValue
    } catch {
      if forReload {
        // `systemctl reload` runs this check before it signals the daemon. The daemon never sees the error, so it goes
        // to the journal here.
        _ = LoggingBootstrap.start(identifier: "hopd", level: .info)
        Logger(label: "hopd").event(
          .reloadFailed, "configuration refused, the old one remains in use: \(error)",
          fields: error.configurationFields)
      } else {
        Self.print("hopd: \(error)", asError: true)
      }
      return Self.startStatus(error).rawValue
    }
  }

  /// Runs until a signal ends the daemon; returns the exit status.
  package func run() async -> Int32 {
    // Two jobs, the coordinator and the watchers each have one in most runs.
    ProgramMemory.limitHeaps(to: 4)
    let threshold = LoggingBootstrap.start(identifier: "hopd", level: .info)
    let logger = Logger(label: "hopd")
    let notifier = ServiceNotifier()
    // Before anything waits for a thread that may never start.
    do throws(HopdError) { try ProcessLimits.check(jobs: 1, memory: 32 << 20) } catch {
      return ended(error, logger, notifier)
    }
    // Trapped before anything else, so that a signal during the start is handled later.
    let signals = await UnixSignalsSequence(trapping: .sighup, .sigterm, .sigint)
    do {
      let setup = try source.setup(mayDegrade: true) { loaded throws(HopdError) in
        try Self.prepare(for: loaded, threshold)
      }
      let directory = try openStateDirectory()
      let lock = try Self.own(directory)
      defer { lock.release() }
      FileLock.sweep(directory.appending("locks"))
      let claims = WatchLocks(stateDirectory: directory) { [logger] error in
        logger.event(
          .configurationWarning, "\(error)",
          fields: [.error: error.code.name, .hint: error.hint, .directory: error.place.file?.printable].compactMapValues
          { $0 })
      }
      try claims.claim(setup.allDirectories)
      defer { claims.release() }
      let recorder = try StateRecorder(stateDirectory: directory, logger: logger) { Int64(time(nil)) }
      defer { recorder.flush(within: .seconds(3)) }
      let runtime = Self.environment("RUNTIME_DIRECTORY") ?? "/run/hopd"
      let coordinator = DaemonCoordinator(
        DaemonCoordinator.Surroundings(
          source: source, stateDirectory: directory, pauseFile: runtime.appending("pause"), notifier: notifier,
          watchdogInterval: Watchdog.interval(), logger: logger, threshold: threshold, claims: claims,
          recorder: recorder), setup: setup)
      let handler = ControlRequestHandler(coordinator: coordinator, stateDirectory: directory, logger: logger)
      let control = handler.serve(
        setup.configuration.control.socket, runtime: Self.environment("RUNTIME_DIRECTORY"), recorder: recorder)
      defer { control?.stop() }
      var quiet = logger
      quiet.logLevel = .error
      let group = ServiceGroup(
        configuration: ServiceGroupConfiguration(
          services: [
            .init(service: SignalService(signals: signals, coordinator: coordinator)),
            .init(
              service: CoordinatorService(coordinator: coordinator),
              successTerminationBehavior: .gracefullyShutdownGroup),
          ], logger: quiet))
      try await group.run()
      return ExitStatus.success.rawValue
    } catch {
      let error = HopdError.of(error)
      return ended(error, logger, notifier)
    }
  }

  /// Checks whether this process can run with a configuration, before its models are read.
  private static func prepare(for loaded: LoadedConfiguration, _ threshold: LogThreshold) throws(HopdError) {
    // The daemon exits, and must not be restarted until there is a configuration.
    guard loaded.configuration.isConfigured else { throw ConfigurationInspection.notConfigured(loaded.files) }
    let daemon = loaded.configuration.daemon
    threshold.level = daemon.logLevel.level
    try ProcessLimits.check(jobs: daemon.jobs, memory: daemon.memoryLimit)
  }

  /// Reports why the daemon cannot run; returns the exit status.
  private func ended(_ error: HopdError, _ logger: Logger, _ notifier: ServiceNotifier) -> Int32 {
    let status = Self.startStatus(error)
    logger.event(.serviceFailed, "hopd cannot run: \(error)", fields: error.configurationFields)
    let text = "cannot run: \(error.headline)"
    if let code = error.errno {
      notifier.failure(errno: code.rawValue, status: text)
    } else {
      notifier.stopping(text)
    }
    return status.rawValue
  }

  // MARK: Environment

  /// The exit status of a failed start. An error that lasts until the configuration changes must have a status after
  /// which the service manager does not restart the daemon.
  static func startStatus(_ error: HopdError) -> ExitStatus {
    switch error.code.exit {
    case .notConfigured: .notConfigured
    case .dataError, .noInput, .configuration, .usage: .configuration
    case .noPermission where error.place.key != nil: .configuration
    case let status: status
    }
  }

  /// Takes the lock that allows one daemon per state directory.
  static func own(_ stateDirectory: FilePath) throws -> FileLock {
    do {
      return try FileLock(path: stateDirectory.appending("hopd.lock"))
    } catch var error as HopdError where error.code == .lockedByOther {
      error.message = error.message.replacing(
        "the lock is held by another hopd or hopctl", with: "another hopd is running with this state directory")
      error.place = Place(file: stateDirectory)
      error.hint = "stop it (`systemctl stop hopd`), or pass another directory with --state-directory"
      throw error
    }
  }

  private func openStateDirectory() throws -> FilePath {
    let named = stateDirectory ?? StateDirectory.ofEnvironment.map { Self.absolute($0.string) }
    let directory = named ?? StateDirectory.standard
    let files = LinuxFileSystem()
    do {
      try files.ensureDirectory(directory)
      try files.checkWritable(directory)
      return try CanonicalDirectory(resolving: directory, files: files).path
    } catch let error as HopdError {
      throw HopdError(
        error.code == .noPermission ? .noPermission : error.code, "cannot use the state directory",
        at: Place(file: directory), cause: error,
        hint: "create it for the user of hopd, or pass another one with --state-directory")
    }
  }

  private static func environment(_ name: String) -> FilePath? {
    guard let text = getenv(name).map({ String(cString: $0) }) else { return nil }
    let first = text.prefix { $0 != ":" }
    return first.hasPrefix("/") ? FilePath(String(first)) : nil
  }

  private static func absolute(_ text: String) -> FilePath {
    let path = FilePath(text)
    guard path.isRelative, let here = getcwd(nil, 0) else { return path.lexicallyNormalized() }
    defer { free(here) }
    return FilePath(platformString: here).pushing(path).lexicallyNormalized()
  }

  /// Writes a line to standard output, or to standard error.
  package static func print(_ text: String, asError: Bool) {
    let bytes = Array((text + "\n").utf8)
    _ = Glibc.write(asError ? STDERR_FILENO : STDOUT_FILENO, bytes, bytes.count)
  }
}

/// Passes signals to the coordinator.
private struct SignalService: Service {
  let signals: UnixSignalsSequence
  let coordinator: DaemonCoordinator

  func run() async throws {
    var isStopping = false
    for await signal in signals.cancelOnGracefulShutdown() {
      switch signal {
      case .sighup: coordinator.reload()
      case _ where isStopping:
        // The second signal ends the process at once. Files on disk are safe at any time; the next start continues from
        // the checkpoint.
        _exit(ExitStatus.temporaryFailure.rawValue)
      default:
        isStopping = true
        coordinator.stop()
      }
    }
  }
}

/// The coordinator as a service.
private struct CoordinatorService: Service {
  let coordinator: DaemonCoordinator

  func run() async throws {
    try await withTaskCancellationOrGracefulShutdownHandler {
      try await coordinator.run()
    } onCancelOrGracefulShutdown: {
      coordinator.stop()
    }
  }
}
