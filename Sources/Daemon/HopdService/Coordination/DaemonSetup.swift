// The basis of a run of the daemon: a valid configuration, with the models and mapping models of its watches. At the
// start, a watch whose models cannot be read is set aside, and the others are served. A reload applies all or nothing;
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

/// The source of the configuration.
package enum ConfigurationSource: Sendable, Hashable {
  /// The installed files: the vendor's, overridden by the administrator's.
  case installed
  /// One file with its own drop-ins.
  case file(FilePath)

  /// Loads the configuration.
  package func load() throws(HopdError) -> LoadedConfiguration {
    switch self {
    case .installed: try ConfigurationLoader().load()
    case .file(let path): try ConfigurationLoader.load(file: path)
    }
  }

  /// The file for `hopctl --config`.
  var file: FilePath { if case .file(let path) = self { path } else { "/etc/hopd/hopd.toml" } }

  /// Loads the configuration and its models, with warnings about directories that this process may not write.
  func setup(mayDegrade: Bool = false, _ check: (LoadedConfiguration) throws(HopdError) -> Void = { _ in })
    throws(HopdError) -> DaemonSetup
  {
    let loaded = try load()
    try check(loaded)
    var setup = try DaemonSetup(loaded, mayDegrade: mayDegrade)
    let next = NextCommand(store: "", watch: "", configuration: file, isInstalled: self == .installed)
    setup.warnings += WriteAccess.remarks(in: loaded, dropIn: next.dropIn)
    return setup
  }
}

