// The reader's side, for hopctl and for the control socket. It opens the file read-only, changes nothing and blocks
// nobody: what the daemon writes meanwhile is in the log.

import Diagnostics
import DurableFiles
import Glibc
import SQLite
import SystemPackage

/// Reads the state database.
package final class StateReader {
  private let connection: Connection
  private let file: FilePath

  /// Opens the database of a state directory.
  package init(stateDirectory: FilePath) throws {
    file = StateSchema.file(in: stateDirectory)
    let files = LinuxFileSystem()
    do {
      guard try files.status(file) != nil else {
        throw HopdError(
          .stateMissing, "no state database here", at: Place(file: file),
          hint: "check `systemctl status hopd`; hopd(8) has the first steps; --state-directory selects "
            + "another directory")
      }
      connection = try Self.open(file, files)
      try StateSchema.check(connection, file)
    } catch let error as SQLiteError {
      throw Self.error(error, file)
    } catch let error as HopdError where error.code == .noPermission {
      throw Self.noPermission(file, cause: error.cause)
    }
  }

  private static func open(_ file: FilePath, _ files: LinuxFileSystem) throws -> Connection {
    do {
      let connection = try Connection(path: file, access: .shared(writes: false), busyTimeout: .seconds(2))
      _ = try connection.integer("SELECT count(*) FROM sqlite_schema")
      return connection
    } catch {
      // Another program that closed the record last, such as sqlite3, has removed the log and its index, which a user
      // who may not write to the directory cannot make. Without a log all is in the file.
      guard !error.isBusy, try files.status(FilePath(file.string + "-wal")) == nil else { throw error }
      return try Connection(path: file, access: .immutable)
    }
  }

  private static func error(_ error: SQLiteError, _ file: FilePath) -> HopdError {
    // SQLite reports missing rights as "unable to open". The file itself is not opened: closing it would release the
    // locks that SQLite holds in this process.
    if access(file.string, R_OK) != 0, errno == EACCES || errno == EPERM {
      return noPermission(file, cause: Errno(rawValue: errno))
    }
    if error.isBusy {
      return HopdError(
        .stateUnreadable, "another program has locked the state database", at: Place(file: file), cause: error,
        hint: "retry, or run `fuser -v \(file.quotedForShell)`")
    }
    return StateSchema.unreadable(file, cause: error)
  }

  private static func noPermission(_ file: FilePath, cause: (any Error)?) -> HopdError {
    HopdError(
      .noPermission, "permission denied: cannot read the state of hopd", at: Place(file: file), cause: cause,
      hint: "run it as root, or as a member of the group hopd: `usermod -aG hopd USER`")
  }

  private func rows<Row>(
    _ sql: String, _ values: [SQLiteValue] = [], _ body: (Statement) -> Row
  ) throws(HopdError) -> [Row] {
    do { return try connection.rows(sql, values, body) } catch { throw Self.error(error, file) }
  }

  // MARK: Stores

  /// Selects stores.
  package struct Filter: Sendable {
    /// Conditions; empty for all.
    package var conditions: [StoreCondition] = []
    /// Name of a watch; nil for all.
    package var watch: String?
    /// Only stores after this path, in the order of paths.
    package var after: String?
    /// The maximum number of stores to return; nil for all.
    package var limit: Int64?

    /// Creates a filter; without arguments it selects all stores.
    package init(
      conditions: [StoreCondition] = [], watch: String? = nil, after: String? = nil, limit: Int64? = nil
    ) {
      self.conditions = conditions
      self.watch = watch
      self.after = after
      self.limit = limit
    }
  }

  private static let columns = """
    SELECT s.path, w.name, s.state, s.since, v.name, t.name, x.code, x.reason, x.hint, x.command, x.attempts, x.next,
      x.since FROM stores s JOIN names w ON w.id = s.watch LEFT JOIN names v ON v.id = s.version
      LEFT JOIN names t ON t.id = s.target LEFT JOIN troubles x ON x.path = s.path
    """

  /// The selected stores in the order of their paths.
  package func stores(_ filter: Filter = Filter()) throws(HopdError) -> [StoreRecord] {
    var conditions: [String] = []
    var values: [SQLiteValue] = []
    if !filter.conditions.isEmpty {
      conditions.append("s.state IN (\(filter.conditions.map { String($0.rawValue) }.joined(separator: ", ")))")
    }
    if let watch = filter.watch {
      conditions.append("w.name = ?")
      values.append(.text(watch))
    }
    if let after = filter.after {
      conditions.append("s.path > ?")
      values.append(.text(after))
    }
    let test = conditions.isEmpty ? "" : " WHERE " + conditions.joined(separator: " AND ")
    let limit = filter.limit.map { " LIMIT \(max(0, $0))" } ?? ""
    let sql = Self.columns + test + " ORDER BY s.path" + limit
    return try rows(sql, values, Self.store)
  }

  /// One store by its path; nil if hopd has not recorded it.
  package func store(_ path: String) throws(HopdError) -> StoreRecord? {
    try rows(Self.columns + " WHERE s.path = ?", [.text(path)], Self.store).first
  }

  /// Paths of stores whose file has this name: the same file may be reached by another path than the configuration's.
  package func paths(named name: String) throws(HopdError) -> [String] {
    try rows("SELECT path FROM stores WHERE substr(path, -length(?1)) = ?1", [.text("/" + name)]) {
      $0.text(at: 0) ?? ""
    }
  }

  private static func store(_ row: Statement) -> StoreRecord {
    var failure: StoreFailure?
    if let code = row.text(at: 6) {
      failure = StoreFailure(
        code: code, reason: row.text(at: 7) ?? "", hint: row.text(at: 8) ?? "", command: row.text(at: 9) ?? "",
        attempts: row.integer(at: 10), nextAttempt: row.isNull(at: 11) ? nil : row.integer(at: 11),
        since: row.integer(at: 12))
    }
    return StoreRecord(
      path: row.text(at: 0) ?? "", watch: row.text(at: 1) ?? "",
      condition: condition(row, at: 2), since: row.integer(at: 3), version: row.text(at: 4), target: row.text(at: 5),
      failure: failure)
  }

  private static func condition(_ row: Statement, at column: Int32) -> StoreCondition {
    StoreCondition(rawValue: row.integer(at: column)) ?? .waiting
  }

  /// Number of stores in each condition, by watch.
  package func counts() throws(HopdError) -> [String: [StoreCondition: Int64]] {
    var counts: [String: [StoreCondition: Int64]] = [:]
    _ = try rows(
      "SELECT w.name, s.state, count(*) FROM stores s JOIN names w ON w.id = s.watch GROUP BY s.watch, s.state"
    ) { counts[$0.text(at: 0) ?? "", default: [:]][Self.condition($0, at: 1)] = $0.integer(at: 2) }
    return counts
  }

  /// A cause for which stores are not at their target.
  package struct Cause: Sendable, Hashable {
    /// The stores' condition.
    package let condition: StoreCondition
    /// The code of their failure; nil if none is recorded.
    package let code: String?
    /// How many stores have it, and how many reasons they have.
    package var stores: Int64
    package let reasons: Int64
    /// The first of them in the order of paths.
    package let example: String
  }

  /// The causes of stores in these conditions, the most frequent first.
  package func causes(of conditions: [StoreCondition]) throws(HopdError) -> [Cause] {
    try rows(
      """
      SELECT s.state, x.code, count(*) AS stores, count(DISTINCT x.reason), min(s.path) FROM stores s
        LEFT JOIN troubles x ON x.path = s.path
        WHERE s.state IN (\(conditions.map { String($0.rawValue) }.joined(separator: ", ")))
        GROUP BY s.state, x.code ORDER BY stores DESC, s.state, x.code
      """
    ) { row in
      Cause(
        condition: Self.condition(row, at: 0), code: row.text(at: 1), stores: row.integer(at: 2),
        reasons: row.integer(at: 3), example: row.text(at: 4) ?? "")
    }
  }

  /// The time since which the longest-waiting store waits, in seconds since 1970; nil if none waits.
  package func oldestWaiting() throws(HopdError) -> Int64? {
    try rows("SELECT min(since) FROM stores WHERE state IN (1, 2)") {
      $0.isNull(at: 0) ? nil : $0.integer(at: 0)
    }.first ?? nil
  }

  /// Number of stores with each version and condition.
  package func versions() throws(HopdError) -> [(version: String?, condition: StoreCondition, count: Int64)] {
    try rows(
      """
      SELECT v.name, s.state, count(*) FROM stores s LEFT JOIN names v ON v.id = s.version
      GROUP BY s.version, s.state ORDER BY v.name, s.state
      """
    ) { ($0.text(at: 0), Self.condition($0, at: 1), $0.integer(at: 2)) }
  }

  // MARK: Jobs and the daemon

  /// Jobs, the newest first; of one store, or of all.
  package func jobs(of path: String? = nil, limit: Int64? = nil) throws(HopdError) -> [JobRecord] {
    let sql = """
      SELECT j.job, j.path, w.name, j.began, j.ended, a.name, b.name, j.rows, j.microseconds, j.asker, j.result, j.code,
        j.reason, j.backup FROM jobs j JOIN names w ON w.id = j.watch LEFT JOIN names a ON a.id = j.source
        LEFT JOIN names b ON b.id = j.destination
      """
    let test = path == nil ? "" : " WHERE j.path = ?"
    let most = limit.map { " LIMIT \(max(0, $0))" } ?? ""
    return try rows(sql + test + " ORDER BY j.id DESC" + most, path.map { [.text($0)] } ?? []) { row in
      JobRecord(
        job: row.text(at: 0) ?? "", path: row.text(at: 1) ?? "", watch: row.text(at: 2) ?? "",
        began: row.integer(at: 3), ended: row.integer(at: 4), from: row.text(at: 5), to: row.text(at: 6),
        rows: row.integer(at: 7), microseconds: row.integer(at: 8), requester: row.text(at: 9) ?? "",
        result: row.text(at: 10) ?? "", code: row.text(at: 11), reason: row.text(at: 12), backup: row.text(at: 13))
    }
  }

  /// The recorded facts about the daemon.
  package func service() throws(HopdError) -> [ServiceFact: String] {
    var facts: [ServiceFact: String] = [:]
    _ = try rows("SELECT fact, value FROM service") { row in
      if let fact = ServiceFact(rawValue: row.text(at: 0) ?? "") { facts[fact] = row.text(at: 1) ?? "" }
    }
    return facts
  }
}
