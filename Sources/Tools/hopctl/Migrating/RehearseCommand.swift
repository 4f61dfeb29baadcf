import ArgumentParser
import Diagnostics
import MigrationPipeline
import StoreReplacement
import StoreVerification
import SystemPackage

/// `hopctl rehearse STORE`.
struct RehearseCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "rehearse", abstract: "Migrate and verify a temporary copy of a store",
    discussion: """
      Performs a complete migration, including policies, on a temporary copy and prints the same report. The store is \
      only read; the copy is deleted.
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup(title: "Model options") var models: ModelOptions
  @OptionGroup(title: "Migration options") var options: RequestOptions
  @OptionGroup(title: "Migration options") var scratch: ScratchOptions

  @Option(help: "Depth of verification")
  var verify: VerificationDepth?

  @OptionGroup(title: "Output options") var progress: ProgressOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func execute() throws {
    let location = try store.location()
    let (loaded, remarks) = try options.load(models, for: location.store, output)
    // A rehearsal replaces nothing, so it needs no state directory for an intent record.
    var request = try options.request(location, loaded, stateDirectory: "")
    if let verify { request.verification = verify }
    let bar = ProgressBar(output, form: progress.progress, notes: options.verbose.level)
    try MigrationOutput(output: output).run(
      request, remarks, bar, verb: "rehearsed", interrupted: "the store is unchanged, and the copy was deleted"
    ) { [request] show throws(MigrationFailure) in
      try MigrationPipeline().rehearse(
        request, scratch: scratch.directory, stop: StopOnSignals.start(), observer: show)
    }
  }
}
