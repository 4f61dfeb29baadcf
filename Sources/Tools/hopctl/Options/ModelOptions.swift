// Options for models and mapping models: named with --models and --mappings, or those of a watch of the daemon's
// configuration, which then also gives the watch's rules and the programs of policies.

import ArgumentParser
import ConfigurationInspection
import Diagnostics
import DurableFiles
import HopdConfiguration
import ManagedObjectModel
import MappingModel
import MigrationChecking
import MigrationPlanning
import PersistentStore
import PolicyHost
import StoreReplacement
import SystemPackage

/// `--models`, `--mappings`, `--config`, `--watch`.
struct ModelOptions: ParsableArguments {
  @Option(
    name: .customLong("models"),
    help: """
      A .xcdatamodeld, .xcdatamodel, .momd, .mom, a store that contains its model, a directory of these, or one of \
      Swift source with SwiftData models; repeatable.
      """,
    completion: .file())
  var models: [String] = []

  @Option(
    name: .customLong("mappings"),
    help: """
      A .xcmappingmodel, .cdm, .hopmap.toml, .hopstages.toml, or a directory of them; repeatable. The directories of \
      --models are searched too.
      """,
    completion: .file())
  var mappings: [String] = []

  @Option(
    name: .customLong("order"), parsing: .upToNextOption,
    help: ArgumentHelp(
      "Declare the order of all model versions, oldest first",
      discussion:
        "Default: from stages, then the Xcode project, then by name. "
        + "`hopctl model list` shows it.",
      valueName: "version"))
  var order: [String] = []

  @Option(
    help: "Use the models and rules of a watch in this file", completion: .file(extensions: ["toml"]))
  var config: String?

  @Option(
    help: "Watch of --config, if there are several and the store is in none",
    completion: .custom { words, _, _ in ModelOptions.watches(of: words) })
  var watch: String?

  @OptionGroup(title: "Swift source options") var source: SourceOptions

  func validate() throws {
    if config != nil, !models.isEmpty { throw ValidationError("Pass either --models or --config, not both.") }
    if config != nil, !mappings.isEmpty { throw ValidationError("Pass either --mappings or --config, not both.") }
    if config != nil, !order.isEmpty {
      throw ValidationError("Pass either --order or --config, whose watch has the key `versions`, not both.")
    }
    if watch != nil, config == nil { throw ValidationError("--watch requires --config.") }
  }

  /// Names of the watches of --config, for shell completion.
  static func watches(of words: [String]) -> [String] {
    guard let file = zip(words, words.dropFirst()).first(where: { $0.0 == "--config" })?.1,
      let path = try? FilePath(file).resolved()
    else { return [] }
    return ((try? ConfigurationLoader.load(file: path))?.configuration.watches ?? []).map(\.name)
  }

  /// The same options as shell words, for a suggested command.
  var words: String {
    var words: [String] = []
    for (name, values) in [("--models", models), ("--mappings", mappings), ("--config", config.map { [$0] } ?? [])] {
      words += values.flatMap { [name, $0.quotedForShell] }
    }
    if let watch { words += ["--watch", watch.quotedForShell] }
    if !order.isEmpty { words += ["--order"] + order.map(\.quotedForShell) }
    words += source.words.map(\.quotedForShell)
    return words.joined(separator: " ")
  }

  /// Models, with the rules of their watch.
  struct Loaded {
    let catalog: ModelCatalog
    /// The watch of `--config`.
    let watch: Configuration.Watch?
    /// The configured `memory_limit`: bytes of memory for pages.
    let memoryLimit: Int64?
    /// The mistake in the watch's rules that these models show; commands that only identify stores need no rules.
    var mistake: HopdError?
    /// Programs of policies that the configuration names.
    var policies: [String: PolicyBinding] = [:]
    /// Remarks on the configuration and the models.
    let warnings: [HopdError]
    /// The models that a search found; nil where they were named.
    var found: FoundModels?
  }

