// What a run of the daemon stands on: a valid configuration with every model and mapping model it names loaded. It is read as a whole or
// not at all, at the start and at each reload; running jobs keep the one they began with.

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
  package let configuration: Configuration
  /// The files it was made of.
  package let files: [FilePath]
  /// Remarks about the configuration and the models.
  package let warnings: [HopdError]
  private let catalogs: [String: ModelCatalog]
  /// What is known of the names of self many-to-many tables, by watch.
  private let namings: [String: JoinTableNaming]
  /// The programs of policies; nil where none is bound.
  private let policies: PolicyMaker?

  /// Reads the models of each watch; throws the first thing that is wrong.
  package init(_ loaded: LoadedConfiguration) throws(HopdError) {
    configuration = loaded.configuration
    files = loaded.files
    var warnings = loaded.warnings
    var catalogs: [String: ModelCatalog] = [:]
    var namings: [String: JoinTableNaming] = [:]
    for watch in loaded.configuration.watches {
      var catalog: ModelCatalog
      do {
        catalog = try ModelCatalog.load(watch.models, declaredOrder: watch.versions)
      } catch {
        throw error.located(Place(key: "watch.\(watch.name).models"))
      }
      do {
        try catalog.loadMappings(watch.mappings, beside: watch.models)
      } catch {
        throw error.located(Place(key: "watch.\(watch.name).mappings"))
      }
      if let target = watch.target, !catalog.canName(target) {
        let names = catalog.versions.map(\.model.name).joined(separator: ", ")
        throw HopdError(
          .noSuchVersion, "no model of this watch has a version \"\(target)\"",
          at: Place(key: "watch.\(watch.name).target"), hint: "its models have: \(names)")
      }
      catalogs[watch.name] = catalog
      namings[watch.name] = try Self.naming(of: watch, catalog: catalog)
      warnings += catalog.warnings.map { $0.located(Place(key: "watch.\(watch.name).models")) }
    }
    self.warnings = warnings
    self.catalogs = catalogs
    self.namings = namings
    policies = Self.programs(loaded.configuration.policies)
  }

  /// The names that the watch gives, and those in its reference store. It is read with the models, so that a reload
  /// that names another one takes all of it or nothing.
  private static func naming(
    of watch: Configuration.Watch, catalog: ModelCatalog
  ) throws(HopdError) -> JoinTableNaming {
    var naming = JoinTableNaming(Set(watch.migration.joinTables))
    guard let reference = watch.migration.reference else { return naming }
    let place = Place(store: reference, key: "watch.\(watch.name).migration.reference")
    do {
      naming.namingRelationships.formUnion(
        try MigrationPlanner.naming(
          fromReference: StoreLocation(database: reference), catalog: catalog,
          target: watch.target.map { .named($0) } ?? .current
        ).namingRelationships)
    } catch {
      throw (error as? HopdError ?? HopdError(.internalError, "an unexpected error", cause: error)).located(place)
    }
    return naming
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

  /// What the watcher is asked for.
  package var directories: [WatchedDirectory] {
    configuration.watches.map { watch in
      WatchedDirectory(
        name: watch.name, path: watch.directory, include: watch.include.map { Glob($0) },
        exclude: watch.exclude.map { Glob($0) }, recursive: watch.recursive, settle: watch.settle,
        rescan: watch.rescan)
    }
  }

  /// The rule for the old stores of a watch; nil for a watch that is not there.
  package func backupRule(ofWatch name: String) -> BackupRule? {
    configuration.watch(named: name).map { watch in
      BackupRule(keep: watch.backup.keep, keepFor: watch.backup.keepFor, directory: watch.backup.directory)
    }
  }

  /// What the pipeline is asked for a store of a watch; nil for a watch that is not there.
  package func request(for store: FoundStore, job: String, stateDirectory: FilePath) -> MigrationRequest? {
    guard let watch = configuration.watch(named: store.watch), let catalog = catalogs[store.watch],
      let backup = backupRule(ofWatch: store.watch)
    else { return nil }
    var request = MigrationRequest(
      location: StoreLocation(database: store.path), catalog: catalog,
      target: watch.target.map { .named($0) } ?? .current, infer: watch.infer,
      naming: namings[store.watch] ?? JoinTableNaming(),
      history: HistoryRule(rawValue: watch.migration.history.rawValue) ?? .refuse, backup: backup,
      verification: watch.migration.verify == .full ? .full : .quick,
      journalMode: ResultJournalMode(rawValue: watch.migration.journalMode.rawValue) ?? .keep,
      engine: EngineOptions(
        chunkTime: watch.migration.chunkTime, chunkRowsMax: Int64(clamping: watch.migration.chunkRowsMax),
        memoryLimit: configuration.daemon.memoryLimit / Int64(max(1, configuration.daemon.jobs)),
        invalidRows: InvalidRowsRules(
          standard: InvalidRowsRule(rawValue: watch.migration.invalidRows.rawValue) ?? .fail,
          byEntity: watch.migration.invalidRowsByEntity.mapValues { InvalidRowsRule(rawValue: $0.rawValue) ?? .fail }),
        fusesHops: watch.migration.fuseHops),
      stateDirectory: stateDirectory, job: job)
    request.unmappedEntities = UnmappedEntitiesRule(rawValue: watch.migration.unmappedEntities.rawValue) ?? .fail
    request.replacement = ReplacementMode(rawValue: watch.migration.replace.rawValue) ?? .rename
    request.policies = policies
    request.takesNotes = [.debug, .trace].contains(configuration.daemon.logLevel)
    return request
  }

  /// The programs that the configuration names.
  private static func programs(_ policies: [Configuration.Policy]) -> PolicyMaker? {
    if policies.isEmpty { return nil }
    let bindings = Dictionary(
      policies.map { policy in
        let limits = PolicyLimits(timeout: policy.timeout, memory: policy.memory)
        return (policy.name, PolicyBinding(command: policy.command, limits: limits))
      }
    ) { first, _ in first }
    return { isStopped, output in PolicyPrograms(bindings, isStopped: isStopped, observer: output) }
  }

  /// May a file of this name be a store? Hidden files, side files and files of our own may not.
  package static func ignores(_ name: String) -> Bool {
    name.hasPrefix(".") || StoreLocation.isBelongings(fileName: name)
  }
}
