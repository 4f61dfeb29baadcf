// What the state database holds, as plain values.

import SystemPackage

/// Where a store stands, in the words of `hopctl list --state`.
package enum StoreCondition: Int64, Sendable, Hashable, CaseIterable {
  /// At its target.
  case current = 0
  /// Waits to be looked at, or for its migration.
  case waiting = 1
  /// In migration.
  case migrating = 2
  /// Another program uses it; it is tried again by itself.
  case busy = 3
  /// Its migration failed, and it is tried again by itself.
  case retrying = 4
  /// It is not tried again until somebody changes something.
  case failed = 5
  /// A restore pinned it to its version.
  case heldBack = 6
  /// An operator has paused it.
  case paused = 7

  /// The word.
  package var name: String {
    switch self {
    case .current: "current"
    case .waiting: "waiting"
    case .migrating: "migrating"
    case .busy: "busy"
    case .retrying: "retrying"
    case .failed: "failed"
    case .heldBack: "held-back"
    case .paused: "paused"
    }
  }

  /// The condition of that name.
  package init?(name: String) {
    guard let found = Self.allCases.first(where: { $0.name == name }) else { return nil }
    self = found
  }
}

/// Why a store is not where it should be, and what follows.
package struct StoreTrouble: Sendable, Hashable {
  /// The error's code.
  package var code: String
  /// What happened, in one line.
  package var reason: String
  /// What to do about it, in words; empty where there is nothing to say.
  package var hint: String
  /// What to type next; empty where nothing helps but waiting.
  package var command: String
  /// Attempts that have failed in a row; 0 where attempts are not counted.
  package var attempts: Int64
  /// When it is tried again, in seconds since 1970; nil for never.
  package var nextAttempt: Int64?
  /// Since when it has this trouble; set by the database, which knows whether it had it before.
  package var since: Int64

  /// Describes a trouble.
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
  /// Where it stands.
  package var condition: StoreCondition
  /// Since when, in seconds since 1970.
  package var since: Int64
  /// Its version, as far as known.
  package var version: String?
  /// The version that it is to reach, as far as known.
  package var target: String?
  /// Its trouble, if it has one.
  package var trouble: StoreTrouble?

  /// Describes a store.
  package init(
    path: String, watch: String, condition: StoreCondition, since: Int64, version: String? = nil,
    target: String? = nil, trouble: StoreTrouble? = nil
  ) {
    self.path = path
    self.watch = watch
    self.condition = condition
    self.since = since
    self.version = version
    self.target = target
    self.trouble = trouble
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
  /// When it began and ended, in seconds since 1970.
  package var began: Int64
  package var ended: Int64
  /// Versions before and after; after a failure the one that was wanted.
  package var from: String?
  package var to: String?
  /// Rows of the result.
  package var rows: Int64
  /// Microseconds that it took.
  package var microseconds: Int64
  /// Who asked for it: `hopd`, or the user behind a command.
  package var asker: String
  /// `migrated`, `refused`, `failed`, `deferred`, `held-back`, `interrupted`, as `HOPD_RESULT` of the journal.
  package var result: String
  /// The error's code and what happened; nil where it ended well.
  package var code: String?
  package var reason: String?
  /// Where the old store is kept; nil where it is not.
  package var backup: String?

  /// Describes a job.
  package init(
    job: String, path: String, watch: String, began: Int64, ended: Int64, from: String? = nil, to: String? = nil,
    rows: Int64 = 0, microseconds: Int64 = 0, asker: String = "hopd", result: String, code: String? = nil,
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
    self.asker = asker
    self.result = result
    self.code = code
    self.reason = reason
    self.backup = backup
  }
}

/// Something to be written.
package enum StateChange: Sendable {
  /// A store stands there now.
  case store(StoreRecord)
  /// A store is gone.
  case gone(path: String)
  /// A job has ended.
  case job(JobRecord)
  /// A fact about the daemon; nil takes it away.
  case service(ServiceFact, String?)
  /// Stores of these watches that this run has not seen are gone.
  case unseen(watches: [String])
  /// Stores of all other watches are gone.
  case onlyWatches([String])
}

/// What is noted of the daemon itself.
package enum ServiceFact: String, Sendable, CaseIterable {
  /// Its version.
  case program
  /// Its process, while it runs.
  case process
  /// Boot identifier of that process.
  case boot
  /// When it started, in seconds since 1970.
  case started
  /// When it ended on request, in seconds since 1970.
  case stopped
  /// Path of the control socket, while it listens.
  case socket
  /// Are migrations held back? By what.
  case paused
  /// What migrations wait for beside their turn, a line each: `library until 22:00`.
  case waits
  /// Watches that are not served, a name a line.
  case unserved
  /// Something that the operator should know, as a refused configuration.
  case note
  /// Files of the configuration in force, a path a line.
  case configuration
  /// What `hopctl set` has changed until a restart, a line each: `jobs 4 2`, the last word as configured.
  case changed
  /// The file of the running program, as `ProgramFile` writes it.
  case file
}
