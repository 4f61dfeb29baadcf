import ArgumentParser
import Diagnostics
import Glibc
import ManagedObjectModel
import MappingModel
import MigrationChecking
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PolicyHost
import SystemPackage

/// `hopctl check MODEL…`.
struct CheckCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "check", abstract: "Tries every version of a model: does a store of it reach the current one?",
    discussion: """
      A store of each version is made in a scratch folder, with rows of every kind, migrated at once and hop by hop, verified, \
      and both results are compared. Nothing else is written.

      Exit status: 0 every version gets there, 65 one does not, or a shipped version was changed, 78 wrong use, or a policy without \
      a program.
      """)

  @OptionGroup var subject: CheckSubject
  @OptionGroup var extent: CheckExtent
  @OptionGroup var lock: LockOptions
  @OptionGroup var reports: ReportOptions
  @OptionGroup var mapping: MappingOptions
  @OptionGroup var output: OutputOptions

  func execute() throws {
    let stop = StopOnSignals.start()
    do {
      let (report, catalog, shipped) = try checked(stop)
      output.warn(report.warnings)
      try reports.write(report, isSilent: output.json || output.quiet)
      for line in CheckText(report).lines { try output.line(line, keepingNewlines: false) }
      if lock.freeze, !report.isRed { try freeze(catalog, shipped) }
      try output.object(ModelCheckShape(report))
      if report.status != .success { throw Finished(status: report.status) }
    } catch var error as HopdError where CheckCommand.isWrongUse(error) {
      error.code = HopdError.Code(error.code.name, exit: .configuration)
      throw error
    }
  }

  /// Notes all versions as shipped; never while one of them is stuck.
  private func freeze(_ catalog: ModelCatalog, _ known: LockOptions.Loaded) throws {
    let models = catalog.bundles.map { ShippedModel($0, frameworkVersion: extent.frameworkVersion) }
    try LockOptions.write(models, over: known.lock, to: known.file)
    let count = models.reduce(0) { $0 + $1.versions.count }
    try output.line(
      "froze \(MessageFormatter.count(Int64(count), "version", "versions")) in \(known.file.printable)")
  }

  private func checked(_ stop: StopSignal) throws -> (CheckReport, ModelCatalog, LockOptions.Loaded) {
    let loaded = try subject.load()
    var request = CheckRequest(catalog: loaded.catalog)
    request.target = subject.target
    request.settings.renames = subject.renameRules
    if let route = subject.route { request.settings.route = route }
    if let rule = mapping.unmappedEntities { request.settings.unmappedEntities = rule }
    mapping.override(&request.settings.engine.invalidRows)
    try mapping.requireKnownEntities(of: loaded.catalog)
    request.policies = try mapping.programs([])
    try extent.apply(to: &request)
    let known = try lock.load(
      models: subject.models, bundles: loaded.catalog.bundles, scratch: extent.scratch.directory)
    request.bases = known.bases
    if !lock.freeze {
      request.shipped =
        known.lock?.models ?? known.bases.map { ShippedModel($0, frameworkVersion: extent.frameworkVersion) }
    }
    ProgramMemory.limitHeaps()
    var report = try ModelChecker(request, stop: stop).run()
    report.warnings = loaded.warnings
    return (report, loaded.catalog, known)
  }

  /// Is an error about what was typed, and not about the model? Then nothing was checked.
  private static func isWrongUse(_ error: HopdError) -> Bool {
    switch error.code.exit {
    case .usage, .noInput, .notConfigured, .configuration: true
    default: error.code == .noSuchVersion
    }
  }
}

/// MODEL…, `--mappings`, `--order`, `--to`, `--route`, `--rename`, `--no-rename`.
struct CheckSubject: ParsableArguments {
  @Argument(
    help: "A .xcdatamodeld, .momd, .xcdatamodel, .mom, a store that holds its model, or a folder of these.",
    completion: .file())
  var models: [String] = []

  @Option(
    help: ArgumentHelp(
      "A .xcmappingmodel, .cdm, .hopmap.toml, or a folder of them; may be repeated.",
      discussion: "Folders given as MODEL are searched too, and the folder that a model lies in."), completion: .file())
  var mappings: [String] = []

  @Option(
    name: .customLong("order"), parsing: .upToNextOption,
    help: "All versions of the model, oldest first, where the names do not tell.")
  var order: [String] = []

  @Option(help: "The version to reach; else the model's current one.")
  var to: String?

  @Option(help: "The way through the versions: progressive, direct or shortest.")
  var route: RouteRule?

  @Option(
    name: .customLong("rename"),
    help: ArgumentHelp(
      "How a name goes on where renaming identifiers contradict it; may be repeated.", valueName: "old=new"))
  var renames: [String] = []

  @Flag(
    name: .customLong("no-rename"),
    help: "The same name in both versions is the same thing, whatever its renaming identifier says.")
  var noRename = false

