// A database copied page by page, as it lies there: with its page size, its auto_vacuum and every text of its schema. What
// stands in the source's `-wal` is in the copy. Separate from `Connection` because it is about two of them.

import CSQLite
import SystemPackage

extension Connection {
  /// Copies the database `schema` of this connection into `path`, an empty file that nobody else has open.
  ///
  /// The copy is in rollback mode and was not synced. After every `pagesPerStep` pages `progress` gets the pages that are
  /// done and all of them; an answer of false gives up with an interruption, and what is in the file then is no database.
  /// Memory is that of two page caches.
  package func copy(
    _ schema: String, to path: FilePath, pagesPerStep: Int32 = 512, progress: (_ done: Int64, _ all: Int64) -> Bool
  ) throws(SQLiteError) {
    let target = try Connection(path: path, access: .readWrite)
    // Nobody reads the file before it is complete, and after a kill it is made again: no journal, no syncs. Exclusive
    // locking lets it leave the write-ahead mode, which the first page brings along, without a `-shm`.
    try target.execute(
      "PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF; PRAGMA cache_size = -512")
    guard let backup = sqlite3_backup_init(target.handle, "main", handle, schema) else {
      throw target.error(sqlite3_errcode(target.handle), sql: nil)
    }
    var code = SQLITE_OK
    var isGivenUp = false
    while code == SQLITE_OK {
      code = sqlite3_backup_step(backup, pagesPerStep)
      let all = Int64(sqlite3_backup_pagecount(backup))
      if code == SQLITE_OK, !progress(all - Int64(sqlite3_backup_remaining(backup)), all) {
        isGivenUp = true
        break
      }
    }
    // The error of a step comes once more from here.
    let finished = sqlite3_backup_finish(backup)
    if isGivenUp { throw SQLiteError(extendedCode: SQLITE_INTERRUPT, message: "interrupted") }
    guard code == SQLITE_DONE, finished == SQLITE_OK else {
      throw target.error(finished == SQLITE_OK ? code : finished, sql: nil)
    }
    guard try target.text("PRAGMA journal_mode = DELETE") == "delete" else {
      throw SQLiteError(extendedCode: SQLITE_BUSY, message: "the copy does not leave the write-ahead mode")
    }
  }
}
