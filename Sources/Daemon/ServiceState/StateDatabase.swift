// The daemon's side: batches of changes, each one transaction on a connection of its own. No connection is open between
// two batches, so an idle daemon uses no memory for it, and the next batch notices that the file was removed. The
// changes go to a write-ahead log, so that no reader blocks them.

import Diagnostics
import DurableFiles
import SQLite
import SystemPackage

/// Writes the state database.
package final class StateDatabase: Sendable {
  /// The file.
  package let file: FilePath
  /// Number of this run of the daemon; stores with another number were not seen in this run.
  package let run: Int64
  /// Why an existing file was unusable and recreated; nil otherwise. The old file is kept next to it.
  package let replaced: HopdError?

  /// The maximum number of jobs to keep, and the age in seconds after which a job is removed.
  package static let mostJobs: Int64 = 20_000
  package static let longestAge: Int64 = 400 * 86_400
  /// The maximum number of characters of a reason or a hint to keep.
  static let longestText = 1000
  /// The size of the log from which nothing is written before it has gone into the file. Only a reader that holds a
  /// transaction for hours makes it so long.
  private let longestLog: Int64

  /// Opens or creates the database of a state directory. A damaged one is set aside and recreated. Throws for a
  /// database of a newer hopd, or if it cannot be written.
  package init(stateDirectory: FilePath, longestLog: Int64 = 64 << 20) throws {
    file = StateSchema.file(in: stateDirectory)
    self.longestLog = longestLog
    do {
      run = try Self.begin(file)
      replaced = nil
    } catch let error where Self.isDamage(error) {
      try Self.setAside(file)
      run = try Self.begin(file)
      replaced = StateSchema.unreadable(file, cause: error)
    }
  }

  /// Writes changes in order, all or none. `isNew` in the result: the file was missing or damaged and was recreated, so
  /// the caller must write its whole state again.
  package func write(_ changes: [StateChange], now: Int64) throws -> (isNew: Bool, failure: HopdError?) {
    do {
      if try LinuxFileSystem().status(file) == nil {
        throw HopdError(.stateMissing, "the file was removed", at: Place(file: file))
      }
      try apply(changes, now: now)
      return (false, nil)
    } catch let error where Self.isDamage(error) || (error as? HopdError)?.code == .stateMissing {
      try Self.setAside(file)
      _ = try Self.begin(file)
      try apply(changes, now: now)
      return (true, error as? HopdError ?? StateSchema.unreadable(file, cause: error))
    }
  }

  // MARK: The file

  private static func isDamage(_ error: any Error) -> Bool {
    switch error {
    case let error as SQLiteError: error.isDamage || error.isForeignSchema || error.message.hasPrefix("no such ")
    case let error as HopdError: error.code == .stateUnreadable
    default: false
    }
  }

  /// Keeps the last damaged file under another name, for developers only.
  private static func setAside(_ file: FilePath) throws {
    let files = LinuxFileSystem()
    for suffix in ["-journal", "-wal", "-shm"] { _ = try files.unlinkIfPresent(FilePath(file.string + suffix)) }
    if try files.status(file) != nil { try files.rename(file, to: FilePath(file.string + ".damaged")) }
  }

  private static func open(_ file: FilePath) throws -> Connection {
    let connection = try Connection(path: file, access: .shared(writes: true), busyTimeout: .seconds(2))
    // A file of another program, or of a newer hopd, is not changed.
    if try connection.integer("SELECT count(*) FROM sqlite_schema") != 0 { try StateSchema.check(connection, file) }
    // A power cut may lose the last changes but never the file; each start inspects every store anyway.
    try connection.execute(
      "PRAGMA journal_mode = WAL; PRAGMA journal_size_limit = 0; PRAGMA synchronous = NORMAL; "
        + "PRAGMA secure_delete = OFF; PRAGMA cache_size = -512")
    return connection
  }

  private static func begin(_ file: FilePath) throws -> Int64 {
    let connection = try open(file)
    return try connection.transaction("BEGIN IMMEDIATE") {
      if try connection.integer("SELECT count(*) FROM sqlite_schema") == 0 {
        try connection.execute(StateSchema.tables)
        try connection.execute("PRAGMA application_id = \(StateSchema.application)")
        try connection.execute("PRAGMA user_version = \(StateSchema.version)")
      }
      let last = try connection.integer("SELECT value FROM service WHERE fact = 'run'") ?? 0
      let run = last < .max - 1 ? last + 1 : 1
      try connection.run("INSERT OR REPLACE INTO service VALUES ('run', ?)", [.text(String(run))])
      return run
    }
  }

  /// Throws if the log is too long and cannot be emptied, because a reader still needs it.
  private func limitLog(_ connection: Connection) throws {
    func bytes() throws -> Int64 { try LinuxFileSystem().status(FilePath(file.string + "-wal"))?.size ?? 0 }
    guard try bytes() > longestLog else { return }
    _ = try connection.integer("PRAGMA wal_checkpoint(TRUNCATE)")
    guard try bytes() > longestLog else { return }
    throw HopdError(
      .stateHeld, "another program has been reading the state database for so long that its log is full",
      at: Place(file: file),
      hint: "stop the program that `fuser -v \(file.quotedForShell)` lists")
  }

  // MARK: Changes

  private func apply(_ changes: [StateChange], now: Int64) throws {
    let connection = try Self.open(file)
    try limitLog(connection)
    try connection.transaction("BEGIN IMMEDIATE") {
      let batch = try StateBatch(connection, run: run, now: now)
      for change in changes { try batch.apply(change) }
      if batch.hasJobs { try batch.limitJobs() }
    }
  }
}

