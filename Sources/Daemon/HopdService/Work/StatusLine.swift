// The one line that `systemctl status` shows. Separate and pure, because it must contain everything important, and
// people's scripts parse it.

import Diagnostics
import MigrationPipeline
import SystemPackage

/// The content of the status line.
package struct StatusLine: Sendable, Hashable {
  /// A running migration.
  package struct Job: Sendable, Hashable {
    /// Position among the migrations of this batch, from 1.
    package var ordinal: Int
    /// Name of the store's file.
    package var name: String
    /// First and last version of the chain, once they are known.
    package var from: String?
    package var to: String?
    /// Its progress, once there is any.
    package var progress: MigrationProgress?
    /// Its activity outside of hops, such as "verifying".
    package var activity: String?
  }

  /// The activity of a migration that a pause or the system's pressure stops between two chunks.
  package static let paused = "paused"

  /// Running migrations, the oldest first.
  package var jobs: [Job] = []
  /// Migrations of this batch.
  package var batch = 0
  /// Stores found.
  package var stores = 0
  /// Stores that wait for an inspection.
  package var toInspect = 0
  /// Stores that wait for their migration.
  package var toDo = 0
  /// Stores that are in use, or failed and are retried.
  package var deferred = 0
  /// Stores that a restore pinned to their version.
  package var pinned = 0
  /// Stores that need an operator.
  package var attention = 0
  /// Seconds until the queue is empty, as far as known.
  package var queueRemaining: Double?
  /// Whether everything is paused.
  package var isPaused = false
  /// What migrations wait for besides their turn, such as "waits until 22:00".
  package var waits: [String] = []
  /// Names of watches that are not served.
  package var unavailable: [String] = []
  /// A note for the operator, such as a refused configuration.
  package var note: String?

  /// The line.
  package var text: String {
    var text = jobs.first.map { Self.text($0, batch: batch) } ?? idleText
    if jobs.count > 1 { text += " (and \(jobs.count - 1) more)" }
    if !jobs.isEmpty {
      if let queueRemaining, toDo > 0 { text += "; queue ETA \(Self.duration(seconds: queueRemaining))" }
      let failure = failureText
      if !failure.isEmpty { text += "; \(failure)" }
    }
    if isPaused { text = "paused; " + text }
    for wait in waits { text += "; \(wait)" }
    if !unavailable.isEmpty { text += "; unavailable: \(unavailable.joined(separator: ", "))" }
    if let note { text += "; \(note)" }
    return text
  }

  private var idleText: String {
    let text = "watching \(stores.grouped) \(stores == 1 ? "store" : "stores")"
    var words: [String] = []
    if toInspect > 0 { words.append("\(toInspect.grouped) to inspect") }
    if toDo > 0 { words.append("\(toDo.grouped) to migrate") }
    let current = stores &- toInspect &- toDo &- deferred &- pinned &- attention
    if deferred &+ pinned &+ attention > 0 { words.append("\(max(0, current).grouped) current") }
    let failure = failureText
    if !failure.isEmpty { words.append(failure) }
    return words.isEmpty ? text : "\(text): \(words.joined(separator: ", "))"
  }

  /// The numbers of failed stores, and how to list them.
  private var failureText: String {
    var words: [String] = []
    if deferred > 0 { words.append("\(deferred.grouped) retrying") }
    if pinned > 0 { words.append("\(pinned.grouped) pinned") }
    if attention > 0 { words.append("\(attention.grouped) failed (hopctl list --failed)") }
    return words.joined(separator: ", ")
  }

  /// The text of a migration: "store 3/120 Library.sqlite v2→v4 hop 1/2 Person 41% ETA 2m10s".
  package static func text(_ job: Job, batch: Int) -> String {
    var words = ["store \(job.ordinal)/\(max(batch, job.ordinal))", job.name]
    if let from = job.from ?? job.progress?.from, let to = job.to ?? job.progress?.to { words.append("\(from)→\(to)") }
    if let activity = job.activity { words.append(activity) }
    if let progress = job.progress {
      if job.activity == nil {
        words.append("hop \(progress.hop &+ 1)/\(progress.hops)")
        if !progress.subject.isEmpty { words.append(progress.subject) }
      }
      words.append("\(percent(progress.fraction))%")
      if job.activity != paused, let remaining = progress.remaining {
        words.append("ETA \(duration(seconds: remaining))")
      }
    }
    return words.joined(separator: " ")
  }

  /// The fraction in percent, 0…100; 100 only when everything is done.
  static func percent(_ fraction: Double) -> Int {
    guard fraction > 0 else { return 0 }  // Also for NaN.
    return fraction >= 1 ? 100 : min(99, Int(fraction * 100))
  }

  /// A duration as "45s", "2m10s", "1h05m" or "3d04h".
  package static func duration(seconds: Double) -> String {
    // At most a thousand days: a longer time is of no use to a reader, and the limit keeps the conversion in range.
    let total = seconds > 0 ? Int(min(seconds.rounded(.up), 86_400_000)) : 0
    func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    if total < 60 { return "\(total)s" }
    if total < 3600 { return "\(total / 60)m\(two(total % 60))s" }
    if total < 86_400 { return "\(total / 3600)h\(two(total % 3600 / 60))m" }
    return "\(total / 86_400)d\(two(total % 86_400 / 3600))h"
  }

  /// An elapsed time: "0.3s" below ten seconds, otherwise as `duration`.
  package static func elapsed(seconds: Double) -> String {
    guard seconds >= 0, seconds < 9.95 else { return duration(seconds: seconds) }
    let tenths = Int((seconds * 10).rounded())
    return "\(tenths / 10).\(tenths % 10)s"
  }
}
