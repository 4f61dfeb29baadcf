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
    commandName: "check", abstract: "Test migrations from every model version",
    discussion: """
      Creates a sample store of each version in a scratch directory, migrates one copy directly and one hop by hop, \
      verifies both results and compares them. Writes nothing else.

      Exit status: 0 all tested versions reach the current one; 65 some do not, a shipped version was changed, or with \
      --fail-on-drop a hop drops data without permission; 78 a policy without a program, or an invalid lock.
      """)

  @OptionGroup var subject: CheckSubject
  @OptionGroup var extent: CheckExtent
  @OptionGroup(title: "Lock options") var lock: LockOptions
  @OptionGroup(title: "Report options") var reports: ReportOptions

  @Option(
    name: .customLong("write-stages"),
    help: ArgumentHelp(
      "Write the stages of the app's plan that need a program to a new NAME.hopstages.toml.",
      discussion: "Each has the hooks of the plan, with names to which --policy binds programs.", valueName: "file"),
    completion: .file())
  var stagesFile: String?

  @OptionGroup(title: "Migration options") var mapping: MappingOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func validate() throws {
    if let stagesFile, !stagesFile.hasSuffix(DeclaredStage.fileNameEnd) {
      throw ValidationError("--write-stages takes a file whose name ends with \(DeclaredStage.fileNameEnd).")
    }
  }

  func execute() throws {
    let stop = StopOnSignals.start()
    try reports.requireFolders()
    let stages = try stagesFile.map { try StagesSkeleton(at: FilePath($0)) }
    let (report, catalog, known) = try checked(stop)
    output.warn(report.warnings)
    try reports.write(report, isSilent: output.json || output.quiet)
    let text = CheckText(report: report)
    try output.lines(text.lines)
    // Only errors, but these: a log that says no more than a status is of no use.
    if output.quiet {
      for line in text.failures { StandardStreams.report(line) }
    }
    if lock.freeze, report.isRed {
      try output.line("nothing was frozen; the lock file is unchanged")
    } else if lock.freeze {
      let writing = LockWriting(file: known.file, record: known.record, frameworkVersion: extent.frameworkVersion)
      try output.lines(writing.write(catalog.bundles, report))
    }
    if let stages { try output.line(stages.write(report)) }
    try output.object(report.json)
    if report.status != .success { throw Finished(status: report.status) }
  }

  private func checked(_ stop: StopSignal) throws -> (CheckReport, ModelCatalog, LockOptions.Loaded) {
    do {
      return try run(stop)
    } catch let error as HopdError {
      // Reports of an earlier run must not be mistaken for the result of this one.
      try? reports.write(
        CheckReport(refusal: error, of: subject.models.map { FilePath($0) }), isSilent: output.json || output.quiet)
      throw error
    }
  }

  private func run(_ stop: StopSignal) throws -> (CheckReport, ModelCatalog, LockOptions.Loaded) {
    let loaded = try subject.load()
    try loaded.catalog.requireVersion(subject.to)
    var request = CheckRequest(catalog: loaded.catalog)
    request.target = subject.target
    request.settings.renames = subject.renameRules
    if let route = subject.route { request.settings.route = route }
    if let rule = mapping.unmappedEntities { request.settings.unmappedEntities = rule }
    mapping.override(&request.settings.engine.invalidRows)
    try mapping.requireKnownEntities(of: loaded.catalog)
    request.policies = try mapping.programs([:])
    try extent.apply(to: &request)
    let known = try lock.load(
      models: subject.models, bundles: loaded.catalog.bundles, scratch: extent.scratch.directory,
      source: subject.source.choice)
    request.shipped = known.record
    request.failsOnDrop = lock.failOnDrop
    request.command = CheckWords(
      models: subject.models, options: subject.words + mapping.words + extent.words + lock.words,
      source: subject.source.words)
    ProgramMemory.limitHeaps(to: 2)
    var report = try ModelChecker(request, stop: stop).run()
    report.warnings = loaded.warnings
    return (report, loaded.catalog, known)
  }
}

/// MODEL…, `--mappings`, `--order`, `--to`, `--route`, `--rename`, `--no-rename`.
struct CheckSubject: ParsableArguments {
  @Argument(
    help: """
      A .xcdatamodeld, .momd, .xcdatamodel, .mom, a store that contains its model, a directory of these, or one of \
      Swift source with SwiftData models.
      """,
    completion: .file())
  var models: [String] = []

  @Option(
    help: ArgumentHelp(
      "Mapping model (.xcmappingmodel, .cdm, .hopmap.toml) or a directory; repeatable",
      discussion: "Directories passed as MODEL, and the directory of a model, are searched too."), completion: .file())
  var mappings: [String] = []

  @Option(
    name: .customLong("order"), parsing: .upToNextOption,
    help: "Declare the order of all model versions, oldest first")
  var order: [String] = []

  @Option(help: "Target version (default: the model's current version)")
  var to: String?

  @Option(help: "Route through the versions: progressive, direct or shortest")
  var route: RouteRule?

  @Option(
    name: .customLong("rename"),
    help: ArgumentHelp(
      "Declare a rename that renaming identifiers contradict; repeatable", valueName: "old=new"))
  var renames: [String] = []

  @Flag(
    name: .customLong("no-rename"),
    help: "Match by name and ignore renaming identifiers")
  var noRename = false

  @OptionGroup(title: "Swift source options") var source: SourceOptions

