import CSQLite

/// What SQLite answered: code, message and the statement. Bound values are never part of it.
package struct SQLiteError: Error, Sendable, Hashable {
  /// The extended result code, as SQLITE_BUSY_SNAPSHOT (517).
  package let extendedCode: Int32
  /// SQLite's message for it.
  package let message: String
  /// The statement's text, if one was running.
  package let sql: String?
  /// What the VFS refused, where that is the reason.
  package let refusal: VFSRefusal?

  /// Makes an error from a result code.
  package init(extendedCode: Int32, message: String, sql: String? = nil, refusal: VFSRefusal? = nil) {
    self.extendedCode = extendedCode
    self.message = message
    self.sql = sql
    self.refusal = refusal
  }

  /// The primary result code: the low 8 bits.
  package var code: Int32 { extendedCode & 0xff }

  /// Is somebody else holding a lock?
  package var isBusy: Bool { code == SQLITE_BUSY || code == SQLITE_LOCKED }
  /// Is the file not a database, or damaged, or of a format that no SQLite has written?
  ///
  /// For a format number beyond 4 in the header there is no code, only a message of SQLite's own (sqlite3InitOne).
  package var isDamage: Bool {
    code == SQLITE_CORRUPT || code == SQLITE_NOTADB
      || (code == SQLITE_ERROR && message.hasPrefix("unsupported file format"))
  }
  /// Did `interrupt` or a progress handler stop it?
  package var isInterrupt: Bool { code == SQLITE_INTERRUPT }
  /// Is the disk full?
  package var isFull: Bool { code == SQLITE_FULL }
  /// Is a value, or a statement, larger than its bound?
  package var isTooLarge: Bool { code == SQLITE_TOOBIG }
  /// Does a row break a constraint?
  package var isConstraint: Bool { code == SQLITE_CONSTRAINT }
  /// Does a row break a uniqueness constraint? SQLITE_CONSTRAINT_UNIQUE is a computed macro that Swift does not import.
  package var isUniqueness: Bool { extendedCode == SQLITE_CONSTRAINT | (8 << 8) }
  /// Does the file ask for a module, function, collation or encoding that SQLite does not have here, or may not use?
  ///
  /// Core Data's own tables ask for none. There is no code for it, and the messages are SQLite's own.
  package var isForeignSchema: Bool {
    code == SQLITE_ERROR
      && [
        "no such module: ", "no such function: ", "unknown function: ", "no such collation sequence: ",
        "unsafe use of ", "attached databases must use the same text encoding",
      ].contains { message.hasPrefix($0) }
  }
  /// Did a read, write or sync fail?
  package var isInputOutput: Bool { code == SQLITE_IOERR }
}

extension SQLiteError: CustomStringConvertible {
  package var description: String {
    let statement = sql.map { " in: \($0.prefix(500))" } ?? ""
    return "SQLite \(extendedCode): \(message)\(statement)"
  }
}
