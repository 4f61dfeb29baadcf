// A check as a report for GitHub: annotations at the lines of a pull request, and a summary of the step in Markdown.

import Diagnostics
import SystemPackage

/// Writes the formats that GitHub's runner reads.
package enum GitHubReport {
  /// Returns one line for each finding, as a workflow command.
  package static func annotations(_ findings: [PlacedFinding]) -> [String] {
    findings.map { placed in
      let error = placed.finding.error
      var text = "\(error.headline) (\(error.code))"
      for (number, remedy) in placed.finding.remedies.enumerated() {
        text += "\n\(number + 1). \(remedy.title)" + (remedy.text.isEmpty ? "" : ":\n\(remedy.text)")
      }
      if placed.finding.remedies.isEmpty, let hint = error.hint { text += "\n\(hint)" }
      let command = placed.level == .note ? "notice" : placed.level.rawValue
      return "::\(command) file=\(property(placed.path)),line=\(placed.line),"
        + "title=\(property("hopctl check: \(placed.model)"))::\(data(text))"
    }
  }

  /// Returns the summary of a step.
  package static func summary(_ report: CheckReport) -> String {
    var lines = ["## hopctl check", "", mark(report.summary), ""]
    for model in report.models {
      lines += ["### \(mark(model.name))" + (model.target.map { " → \(mark($0))" } ?? ""), ""]
      lines += ["| Version | | Route | Drops |", "|---|---|---|---|"]
      for version in model.versions {
        let way =
          version.note
          ?? version.steps.map { "\($0.source) → \($0.destination) (\($0.kind.rawValue))" }
          .joined(separator: "; ")
        lines.append(
          "| \(mark(version.name)) | \(sign(version.verdict)) | \(mark(way)) | \(mark(version.drops.words)) |")
      }
      lines.append("")
      for finding in model.problems + model.findings { lines += self.lines(finding) }
      if !model.warnings.isEmpty {
        lines += ["#### ⚠️ Warnings", ""]
        for finding in model.warnings { lines += self.lines(finding) }
      }
      if !model.extremes.isEmpty {
        lines += ["<details><summary>Only rare rows fail: \(model.extremes.count)</summary>", ""]
        for finding in model.extremes { lines += self.lines(finding) }
        lines += ["</details>", ""]
      }
      for hop in model.hops where hop.isBroken || hop.step.kind == .missing {
        lines += [DifferenceText(hop.difference).markdown]
      }
    }
    if !report.stores.isEmpty {
      lines += ["### Stores", "", "| Store | Version | |", "|---|---|---|"]
      lines += report.stores.map { "| \(mark($0.path.string)) | \(mark($0.version ?? "")) | \(sign($0.verdict)) |" }
      lines.append("")
    }
    return lines.joined(separator: "\n")
  }

  private static func lines(_ finding: CheckFinding) -> [String] {
    var lines = ["- **\(mark(finding.error.headline))** (\(finding.error.code))"]
    if !finding.stopped.isEmpty {
      lines.append("  - affected versions: \(mark(finding.stopped.joined(separator: ", ")))")
    }
    for remedy in finding.remedies {
      lines.append("  - \(mark(remedy.title))")
      guard !remedy.text.isEmpty else { continue }
      // The fence must be longer than any in the text.
      let ticks = remedy.text.split(whereSeparator: { $0 != "`" }).map(\.count).max() ?? 0
      let fence = String(repeating: "`", count: max(3, ticks + 1))
      lines += ["", "    \(fence)"] + remedy.text.split(separator: "\n").map { "    \(String($0).printableHint)" }
      lines += ["    \(fence)", ""]
    }
    if finding.remedies.isEmpty, let hint = finding.error.hint { lines.append("  - \(mark(hint))") }
    return lines + [""]
  }

  private static func mark(_ text: String) -> String { DifferenceText.inMarkdown(text) }

  private static func sign(_ verdict: CheckVerdict) -> String {
    switch verdict {
    case .passed, .same: "✅ \(verdict.rawValue)"
    case .failed: "❌ failed"
    case .current: "current"
    case .policy: "⚠️ needs a policy"
    case .untested: "⚠️ untested"
    case .later, .empty, .skipped: verdict.rawValue
    }
  }

  /// Returns the text escaped for a workflow command.
  private static func data(_ text: String) -> String {
    text.replacing("%", with: "%25").replacing("\r", with: "%0D").replacing("\n", with: "%0A")
  }

  private static func property(_ text: String) -> String {
    data(text).replacing(":", with: "%3A").replacing(",", with: "%2C")
  }
}
