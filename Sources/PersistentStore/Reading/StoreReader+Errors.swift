// Translates SQLite's errors about a store to errors with the next thing to do, in the same form for every stage that
// reads a store.

import CSQLite
import Diagnostics
import SQLite
import SystemPackage

extension HopdError.Code {
  /// The file is not a SQLite database, or a SQLite database that no Core Data made.
  package static let notAStore = HopdError.Code("not-a-store", exit: .dataError)
  /// SQLite finds the file damaged, or its bookkeeping is inconsistent.
  package static let storeDamaged = HopdError.Code("store-damaged", exit: .dataError)
  /// The header is not SQLite's, but the file has the form of an encrypted database.
  package static let storeEncrypted = HopdError.Code("store-encrypted", exit: .dataError)
  /// The store's tables need features that plain SQLite does not have.
  package static let schemaForeign = HopdError.Code("schema-foreign", exit: .dataError)
  /// A value has more bytes than the run may load into memory.
  package static let valueTooLarge = HopdError.Code("value-too-large", exit: .dataError)
  /// The rollback journal belongs to a transaction over several files, or claims to.
  package static let journalForeign = HopdError.Code("journal-foreign", exit: .dataError)
  /// Another process holds the store, or changed it while it was read.
  package static let storeBusy = HopdError.Code("store-busy", exit: .unavailable, isRetryable: true)
}

extension StoreReader {
  /// The meaning of a SQLite error for a store.
  package static func explained(_ error: SQLiteError, location: StoreLocation) -> HopdError {
    let place = Place(store: location.database)
    if let refusal = error.refusal { return refused(refusal, cause: error, at: place) }
    if error.isInterrupt {
      return HopdError(.interrupted, "stopped on request", at: place, hint: "the store is as it was; start it again")
    }
    func meaning(_ code: HopdError.Code, _ message: String, _ hint: String) -> HopdError {
      HopdError(code, message, at: place, cause: error, hint: hint)
    }
    if error.isBusy {
      return meaning(.storeBusy, "another process has the store open", "close the app that uses it, or try again later")
    }
    if error.isDamage { return meaning(.storeDamaged, "SQLite finds the database damaged", HopdError.damageHint) }
    if error.isFull { return meaning(.noSpace, "the disk is full", "free space and try again") }
    if [SQLITE_READONLY, SQLITE_PERM, SQLITE_AUTH].contains(error.code) {
      return meaning(.noPermission, "the store or its directory cannot be written", "give hopd the right to write both")
    }
    if error.code == SQLITE_CANTOPEN {
      return meaning(.notFound, "the store cannot be opened", "is it there, a plain file, and readable?")
    }
    if error.isInputOutput { return meaning(.inputOutput, "the disk reports an error", error.inputOutputHint) }
    if error.message.hasPrefix("no such table: ") || error.message.hasPrefix("no such column: ") {
      return meaning(
        .storeDamaged, "the store lacks a table or column of Core Data's bookkeeping",
        "restore the store from a backup")
    }
    if error.isTooLarge { return valueTooLarge(error, at: place) }
    if error.isForeignSchema { return foreignSchema(error, at: place) }
    return meaning(.internalError, "SQLite refused a statement", "please report this")
  }

  /// The refusal of a store with a value that would fill the memory: SQLite has up to four copies of it.
  package static func valueTooLarge(_ error: SQLiteError, at place: Place) -> HopdError {
    HopdError(
      .valueTooLarge, "the store holds a value that is larger than memory_limit allows", at: place, cause: error,
      hint: "set memory_limit to the size of the largest value at least (never less than 256 MiB counts), and give the "
        + "service four times as much; or migrate this store by hand with hopctl migrate")
  }

  /// The meaning of a refusal by the VFS (CLinux/storevfs.c).
  package static func refused(_ refusal: VFSRefusal, cause: SQLiteError, at place: Place) -> HopdError {
    switch refusal {
    case .superJournal:
      HopdError(
        .journalForeign, "the rollback journal beside the store names another file, which SQLite would delete",
        at: place, cause: cause,
        hint: "if an app wrote the store together with other databases and died, open the store once with that app; "
          + "else move the -journal file away and look where it came from")
    case .foreignName:
      HopdError(
        .notAStore, "a side file of the store is not a plain file, or belongs to another database", at: place,
        cause: cause, hint: "move it away: beside a store there are only files that SQLite made")
    case .exchangedDirectory:
      HopdError(
        .storeBusy, "a directory in the path of the store was exchanged for a symbolic link while it was opened",
        at: place, cause: cause, hint: "hopd tries again; who may rename directories there?")
    case .largeSchema:
      HopdError(
        .schemaForeign,
        "the schema has more than \(VFSRefusal.schemaObjects) tables, indexes, views and triggers, or is too large",
        at: place, cause: cause, hint: "no store of Core Data is like that; open it with the program that made it")
    }
  }

  /// The refusal of a store that plain SQLite cannot read: another program added tables or columns of its own kind.
  package static func foreignSchema(_ error: SQLiteError, at place: Place) -> HopdError {
    HopdError(
      .schemaForeign, "the store needs of SQLite what no store of Core Data does", at: place, cause: error,
      hint: "open it with the program that changed it and undo that, or restore a backup")
  }
}
