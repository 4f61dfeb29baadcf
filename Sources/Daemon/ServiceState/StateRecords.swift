// The records of the state database.

import SystemPackage

/// The condition of a store, in the words of `hopctl list --state`.
package enum StoreCondition: Int64, Sendable, Hashable, CaseIterable {
  /// At its target.
  case current = 0
  /// Waits for its inspection or its migration.
  case waiting = 1
  /// In migration.
  case migrating = 2
  /// Another program uses it; hopd retries automatically.
  case busy = 3
  /// Its migration failed; hopd retries automatically.
  case retrying = 4
  /// hopd does not retry until something is changed.
  case failed = 5
  /// A restore pinned it to its version.
  case pinned = 6
  /// An operator has paused it.
  case paused = 7

  /// The condition's word.
  package var name: String {
    switch self {
    case .current: "current"
    case .waiting: "waiting"
    case .migrating: "migrating"
    case .busy: "busy"
    case .retrying: "retrying"
    case .failed: "failed"
    case .pinned: "pinned"
    case .paused: "paused"
    }
  }

  /// The condition of that name.
  package init?(name: String) {
    guard let found = Self.allCases.first(where: { $0.name == name }) else { return nil }
    self = found
  }
}

/// Why a store is not at its target, and what follows.
package struct StoreFailure: Sendable, Hashable {
  /// The error's code.
  package var code: String
  /// What happened, in one line.
  package var reason: String
  /// What to do about it, in words; may be empty.
  package var hint: String
  /// The command to type next; empty if only waiting helps.
  package var command: String
  /// Attempts that have failed in a row; 0 if attempts are not counted.
  package var attempts: Int64
  /// The time of the next attempt, in seconds since 1970; nil for never.
  package var nextAttempt: Int64?
  /// Since when the store has this failure, in seconds since 1970. A reader gets it from the database, which keeps the
  /// first time for the same code.
  package var since: Int64

  /// Creates a failure.
  package init(
    code: String, reason: String, hint: String = "", command: String = "", attempts: Int64 = 0,
    nextAttempt: Int64? = nil, since: Int64 = 0
  ) {
    self.code = code
    self.reason = reason
    self.hint = hint
    self.command = command
    self.attempts = attempts
    self.nextAttempt = nextAttempt
    self.since = since
  }
}

/// One store as it was last seen.
package struct StoreRecord: Sendable, Hashable {
  /// Its path, as the configuration names it.
  package var path: String
  /// Name of its watch.
  package var watch: String
  /// Its condition.
  package var condition: StoreCondition
  /// Since when it has this condition, in seconds since 1970.
  package var since: Int64
  /// Its version, as far as known.
  package var version: String?
  /// Its target, as far as known.
  package var target: String?
  /// Its failure, if it has one.
  package var failure: StoreFailure?

  /// Creates a store's record.
  package init(
    path: String, watch: String, condition: StoreCondition, since: Int64, version: String? = nil,
    target: String? = nil, failure: StoreFailure? = nil
  ) {
    self.path = path
    self.watch = watch
    self.condition = condition
    self.since = since
    self.version = version
    self.target = target
    self.failure = failure
  }
}

extension StoreRecord {
  /// How long its migration waits for the window of its watch, such as "until 22:00"; nil if it does not. `windows` is
  /// the fact of that name.
  package func waits(_ windows: String?) -> String? {
    guard condition == .waiting, target != nil, target != version else { return nil }
    let lines = windows?.split(separator: "\n") ?? []
    return lines.first { $0.hasPrefix("\(watch) ") }.map { String($0.dropFirst(watch.count + 1)) }
  }
}

/// One job that has ended.
package struct JobRecord: Sendable, Hashable {
  /// Name of the job, as in the journal.
  package var job: String
  /// The store's path, as the configuration names it.
  package var path: String
  /// Name of the watch.
  package var watch: String
  /// Its begin and end, in seconds since 1970.
  package var began: Int64
  package var ended: Int64
  /// Versions before and after the job; after a failure, `to` is its target.
  package var from: String?
  package var to: String?
  /// Rows of the result.
  package var rows: Int64
  /// Its duration in microseconds.
  package var microseconds: Int64
  /// Its requester: `hopd`, or the user of a command.
  package var requester: String
  /// `migrated`, `refused`, `failed`, `deferred`, `pinned`, `interrupted`, as `HOPD_RESULT` of the journal.
  package var result: String
  /// The error's code and reason; nil if the job succeeded.
  package var code: String?
  package var reason: String?
  /// Path of the backup; nil if none is kept.
  package var backup: String?

  /// Creates a job's record.
  package init(
    job: String, path: String, watch: String, began: Int64, ended: Int64, from: String? = nil, to: String? = nil,
    rows: Int64 = 0, microseconds: Int64 = 0, requester: String = "hopd", result: String, code: String? = nil,
    reason: String? = nil, backup: String? = nil
  ) {
    self.job = job
    self.path = path
    self.watch = watch
    self.began = began
    self.ended = ended
    self.from = from
    self.to = to
    self.rows = rows
    self.microseconds = microseconds
    self.requester = requester
    self.result = result
    self.code = code
    self.reason = reason
    self.backup = backup
  }
}

/// A change to write.
package enum StateChange: Sendable {
  /// A store has this record now.
  case store(StoreRecord)
  /// A store was removed.
  case gone(path: String)
  /// A job has ended.
  case job(JobRecord)
  /// A fact about the daemon; nil removes it.
  case service(ServiceFact, String?)
  /// Removes the stores of these watches that this run has not seen.
  case unseen(watches: [String])
  /// Removes the stores of all other watches.
  case onlyWatches([String])
}

/// A fact about the daemon itself.
package enum ServiceFact: String, Sendable, CaseIterable {
  /// Its version.
  case program
  /// Its process ID, while it runs.
  case process
  /// Boot identifier of that process.
  case boot
  /// When it started, in seconds since 1970.
  case started
  /// When it ended on request, in seconds since 1970.
  case stopped
  /// Path of the control socket, while it listens.
  case socket
  /// What pauses migrations, if anything does.
  case paused
  /// What migrations wait for in addition to their turn, a line each: `library until 22:00`.
  case waits
  /// Watches with migrations that wait for their window, a line each: `library until 22:00`.
  case windows
  /// Watches that are not served, one name per line.
  case unavailable
  /// Why each of them is not served, in the same order, one line each.
  case unavailableReasons
  /// What the watches leave alone although its name matches, a line each.
  case skipped
  /// A note for the operator, such as a refused configuration.
  case note
  /// Files of the configuration in force, one path per line.
  case configuration
  /// The changes by `hopctl set`, which last until a restart, one per line: `jobs 4 2`, where the last word is the
  /// configured value.
  case changed
  /// The file of the running program, as `ProgramFile` writes it.
  case file
}