  func validate() throws {
    if source.tags != nil, models.count != 1 { throw ValidationError("--tags requires one directory of Swift source.") }
    for text in renames where RenameRules.parse(text) == nil {
      throw ValidationError("--rename expects ENTITY.OLD=NEW or OLD=NEW, not \"\(text)\".")
    }
  }

  var target: TargetVersion { to.map { .named($0) } ?? .current }

  var renameRules: RenameRules {
    var rules = RenameRules(namesCount: noRename)
    for (old, new) in renames.compactMap(RenameRules.parse) { rules.renames[old] = new }
    return rules
  }

  /// The options as typed.
  var words: [String] {
    var words = order.isEmpty ? [] : ["--order"] + order
    if let to { words += ["--to", to] }
    words += mappings.flatMap { ["--mappings", $0] }
    if let route { words += ["--route", route.rawValue] }
    words += renames.flatMap { ["--rename", $0] }
    return words + (noRename ? ["--no-rename"] : []) + source.words
  }

  /// Loads the models and their mapping models.
  func load() throws -> (catalog: ModelCatalog, warnings: [HopdError]) {
    guard !models.isEmpty else {
      let found = FoundModels.inside(".")?.paths.first.flatMap(\.lastComponent).map { FilePath($0.string) }
      throw HopdError(
        .noModels, "no model specified" + (found.map { "; found \($0.printable)" } ?? ", and none found here"),
        hint: found.map { "hopctl check \($0.quotedForShell)" }
          ?? "pass a .xcdatamodeld, .xcdatamodel, .momd or .mom, a store that contains its model, or a directory")
    }
    let paths = models.map { FilePath($0) }
    var catalog = try ModelCatalog.load(paths, declaredOrder: order, source: source.reader)
    let named = try MappingCatalog.load(mappings.map { FilePath($0) })
    let found = try MappingCatalog.load(paths.flatMap(CheckSubject.placesOfMappings))
    try catalog.take(named: named, found: found)
    return (catalog, catalog.warnings)
  }

  /// Paths to search for the mapping models of a model: a folder itself, or the mapping models next to a bundle.
  private static func placesOfMappings(of model: FilePath) throws(HopdError) -> [FilePath] {
    let bundles: Set<String> = ["xcdatamodeld", "xcdatamodel", "momd", "mom"]
    guard bundles.contains(model.extension ?? "") else { return StoreModels.isStore(model) ? [] : [model] }
    let parent = model.removingLastComponent()
    let folder: FilePath = parent.isEmpty ? "." : parent
    // A mapping model in a parent that cannot be listed may decide a hop, and the check would try another hop.
    return try ModelFiles.names(in: folder).filter { name in
      [".xcmappingmodel", ".cdm", TextMapping.fileNameEnd].contains { name.hasSuffix($0) } && !name.hasPrefix(".")
    }.map { folder.appending($0) }
  }
}

/// `--only`, `--since`, `--stores`, `--budget`, `--rows`, `--seed`, `--unhappy`, `--jobs`, …
struct CheckExtent: ParsableArguments {
  @Option(help: ArgumentHelp("Check only this version; repeatable", valueName: "version"))
  var only: [String] = []

  @Option(help: ArgumentHelp("Check this version and later ones", valueName: "version"))
  var since: String?

  @Option(
    help: ArgumentHelp(
      "Also migrate copies of these stores: a store or a directory; repeatable", valueName: "dir"),
    completion: .file())
  var stores: [String] = []

  @Option(
    help: ArgumentHelp(
      "Stop testing stores after this many seconds; check the remaining versions by their models only",
      valueName: "seconds"))
  var budget: Double?

  @Option(help: "Number of objects of each entity in a sample store")
  var rows: Int64 = 16

  @Option(help: "Seed of the sample data")
  var seed: UInt64 = 1

  @Flag(help: "Also test rows that violate the rules of their own version")
  var unhappy = false

  @Flag(
    name: .customLong("allow-unbound-policies"),
    help: "Accept a version that reaches the first policy without a program")
  var allowUnboundPolicies = false

  @Option(
    name: [.customShort("j"), .customLong("jobs")],
    help: "Number of versions tested at a time (default: one for each processor)")
  var jobs: Int?

  @Option(
    name: .customLong("framework-version"),
    help: "NSPersistenceFrameworkVersion, which determines the layout of the stores")
  var frameworkVersion: Int64 = 1344

  @OptionGroup var scratch: ScratchOptions

  func validate() throws {
    guard (1...100_000).contains(rows) else { throw ValidationError("--rows expects a number from 1 to 100000.") }
    if let jobs, !(1...256).contains(jobs) { throw ValidationError("--jobs expects a number from 1 to 256.") }
    if let budget, !(budget > 0 && budget < 1e9) {
      throw ValidationError("--budget expects a number of seconds above 0.")
    }
    if frameworkVersion < 1 { throw ValidationError("--framework-version expects a number above 0, e.g. 1344.") }
  }

  /// The options that affect the result, as typed.
  var words: [String] {
    var words = only.flatMap { ["--only", $0] }
    if let since { words += ["--since", since] }
    words += stores.flatMap { ["--stores", $0] }
    if rows != 16 { words += ["--rows", "\(rows)"] }
    if seed != 1 { words += ["--seed", "\(seed)"] }
    if unhappy { words.append("--unhappy") }
    if allowUnboundPolicies { words.append("--allow-unbound-policies") }
    if frameworkVersion != 1344 { words += ["--framework-version", "\(frameworkVersion)"] }
    return words
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
          .usage, "no store here", at: Place(file: FilePath(place)),
          hint: "pass a directory of .sqlite or .store files of the app, or one such file")
      }
      request.stores += found
    }
  }
}