  /// Reads everything; mapping models only for commands that plan. Without `--models` and `--config` the models of the
  /// store are searched, where `search` allows it. `directories` are those of the stores of a command about many.
  func load(
    for store: StoreLocation?, withMappings: Bool = false, allowsOlder: Bool = false, search: ModelSearch = .nowhere,
    in directories: [FilePath] = []
  ) throws -> Loaded {
    func catalog(_ models: [FilePath], _ mappings: [FilePath], _ order: [String], beside: [FilePath] = []) throws
      -> ModelCatalog
    {
      var catalog = try ModelCatalog.load(models, declaredOrder: order, source: source.reader)
      catalog.allowsOlder = allowsOlder
      if withMappings {
        try catalog.loadMappings(mappings, beside: models + beside)
      } else {
        try catalog.loadStages(mappings, beside: models + beside)
      }
      return catalog
    }
    func loaded(of chosen: Configuration.Watch, in configuration: LoadedConfiguration) throws -> Loaded {
      let catalog = try catalog(chosen.models, chosen.mappings, chosen.versions)
      return Loaded(
        catalog: catalog, watch: chosen, memoryLimit: configuration.configuration.daemon.memoryLimit,
        mistake: chosen.unknownEntityRule(in: catalog)?.placed(in: configuration),
        policies: configuration.configuration.policyBindings, warnings: configuration.warnings + catalog.warnings)
    }
    if let config {
      let configuration = try ConfigurationLoader.load(file: try FilePath(config).resolved())
      return try loaded(of: try watch(of: configuration.configuration, for: store, file: config), in: configuration)
    }
    let named = mappings.map { FilePath($0) }
    guard models.isEmpty else {
      let catalog = try catalog(models.map { FilePath($0) }, named, order)
      return Loaded(catalog: catalog, watch: nil, memoryLimit: nil, warnings: catalog.warnings)
    }
    guard let store else { throw MissingModel(directories: directories, place: "there").error }
    var remarks: [HopdError] = []
    guard search != .nowhere else {
      var missing = MissingModel(store: store, directories: [store.directory])
      missing.watch = try? serving(store, &remarks).map { chosen, _ in
        FoundModels(origin: .watch, paths: chosen.models, watch: chosen.name)
      }
      throw missing.error
    }
    if let (chosen, configuration) = try serving(store, &remarks) {
      var result = try loaded(of: chosen, in: configuration)
      result.found = FoundModels(origin: .watch, paths: chosen.models, watch: chosen.name)
      return result
    }
    return try searched(around: store, search, remarks) { try catalog($0.paths, named, order, beside: $0.mappings) }
  }

  /// Returns the models beside a store, or the model that it holds.
  private func searched(
    around store: StoreLocation, _ search: ModelSearch, _ known: [HopdError],
    catalog: (FoundModels) throws -> ModelCatalog
  ) throws -> Loaded {
    var (remarks, result) = (known, Loaded?.none)
    if let found = FoundModels.beside(store) {
      do {
        let catalog = try catalog(found)
        let beside = Loaded(
          catalog: catalog, watch: nil, memoryLimit: nil, warnings: remarks + catalog.warnings, found: found)
        // A model of another app may lie there: it is taken only if it knows the store, or if there is no other.
        if try StoreIdentifier.identify(store, catalog: catalog, countsRows: false).version != nil { return beside }
        result = beside
      } catch let error as HopdError {
        let place = Place(store: store.database)
        remarks.append(HopdError(.modelRemark, "the models next to the store are not used", at: place, cause: error))
      }
    }
    let missing = MissingModel(
      store: store, directories: [store.directory], isStoreSearched: search == .everywhere, remarks: remarks)
    do {
      guard search == .everywhere, let held = try Self.held(by: store, remarks) else { throw missing.error }
      return held.found == nil ? result ?? held : held
    } catch {
      if let result { return result }
      throw error
    }
  }

  /// Returns the model that a store holds; nil if it holds none, without `found` for a file whose state says why.
  private static func held(by store: StoreLocation, _ remarks: [HopdError]) throws -> Loaded? {
    guard let catalog = try FoundModels.catalog(ofStore: store) else { return nil }
    return Loaded(
      catalog: catalog, watch: nil, memoryLimit: nil, warnings: remarks + catalog.warnings,
      found: catalog.bundles.isEmpty ? nil : FoundModels(origin: .store, paths: [store.database]))
  }

  /// The watch of the installed configuration that includes a store. An unreadable configuration is reported, and
  /// the search continues.
  private func serving(
    _ store: StoreLocation, _ remarks: inout [HopdError]
  ) throws(HopdError) -> (Configuration.Watch, LoadedConfiguration)? {
    let installed: LoadedConfiguration
    do {
      installed = try ConfigurationLoader().load()
    } catch {
      remarks.append(
        HopdError(
          .modelRemark, "cannot read the configuration of hopd; its watches are ignored", cause: error))
      return nil
    }
    let around = installed.configuration.watches(around: store.directory)
    guard let first = around.first else { return nil }
    guard around.count == 1 else {
      throw HopdError(
        .usage,
        "\(around.count) watches include the directory of the store: "
          + around.map(\.name.printableLine).joined(separator: ", "), at: Place(store: store.database),
        hint:
          "pass one: --config FILE --watch NAME; the files are "
          + installed.files.map(\.printable).joined(separator: ", ")
      )
    }
    return (first, installed)
  }

  /// The configuration of `--config`, if each store's watch is yet to be found; nil if one rule applies to all stores.
  func severalWatches() throws -> Configuration? {
    guard let config, watch == nil else { return nil }
    let found = try ConfigurationLoader.load(file: try FilePath(config).resolved()).configuration
    return found.watches.count > 1 ? found : nil
  }