/// One transaction's statements.
private final class StateBatch {
  private let connection: Connection
  private let (run, now): (Int64, Int64)
  private let (putStore, dropFailure, putFailure): (Statement, Statement, Statement)
  private var names: [String: Int64] = [:]
  private(set) var hasJobs = false

  init(_ connection: Connection, run: Int64, now: Int64) throws {
    self.connection = connection
    (self.run, self.now) = (run, now)
    putStore = try connection.prepare(
      """
      INSERT INTO stores (path, watch, state, since, version, target, run) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
      ON CONFLICT (path) DO UPDATE SET watch = ?2, since = CASE WHEN state = ?3 THEN since ELSE ?4 END, state = ?3,
        version = coalesce(?5, version), target = coalesce(?6, target), run = ?7
      """)
    dropFailure = try connection.prepare("DELETE FROM troubles WHERE path = ?")
    putFailure = try connection.prepare(
      """
      INSERT INTO troubles (path, since, code, reason, hint, command, attempts, next)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
      ON CONFLICT (path) DO UPDATE SET since = CASE WHEN code = ?3 THEN since ELSE ?2 END, code = ?3, reason = ?4,
        hint = ?5, command = ?6, attempts = ?7, next = ?8
      """)
  }

  func apply(_ change: StateChange) throws {
    switch change {
    case .store(let store): try put(store)
    case .gone(let path):
      try connection.run("DELETE FROM stores WHERE path = ?", [.text(path)])
      try dropFailure.run([.text(path)])
    case .job(let job): try put(job)
    case .service(let fact, let value?):
      try connection.run(
        "INSERT OR REPLACE INTO service VALUES (?, ?)", [.text(fact.rawValue), .text(value)])
    case .service(let fact, nil):
      try connection.run("DELETE FROM service WHERE fact = ?", [.text(fact.rawValue)])
    case .unseen(let watches):
      for watch in watches {
        try remove("run <> ? AND watch = (SELECT id FROM names WHERE name = ?)", [.integer(run), .text(watch)])
      }
    case .onlyWatches(let watches):
      let marks = Array(repeating: "?", count: watches.count).joined(separator: ", ")
      try remove("watch NOT IN (SELECT id FROM names WHERE name IN (\(marks)))", watches.map { .text($0) })
    }
  }

  private func remove(_ condition: String, _ values: [SQLiteValue]) throws {
    try connection.run("DELETE FROM troubles WHERE path IN (SELECT path FROM stores WHERE \(condition))", values)
    try connection.run("DELETE FROM stores WHERE \(condition)", values)
  }

  private func put(_ store: StoreRecord) throws {
    try putStore.run([
      .text(store.path), .integer(try name(store.watch)), .integer(store.condition.rawValue), .integer(store.since),
      try store.version.map { .integer(try name($0)) } ?? .null,
      try store.target.map { .integer(try name($0)) } ?? .null, .integer(run),
    ])
    if let failure = store.failure {
      try putFailure.run([
        .text(store.path), .integer(store.since), .text(failure.code), .text(Self.clipped(failure.reason)),
        .text(Self.clipped(failure.hint)), .text(failure.command), .integer(failure.attempts),
        failure.nextAttempt.map { .integer($0) } ?? .null,
      ])
    } else if store.condition == .current {
      try dropFailure.run([.text(store.path)])
    }
  }

  private func put(_ job: JobRecord) throws {
    hasJobs = true
    try connection.run(
      """
      INSERT INTO jobs (job, path, watch, began, ended, source, destination, rows, microseconds, asker, result, code,
        reason, backup)
      VALUES (?1, ?2, ?3, ?4, ?5, coalesce(?6, (SELECT version FROM stores WHERE path = ?2)),
        coalesce(?7, (SELECT target FROM stores WHERE path = ?2)), ?8, ?9, ?10, ?11, ?12, ?13, ?14)
      """,
      [
        .text(job.job), .text(job.path), .integer(try name(job.watch)), .integer(job.began), .integer(job.ended),
        try job.from.map { .integer(try name($0)) } ?? .null, try job.to.map { .integer(try name($0)) } ?? .null,
        .integer(job.rows), .integer(job.microseconds), .text(job.requester), .text(job.result),
        job.code.map { .text($0) } ?? .null, job.reason.map { .text(Self.clipped($0)) } ?? .null,
        job.backup.map { .text($0) } ?? .null,
      ])
  }

  func limitJobs() throws {
    try connection.run(
      "DELETE FROM jobs WHERE id <= (SELECT max(id) FROM jobs) - ? OR ended < ?",
      [.integer(StateDatabase.mostJobs), .integer(now - StateDatabase.longestAge)])
  }

  /// The number of a name; a new name gets the next number.
  private func name(_ text: String) throws -> Int64 {
    if let known = names[text] { return known }
    let find = "SELECT id FROM names WHERE name = ?"
    var id = try connection.integer(find, [.text(text)])
    if id == nil {
      try connection.run("INSERT INTO names (name) VALUES (?)", [.text(text)])
      id = try connection.integer(find, [.text(text)])
    }
    names[text] = id
    return id ?? 0
  }

  private static func clipped(_ text: String) -> String {
    text.unicodeScalars.count <= StateDatabase.longestText
      ? text : String(String.UnicodeScalarView(text.unicodeScalars.prefix(StateDatabase.longestText))) + "…"
  }
}
