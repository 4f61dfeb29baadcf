// The request of plan and migrate to the pipeline: the command line overrides the configuration, which
// overrides the defaults. Both build it here, so a plan or a rehearsal describes the migration that would run.

import ArgumentParser
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
import SystemPackage

/// Options of every command that plans a migration.
struct RequestOptions: ParsableArguments {
  @OptionGroup var target: TargetOptions
  @OptionGroup var mapping: MappingOptions
  @OptionGroup var verbose: VerboseOptions

  /// Reads models and mapping models, and prints the remarks that `isToReport` selects.
  func load(
    _ models: ModelOptions, for location: StoreLocation, _ output: OutputOptions,
    search: ModelSearch = .nowhere, isToReport: (HopdError) -> Bool = { _ in true }
  ) throws -> (loaded: ModelOptions.Loaded, remarks: [HopdError]) {
    let loaded: ModelOptions.Loaded
    do {
      loaded = try models.load(
        for: location, withMappings: true, allowsOlder: target.version.allowOlder, search: search)
    } catch let error as HopdError {
      // A mistyped path needs another remedy than a model.
      guard error.code == .noModels, location.database.linkStatus() == nil else { throw error }
      throw HopdError(
        .notFound, "there is no file of that name", at: Place(store: location.database), hint: "check the path")
    }
    output.tell(loaded.found)
    try target.version.requireKnown(in: loaded)
    let remarks = loaded.warnings.filter(isToReport) + mapping.unusedPolicies(of: loaded.catalog)
    output.warn(remarks)
    return (loaded, remarks)
  }

  /// The request for a store.
  func request(
    _ location: CanonicalStoreLocation, _ loaded: ModelOptions.Loaded, stateDirectory: FilePath
  ) throws -> MigrationRequest {
    let watch = loaded.watch
    if let mistake = loaded.mistake { throw mistake }
    try mapping.requireKnownEntities(of: loaded.catalog)
    var request = MigrationRequest(
      location: location, catalog: loaded.catalog, target: target.target(watch), naming: try target.naming(loaded),
      settings: settings(loaded), stateDirectory: stateDirectory, job: RequestOptions.jobName())
    request.policies = try mapping.programs(loaded.policies)
    request.takesNotes = verbose.level > .none
    return request
  }

  /// The settings of the watch, or the defaults, overridden by the command line.
  func settings(_ loaded: ModelOptions.Loaded) -> MigrationSettings {
    let standard = EngineOptions().memoryLimit
    var settings =
      loaded.watch.map { MigrationSettings($0, memoryLimit: loaded.memoryLimit ?? standard) } ?? MigrationSettings()
    settings.renames = target.renameRules(over: settings.renames)
    if let route = target.route { settings.route = route }
    if let history = target.history { settings.history = history }
    if let cloudKit = target.cloudKit { settings.cloudKit = cloudKit }
    if let rule = mapping.unmappedEntities { settings.unmappedEntities = rule }
    mapping.override(&settings.engine.invalidRows)
    return settings
  }

  /// Returns a random job name of 16 hex digits, so that two runs never share one.
  static func jobName() -> String {
    let digits = String(UInt64.random(in: .min ... .max), radix: 16)
    return String(repeating: "0", count: 16 - digits.utf8.count) + digits
  }
}

/// `--replace`.
struct ReplaceOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "How to replace the store: rename or in-place",
      discussion: """
        rename creates a new file; it is the default if hopd can determine which programs have the store open. \
        in-place writes into the same file in one SQLite transaction and keeps its links, owner, attributes and \
        mounts; it needs free space of about three times the size of the store.
        """))
  var replace: ReplacementMode?
}

extension ReplacementMode: ExpressibleByArgument {}

/// `--scratch`.
struct ScratchOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Directory for the temporary copy (default: $TMPDIR or /var/tmp)",
      discussion: "The copy needs about as much space as the migration."),
    completion: .directory)
  var scratch: String?

  var directory: FilePath? { scratch.map { FilePath($0) } }
}

extension MappingOptions {
  /// The programs of policies: those of the command line override those of the configuration.
  func programs(_ configured: [String: PolicyBinding]) throws -> PolicyMaker? {
    var bindings = configured
    for policy in policies {
      var command = policy.command
      // Programs run in /, but paths on the command line are relative to this directory.
      if let program = command.first, program.contains("/"), !program.hasPrefix("/") {
        do { command[0] = try FilePath(program).resolved().string } catch let error as HopdError
          where error.code == .notFound
        {
          throw HopdError(
            .notFound, "the program of the policy \(policy.name.printableLine) does not exist",
            at: Place(file: FilePath(program)),
            hint: "check the path in --policy \(policy.name.quotedForShell)=COMMAND: it is relative to this directory")
        }
      }
      bindings[policy.name] = PolicyBinding(command: command)
    }
    return PolicyPrograms.maker(bindings)
  }
}
