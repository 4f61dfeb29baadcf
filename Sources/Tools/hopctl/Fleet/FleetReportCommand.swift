import ArgumentParser
import Diagnostics
import StoreFleet
import SystemPackage

/// `hopctl fleet report FILE…`.
struct FleetReportCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "report", abstract: "Summarize the results of all workers",
    discussion: """
      Exit status: 0 all stores are current; 65 some failed and need attention; 75 some are waiting or have no result, \
      or shards did not report: run the workers again.
      """)

  @Argument(
    help: ArgumentHelp("Results of `hopctl fleet run`, or directories of them", valueName: "file|dir"),
    completion: .file())
  var files: [String]

  @Option(help: ArgumentHelp("Write an HTML page", valueName: "file"), completion: .file())
  var html: String?

  @OptionGroup(title: "Output options") var output: OutputOptions

  func execute() throws {
    var builder = FleetReportBuilder()
    for file in files { for path in try ResultFiles.at(FilePath(file)) { try builder.read(path) } }
    let report = builder.made()
    for line in FleetText.lines(of: report) { try output.line(line) }
    try output.encoded(report)
    if let html { try ReportFile.write(FleetPage.text(of: report, time: ReportFile.now), to: html) }
    throw Finished(status: report.exit)
  }
}