  func validate() throws {
    for text in renames where RenameRules.parse(text) == nil {
      throw ValidationError("--rename takes ENTITY.OLD=NEW or OLD=NEW, not \"\(text)\".")
    }
  }

  var target: TargetVersion { to.map { .named($0) } ?? .current }

  var renameRules: RenameRules {
    var rules = RenameRules(namesCount: noRename)
    for (old, new) in renames.compactMap(RenameRules.parse) { rules.renames[old] = new }
    return rules
  }

  /// The models with the mapping models that go with them.
  func load() throws -> (catalog: ModelCatalog, warnings: [HopdError]) {
    guard !models.isEmpty else {
      throw HopdError(
        .usage, "no model was named", hint: "name a .xcdatamodeld or .momd, or a folder: hopctl check MODEL")
    }
    let paths = models.map { FilePath($0) }
    var catalog = try ModelCatalog.load(paths, declaredOrder: order)
    let named = try MappingCatalog.load(mappings.map { FilePath($0) })
    let found = try MappingCatalog.load(paths.flatMap(CheckSubject.placesOfMappings))
    let all = CatalogedMappings(named: named, found: found)
    if !all.isEmpty { catalog.mappings = all }
    return (catalog, catalog.warnings)
  }

  /// Where mapping models of a model are looked for: in a folder all of them, beside a bundle those that lie there.
  private static func placesOfMappings(of model: FilePath) throws(HopdError) -> [FilePath] {
    let bundles: Set<String> = ["xcdatamodeld", "xcdatamodel", "momd", "mom"]
    guard bundles.contains(model.extension ?? "") else { return StoreModels.isStore(model) ? [] : [model] }
    let parent = model.removingLastComponent()
    let folder: FilePath = parent.isEmpty ? "." : parent
    // A parent that may be entered and not listed is no reason not to check.
    let names = (try? ModelFiles.names(in: folder)) ?? []
    return names.filter { name in
      [".xcmappingmodel", ".cdm", TextMapping.fileNameEnd].contains { name.hasSuffix($0) } && !name.hasPrefix(".")
    }.map { folder.appending($0) }
  }
}

/// `--only`, `--since`, `--stores`, `--budget`, `--rows`, `--seed`, `--unhappy`, `--jobs`, …
struct CheckExtent: ParsableArguments {
  @Option(help: ArgumentHelp("Check this version only; may be repeated.", valueName: "version"))
  var only: [String] = []

  @Option(help: ArgumentHelp("Check this version and later ones.", valueName: "version"))
  var since: String?

  @Option(
    help: ArgumentHelp(
      "A folder of users' stores, or a store: each is migrated on a copy; may be repeated.", valueName: "dir"),
    completion: .file())
  var stores: [String] = []

  @Option(
    help: ArgumentHelp(
      "After so many seconds no further store is tried: the models alone decide about the rest.",
      valueName: "seconds"))
  var budget: Double?

  @Option(help: "Objects of each entity in a store that is made for trying.")
  var rows: Int64 = 16

  @Option(help: "The same seed makes the same stores.")
  var seed: UInt64 = 1

  @Flag(help: "Try each version also with rows that break the rules of that version itself.")
  var unhappy = false

  @Flag(
    name: .customLong("allow-unbound-policies"),
    help: "A version is good if it gets as far as the first policy that has no program.")
  var allowUnboundPolicies = false

  @Option(
    name: [.customShort("j"), .customLong("jobs")], help: "Versions tried at a time; else one for each processor.")
  var jobs: Int?

  @Option(
    name: .customLong("framework-version"),
    help: "Core Data's own version (NSPersistenceFrameworkVersion) whose habits the stores follow.")
  var frameworkVersion: Int64 = 1344

  @OptionGroup var scratch: ScratchOptions

  func validate() throws {
    guard (1...100_000).contains(rows) else { throw ValidationError("--rows is a number from 1 to 100000.") }
    if let jobs, !(1...256).contains(jobs) { throw ValidationError("--jobs is a number from 1 to 256.") }
    if let budget, !(budget > 0 && budget < 1e9) { throw ValidationError("--budget is a number of seconds above 0.") }
    if frameworkVersion < 1 { throw ValidationError("--framework-version is a number above 0, such as 1344.") }
  }

  func apply(to request: inout CheckRequest) throws(HopdError) {
    request.only = Set(only)
    request.since = since
    request.budget = budget
    request.objectsEach = rows
    request.seed = seed
    request.isUnhappy = unhappy
    request.allowsUnboundPolicies = allowUnboundPolicies
    request.workers = jobs ?? max(1, min(64, sysconf(Int32(_SC_NPROCESSORS_ONLN))))
    request.scratch = scratch.directory
    request.frameworkVersion = frameworkVersion
    for place in stores {
      let found = try StoreFolder.stores(at: FilePath(place))
      guard !found.isEmpty else {
        throw HopdError(
          .usage, "there is no store here", at: Place(file: FilePath(place)),
          hint: "name a folder that holds .sqlite or .store files of the app, or one such file")
      }
      request.stores += found
    }
  }
}
