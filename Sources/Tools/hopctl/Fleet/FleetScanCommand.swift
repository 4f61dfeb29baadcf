import ArgumentParser
import Diagnostics
import DurableFiles
import Glibc
import MigrationChecking
import MigrationPipeline
import MigrationPlanning
import StoreFleet
import SystemPackage

/// `hopctl fleet scan DIR…`.
struct FleetScanCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "scan", abstract: "Find stores and record their model versions",
    discussion: """
      Writes a line of JSON to --output for every Core Data store below the directories: a manifest for `hopctl fleet \
      run`. Skips hidden files and links. --resume continues a killed scan. With --json the lines go to standard \
      output, and the last one is the summary. Read-only.
      """)

  @Argument(help: ArgumentHelp("Directories or stores", valueName: "dir"), completion: .directory)
  var folders: [String] = []

  @Option(
    help: ArgumentHelp(
      "List of paths, or an earlier manifest, instead of directories; - = standard input",
      valueName: "file"), completion: .file())
  var manifest: String?

  @OptionGroup(title: "Model options") var models: ModelOptions
  @OptionGroup(title: "Migration options") var options: RequestOptions

  @Option(
    name: .customLong("output"), help: ArgumentHelp("Write the manifest to this file", valueName: "file"),
    completion: .file())
  var file: String?

  @Flag(help: "Continue the manifest of --output; skip unchanged stores")
  var resume = false

  @Option(help: ArgumentHelp("Write the histogram of versions as an HTML page", valueName: "file"))
  var html: String?

  @OptionGroup var jobs: JobsOption
  @OptionGroup(title: "Output options") var columns: ColumnsOption
  @OptionGroup(title: "Output options") var output: OutputOptions

  func validate() throws {
    if folders.isEmpty == (manifest == nil) {
      throw ValidationError("Pass either directories or --manifest.")
    }
    if resume, file == nil { throw ValidationError("--resume requires --output.") }
  }

  func execute() throws {
    // A scan may take hours: a wrong column is refused before.
    _ = try FleetText.table(of: FleetSummary(), columns)
    let loaded = try models.load(
      for: nil, withMappings: true, allowsOlder: options.target.version.allowOlder, in: folders.map { FilePath($0) })
    try options.target.version.requireKnown(in: loaded)
    output.warn(loaded.warnings)
    let stop = StopOnSignals.start()
    let inspector = StoreInspector(
      catalog: loaded.catalog, target: options.target.target(loaded.watch), settings: options.settings(loaded))
    var summary = FleetSummary()
    // Opening the file removes an incomplete last line, so it is read afterwards.
    let target = try file.map { try openManifest($0) }
    let known = try knownStores()
    let old = known.count
    let line = ProgressLine(output, every: .milliseconds(200))
    let start = ContinuousClock.now
    let scan = FleetScan(inspector: inspector, threads: jobs.count, stop: stop)
    let take: (FleetScan.Round) throws -> Void = { round in
      for store in round.lines {
        summary.add(store)
        try target?.append(store)
        if output.json { try StandardStreams.write(LineFile.bytes(of: store), to: .output) }
      }
      summary.otherDatabases += round.otherDatabases
      line.show(FleetText.line(MessageFormatter.count(old + summary.stores, "store", "stores")))
    }
    var unreadable: [HopdError] = []
    do {
      defer { line.end() }
      if let manifest {
        var list = try Manifest(path: FilePath(manifest))
        try scan.run(&list, known: known, found: take)
      } else {
        var walk = try StoreWalk(folders.map { try FilePath($0).resolved() })
        try scan.run(&walk, known: known, found: take)
        unreadable = walk.unreadable
      }
    }
    for error in unreadable { ErrorReport.report(error) }
    // An empty manifest is what a failed command leaves: one of a fleet without stores says so.
    if summary.stores == 0, known.isEmpty { try target?.append(ScanSummaryLine(summary: summary)) }
    try target?.finish()
    if resume, let file {
      let others = summary.otherDatabases
      summary = try ManifestUpdate.keepNewest(in: FilePath(file).resolved(), job: RequestOptions.jobName())
      summary.otherDatabases = others
    }
    try report(summary, seconds: (ContinuousClock.now - start).seconds)
    if let html { try ReportFile.write(FleetPage.text(of: summary, time: ReportFile.now), to: html) }
    if !unreadable.isEmpty { throw Finished(status: .noPermission) }
  }

  /// Opens the manifest file: a new one, or the existing one with --resume.
  private func openManifest(_ name: String) throws(HopdError) -> LineFile {
    let path = FilePath(name)
    var info = stat()
    if !resume, path.withPlatformString({ stat($0, &info) }) == 0, info.st_mode & S_IFMT == S_IFREG, info.st_size > 0 {
      throw HopdError(
        .outputExists, "manifest already exists", at: Place(file: path),
        hint: "pass --resume to continue it, or remove it")
    }
    return try LineFile(path: path)
  }

  /// The results of an earlier scan, by path. If a store has several lines, the last one is the newest.
  private func knownStores() throws -> [String: KnownStore] {
    guard resume, let file else { return [:] }
    var known: [String: KnownStore] = [:]
    var manifest = try Manifest(path: FilePath(file))
    while let line = try manifest.next() { known[line.store] = KnownStore(line) }
    return known
  }

  private func report(_ summary: FleetSummary, seconds: Double) throws {
    let table = try FleetText.table(of: summary, columns)
    if table.isChosen {
      try output.table(table, summary.inOrder)
    } else {
      let stores = MessageFormatter.count(summary.stores, "store", "stores")
      try output.line("\(stores), \(MessageFormatter.bytes(summary.bytes)), in \(MessageFormatter.duration(seconds))")
      try output.table(table, summary.inOrder, indent: 2)
      try output.lines(FleetText.lines(of: summary))
    }
    if !table.isChosen, let file, summary.groups.contains(where: { $0.state == "behind" && $0.hops != nil }) {
      try output.line(
        "next: hopctl fleet run --manifest \(file.quotedForShell) \(models.words) --canary 50 --results results.ndjson")
    }
    if output.json { try StandardStreams.write(LineFile.bytes(of: ScanSummaryLine(summary: summary)), to: .output) }
  }
}

/// The line of a scan after those of the stores.
struct ScanSummaryLine: Encodable {
  let summary: FleetSummary
}

/// `--jobs`.
struct JobsOption: ParsableArguments {
  @Option(
    name: [.customShort("j"), .customLong("jobs")], help: "Number of stores at a time (default: one for each processor)"
  )
  var jobs: Int?

  func validate() throws {
    if let jobs, !(1...256).contains(jobs) { throw ValidationError("--jobs expects a number from 1 to 256.") }
  }

  var count: Int { jobs ?? max(1, min(64, sysconf(Int32(_SC_NPROCESSORS_ONLN)))) }
}
