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
    commandName: "migrate", abstract: "Migrates a store to the current version of its model.",
    discussion: """
      It replaces the store when the new one is complete, verified and durable, and keeps the old one beside it. An \
      interrupted run leaves the store as it was, and the next run continues from the checkpoint. If a restore has \
      pinned the store, this command releases it. With --output it also makes a SQLite store of a Core Data XML store.
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var models: ModelOptions
  @OptionGroup var options: RequestOptions

  @Option(name: .customLong("output"), help: "Write a migrated copy here and only read the store.", completion: .file())
  var copy: String?

  @OptionGroup var replacement: ReplaceOptions

  @Option(help: ArgumentHelp("How many old stores are kept, or none.", valueName: "keep|none"))
  var backup: BackupCount?

  @Option(help: "How thoroughly the result is verified.")
  var verify: VerificationDepth?

  @OptionGroup var state: StateOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func execute() throws {
    let location = try store.location()
    let (loaded, remarks) = try options.load(models, for: location.store, output)
    if ConvertedStore.isNeeded(for: location.store) {
      guard copy != nil else {
        throw HopdError(
          .storeOfXML, "the store is a Core Data XML store, which cannot be migrated in its place",
          at: Place(store: location.store.database),
          hint: "hopctl migrate \(store.text.quotedForShell) \(models.words) --output NEW.sqlite")
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
    let request = try request(location, loaded)
    let bar = ProgressBar(output, form: progress.progress, notes: options.verbose.level)
    try MigrationOutput(output: output, named: named).run(
      request, remarks, bar, verb: "migrated", isCopy: copy != nil,
      interrupted: "the store is as it was; run the same command again: "
        + (copy == nil ? "it continues from the last checkpoint" : "a copy starts over")
    ) { show throws(MigrationFailure) in
      try MigrationPipeline().run(request, stop: StopOnSignals.start(), observer: show)
    }
  }

  private func request(_ location: CanonicalStoreLocation, _ loaded: ModelOptions.Loaded) throws -> MigrationRequest {
    var request = try options.request(location, loaded, stateDirectory: try state.directory())
    if let copy { request.output = try StoreArgument.location(of: copy).database }
    if let backup { request.backup.keep = backup.count }
    request.releasesPin = true
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
