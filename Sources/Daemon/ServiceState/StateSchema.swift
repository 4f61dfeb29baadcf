// The tables of the state database, and the checks on its file. The schema has a version; a file of a newer version is
// not touched. A store at its target takes about a hundred bytes with a path of usual length: names of watches and
// versions are numbers, and the columns of failures are in a separate table.

import Diagnostics
import DurableFiles
import SQLite
import SystemPackage

extension HopdError.Code {
  /// The state directory belongs to a newer hopd.
  package static let stateNewer = HopdError.Code("state-newer", exit: .configuration)
  /// There is no state to read: hopd has never run with this directory.
  package static let stateMissing = HopdError.Code("state-missing", exit: .notRunning)
  /// The state cannot be read.
  package static let stateUnreadable = HopdError.Code("state-unreadable", exit: .inputOutput)
  /// A program that reads the state keeps hopd from writing it.
  package static let stateHeld = HopdError.Code("state-held", exit: .unavailable, isRetryable: true)
}

/// The file and its tables.
package enum StateSchema {
  /// Version of the tables. Changing it needs a decision (docs/decisions/0085).
  package static let version: Int64 = 1
  /// The application ID: "hopd" in ASCII.
  static let application: Int64 = 0x686f_7064
  /// Name of the file in the state directory.
  package static let fileName: FilePath.Component = "state.sqlite"

  /// The file.
  package static func file(in stateDirectory: FilePath) -> FilePath { stateDirectory.appending(fileName) }

  static let tables = """
    CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE stores (path TEXT NOT NULL PRIMARY KEY, watch INTEGER NOT NULL, state INTEGER NOT NULL,
      since INTEGER NOT NULL, version INTEGER, target INTEGER, run INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE troubles (path TEXT NOT NULL PRIMARY KEY, since INTEGER NOT NULL, code TEXT NOT NULL,
      reason TEXT NOT NULL, hint TEXT NOT NULL, command TEXT NOT NULL, attempts INTEGER NOT NULL,
      next INTEGER) WITHOUT ROWID;
    CREATE TABLE jobs (id INTEGER PRIMARY KEY, job TEXT NOT NULL, path TEXT NOT NULL, watch INTEGER NOT NULL,
      began INTEGER NOT NULL, ended INTEGER NOT NULL, source INTEGER, destination INTEGER, rows INTEGER NOT NULL,
      microseconds INTEGER NOT NULL, asker TEXT NOT NULL, result TEXT NOT NULL, code TEXT, reason TEXT, backup TEXT);
    CREATE INDEX jobs_of_store ON jobs (path, id);
    CREATE INDEX jobs_by_age ON jobs (ended);
    CREATE TABLE service (fact TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    """

  /// Throws if the file is not hopd's or has another schema version.
  static func check(_ connection: Connection, _ file: FilePath) throws {
    let found = try connection.integer("PRAGMA user_version") ?? 0
    let owner = try connection.integer("PRAGMA application_id") ?? 0
    guard owner == application else { throw unreadable(file, cause: nil) }
    guard found <= version else {
      throw HopdError(
        .stateNewer, "the state directory was written by a newer hopd (schema \(found), this one supports \(version))",
        at: Place(file: file),
        hint: "install that version again, or move the file: hopd creates a new one; only the job history is lost")
    }
    guard found == version else { throw unreadable(file, cause: nil) }
  }

  static func unreadable(_ file: FilePath, cause: (any Error)?) -> HopdError {
    HopdError(
      .stateUnreadable, "not a hopd state database, or it is damaged", at: Place(file: file), cause: cause,
      hint: "start hopd, which creates a new one; stores are not affected")
  }
}
