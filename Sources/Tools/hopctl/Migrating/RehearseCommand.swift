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
    let location = try store.location()
    let (loaded, remarks) = try options.load(models, for: location.store, output)
    // A rehearsal replaces nothing, so it needs no state directory for an intent record.
    var request = try options.request(location, loaded, stateDirectory: "")
    if let verify { request.verification = verify }
    let bar = ProgressBar(output, form: progress.progress, notes: options.verbose.level)
    try MigrationOutput(output: output).run(
      request, remarks, bar, verb: "rehearsed", interrupted: "the store is as it was, and nothing is left of the copy"
    ) { [request] show throws(MigrationFailure) in
      try MigrationPipeline().rehearse(
        request, scratch: scratch.directory, stop: StopOnSignals.start(), observer: show)
    }
  }
}
