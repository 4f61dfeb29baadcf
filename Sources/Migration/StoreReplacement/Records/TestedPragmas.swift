// The two pragmas whose results must be checked: SQLite may change nothing and still report no error. A swap that
// ignored such a result renamed over a live -wal, and the old store came back after success was reported
// (tools/README.md, "SQLite and files").

import Diagnostics
import PersistentStore
import SQLite

extension Connection {
  /// Sets the journal mode of the database; throws `refusal` at `place` where SQLite keeps another one.
  func setJournalMode(_ wanted: JournalMode, orReport refusal: String, at place: Place) throws {
    guard try text("PRAGMA journal_mode = \(wanted.rawValue)") == wanted.rawValue else {
      throw HopdError(.inputOutput, refusal, at: place)
    }
  }

  /// Writes all of the write-ahead log into the database and empties it; throws where a reader prevents it.
  func foldWriteAheadLogIn(at place: Place) throws {
    guard try integer("PRAGMA wal_checkpoint(TRUNCATE)") == 0 else {
      throw HopdError(.inputOutput, "the write-ahead log could not be folded into the store", at: place)
    }
  }
}
