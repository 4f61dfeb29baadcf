// A check as a JUnit report: one suite for each model, one case for each version and each store, so that every CI
// server shows them like tests.

import Diagnostics
import SystemPackage

/// Writes JUnit XML.
package enum JUnitReport {
  /// One case of a suite.
  private struct Case {
    let name: String
    let className: String
    let seconds: Double
    var failure: (type: String, message: String, text: String)?
    var skipped: String?
  }

  /// Returns the report as XML; `timestamp` is the start of the check, as "2026-01-31T12:00:00".
  ///
  /// It follows two schemas that contradict each other: the one that Jenkins uses, and the stricter one of Ant's tasks,
  /// which forbids attributes of `testsuites` and requires empty elements.
  package static func text(_ report: CheckReport, timestamp: String) -> String {
    var suites = report.models.map { (name: $0.name, cases: cases($0), output: remarks($0)) }
    if !report.stores.isEmpty { suites.append((name: "stores", cases: report.stores.map(storeCase), output: "")) }
    var lines = ["<?xml version=\"1.0\" encoding=\"UTF-8\"?>", "<testsuites>"]
    for (number, suite) in suites.enumerated() {
      let time = suite.cases.reduce(0) { $0 + $1.seconds }
      lines.append(
        "  <testsuite id=\"\(number)\" name=\"\(token(suite.name))\" package=\"hopctl.check\" hostname=\"localhost\" "
          + "timestamp=\"\(timestamp.inXML)\" \(counts(suite.cases)) "
          + "skipped=\"\(suite.cases.count { $0.skipped != nil })\" time=\"\(seconds(time))\">")
      lines.append("    <properties/>")
      lines += suite.cases.flatMap(lines(of:))
      let output = suite.output.isEmpty ? "<system-out/>" : "<system-out>\(suite.output.inXML)</system-out>"
      lines += ["    \(output)", "    <system-err/>", "  </testsuite>"]
    }
    return (lines + ["</testsuites>"]).joined(separator: "\n") + "\n"
  }

  /// Warnings and drops fail no case, so they become the suite's output.
  private static func remarks(_ model: ModelCheck) -> String {
    let drops = model.versions.filter { !$0.drops.isEmpty }.map { "\($0.name) drops: \($0.drops.words)" }
    return (model.warnings.map { "warning: \(failure([$0]).text)" } + drops).joined(separator: "\n")
  }

  private static func counts(_ cases: [Case]) -> String {
    "tests=\"\(cases.count)\" failures=\"\(cases.count { $0.failure != nil })\" errors=\"0\""
  }

  private static func lines(of item: Case) -> [String] {
    let start =
      "    <testcase classname=\"\(token(item.className))\" name=\"\(token(item.name))\" "
      + "time=\"\(seconds(item.seconds))\""
    if let failure = item.failure {
      return [
        start + ">",
        "      <failure type=\"\(failure.type.inXML)\" message=\"\(failure.message.inXML)\">"
          + "\(failure.text.inXML)</failure>",
        "    </testcase>",
      ]
    }
    guard let skipped = item.skipped else { return [start + "/>"] }
    return [start + ">", "      <skipped message=\"\(skipped.inXML)\"/>", "    </testcase>"]
  }

  private static func cases(_ model: ModelCheck) -> [Case] {
    let problems = model.problems.isEmpty ? [] : [problemCase(model)]
    var reported: [String: String] = [:]
    return problems
      + model.versions.filter { $0.verdict != .current }.map { version in
        let mine = model.findings.filter { version.verdict == .failed && $0.stopped.contains(version.name) }
        var item = item(
          "\(version.name) → \(model.target ?? "?")", of: model.name, version.seconds, version.verdict,
          mine.isEmpty ? version.findings : mine, note: version.note)
        // Readers would not read the same full text for each of forty versions.
        if let failure = item.failure {
          let first = reported[failure.text]
          reported[failure.text] = first ?? item.name
          if let first { item.failure?.text = "as \(first): \(failure.message)" }
        }
        return item
      }
  }

  private static func problemCase(_ model: ModelCheck) -> Case {
    item("the model itself", of: model.name, 0, .failed, model.problems)
  }

  private static func storeCase(_ store: StoreCheck) -> Case {
    item(store.path.string, of: "stores", store.seconds, store.verdict, store.findings)
  }

  private static func item(
    _ name: String, of className: String, _ seconds: Double, _ verdict: CheckVerdict, _ findings: [CheckFinding],
    note: String? = nil
  ) -> Case {
    var item = Case(name: name, className: className, seconds: seconds)
    switch verdict {
    case .failed: item.failure = failure(findings)
    case .untested, .policy, .later, .empty, .skipped:
      item.skipped = note ?? findings.first?.error.message ?? verdict.rawValue
    case .current, .same, .passed: break
    }
    return item
  }

  private static func failure(_ findings: [CheckFinding]) -> (type: String, message: String, text: String) {
    var lines: [String] = []
    for finding in findings {
      lines.append("\(finding.error.headline) (\(finding.error.code))")
      for remedy in finding.remedies {
        lines.append("- \(remedy.title)")
        for line in remedy.text.split(separator: "\n") { lines.append("    \(line)") }
      }
      if finding.remedies.isEmpty, let hint = finding.error.hint { lines.append("- \(hint)") }
    }
    let first = findings.first?.error
    return (first?.code.name ?? "failed", first?.headline ?? "it failed", lines.joined(separator: "\n"))
  }

  /// Returns a name as a token of XML: never empty, no spaces at its ends, and no two in a row.
  private static func token(_ text: String) -> String {
    let words = text.printableLine.split(separator: " ")
    return words.isEmpty ? "-" : words.joined(separator: " ").inXML
  }

  private static func seconds(_ value: Double) -> String {
    let thousandths = Int64((max(0, min(value, 1e9)) * 1000).rounded())
    let rest = "\(thousandths % 1000)"
    return "\(thousandths / 1000)." + String(repeating: "0", count: 3 - rest.utf8.count) + rest
  }
}
