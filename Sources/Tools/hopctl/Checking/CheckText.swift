// The text output of `check`: a line for each version, then the errors and how to fix them.

import Diagnostics
import MigrationChecking
import SystemPackage

/// A check as lines.
struct CheckText {
  let report: CheckReport

  var lines: [TerminalText] {
    var lines: [TerminalText] = []
    for model in report.models { lines += self.lines(model) }
    if !report.stores.isEmpty { lines += storeLines }
    return lines + ["\(summary)"]
  }

  /// What made the check fail, for `--quiet`; empty if it passed.
  var failures: [TerminalText] {
    guard report.status != .success else { return [] }
    var lines: [TerminalText] = []
    for model in report.models {
      for finding in model.problems + model.findings {
        let text = self.lines(finding)
        lines.append(TerminalText("hopctl:", .bad) + " \(model.name.printableLine): \(text.first ?? "")")
        lines += Self.plain(text.dropFirst())
      }
    }
    for store in report.stores {
      let start = TerminalText("hopctl:", .bad) + " "
      for finding in store.findings { lines += self.lines(finding, of: store.path, start) }
    }
    return lines.isEmpty ? [TerminalText("hopctl:", .bad) + " \(summary)"] : lines
  }

  // MARK: Models

  private func lines(_ model: ModelCheck) -> [TerminalText] {
    var lines: [TerminalText] = ["\(model.name)  \(model.path.printable)\(model.target.map { "  → \($0)" } ?? "")"]
    lines += MessageFormatter.table(
      model.versions.map { version in
        [
          "\(version.name.printableLine)", version.verdict.word, "\(way(version).printableLine)",
          "\(measure(version))",
        ]
      })
    for version in model.versions where version.tags.count > 1 {
      lines.append("\(version.name.printableLine) is also \(Self.tags(version.tags.dropFirst()).printableLine)")
    }
    lines += drops(model)
    for finding in model.problems + model.findings {
      let text = self.lines(finding)
      lines += ["", TerminalText(text.first ?? "", .bad)] + Self.plain(text.dropFirst())
    }
    for finding in model.warnings {
      let text = self.lines(finding)
      lines += ["", TerminalText("warning:", .attention) + " \(text.first ?? "")"] + Self.plain(text.dropFirst())
    }
    for finding in model.extremes {
      lines += ["", "note: only rare rows fail, at the limits of their types or where values must be unique:"]
      lines += self.lines(finding).map { "  \($0)" }
    }
    let remarks = model.versions.flatMap(remarks)
    if !remarks.isEmpty { lines += [""] + Self.plain(remarks) }
    return lines
  }

  /// Tags in a few words.
  private static func tags(_ tags: some BidirectionalCollection<String>) -> String {
    tags.count <= 8
      ? tags.joined(separator: ", ")
      : tags.prefix(4).joined(separator: ", ") + " … \(tags.last ?? "") (\(tags.count))"
  }

  private static func plain(_ lines: some Sequence<String>) -> [TerminalText] { lines.map { TerminalText($0) } }

  /// A version's chain in a few words.
  private func way(_ version: VersionCheck) -> String {
    if let note = version.note { return note }
    if version.verdict == .failed || version.verdict == .policy {
      let hops = Set(version.findings.compactMap(\.error.place.hop)).sorted()
      return hops.isEmpty ? "" : "failed at \(hops.joined(separator: ", "))"
    }
    guard !version.steps.isEmpty else { return "" }
    let counts = [HopKind.inferred, .mapping, .policy].compactMap { kind -> String? in
      let count = version.steps.count { $0.kind == kind }
      return count == 0 ? nil : "\(count) \(kind == .inferred ? "inferred" : kind == .mapping ? "mapped" : "by policy")"
    }
    return MessageFormatter.count(version.steps.count, "hop", "hops") + ": " + counts.joined(separator: ", ")
  }

  private func measure(_ version: VersionCheck) -> String {
    guard version.objects > 0 else { return "" }
    return MessageFormatter.count(version.objects, "object", "objects") + ", "
      + MessageFormatter.duration(version.seconds)
  }

