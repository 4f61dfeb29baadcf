// `--junit`, `--sarif`, `--github`, `--html`: the same result for other readers.

import ArgumentParser
import Diagnostics
import DurableFiles
import Glibc
import MigrationChecking
import SystemPackage

/// Reports beside what is printed.
struct ReportOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Write a JUnit report.", valueName: "file"), completion: .file())
  var junit: String?

  @Option(
    help: ArgumentHelp("Write a SARIF log, whose places are lines of the model's files.", valueName: "file"),
    completion: .file())
  var sarif: String?

  @Option(help: ArgumentHelp("Write one page for a browser.", valueName: "file"), completion: .file())
  var html: String?

  @Flag(
    help: ArgumentHelp(
      "Print annotations for GitHub, and add a summary to the step.",
      discussion: "The summary goes to the file that $GITHUB_STEP_SUMMARY names."))
  var github = false

  /// Writes what was asked for.
  func write(_ report: CheckReport, isSilent: Bool) throws {
    if let junit { try ReportFile.write(JUnitReport.text(report, timestamp: ReportOptions.timestamp()), to: junit) }
    if let html { try ReportFile.write(HTMLReport(report).text, to: html) }
    guard sarif != nil || github else { return }
    let findings = PlacedFinding.all(report, below: ReportOptions.root())
    if let sarif { try ReportFile.write(try SARIFReport.text(findings), to: sarif) }
    guard github else { return }
    if !isSilent {
      for line in GitHubReport.annotations(findings) { try StandardStreams.write(line + "\n", to: .output) }
    }
    if let name = getenv("GITHUB_STEP_SUMMARY").map({ String(cString: $0) }), !name.isEmpty {
      let file = try FileDescriptor.open(
        FilePath(name), .writeOnly, options: [.append, .create, .closeOnExec], permissions: [.ownerReadWrite])
      _ = try file.closeAfter { try file.writeAll(GitHubReport.summary(report).utf8) }
    }
  }

  /// The repository's root: paths in reports begin there.
  private static func root() -> FilePath {
    for name in ["GITHUB_WORKSPACE", "CI_PROJECT_DIR"] {
      if let value = getenv(name), value.pointee != 0 { return FilePath(String(cString: value)) }
    }
    return (try? FilePath(".").resolved()) ?? "/"
  }

  /// Now, in UTC, as reports write it.
  private static func timestamp() -> String {
    var now = time(nil)
    var parts = tm()
    gmtime_r(&now, &parts)
    func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))T"
      + "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
  }
}
