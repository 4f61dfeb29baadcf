// What `--json` prints of the daemon's stores and jobs. Keys are a contract: they are added to, never renamed.

import Diagnostics
import ServiceState
import StoreReplacement

/// A store as hopd has recorded it.
struct KnownStoreShape: Encodable {
  let store: String
  let watch: String
  let state: String
  let since: String
  @OrNull var version: String?
  @OrNull var target: String?
  @OrNull var trouble: TroubleShape?

  init(_ record: StoreRecord) {
    store = record.path
    watch = record.watch
    state = record.condition.name
    since = BackupRecord.time(record.since)
    _version = OrNull(wrappedValue: record.version)
    _target = OrNull(wrappedValue: record.target)
    _trouble = OrNull(wrappedValue: record.trouble.map { TroubleShape($0) })
  }
}

/// Why a store is not where it should be.
struct TroubleShape: Encodable {
  let code: String
  let reason: String
  let since: String
  @OrNull var hint: String?
  /// What to type next.
  @OrNull var command: String?
  let attempts: Int64
  @OrNull var nextAttempt: String?

  init(_ trouble: StoreTrouble) {
    code = trouble.code
    reason = trouble.reason
    since = BackupRecord.time(trouble.since)
    _hint = OrNull(wrappedValue: trouble.hint.isEmpty ? nil : trouble.hint)
    _command = OrNull(wrappedValue: trouble.command.isEmpty ? nil : trouble.command)
    attempts = trouble.attempts
    _nextAttempt = OrNull(wrappedValue: trouble.nextAttempt.map { BackupRecord.time($0) })
  }
}

/// A job that has ended.
struct JobShape: Encodable {
  let job: String
  let store: String
  let watch: String
  let result: String
  @OrNull var from: String?
  @OrNull var to: String?
  let rows: Int64
  let began: String
  let ended: String
  let seconds: Double
  let askedBy: String
  @OrNull var code: String?
  @OrNull var reason: String?
  @OrNull var backup: String?

  init(_ record: JobRecord) {
    job = record.job
    store = record.path
    watch = record.watch
    result = record.result
    _from = OrNull(wrappedValue: record.from)
    _to = OrNull(wrappedValue: record.to)
    rows = record.rows
    began = BackupRecord.time(record.began)
    ended = BackupRecord.time(record.ended)
    seconds = Double(record.microseconds) / 1e6
    askedBy = record.asker
    _code = OrNull(wrappedValue: record.code)
    _reason = OrNull(wrappedValue: record.reason)
    _backup = OrNull(wrappedValue: record.backup)
  }
}

/// `hopctl status --json`.
struct StatusShape: Encodable {
  struct Daemon: Encodable {
    let running: Bool
    @OrNull var process: Int32?
    @OrNull var program: String?
    @OrNull var started: String?
    @OrNull var stopped: String?
    @OrNull var paused: String?
    @OrNull var note: String?
    /// What migrations wait for beside their turn: pressure, hours.
    let waits: [String]
    let unserved: [String]
    let configuration: [String]
    /// What `hopctl set` has changed until a restart.
    let changed: [Change]
    /// Why the running hopd is not the installed one.
    @OrNull var outdated: String?

    struct Change: Encodable {
      let key: String
      let value: String
      let configured: String
    }

    init(_ state: RecordedState) {
      let facts = state.facts
      running = state.process != nil
      _process = OrNull(wrappedValue: state.process)
      _program = OrNull(wrappedValue: facts[.program])
      _started = OrNull(wrappedValue: RecordedState.time(facts[.started]))
      _stopped = OrNull(wrappedValue: RecordedState.time(facts[.stopped]))
      _paused = OrNull(wrappedValue: facts[.paused])
      _note = OrNull(wrappedValue: facts[.note])
      waits = facts[.waits]?.split(separator: "\n").map { String($0) } ?? []
      unserved = facts[.unserved]?.split(separator: "\n").map { String($0) } ?? []
      configuration = facts[.configuration]?.split(separator: "\n").map { String($0) } ?? []
      changed = state.changes.map { change in
        Change(
          key: change.key, value: SetCommand.readable(change.now), configured: SetCommand.readable(change.configured))
      }
      _outdated = OrNull(wrappedValue: state.outdated)
    }
  }

  struct Watch: Encodable {
    let watch: String
    let counts: [String: Int64]
  }

  let daemon: Daemon
  /// Stores by state; every state is there.
  let counts: [String: Int64]
  let watches: [Watch]
  /// Stores that are not tried again before somebody changes something, and those that are tried again.
  let attention: [KnownStoreShape]
}

/// `hopctl status STORE --json`.
struct StoreStatusShape: Encodable {
  let running: Bool
  let store: KnownStoreShape
  let jobs: [JobShape]
}

/// `hopctl list --json`.
struct ListShape: Encodable {
  let running: Bool
  let stores: [KnownStoreShape]
}

/// `hopctl history --json`.
struct JobHistoryShape: Encodable {
  let running: Bool
  let jobs: [JobShape]
}
