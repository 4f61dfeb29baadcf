// `--junit`, `--sarif`, `--github`, `--html`: the same result for other programs and for browsers.

import ArgumentParser
import Diagnostics
import DurableFiles
import Glibc
import MigrationChecking
import SystemPackage

/// Options for reports in addition to the printed output.
struct ReportOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Write a JUnit report", valueName: "file"), completion: .file())
  var junit: String?

  @Option(
    help: ArgumentHelp("Write a SARIF log, with lines of the model files", valueName: "file"),
    completion: .file())
  var sarif: String?

  @Option(help: ArgumentHelp("Write an HTML page", valueName: "file"), completion: .file())
  var html: String?

  @Flag(
    help: ArgumentHelp(
      "Print GitHub annotations and append a step summary",
      discussion: "The summary is appended to the file in $GITHUB_STEP_SUMMARY."))
  var github = false

  /// Throws if the folder of a report does not exist.
  func requireFolders() throws {
    for name in [junit, sarif, html] { if let name { try ReportFile.requireFolder(of: name) } }
  }

  /// Writes the requested reports.
  func write(_ report: CheckReport, isSilent: Bool) throws {
    let now = ReportFile.now
    // JUnit's timestamp has no time zone.
    if let junit { try ReportFile.write(JUnitReport.text(report, timestamp: String(now.dropLast())), to: junit) }
    if let html {
      var commits: [CheckedCommit] = []
      for commit in report.models.compactMap({ Git.commit(of: $0.path) }) where !commits.contains(commit) {
        commits.append(commit)
      }
      try ReportFile.write(HTMLReport(report, time: now, commits: commits).text, to: html)
    }
    guard sarif != nil || github else { return }
    let findings = PlacedFinding.all(report, below: ReportOptions.root())
    if let sarif { try ReportFile.write(try SARIFReport.text(findings), to: sarif) }
    guard github else { return }
    if !isSilent {
      for line in GitHubReport.annotations(findings) { try StandardStreams.write(line + "\n", to: .output) }
    }
    if let name = Environment.value(of: "GITHUB_STEP_SUMMARY") {
      let file = try FileDescriptor.open(
        FilePath(name), .writeOnly, options: [.append, .create, .closeOnExec], permissions: [.ownerReadWrite])
      _ = try file.closeAfter { try file.writeAll(GitHubReport.summary(report).utf8) }
    }
  }

  /// The repository's root; paths in reports are relative to it.
  private static func root() -> FilePath {
    let named = ["GITHUB_WORKSPACE", "CI_PROJECT_DIR"].lazy.compactMap { Environment.value(of: $0) }.first
    return named.map { FilePath($0) } ?? (try? FilePath(".").resolved()) ?? "/"
  }
}