  private func watch(
    of configuration: Configuration, for store: StoreLocation?, file: String
  ) throws(HopdError) -> Configuration.Watch {
    if watch == nil, configuration.watches.count == 1, let only = configuration.watches.first { return only }
    if let found = try configuration.watch(watch, around: store?.directory, file: file) { return found }
    let names = configuration.watches.map(\.name).joined(separator: ", ")
    throw HopdError(
      .usage, configuration.isConfigured ? "the configuration has several watches" : "the configuration has no watch",
      at: Place(file: FilePath(file)),
      hint: configuration.isConfigured ? "choose one with --watch: \(names)" : "add a [[watch]], or pass --models")
  }
}

extension Configuration {
  /// The watch of `--watch`, otherwise the only one that contains a directory; nil if none or several do.
  func watch(_ name: String?, around directory: FilePath?, file: String) throws(HopdError) -> Watch? {
    guard let name else {
      let around = directory.map(watches(around:)) ?? []
      return around.count == 1 ? around.first : nil
    }
    if let found = watch(named: name) { return found }
    let names = watches.map(\.name).joined(separator: ", ")
    throw HopdError(
      .usage, "the configuration has no watch \"\(name)\"", at: Place(file: FilePath(file)),
      hint: "use one of: \(names)")
  }
}

/// `--to`, `--allow-older`.
struct WantedVersion: ParsableArguments {
  @Option(help: "Target version (default: the model's current version)")
  var to: String?

  @Flag(
    name: .customLong("allow-older"),
    help: ArgumentHelp(
      "Allow migration to an older version",
      discussion: "Drops data that only the newer version has; see `hopctl plan`."))
  var allowOlder = false

  func target(_ watch: Configuration.Watch?) -> TargetVersion {
    (to ?? watch?.target).map { .named($0) } ?? .current
  }
}

/// `--to`, `--allow-older`, `--route`, `--rename`, `--no-rename`, `--join-table`, `--reference`, `--history`,
/// `--cloudkit`.
struct TargetOptions: ParsableArguments {
  @OptionGroup var version: WantedVersion

  @Option(
    name: .customLong("join-table"),
    help: ArgumentHelp(
      "Relationship that names the join table of a self-referencing many-to-many; repeatable",
      valueName: "entity.relationship"))
  var joinTables: [String] = []

  @Option(
    help: "Store of the target version, created by the app, from which to take table names", completion: .file())
  var reference: String?

  @Option(
    help: ArgumentHelp(
      "How to handle persistent history: migrate, clear or refuse",
      discussion: """
        migrate (default) keeps its rows, so that tokens remain valid, and refuses a store that has any if the chain \
        has a mapping model. clear drops the rows. refuse refuses every store that has any.
        """))
  var history: HistoryRule?

  @Option(
    name: .customLong("rename"),
    help: ArgumentHelp(
      "Declare a rename that renaming identifiers contradict; repeatable",
      discussion:
        "Entity.old=new for a property, Old=New for an entity. Entity.old= drops the property's values, and a new "
        + "property of that name starts empty.",
      valueName: "old=new"))
  var renames: [String] = []

  @Flag(
    name: .customLong("no-rename"),
    help: "Match by name and ignore renaming identifiers")
  var noRename = false

  @Option(
    help: ArgumentHelp(
      "Route through the versions: progressive, direct or shortest",
      discussion: """
        progressive takes every version in turn, and skips one only if no hop leads through it. direct takes one hop. \
        shortest takes the fewest hops.
        """))
  var route: RouteRule?

  /// The rename rules of the configuration, overridden by those of the command line.
  func renameRules(over configured: RenameRules) -> RenameRules {
    var rules = configured
    for (old, new) in renames.compactMap(RenameRules.parse) { rules.renames[old] = new }
    if noRename { rules.namesCount = true }
    return rules
  }

  @Option(
    name: .customLong("cloudkit"),
    help: "How to handle a store mirrored with CloudKit: refuse, or migrate with its mirroring (default: refuse)")
  var cloudKit: CloudKitRule?

  func validate() throws {
    for text in renames where RenameRules.parse(text) == nil {
      throw ValidationError("--rename expects ENTITY.OLD=NEW or OLD=NEW, not \"\(text)\".")
    }
    for name in joinTables where name.split(separator: ".", omittingEmptySubsequences: false).count != 2 {
      throw ValidationError("--join-table expects ENTITY.RELATIONSHIP, not \"\(name)\".")
    }
  }

  func target(_ watch: Configuration.Watch?) -> TargetVersion { version.target(watch) }

  func naming(_ models: ModelOptions.Loaded) throws -> JoinTableNaming {
    var naming = JoinTableNaming(Set(joinTables + (models.watch?.joinTables ?? [])))
    if let reference = reference ?? models.watch?.reference?.string {
      naming.add(
        try MigrationPlanner.naming(
          fromReference: try StoreArgument.location(of: reference).store, catalog: models.catalog,
          target: target(models.watch)
        ))
    }
    return naming
  }
}

extension HistoryRule: ExpressibleByArgument {}
extension RouteRule: ExpressibleByArgument {}
extension CloudKitRule: ExpressibleByArgument {}
