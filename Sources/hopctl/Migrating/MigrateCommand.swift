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
      pinned the store, this command releases it.
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
    let location = try store.location().store
    let loaded = try models.load(
      for: location, withMappings: true, allowsOlder: options.target.version.allowOlder)
    let remarks = loaded.warnings + options.mapping.unusedPolicies(of: loaded.catalog)
    output.warn(remarks)
    let request = try request(location, loaded)
    let bar = ProgressBar(output, form: progress.progress, notes: options.verbose.level)
    let report: MigrationReport
    do {
      defer { bar.end() }
      report = try MigrationPipeline().run(request, stop: StopOnSignals.start()) { bar.show($0) }
    } catch {
      bar.end()
      try MigrationOutput(output: output).fail(error, store: location.database) { error in
        guard error.code == .interrupted else { return }
        error.hint =
          request.output == nil
          ? "the store is as it was; run the same command again: it continues from the last checkpoint"
          : "the store is as it was; run the same command again: a copy starts over"
      }
    }
    let warnings = OutputOptions.news(report.warnings, after: remarks)
    output.warn(warnings)
    try MigrationOutput(output: output).show(
      report, verb: "migrated", depth: request.verification, warnings: remarks + warnings,
      isCopy: copy != nil)
  }

  private func request(_ location: StoreLocation, _ loaded: ModelOptions.Loaded) throws -> MigrationRequest {
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
