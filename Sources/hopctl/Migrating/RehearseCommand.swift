import ArgumentParser
import Diagnostics
import ManagedObjectModel
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import StoreReplacement
import StoreVerification
import SystemPackage

/// `hopctl rehearse STORE`.
struct RehearseCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "rehearse", abstract: "Migrates and verifies a copy of a store, and throws it away.",
    discussion: """
      It does everything that a migration does, policies included, and prints the same report. It only reads the \
      store, and keeps nothing of the copy.
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var models: ModelOptions
  @OptionGroup var options: RequestOptions
  @OptionGroup var scratch: ScratchOptions

  @Option(help: "How thoroughly the result is verified.")
  var verify: VerificationDepth?

  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func execute() throws {
    let location = try store.location().store
    let loaded = try models.load(
      for: location, withMappings: true, allowsOlder: options.target.version.allowOlder)
    let remarks = loaded.warnings + options.mapping.unusedPolicies(of: loaded.catalog)
    output.warn(remarks)
    // Nothing is replaced, so no record of a replacement is kept anywhere.
    var request = try options.request(location, loaded, stateDirectory: "")
    if let verify { request.verification = verify }
    let bar = ProgressBar(output, form: progress.progress, notes: options.verbose.level)
    let report: MigrationReport
    do {
      defer { bar.end() }
      report = try MigrationPipeline().rehearse(request, scratch: scratch.directory, stop: StopOnSignals.start()) {
        bar.show($0)
      }
    } catch {
      bar.end()
      try MigrationOutput(output: output).fail(error, store: location.database) { error in
        if error.code == .interrupted { error.hint = "the store is as it was, and nothing is left of the copy" }
      }
    }
    let warnings = OutputOptions.news(report.warnings, after: remarks)
    output.warn(warnings)
    try MigrationOutput(output: output).show(
      report, verb: "rehearsed", depth: request.verification, warnings: remarks + warnings,
      isCopy: false)
  }
}
