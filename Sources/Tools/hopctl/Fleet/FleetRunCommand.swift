import ArgumentParser
import Diagnostics
import DurableFiles
import Glibc
import HopdConfiguration
import MigrationChecking
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import StoreFleet
import StoreReplacement
import StoreVerification
import SystemPackage

/// `hopctl fleet run`.
struct FleetRunCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "run", abstract: "Migrate one shard of a fleet of stores",
    discussion: """
      Migrates the stores of a manifest (`hopctl fleet scan --output`) that belong to this shard. Current stores are \
      skipped, so the command can be repeated at any time: after a kill, after SIGTERM, or on another machine. Writes \
      a line for each result to --results. On a terminal, lists the stores and asks for confirmation.

      Exit status: 0 all stores are current; 65 some stores failed, or are pinned by a restore; 75 incomplete, run \
      again (stopped, busy stores, no space); 10 canary finished, run again with --continue.
      """)

  @OptionGroup var share: ShareOptions
  @OptionGroup(title: "Model options") var models: ModelOptions
  @OptionGroup(title: "Migration options") var options: RequestOptions
  @OptionGroup var limits: WorkLimits
  @OptionGroup var jobs: JobsOption
  @OptionGroup(title: "Migration options") var replacement: ReplaceOptions

  @Option(
    help: ArgumentHelp(
      "Append a line for each store to this file, or to a file per shard in this directory",
      valueName: "file|dir"), completion: .file())
  var results: String?

  @Option(help: ArgumentHelp("Number of backups to keep, or none", valueName: "keep|none"))
  var backup: BackupCount?

  @Option(help: "Depth of verification; the stores of --canary are verified fully")
  var verify: VerificationDepth?

  @Flag(name: .customLong("dry-run"), help: "Show what would be migrated")
  var dryRun = false

  @Flag(help: "Do not ask for confirmation")
  var yes = false

  @OptionGroup var state: StateOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func validate() throws {
    if dryRun, yes { throw ValidationError("Pass either --dry-run or --yes, not both.") }
  }

  func execute() throws {
    let isAsked = !dryRun && !yes && Confirmation.isPossible
    // Until the question is answered, Ctrl-C ends the command.
    let early = isAsked ? nil : StopOnSignals.start()
    let shard = try share.shard.resolved()
    var (stores, fleet) = try share.stores(of: shard)
    let stateDirectory = dryRun ? "" : try state.directory()
    let templates = try WorkTemplates(for: stores, models: models) { try template($0, stateDirectory) }
    if dryRun || isAsked {
      stores = try templates.inspected(stores, threads: jobs.count, stop: early ?? StopSignal())
      let preview = FleetPreview(templates.notingPins(limits.chosen(of: stores)))
      if dryRun { return try preview.report(output) }
      try confirm(preview, templates)
    }
    let stop = early ?? StopOnSignals.start()
    let file = try results.map { try LineFile(path: ShareOptions.file($0, shard)) }
    let session = WorkSession(
      templates: templates, stateDirectory: stateDirectory, shard: shard, fleet: fleet,
      limits: limits.limits(jobs: jobs.count), file: file, stop: stop, options: models.words, output: output,
      bar: ProgressLine(output, every: .milliseconds(200)))
    if let count = limits.canary {
      stores = try templates.inspected(stores, threads: jobs.count, stop: stop)
      let sample = CanarySample.of(stores, count: count)
      let outcome = try session.run(sample, isCanary: true, mayEnd: stores.count > sample.count && !limits.continues)
      guard outcome.exit == 0 else { throw Finished(status: ExitStatus(rawValue: outcome.exit) ?? .software) }
      let done = Set(sample.map(\.store))
      stores.removeAll { done.contains($0.store) }
    }
    let outcome = try session.run(limits.order.sorted(stores), isCanary: false, mayEnd: false)
    try file?.finish()
    if let name = file?.path.string { try output.line("  hopctl fleet report \(name.quotedForShell)") }
    throw Finished(status: ExitStatus(rawValue: outcome.exit) ?? .software)
  }

  private func confirm(_ preview: FleetPreview, _ templates: WorkTemplates) throws {
    guard !preview.behind.isEmpty else { return }
    try output.lines(preview.lines)
    try Confirmation.require(
      "Migrate \(MessageFormatter.count(preview.behind.count, "store", "stores")) in place? "
        + (templates.keepBackups ? "The current stores become backups." : "No backup is kept."),
      refusal: "cancelled; no store was migrated")
  }

  /// The common request of a watch's stores, or of all stores; each store fills in its own location and job name.
  private func template(_ watch: String?, _ stateDirectory: FilePath) throws -> MigrationRequest {
    var models = models
    if let watch { models.watch = watch }
    let loaded = try models.load(
      for: nil, withMappings: true, allowsOlder: options.target.version.allowOlder,
      in: share.folders.map { FilePath($0) })
    try options.target.version.requireKnown(in: loaded)
    output.warn(loaded.warnings)
    var request = try options.request(CanonicalStoreLocation(unresolved: "/"), loaded, stateDirectory: stateDirectory)
    if let backup { request.backup.keep = backup.count }
    if let verify { request.verification = verify }
    if let chosen = replacement.replace { request.replacement = chosen }
    return request
  }
}

/// `--manifest`, `--shard`.
struct ShareOptions: ParsableArguments {
  @Argument(
    help: ArgumentHelp("Directories of stores, instead of --manifest", valueName: "dir"),
    completion: .directory)
  var folders: [String] = []

