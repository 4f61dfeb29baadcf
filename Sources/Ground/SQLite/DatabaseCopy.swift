// Copies a database into another file, or page by page over the content of a locked one. Page size, auto_vacuum and
// every text of its schema stay the same; the content of the source's `-wal` is in the copy. Separate from `Connection`
// because two connections take part.

import CSQLite
import SystemPackage

extension Connection {
  /// Writes the database `schema` of this connection again, without its free pages, into `path`, which must not exist.
  package func vacuum(_ schema: String, into path: FilePath) throws(SQLiteError) {
    let name = SQLiteIdentifier.literal(Connection.uri(path) + "?mode=rwc")
    // VACUUM INTO attaches the new file.
    try watch.attaching { () throws(SQLiteError) in
      try execute("VACUUM \(SQLiteIdentifier.quoted(schema)) INTO \(name)")
    }
  }

  /// Copies the database `schema` of this connection into `path`, an empty file that no other connection has open.
  ///
  /// The kernel copies the file if it can (`DatabaseFileCopy`), else SQLite copies its pages. The copy is in rollback
  /// mode and not synced. After every `pagesPerStep` pages, or 4 MiB, `progress` receives the pages that are done and
  /// all pages; if it returns false, the copy stops with an interruption, and the file is not a database. Memory is
  /// that of two page caches.
  package func copy(
    _ schema: String, to path: FilePath, pagesPerStep: Int32 = 512, progress: (_ done: Int64, _ all: Int64) -> Bool
  ) throws(SQLiteError) {
    let target = try Connection(path: path, access: .readWrite)
    let file = DatabaseFileCopy(source: self, schema: schema, target: target)
    if try !file.run(progress: progress) {
      try copyPages(schema, to: target, pagesPerStep: pagesPerStep, progress: progress)
    }
  }

  private func copyPages(
    _ schema: String, to target: Connection, pagesPerStep: Int32, progress: (_ done: Int64, _ all: Int64) -> Bool
  ) throws(SQLiteError) {
    // No other connection reads the file before it is complete, and after a kill it is made again: no journal on disk
    // (one in memory, which is empty for an empty file; a guarded connection needs one), no syncs. Exclusive locking
    // lets the connection leave WAL mode, which the first page sets, without a `-shm`.
    try target.execute(
      "PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; "
        + "PRAGMA cache_size = -512")
    do {
      try target.replaceContent(with: self, schema: schema, pagesPerStep: pagesPerStep) { done, all in
        if !progress(done, all) { throw SQLiteError(extendedCode: SQLITE_INTERRUPT, message: "interrupted") }
      }
    } catch {
      throw error as? SQLiteError ?? SQLiteError(extendedCode: SQLITE_ABORT, message: "given up")
    }
    guard try target.text("PRAGMA journal_mode = DELETE") == "delete" else {
      throw SQLiteError(extendedCode: SQLITE_BUSY, message: "the copy does not leave the write-ahead mode")
    }
  }

  /// Replaces the database "main" of this connection by that of `source`, in one SQLite transaction: before its commit,
  /// which is the last step here, every program sees the old content, after it the new one.
  ///
  /// Journal mode and locks stay those of this connection, which must have no open statement; it keeps the write lock
  /// from the first page to the last. The page sizes must be equal. Between steps of `pagesPerStep` pages `progress`
  /// receives the pages that are done and all pages; an error thrown there is rethrown after the rollback. Afterwards
  /// the schema's version number (`PRAGMA schema_version`) is the old one plus 1 [SQLite's backup.c].
  package func replaceContent(
    with source: Connection, schema: String = "main", pagesPerStep: Int32 = 1000,
    progress: (_ done: Int64, _ all: Int64) throws -> Void
  ) throws {
    guard let backup = sqlite3_backup_init(handle, "main", source.handle, schema) else {
      throw error(sqlite3_errcode(handle), sql: nil)
    }
    var code = SQLITE_OK
    var failure: (any Error)?
    while code == SQLITE_OK {
      code = sqlite3_backup_step(backup, pagesPerStep)
      guard code == SQLITE_OK else { break }
      let all = Int64(sqlite3_backup_pagecount(backup))
      do { try progress(all - Int64(sqlite3_backup_remaining(backup)), all) } catch {
        failure = error
        break
      }
    }
    // Rolls back what is not committed, and returns the error of a step again.
    let finished = sqlite3_backup_finish(backup)
    if let failure { throw failure }
    guard code == SQLITE_DONE, finished == SQLITE_OK else {
      throw error(finished == SQLITE_OK ? code : finished, sql: nil)
    }
  }
}
