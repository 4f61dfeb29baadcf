// The daemon's stores as text: state, reason, since when, next attempt, and the command to type.

import Diagnostics
import DurableFiles
import MigrationChecking
import PersistentStore
import ServiceState
import StoreReplacement
import SystemPackage

/// Lines about stores and jobs.
enum StoreText {
  /// One store in a few lines: state, path, reason, next attempt, command.
  static func lines(_ store: StoreRecord, _ daemon: DaemonOptions) -> [TerminalText] {
    var lines = [word(store.condition) + "  \(store.path)"]
    guard let failure = store.failure else { return lines }
    if store.condition == .pinned, isReleased(store.path) {
      return lines + [
        "  unpinned: hopd migrates it after its next rescan",
        "  next: hopctl retry \(store.path.quotedForShell)\(daemon.words)",
      ]
    }
    lines.append("  \(cause(store, failure))")
    lines.append("  \(after(store, failure, daemon))")
    if !failure.hint.isEmpty { lines.append("  hint: \(failure.hint)") }
    if !failure.command.isEmpty { lines.append("  next: \(failure.command)") }
    return lines
  }

  /// The stores that the restore of a set pinned, in a few lines.
  static func lines(_ group: PinGroup, _ stores: [StoreRecord]) -> [TerminalText] {
    let since = stores.compactMap { $0.failure?.since }.min().map { "  since \(BackupRecord.time($0))" } ?? ""
    return [
      word(.pinned) + "  \(MessageFormatter.count(stores.count, "store", "stores")) of the group \(group)\(since)",
      "  restored together; no retry until they are unpinned", "  next: \(group.command)",
    ]
  }

  /// The name of a state.
  static func word(_ condition: StoreCondition) -> TerminalText {
    switch condition {
    case .current: TerminalText(condition.name, .good)
    case .failed: TerminalText(condition.name, .bad)
    case .busy, .retrying, .pinned, .paused: TerminalText(condition.name, .attention)
    case .waiting, .migrating: TerminalText(condition.name)
    }
  }

  /// The code and the reason; the reason alone if the state has the same name as the code.
  static func cause(_ store: StoreRecord, _ failure: StoreFailure) -> String {
    failure.code == store.condition.name ? failure.reason : "\(failure.code): \(failure.reason)"
  }

  /// Stores with one cause in a few lines: how many, the cause, one of them, and the command that lists all.
  static func lines(
    _ cause: StateReader.Cause, example: StoreRecord, _ daemon: DaemonOptions
  ) -> [TerminalText] {
    guard cause.stores > 1, let code = cause.code, let failure = example.failure else { return lines(example, daemon) }
    let others = cause.reasons > 1 ? " (and other reasons)" : ""
    let count = MessageFormatter.count(cause.stores, "store", "stores")
    return [
      word(cause.condition) + "  \(count): \(first(of: Self.cause(example, failure)))\(others)",
      "  for example \(example.path), since \(BackupRecord.time(failure.since))",
      "  next: hopctl list --state \(cause.condition.name) --code \(code.quotedForShell)\(daemon.words)",
    ]
  }

  /// The first of several reasons: the list of the stores has them all.
  private static func first(of reasons: String) -> String {
    reasons.firstRange(of: "; ").map { String(reasons[..<$0.lowerBound]) } ?? reasons
  }

  /// The reason of a job without the store's path, which has its own column.
  static func reason(_ job: JobRecord) -> String {
    let (reason, start) = (job.reason ?? "", "\(job.path): ")
    return reason.hasPrefix(start) ? String(reason.dropFirst(start.count)) : reason
  }

  /// Whether the pin that held the store back is removed; false if this user cannot read it.
  static func isReleased(_ path: String) -> Bool {
    do {
      return try PinStore(location: CanonicalStoreLocation(resolving: FilePath(path)), files: LinuxFileSystem()).read()
        == nil
    } catch { return false }
  }

  /// The start of the failure, the number of attempts, and the next attempt.
  static func after(_ store: StoreRecord, _ failure: StoreFailure, _ daemon: DaemonOptions) -> String {
    var text = "since \(BackupRecord.time(failure.since))"
    if failure.attempts > 0 { text += ", \(MessageFormatter.count(failure.attempts, "attempt", "attempts"))" }
    switch store.condition {
    case .failed: text += "; no retry until the store, its models or the configuration change"
    case .pinned: text += "; no retry until it is unpinned"
    case .busy, .retrying:
      let now = "now: hopctl retry \(store.path.quotedForShell)\(daemon.words)"
      text += failure.nextAttempt.map { "; next attempt at \(BackupRecord.time($0)) (\(now))" } ?? ""
    case .waiting, .migrating, .current, .paused: break
    }
    return text
  }

  /// "v1", "v1 → v3", or "?".
  static func versions(_ from: String?, _ to: String?) -> String {
    guard let from else { return to.map { "? → \($0)" } ?? "?" }
    guard let to, to != from else { return from }
    return "\(from) → \(to)"
  }

  /// The sum of the counts of several watches.
  static func sum(_ watches: some Sequence<[StoreCondition: Int64]>) -> [StoreCondition: Int64] {
    watches.reduce(into: [:]) { all, watch in all.merge(watch) { $0 &+ $1 } }
  }

  /// "48 stores: 30 current, 2 busy, 16 failed".
  static func counts(_ counts: [StoreCondition: Int64]) -> String {
    let all = counts.values.reduce(0, &+)
    let parts = StoreCondition.allCases.compactMap { condition -> String? in
      guard let count = counts[condition], count > 0 else { return nil }
      return "\(MessageFormatter.count(count)) \(condition.name)"
    }
    return MessageFormatter.count(all, "store", "stores") + (parts.isEmpty ? "" : ": ")
      + parts.joined(separator: ", ")
  }

  /// The columns of a table of jobs.
  static let jobColumns: [Table<JobRecord>.Column] = [
    Table.Column(name: "ended") { "\(BackupRecord.time($0.ended))" },
    Table.Column(name: "result") { result($0.result) },
    Table.Column(name: "versions", rank: 1) { "\(versions($0.from, $0.to))" },
    Table.Column(name: "rows", isNumber: true, rank: 2) {
      "\($0.rows > 0 ? MessageFormatter.count($0.rows) : "")"
    },
    Table.Column(name: "time", isNumber: true, rank: 3) {
      "\($0.result == "migrated" ? MessageFormatter.duration(Double($0.microseconds) / 1e6) : "")"
    },
    Table.Column(name: "requested-by", rank: 4) {
      "\(["user 0", "user root"].contains($0.requester) ? "root" : $0.requester)"
    },
    Table.Column(name: "store", isPath: true) { "\($0.path)" },
    Table.Column(name: "started") { "\(BackupRecord.time($0.began))" },
    Table.Column(name: "watch") { "\($0.watch)" },
    Table.Column(name: "job") { "\($0.job)" },
    Table.Column(name: "code") { "\($0.code ?? "-")" },
    Table.Column(name: "reason") { "\($0.reason == nil ? "-" : reason($0))" },
    Table.Column(name: "backup", isPath: true) { "\($0.backup ?? "-")" },
  ]

  /// The result of a job, with its mood.
  private static func result(_ name: String) -> TerminalText {
    switch name {
    case "migrated": TerminalText(name, .good)
    case "failed", "refused": TerminalText(name, .bad)
    default: TerminalText(name)
    }
  }
}