  /// The data that versions lose on their way; versions in a row that lose the same have one line.
  private func drops(_ model: ModelCheck) -> [TerminalText] {
    var rows: [(names: [String], words: String)] = []
    for version in model.versions {
      let words = version.drops.words
      if rows.last?.words == words {
        rows[rows.count - 1].names.append(version.name)
      } else {
        rows.append(([version.name], words))
      }
    }
    let lines = rows.filter { !$0.words.isEmpty }.map { row in
      let names = row.names.count > 3 ? [row.names[0], "…", row.names[row.names.count - 1]] : row.names
      return "\(names.joined(separator: ", ").printableLine) drops: \(row.words.printableLine)"
    }
    guard !lines.isEmpty else { return [] }
    let hint = model.drops.isEmpty ? [] : ["  (with --fail-on-drop, drops not allowed by hop.lock are errors)"]
    return [""] + lines.map { TerminalText($0, .attention) } + Self.plain(hint)
  }

  /// How the result of a direct hop of a passed version differs.
  private func remarks(_ version: VersionCheck) -> [String] {
    guard version.verdict == .passed else { return [] }
    return version.directDifferences.map { place in
      let part = place.property.map { "\(place.entity).\($0)" } ?? place.entity
      return
        "note: \(version.name.printableLine): \(part.printableLine) differs after one direct hop, as Core "
        + "Data migrates in an app without a migrator (--route direct)"
    }
  }

  // MARK: Findings

  private func lines(_ finding: CheckFinding) -> [String] {
    let error = finding.error
    var lines = ["\(error.headline) (\(error.code))"]
    if !finding.stopped.isEmpty {
      lines.append("  affected versions: \(finding.stopped.map(\.printableLine).joined(separator: ", "))")
    }
    if finding.isOfRows { lines.append("  stores without such rows are migrated") }
    for (number, remedy) in finding.remedies.enumerated() {
      lines.append("  \(number + 1). \(remedy.title.printableLine)" + (remedy.text.isEmpty ? "" : ":"))
      lines += remedy.text.split(separator: "\n").map { "       \(String($0).printableHint)" }
    }
    if finding.remedies.isEmpty, let hint = error.hint { lines.append("  hint: \(hint.printableHint)") }
    return lines
  }

  // MARK: Stores

  private var storeLines: [TerminalText] {
    var lines: [TerminalText] = ["", "Stores"]
    lines += MessageFormatter.table(
      report.stores.map { store in
        [
          "\(store.path.printable)", store.verdict.word, "\(store.version?.printableLine ?? "")",
          store.objects > 0 ? "\(MessageFormatter.count(store.objects, "object", "objects"))" : "",
        ]
      })
    for store in report.stores where !store.drops.isEmpty {
      lines.append(TerminalText("\(store.path.printable) drops: \(store.drops.words.printableLine)", .attention))
    }
    for store in report.stores {
      for finding in store.findings { lines += self.lines(finding, of: store.path) }
    }
    return lines
  }

  private func lines(_ finding: CheckFinding, of store: FilePath, _ start: TerminalText = "") -> [TerminalText] {
    let error = finding.error
    let hint = error.hint.map { [TerminalText("  hint: \($0.printableHint)")] } ?? []
    return [start + "\(store.printable): \(error.headline) (\(error.code))"] + hint
  }

  // MARK: Summary

  /// One line for a log.
  var summary: String { "\(report.summary), \(MessageFormatter.duration(report.seconds))" }
}

extension CheckVerdict {
  /// The verdict as a cell of a table.
  fileprivate var word: TerminalText {
    switch self {
    case .current: TerminalText("current", .good)
    case .same: TerminalText("same", .good)
    case .passed: TerminalText("ok", .good)
    case .failed: TerminalText("FAILED", .bad)
    case .untested: TerminalText("untested", .attention)
    case .policy: TerminalText("needs a policy", .attention)
    case .later: "later"
    case .empty: "empty"
    case .skipped: "skipped"
    }
  }
}
