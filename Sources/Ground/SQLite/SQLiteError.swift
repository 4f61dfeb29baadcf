import CSQLite

/// An error of SQLite: code, message and the statement. Bound values are never part of it.
package struct SQLiteError: Error, Sendable, Hashable {
  /// The extended result code, as SQLITE_BUSY_SNAPSHOT (517).
  package let extendedCode: Int32
  /// SQLite's message for it.
  package let message: String
  /// The statement's text, if one was running.
  package let sql: String?
  /// What the VFS refused, if that is the reason.
  package let refusal: VFSRefusal?

  /// Creates an error from a result code.
  package init(extendedCode: Int32, message: String, sql: String? = nil, refusal: VFSRefusal? = nil) {
    self.extendedCode = extendedCode
    self.message = message
    self.sql = sql
    self.refusal = refusal
  }

  /// The primary result code: the low 8 bits.
  package var code: Int32 { extendedCode & 0xff }

  /// Whether another connection holds a lock.
  package var isBusy: Bool { code == SQLITE_BUSY || code == SQLITE_LOCKED }
  /// Whether the file is not a database, or damaged, or of a format that no SQLite has written.
  ///
  /// For a format number beyond 4 in the header there is no code, only a message of SQLite's own (sqlite3InitOne).
  package var isDamage: Bool {
    code == SQLITE_CORRUPT || code == SQLITE_NOTADB
      || (code == SQLITE_ERROR && message.hasPrefix("unsupported file format"))
  }
  /// Whether `interrupt` or a progress handler stopped it.
  package var isInterrupt: Bool { code == SQLITE_INTERRUPT }
  /// Whether the disk is full.
  package var isFull: Bool { code == SQLITE_FULL }
  /// Whether a value, or a statement, is larger than its bound.
  package var isTooLarge: Bool { code == SQLITE_TOOBIG }
  /// Whether a row breaks a uniqueness constraint. SQLITE_CONSTRAINT_UNIQUE is a computed macro that Swift does not
  /// import.
  package var isUniqueness: Bool { extendedCode == SQLITE_CONSTRAINT | (8 << 8) }
  /// Whether the file needs a module, function, collation or encoding that SQLite does not have here, or may not use.
  ///
  /// Core Data's own tables need none. There is no code for it, and the messages are SQLite's own.
  package var isForeignSchema: Bool {
    code == SQLITE_ERROR
      && [
        "no such module: ", "no such function: ", "unknown function: ", "no such collation sequence: ",
        "unsafe use of ", "attached databases must use the same text encoding",
      ].contains { message.hasPrefix($0) }
  }
  /// Whether a read, write or sync failed.
  package var isInputOutput: Bool { code == SQLITE_IOERR }
  /// The hint for such a failure. A write that fails on a disk with space may have met a limit.
  /// SQLITE_IOERR_WRITE is a computed macro that Swift does not import.
  package var inputOutputHint: String {
    extendedCode == SQLITE_IOERR | (3 << 8)
      ? "check the limit on the size of files (ulimit -f) and the system log" : "check the system log"
  }
}

extension SQLiteError: CustomStringConvertible {
  package var description: String {
    let statement = sql.map { " in: \($0.prefix(500))" } ?? ""
    return "SQLite \(extendedCode): \(message)\(statement)"
  }
}
