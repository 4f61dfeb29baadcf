// What a run of the daemon stands on: a valid configuration, with the models and mapping models of its watches. At the
// start a watch whose models cannot be read is set aside and the others are served. A reload takes all or nothing;
// running jobs keep the setup that they began with.

import ConfigurationInspection
import Diagnostics
import DurableFiles
import HopdConfiguration
import ManagedObjectModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import PolicyHost
import StoreReplacement
import StoreVerification
import StoreWatching
import SystemPackage

/// Where the configuration comes from.
package enum ConfigurationSource: Sendable, Hashable {
  /// What is installed: the vendor's files below the administrator's.
  case installed
  /// One file with its own drop-ins.
  case file(FilePath)

  /// Reads it.
  package func load() throws(HopdError) -> LoadedConfiguration {
    switch self {
    case .installed: try ConfigurationLoader().load()
    case .file(let path): try ConfigurationLoader.load(file: path)
    }
  }
}

/// A configuration with its models.
package struct DaemonSetup: Sendable {
  /// The configuration.
  package private(set) var configuration: Configuration
  /// The files it was made of.
  package let files: [FilePath]
  /// Remarks about the configuration and the models.
  package private(set) var warnings: [HopdError]
  /// Watches that cannot be served now, with the reason; the others are.
  package private(set) var unserved: [String: HopdError] = [:]
  private var models: [String: WatchModels] = [:]
  /// The programs of policies; nil where none is bound.
  private let policies: PolicyMaker?

  /// Reads the models of each watch; throws the first thing that is wrong.
  ///
  /// With `mayDegrade` a watch whose models cannot be read is set aside and the others are served. Throws all the same
  /// where no watch is left and time alone will not mend any.
  package init(_ loaded: LoadedConfiguration, mayDegrade: Bool = false) throws(HopdError) {
    configuration = loaded.configuration
    files = loaded.files
    warnings = loaded.warnings
    policies = PolicyPrograms.maker(configuration.policyBindings)
    let overlaps = WatchOverlap.findings(in: loaded)
    if let first = overlaps.first {
      throw overlaps.count == 1
        ? first
        : HopdError(.configurationInvalid, "\(overlaps.count) pairs of watches overlap", reasons: overlaps)
    }
    var last: HopdError?
    for watch in configuration.watches {
      do throws(HopdError) {
        serve(watch.name, try WatchModels.load(watch))
      } catch {
        guard mayDegrade else { throw error }
        unserved[watch.name] = error
        last = error
      }
    }
    if let last, unserved.count == configuration.watches.count, !unserved.values.contains(where: \.mayPass) {
      throw last
    }
  }

  /// Puts a watch in service.
  mutating func serve(_ watch: String, _ loaded: WatchModels) {
    models[watch] = loaded
    unserved[watch] = nil
    warnings += loaded.warnings
  }

  /// Keys that `override` knows.
  static let settable = ["jobs", "memory_limit", "log_level", "io_pressure", "cpu_pressure", "memory_pressure"]

  /// Sets a key of `[daemon]` or `[throttle]` for this run; the value before, or nil for a key that cannot be set, or a
  /// wrong value.
  mutating func override(_ key: String, _ value: String) -> String? {
    switch key {
    case "jobs": return set(\.daemon.jobs, value, in: 1...256)
    case "memory_limit":
      guard let bytes = Quantity.bytes(value), (1 << 20...1 << 46).contains(bytes) else { return nil }
      defer { configuration.daemon.memoryLimit = bytes }
      return "\(configuration.daemon.memoryLimit)B"
    case "log_level":
      guard let level = Configuration.LogLevel(rawValue: value) else { return nil }
      defer { configuration.daemon.logLevel = level }
      return configuration.daemon.logLevel.rawValue
    case "io_pressure": return set(\.throttle.ioPressure, value, in: 0...100)
    case "cpu_pressure": return set(\.throttle.cpuPressure, value, in: 0...100)
    case "memory_pressure": return set(\.throttle.memoryPressure, value, in: 0...100)
    default: return nil
    }
  }

  private mutating func set(
    _ key: WritableKeyPath<Configuration, Int>, _ value: String, in range: ClosedRange<Int>
  ) -> String? {
    guard let number = Int(value), range.contains(number) else { return nil }
    defer { configuration[keyPath: key] = number }
    return String(configuration[keyPath: key])
  }

  /// The scheduler's rules by watch.
  package var retryRules: [String: RetryRule] {
    Dictionary(
      configuration.watches.map { watch in
        let retry = watch.migration.retry
        return (watch.name, RetryRule(attempts: retry.attempts, backoff: retry.backoff, longest: retry.max))
      }
    ) { first, _ in first }
  }

  /// Priorities by watch.
  package var priorities: [String: Int] {
    Dictionary(configuration.watches.map { ($0.name, $0.priority) }) { first, _ in first }
  }

  /// What the watcher is asked for: the directories of watches that can be served.
  package var directories: [WatchedDirectory] { allDirectories.filter { unserved[$0.name] == nil } }

  /// The directories of all watches.
  package var allDirectories: [WatchedDirectory] {
    configuration.watches.map { watch in
      WatchedDirectory(
        name: watch.name, path: watch.directory, include: watch.include.map { Glob($0) },
        exclude: watch.exclude.map { Glob($0) }, recursive: watch.recursive, settle: watch.settle,
        rescan: watch.rescan)
    }
  }

  /// The models of a watch; nil where they are not loaded.
  func watchModels(_ name: String) -> WatchModels? { models[name] }

  /// Other models of a watch are in force, or the same as the disk has them now.
  mutating func replace(_ watch: String, _ loaded: WatchModels) { models[watch] = loaded }

  /// The models of a watch in a short text that changes with them; empty where they are not loaded.
  package func modelsMark(ofWatch name: String) -> String {
    (models[name]?.catalog.versions ?? []).map { "\($0.title) \(VersionHash.digest(of: $0.versionHashes))" }.joined(
      separator: ", ")
  }

  /// The rule for the old stores of a watch; nil for a watch that is not there.
  package func backupRule(ofWatch name: String) -> BackupRule? {
    configuration.watch(named: name)?.backup
  }

  /// What the pipeline is asked for a store of a watch; nil for a watch that is not there.
  package func request(for store: FoundStore, job: String, stateDirectory: FilePath) -> MigrationRequest? {
    guard let watch = configuration.watch(named: store.watch), let models = models[store.watch] else { return nil }
    let daemon = configuration.daemon
    var request = MigrationRequest(
      location: StoreLocation(database: store.path), catalog: models.catalog,
      target: watch.target.map { .named($0) } ?? .current, naming: models.naming,
      settings: MigrationSettings(watch, memoryLimit: daemon.memoryLimit / Int64(max(1, daemon.jobs))),
      stateDirectory: stateDirectory, job: job)
    request.policies = policies
    request.takesNotes = [.debug, .trace].contains(configuration.daemon.logLevel)
    return request
  }

  /// May a file of this name be a store? Hidden files, side files and files of our own may not.
  package static func ignores(_ name: String) -> Bool {
    name.hasPrefix(".") || StoreLocation.isAuxiliaryFile(fileName: name)
  }
}
