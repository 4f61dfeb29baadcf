import ArgumentParser
import Diagnostics
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import StoreReplacement
import SystemPackage

/// `hopctl plan STORE`.
struct PlanCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "plan", abstract: "Show what a migration would do",
    discussion: "Read-only. With --check, exit status: 0 nothing to do, 10 migration needed, 65 cannot be migrated.")

  @OptionGroup var store: StoreArgument
  @OptionGroup(title: "Model options") var models: ModelOptions
  @OptionGroup(title: "Migration options") var options: RequestOptions

  @OptionGroup(title: "Migration options") var replacement: ReplaceOptions

  @Flag(help: "Exit with 10 if there is work to do")
  var check = false

  @Flag(
    name: .customLong("no-scan"),
    help: ArgumentHelp(
      "Do not run chains with mapping models in a scratch directory",
      discussion: """
        Such a chain is run up to its first policy in a scratch directory, because its rows can be inspected only \
        then.
        """))
  var noScan = false
  @OptionGroup(title: "Migration options") var scratch: ScratchOptions

  @Flag(
    help: ArgumentHelp(
      "Omit values that differ between machines: sizes, times, directories",
      discussion:
        "With --json, an unchanged plan has the same output, one value per line, for reviews."))
  var stable = false

  @OptionGroup(title: "Output options") var output: OutputOptions

  func execute() throws {
    let location = try store.location()
    // The plan's own warnings include the catalog's remarks on this model.
    let (loaded, remarks) = try options.load(models, for: location.store, output, search: .everywhere) {
      $0.code != .modelRemark
    }
    var request = try options.request(location, loaded, stateDirectory: "")
    if let chosen = replacement.replace { request.replacement = chosen }
    var report = PlanReport(
      store: location.store.database, text: store.text, request: request, loaded: loaded, remarks: remarks,
      scratch: scratch.directory, notes: options.verbose.level, output: output)
    (report.check, report.noScan, report.stable) = (check, noScan, stable)
    try report.run()
  }
}
