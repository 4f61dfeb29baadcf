// The codes of this target, and the conversion of SQLite's results for a locked store into errors that an operator can
// act on.

import Diagnostics
import DurableFiles
import PersistentStore
import SQLite
import SystemPackage

extension HopdError.Code {
  /// Another program changed the store while its replacement was under way: a fresh start is needed.
  package static let storeChanged = HopdError.Code("store-changed", exit: .unavailable, isRetryable: true)
  /// The file under the store's name is another one than the one that was read.
  package static let storeReplaced = HopdError.Code("store-replaced", exit: .unavailable, isRetryable: true)
  /// A rename cannot keep what must be kept: links, mount, owner, attributes.
  package static let cannotReplace = HopdError.Code("cannot-replace", exit: .cannotCreate)
  /// The store needs an administrator: recovery touched nothing.
  package static let storeQuarantined = HopdError.Code("store-quarantined", exit: .dataError)
  /// The swap was made but could not be confirmed; the next start confirms it.
  package static let replacementUnconfirmed = HopdError.Code(
    "replacement-unconfirmed", exit: .inputOutput, isRetryable: true)
}

extension HopdError {
  /// Whether a file could get no second name because another user owns it, it is on another file system, or it has too
  /// many names.
  var asksForCopy: Bool { code == .noPermission || code == .unsuitableFile || errno == .tooManyLinks }

  /// The store is open in another program; names that program if it is known, and whether it is one of hopd's.
  package static func inUse(by holder: FileHolder?, cause: (any Error)? = nil) -> HopdError {
    if let holder, holder.isHopd {
      return HopdError(
        .lockedByOther, "the store is in the hands of another \(holder.program ?? "hopd") (process \(holder.process))",
        cause: cause, hint: "retry when it has finished")
    }
    return HopdError(
      .storeBusy, "the store is open in another program" + (holder.map { " (\($0))" } ?? ""), cause: cause,
      hint: "close the programs that have it open (fuser -v FILE lists them); hopd retries automatically")
  }

  /// SQLite's error for `store`, as an error with the next step.
  static func storeError(_ error: SQLiteError, _ doing: String, _ store: FilePath) -> HopdError {
    let place = Place(store: store)
    if let refusal = error.refusal { return StoreReader.refused(refusal, cause: error, at: place) }
    if error.isDamage {
      return HopdError(
        .storeDamaged, "cannot \(doing): the file is damaged or no SQLite database", at: place, cause: error,
        hint: "run `sqlite3 FILE 'PRAGMA integrity_check'` for details; nothing was changed")
    }
    switch error.code {
    case 9:  // SQLITE_INTERRUPT
      return HopdError(.interrupted, "stopped on request", at: place, cause: error, hint: "run the command again")
    case 5, 6:  // SQLITE_BUSY, SQLITE_LOCKED
      return HopdError(
        .storeBusy, "the store is in use by another program", at: place, cause: error,
        hint: "close the programs that have it open (fuser -v FILE lists them); hopd retries automatically")
    case 3, 8, 14, 23:  // SQLITE_PERM, SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_AUTH
      return HopdError(
        .noPermission, "cannot \(doing): permission denied for the store or its directory", at: place, cause: error,
        hint: "grant the user of this process write access to the file and its directory")
    case 13:  // SQLITE_FULL
      return HopdError(.noSpace, "cannot \(doing): the file system is full", at: place, cause: error)
    default:
      return HopdError(
        .inputOutput, "cannot \(doing)", at: place, cause: error,
        hint: error.isInputOutput ? error.inputOutputHint : nil)
    }
  }

  /// Runs SQLite work on `store`, and converts its errors as above.
  static func sqlite<Result>(_ doing: String, _ store: FilePath, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as SQLiteError {
      throw storeError(error, doing, store)
    }
  }
}

extension SQLiteError {
  /// Whether the error depends on the moment, the machine or the program, and not on the file's content.
  var isPassing: Bool {
    // A refusal of the VFS depends on the files, except for a directory that was exchanged.
    if let refusal { return refusal == .exchangedDirectory }
    // SQLITE_PERM, BUSY, LOCKED, NOMEM, READONLY, INTERRUPT, IOERR, FULL, CANTOPEN, PROTOCOL, MISUSE, AUTH
    return [3, 5, 6, 7, 8, 9, 10, 13, 14, 15, 21, 23].contains(code)
  }
}