  @Option(
    help: ArgumentHelp(
      "Manifest by `hopctl fleet scan`, or a list of paths; - = standard input",
      valueName: "file"),
    completion: .file())
  var manifest: String?

  @Option(
    help: ArgumentHelp(
      "Shard of this worker: I of N, from 1, or auto",
      discussion: """
        auto reads $HOPD_SHARD, or the variables of Slurm (array jobs), AWS Batch or Kubernetes (Indexed Jobs, with \
        the number of shards in $HOPD_SHARDS). The shard depends only on the UUID or path of a store: another worker \
        takes over some stores, and all others keep theirs.
        """, valueName: "i/n|auto"))
  var shard = ShardArgument.fixed(.whole)

  func validate() throws {
    if folders.isEmpty == (manifest == nil) {
      throw ValidationError("Pass either --manifest or directories.")
    }
  }

  /// Returns the stores of a shard, each once, and the number of stores in the fleet.
  func stores(of shard: Shard) throws -> (stores: [StoreLine], fleet: Int) {
    var (stores, fleet): ([StoreLine], Int) = ([], 0)
    var seen: Set<UInt64> = []
    func take(_ line: StoreLine) {
      fleet += 1
      guard shard.holds(line.shardKey), seen.insert(StableHash.of(line.store)).inserted else { return }
      stores.append(line)
    }
    if let manifest {
      var list = try Manifest(path: FilePath(manifest))
      while let line = try list.next() { take(line) }
      // A list that a failed command left empty must not look like a fleet whose stores are all current.
      let isOfAScan = list.hasSummary
      guard fleet > 0 || isOfAScan else {
        throw HopdError(
          .badManifest, "the manifest is empty", at: Place(file: FilePath(manifest)),
          hint: "check that the command that wrote it succeeded, or run: hopctl fleet scan DIR --output FILE")
      }
    } else {
      var walk = try StoreWalk(folders.map { try FilePath($0).resolved() })
      while case let files = walk.next(4096), !files.isEmpty {
        for file in files where StoreModels.mayBeStore(file.path) { take(StoreLine(file)) }
      }
      if let first = walk.unreadable.first { throw first }
    }
    return (stores, fleet)
  }

  /// Returns the path of a shard's results. A name that ends with a slash is a folder, which is made if it is missing.
  static func file(_ name: String, _ shard: Shard) throws -> FilePath {
    var info = stat()
    let path = FilePath(name)
    if name.hasSuffix("/"), access(name, F_OK) != 0 {
      try LinuxFileSystem(isDurable: false).ensureDirectory(path.resolvedInFolder())
    }
    guard path.withPlatformString({ stat($0, &info) }) == 0, info.st_mode & S_IFMT == S_IFDIR else { return path }
    func padded(_ number: Int) -> String {
      let digits = String(number)
      return String(repeating: "0", count: max(0, String(shard.count).count - digits.count)) + digits
    }
    return path.appending("shard-\(padded(shard.index))-of-\(shard.count).ndjson")
  }
}

/// I/N or auto.
enum ShardArgument: ExpressibleByArgument {
  case fixed(Shard)
  case auto

  init?(argument: String) {
    if argument == "auto" {
      self = .auto
    } else {
      guard let shard = Shard(argument) else { return nil }
      self = .fixed(shard)
    }
  }

  var defaultValueDescription: String { "1/1" }

  func resolved() throws(HopdError) -> Shard {
    switch self {
    case .fixed(let shard): shard
    case .auto: try Shard.automatic { name in getenv(name).map { String(cString: $0) } }
    }
  }
}

/// `--first`, `--deadline`, `--max-failures`, `--canary`, `--continue`.
struct WorkLimits: ParsableArguments {
  @Option(name: .customLong("first"), help: "Order of the stores: manifest, smallest, largest or oldest")
  var order = WorkOrder.manifest

  @Option(
    help: ArgumentHelp(
      "Stop after this time, e.g. 50min, at a checkpoint, with exit status 75",
      valueName: "time"))
  var deadline: String?

  @Option(
    help: ArgumentHelp(
      "Stop after this many failures: a number, or a percentage of the shard, e.g. 5%",
      valueName: "count|percent"))
  var maxFailures: FailureLimit?

  @Option(
    help: ArgumentHelp(
      "Migrate and fully verify a sample of COUNT stores, then stop",
      discussion:
        "The sample contains the smallest and the largest store of each version, then others.",
      valueName: "count"))
  var canary: Int?

  @Flag(name: .customLong("continue"), help: "Continue if every store of --canary was migrated")
  var continues = false

  func validate() throws {
    if let deadline, Quantity.duration(deadline).map({ $0 > .zero }) != true {
      throw ValidationError("--deadline expects a time, e.g. 50min, 12h or 90s, not \"\(deadline)\".")
    }
    if let canary, canary < 1 { throw ValidationError("--canary expects a number of stores, at least 1.") }
    if continues, canary == nil { throw ValidationError("--continue requires --canary.") }
  }

  /// The stores that a run migrates: all of them, or the sample of a canary that ends there.
  func chosen(of stores: [StoreLine]) -> [StoreLine] {
    guard let canary, !continues else { return stores }
    return CanarySample.of(stores, count: canary)
  }

  func limits(jobs: Int) -> FleetWorker.Limits {
    FleetWorker.Limits(deadline: deadline.flatMap { Quantity.duration($0) }, failures: maxFailures, jobs: jobs)
  }
}

extension WorkOrder: ExpressibleByArgument {}

extension FailureLimit: ExpressibleByArgument {
  public init?(argument: String) { self.init(argument) }
}