/// A configuration with its models.
package struct DaemonSetup: Sendable {
  /// The configuration.
  package private(set) var configuration: Configuration
  /// The files of the configuration.
  package let files: [FilePath]
  /// Warnings about the configuration and the models.
  package fileprivate(set) var warnings: [HopdError]
  /// Watches that cannot currently be served, with the reason.
  package private(set) var unavailable: [String: HopdError] = [:]
  private var models: [String: WatchModels] = [:]
  /// Where the directories of the watches are.
  private var roots: [String: WatchRoot] = [:]
  /// The policy programs; nil if none is bound.
  private let policies: PolicyMaker?

  /// Reads the models of each watch; throws the first error.
  ///
  /// With `mayDegrade`, a watch whose models cannot be read is set aside, and the others are served. It still throws if
  /// no watch is left and none of the errors is temporary.
  package init(_ loaded: LoadedConfiguration, mayDegrade: Bool = false) throws(HopdError) {
    configuration = loaded.configuration
    files = loaded.files
    warnings =
      loaded.warnings + BackupOverlap.remarks(in: loaded) + PathTrust.remarks(in: loaded)
      + CommandPrograms.findings(in: loaded)
    policies = PolicyPrograms.maker(configuration.policyBindings)
    if let first = BackupOverlap.mistakes(in: loaded).first { throw first }
    let overlaps = WatchOverlap.findings(in: loaded)
    if let first = overlaps.first {
      throw overlaps.count == 1
        ? first
        : HopdError(.configurationInvalid, "\(overlaps.count) pairs of watches overlap", reasons: overlaps)
    }
    var last: HopdError?
    for watch in configuration.watches {
      roots[watch.name] = WatchRoot(watch.directory)
      do throws(HopdError) {
        serve(watch.name, try WatchModels.load(watch))
      } catch {
        let error = error.placed(in: loaded)
        guard mayDegrade else { throw error }
        unavailable[watch.name] = error
        last = error
      }
    }
    if let last, unavailable.count == configuration.watches.count, !unavailable.values.contains(where: \.mayPass) {
      throw last
    }
  }

  /// Puts a watch in service with its models.
  mutating func serve(_ watch: String, _ loaded: WatchModels) {
    models[watch] = loaded
    unavailable[watch] = nil
    warnings += loaded.warnings
  }

  /// The maximum number of jobs that `override` accepts: the jobs share `memory_limit`, and one that gets less than 1
  /// MiB of it takes more. Sixteen are always possible.
  var mostJobs: Int { Int(min(256, max(16, configuration.daemon.memoryLimit >> 20))) }

  /// Sets a key of `[daemon]` or `[throttle]` for this run. Returns the previous value, or nil if the key cannot be set
  /// or the value is invalid.
  mutating func override(_ key: String, _ value: String) -> String? {
    if key == "jobs", let jobs = Int(value), jobs > mostJobs { return nil }
    let before = configuration.setting(key)
    return configuration.set(key, value) ? before : nil
  }

  /// The scheduler's rules by watch.
  package var retryRules: [String: RetryRule] {
    Dictionary(configuration.watches.map { ($0.name, $0.retry) }) { first, _ in first }
  }

  /// Priorities by watch.
  package var priorities: [String: Int] {
    Dictionary(configuration.watches.map { ($0.name, $0.priority) }) { first, _ in first }
  }

  /// The directories of watches that can be served.
  package var directories: [WatchedDirectory] { allDirectories.filter { unavailable[$0.name] == nil } }

  /// The directories of all watches.
  package var allDirectories: [WatchedDirectory] {
    configuration.watches.map { watch in
      WatchedDirectory(
        name: watch.name, root: roots[watch.name] ?? WatchRoot(watch.directory),
        include: watch.include.map { Glob($0) },
        exclude: watch.exclude.map { Glob($0) }, recursive: watch.recursive,
        // A configured directory for backups may lie in the tree, and the folders in it have names without a dot. A
        // backup that is taken for a store is migrated, which makes the next backup, without end.
        excludedFolders: [Glob("*" + BackupSet.folderSuffix)], settle: watch.settle, rescan: watch.rescan)
    }
  }

  /// The models of a watch; nil if they are not loaded.
  func watchModels(_ name: String) -> WatchModels? { models[name] }

  /// Replaces the models of a watch by changed ones, or by the same ones with new times.
  mutating func replace(_ watch: String, _ loaded: WatchModels) { models[watch] = loaded }

  /// A text that identifies the models of a watch; empty if they are not loaded.
  package func modelsMark(ofWatch name: String) -> String {
    (models[name]?.catalog.versions ?? []).map { "\($0.title) \(VersionHash.digest(of: $0.versionHashes))" }.joined(
      separator: ", ")
  }

  /// The backup rule of a watch; nil for an unknown watch.
  package func backupRule(ofWatch name: String) -> BackupRule? {
    configuration.watch(named: name)?.migration.backup
  }

  /// Where the directory of a watch is; nil for an unknown watch.
  package func root(ofWatch name: String) -> WatchRoot? { roots[name] }

  /// Resolves the directories of the watches, those that exist.
  func openRoots() { for root in roots.values { _ = try? root.open() } }

  /// The watch whose directory is around a store with this canonical path.
  func watch(around store: FilePath) -> Configuration.Watch? {
    configuration.watches.first { store.starts(with: roots[$0.name]?.path ?? $0.directory) }
  }

  /// Keeps the roots of another setup for watches of the same directory, unless their path leads elsewhere by now: then
  /// a reload is what puts the new place in force.
  package mutating func keepRoots(of other: DaemonSetup) {
    for watch in configuration.watches {
      guard let root = other.roots[watch.name], root.configured == watch.directory else { continue }
      if case .failure(.moved) = Result(catching: { () throws(WatchRoot.Failure) in try root.open() }) { continue }
      roots[watch.name] = root
    }
  }

  /// The order for work on a store; nil if its watch is unknown or its models are not loaded.
  package func order(for store: FoundStore, job: String, stateDirectory: FilePath) -> StoreOrder? {
    guard let watch = configuration.watch(named: store.watch), let root = roots[store.watch],
      models[store.watch] != nil
    else { return nil }
    return StoreOrder(store: store, root: root) { location in
      request(for: store, at: location, in: watch, job: job, stateDirectory: stateDirectory)
    }
  }

  private func request(
    for store: FoundStore, at location: CanonicalStoreLocation, in watch: Configuration.Watch, job: String,
    stateDirectory: FilePath
  ) -> MigrationRequest? {
    guard let models = models[store.watch] else { return nil }
    let daemon = configuration.daemon
    var request = MigrationRequest(
      location: location, name: store.path, catalog: models.catalog,
      target: watch.target.map { .named($0) } ?? .current, naming: models.naming,
      settings: MigrationSettings(watch, memoryLimit: daemon.memoryLimit / Int64(max(1, daemon.jobs))),
      stateDirectory: stateDirectory, job: job)
    request.policies = policies
    request.takesNotes = [.debug, .trace].contains(configuration.daemon.logLevel)
    return request
  }

  /// Whether a file of this name cannot be a store: hidden files, side files and hopd's own files.
  package static func ignores(_ name: String) -> Bool {
    name.hasPrefix(".") || StoreLocation.isAuxiliaryFile(fileName: name)
  }
}
