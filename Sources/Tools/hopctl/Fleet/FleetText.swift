// Scans, runs and reports of fleets as text and tables.

import Diagnostics
import StoreFleet
import SystemPackage

/// Text about fleets.
enum FleetText {
  private static let barWidth = 30
  /// The maximum number of shards to list one by one.
  private static let mostShards = 20

  /// The table of a scan: a histogram of versions.
  static func table(
    of summary: FleetSummary, _ columns: ColumnsOption
  ) throws(HopdError) -> Table<FleetSummary.Group> {
    let most = max(1, summary.groups.map(\.stores).max() ?? 1)
    let showsModel = Set(summary.groups.compactMap(\.model)).count > 1
    return try Table(
      [
        Table.Column(name: "version") { "\(title($0, showsModel: showsModel))" },
        Table.Column(name: "stores", isNumber: true) { "\(MessageFormatter.count($0.stores))" },
        Table.Column(name: "share", isNumber: true, rank: 1) {
          "\(($0.stores * 100 + summary.stores / 2) / max(1, summary.stores))%"
        },
        Table.Column(name: "size", isNumber: true, rank: 3) { "\(MessageFormatter.bytes($0.bytes))" },
        Table.Column(name: "route", rank: 2) { "\($0.route)" },
        Table.Column(name: "histogram", rank: 4) {
          "\(String(repeating: "#", count: max(1, $0.stores * barWidth / most)))"
        },
        Table.Column(name: "model") { "\($0.model ?? "-")" },
        Table.Column(name: "state") { "\($0.state)" },
        Table.Column(name: "example", isPath: true) { "\(FilePath($0.example).printable)" },
      ], shown: ["version", "stores", "share", "size", "route", "histogram"], columns)
  }

  /// A progress line of parts, the most important one first.
  static func line(_ parts: String...) -> FittedLine {
    var line = FittedLine(separator: ", ")
    for (rank, part) in parts.enumerated() { line.add(part, rank: rank) }
    return line
  }

  /// The lines of a scan below its table.
  static func lines(of summary: FleetSummary) -> [String] {
    var lines: [String] = []
    for group in summary.inOrder {
      guard let error = group.error else { continue }
      lines.append("  \(FilePath(group.example).printable): \(error.message)")
      if let hint = error.hint { lines.append("    hint: \(hint)") }
    }
    for (part, stores) in summary.drops.sorted(by: { $0.key < $1.key }) {
      let what = part.contains(".") ? "" : " (all rows)"
      lines.append("  migration drops \(part.printableLine)\(what) in \(count(stores, "store", "stores"))")
    }
    if summary.otherDatabases > 0 {
      lines.append("  \(count(summary.otherDatabases, "other database", "other databases")) without a Core Data store")
    }
    if summary.seconds > 0 {
      lines.append(
        "  migration takes about \(MessageFormatter.duration(summary.seconds)) with one job, and up to "
          + "\(MessageFormatter.bytes(summary.largestNeed)) of free space per concurrent migration")
    }
    return lines
  }

  /// The version, such as "Library 2"; the state for stores without a known version.
  static func title(_ group: FleetSummary.Group, showsModel: Bool) -> String {
    guard let version = group.version else { return group.state }
    guard showsModel, let model = group.model, model != version else { return version }
    return "\(model): \(version)"
  }

  /// The lines at the end of a run.
  static func lines(of outcome: RunOutcome, shard: Shard, isCanary: Bool) -> [String] {
    let tried = outcome.migrated + outcome.current + outcome.failed + outcome.waiting
    let counts = [
      (outcome.migrated, "migrated"), (outcome.current, "already current"), (outcome.failed, "failed"),
      (outcome.waiting, "waiting"), (outcome.untried, "not processed"),
    ]
    let parts = counts.enumerated().filter { $0.offset < 2 || $0.element.0 > 0 }.map {
      "\(MessageFormatter.count($0.element.0)) \($0.element.1)"
    }
    let subject = isCanary ? "canary" : shard.count > 1 ? "shard \(shard)" : "done"
    var lines = [
      "\(subject): \(parts.joined(separator: ", ")); \(MessageFormatter.duration(outcome.seconds)), "
        + "\(MessageFormatter.count(Int64(Double(tried) / max(outcome.seconds, 0.001)))) stores a second"
    ]
    for (part, number) in (outcome.drops ?? [:]).sorted(by: { $0.key < $1.key }) {
      // Names of entities have no dot.
      let amount =
        part.contains(".")
        ? MessageFormatter.count(number, "value", "values") : MessageFormatter.count(number, "object", "objects")
      lines.append("  dropped \(part.printableLine): \(amount)")
    }
    switch outcome.stopped {
    case .signal: lines.append("  stopped by a signal; run the same command to continue")
    case .deadline: lines.append("  stopped at the deadline; run the same command to continue")
    case .failures: lines.append("  stopped: more failures than --max-failures; check them first")
    case .canary:
      lines.append("  open these stores with the app; if they are fine, rerun this command with --continue")
    case nil: break
    }
    return lines
  }

