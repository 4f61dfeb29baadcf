import ArgumentParser
import Diagnostics
import DurableFiles
import HopdConfiguration
import ManagedObjectModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import StoreReplacement
import StoreVerification
import SystemPackage

/// `hopctl migrate STORE`.
struct MigrateCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "migrate", abstract: "Migrate a store to the current model version",
    discussion: """
      Replaces the store once the new one is complete, verified and synced to disk, and keeps the old one as a backup. \
      If interrupted, the store is unchanged and the next run continues from the last checkpoint. Also unpins the \
      store. With --dry-run, prints the plan like `hopctl plan`. With --output, also converts a Core Data XML store to \
      SQLite.
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup(title: "Model options") var models: ModelOptions
  @OptionGroup(title: "Migration options") var options: RequestOptions

  @Option(
    name: .customLong("output"), help: "Write a migrated copy to this path; only read the store", completion: .file())
  var copy: String?

  @Flag(name: .customLong("dry-run"), help: "Show what the migration would do")
  var dryRun = false

  @Flag(
    help: ArgumentHelp(
      "First make the tables, columns and indexes that the store lacks.",
      discussion: """
        For a store whose metadata claim a version, and that was never given all of its schema. New tables are empty, \
        new columns have the default of their attribute or none. Refuses where rows would need a value that the model \
        does not have.
        """))
  var repair = false

  @OptionGroup(title: "Migration options") var scratch: ScratchOptions
  @OptionGroup(title: "Migration options") var replacement: ReplaceOptions

  @Option(help: ArgumentHelp("Number of backups to keep, or none", valueName: "keep|none"))
  var backup: BackupCount?

  @Option(help: "Depth of verification")
  var verify: VerificationDepth?

  @OptionGroup var state: StateOptions
  @OptionGroup(title: "Output options") var progress: ProgressOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func validate() throws {
    if scratch.directory != nil, !dryRun { throw ValidationError("--scratch requires --dry-run.") }
  }

  func execute() throws {
    let location = try store.location()
    // A plan's own warnings include the catalog's remarks on this model.
    let (loaded, remarks) = try options.load(models, for: location.store, output) {
      !dryRun || $0.code != .modelRemark
    }
    if ConvertedStore.isNeeded(for: location.store) {
      guard copy != nil else {
        throw HopdError(
          .storeOfXML, "the store is a Core Data XML store, which cannot be migrated in place",
          at: Place(store: location.store.database),
          hint: "run `hopctl migrate \(store.text.quotedForShell) \(models.words) --output NEW.sqlite`")
      }
      return try ConvertedStore.with(location.store, catalog: loaded.catalog) { made in
        try run(CanonicalStoreLocation(resolving: made.database), loaded, remarks, named: location.store.database)
      }
    }
    try run(location, loaded, remarks, named: nil)
  }

  private func run(
    _ location: CanonicalStoreLocation, _ loaded: ModelOptions.Loaded, _ remarks: [HopdError], named: FilePath?
  ) throws {
    if dryRun { return try plan(location, loaded, remarks, named: named) }
    let request = try request(location, loaded, stateDirectory: try state.directory())
    let bar = ProgressBar(output, form: progress.progress, notes: options.verbose.level)
    try MigrationOutput(output: output, named: named).run(
      request, remarks, bar, verb: "migrated", isCopy: copy != nil,
      interrupted: "the store is unchanged; run the same command again: "
        + (copy == nil ? "it resumes at the last checkpoint" : "a copy starts over")
    ) { show throws(MigrationFailure) in
      try MigrationPipeline().run(request, stop: StopOnSignals.start(), observer: show)
    }
  }

  private func plan(
    _ location: CanonicalStoreLocation, _ loaded: ModelOptions.Loaded, _ remarks: [HopdError], named: FilePath?
  ) throws {
    var report = PlanReport(
      store: named ?? location.store.database, text: store.text,
      request: try request(location, loaded, stateDirectory: ""), loaded: loaded, remarks: remarks,
      scratch: scratch.directory, notes: options.verbose.level, output: output)
    report.requiresStages = true
    try report.run()
  }

  private func request(
    _ location: CanonicalStoreLocation, _ loaded: ModelOptions.Loaded, stateDirectory: FilePath
  ) throws -> MigrationRequest {
    var request = try options.request(location, loaded, stateDirectory: stateDirectory)
    if let copy { request.output = try StoreArgument.location(of: copy).database }
    if let backup { request.backup.keep = backup.count }
    request.releasesPin = true
    request.repairs = repair
    if let verify { request.verification = verify }
    if let chosen = replacement.replace { request.replacement = chosen }
    return request
  }
}

/// KEEP of `--backup`: a number, or "none".
struct BackupCount: ExpressibleByArgument {
  let count: Int

  init?(argument: String) {
    if argument == "none" {
      count = 0
    } else {
      guard let number = Int(argument), (0...1000).contains(number) else { return nil }
      count = number
    }
  }
}

extension VerificationDepth: ExpressibleByArgument {}
