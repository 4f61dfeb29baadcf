// A store of the daemon's as people read it: where it stands, why, since when, what comes next, and what to type.

import ServiceState
import StoreReplacement
import SystemPackage

/// Lines about stores and jobs.
enum StoreText {
  /// One store in a few lines: state, place, reason, next attempt, command.
  static func lines(_ store: StoreRecord) -> [String] {
    var lines = ["\(store.condition.name)  \(store.path)"]
    guard let trouble = store.trouble else { return lines }
    lines.append("  \(trouble.code): \(trouble.reason)")
    lines.append("  " + after(store, trouble))
    if !trouble.hint.isEmpty { lines.append("  hint: \(trouble.hint)") }
    if !trouble.command.isEmpty { lines.append("  next: \(trouble.command)") }
    return lines
  }

  /// Since when, how often, and when again.
  static func after(_ store: StoreRecord, _ trouble: StoreTrouble) -> String {
    var text = "since \(BackupRecord.time(trouble.since))"
    if trouble.attempts > 0 { text += ", \(MessageFormatter.count(trouble.attempts, "attempt", "attempts"))" }
    switch store.condition {
    case .failed: text += "; not tried again until the store, its models or the configuration change"
    case .heldBack: text += "; not tried again until it is released"
    case .busy, .retrying: text += trouble.nextAttempt.map { "; tried again at \(BackupRecord.time($0))" } ?? ""
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

  /// A job in one line of a table.
  static func cells(_ job: JobRecord) -> [String] {
    [
      BackupRecord.time(job.ended), job.result, versions(job.from, job.to),
      job.rows > 0 ? MessageFormatter.count(job.rows, "row", "rows") : "",
      job.result == "migrated" ? MessageFormatter.duration(Double(job.microseconds) / 1e6) : "", job.asker, job.path,
    ]
  }
}