  /// The lines of a report.
  static func lines(of report: FleetReport) -> [String] {
    let ended = MessageFormatter.count(report.shards.count { $0.state == .ended })
    let shards =
      report.runs == 0
      ? "no worker has reported"
      : report.shards.isEmpty ? "only a canary" : "\(ended) of \(count(report.shards.count, "shard", "shards")) done"
    var lines = ["\(count(report.fleet, "store", "stores")), \(shards)"]
    let counts = [
      ("migrated", report.migrated, ""), ("already current", report.current, ""),
      ("failed", report.failed, "some stores failed and need attention"),
      ("waiting", report.waiting, "run the workers again"),
      ("without result", report.withoutResult, "run the workers again"),
      ("migrated twice", report.migratedTwice, "two workers processed the same store; see docs/FLEET.md"),
    ]
    lines += MessageFormatter.table(
      counts.filter { $0.1 > 0 || $0.0 == "migrated" }.map { [$0.0, MessageFormatter.count(Int64($0.1)), $0.2] },
      right: [1])
    let open = report.shards.filter { $0.state != .ended }
    for shard in open.prefix(mostShards) {
      let why =
        switch shard.state {
        case .missing: "no report"
        case .unfinished: "its last run was killed or is still running" + (shard.host.map { " (\($0))" } ?? "")
        case .stopped: "its last run stopped early, with exit status \(shard.exit ?? 0)"
        case .ended: ""
        }
      lines.append("  shard \(shard.shard)/\(shard.shards): \(why)")
    }
    if open.count > mostShards {
      lines.append("  and \(MessageFormatter.count(open.count - mostShards)) more shards: see --json")
    }
    lines += versions(report) + failures(report) + slowest(report)
    return lines
  }

  private static func versions(_ report: FleetReport) -> [String] {
    guard !report.versions.isEmpty else { return [] }
    return ["versions"]
      + MessageFormatter.table(
        report.versions.map {
          [
            $0.before ?? "?", $0.before == $0.after ? "" : "→", $0.before == $0.after ? "" : $0.after ?? "?",
            MessageFormatter.count(Int64($0.stores)),
          ]
        }, right: [3])
  }

  private static func failures(_ report: FleetReport) -> [String] {
    report.failures.flatMap { cause -> [String] in
      [
        "\(count(cause.stores, "store", "stores")) \(cause.isRetryable ? "waiting" : "failed"): "
          + cause.error.message,
        "  for example \(cause.example.printableLine)", "  next: \(cause.next)",
      ] + (cause.error.hint.map { ["  hint: \($0)"] } ?? [])
    }
  }

  private static func slowest(_ report: FleetReport) -> [String] {
    guard report.seconds > 0 else { return [] }
    let rate =
      "\(MessageFormatter.count(report.rowsPerSecond)) objects and "
      + "\(MessageFormatter.bytes(report.bytesPerSecond)) a second with one job"
    return ["slowest stores; in total \(rate)"]
      + MessageFormatter.table(
        report.slowest.prefix(5).map {
          [MessageFormatter.duration($0.seconds), MessageFormatter.bytes($0.bytes ?? 0), $0.store.printableLine]
        }, right: [0, 1])
  }

  private static func count(_ number: Int, _ one: String, _ many: String) -> String {
    MessageFormatter.count(number, one, many)
  }
}
