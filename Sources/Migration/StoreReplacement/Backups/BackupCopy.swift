// The old store as a real copy (step B1 of docs/formats/replacement.md, "Mode in-place"): a replacement in place writes
// into the store's own file, so a second name of that file keeps nothing. The copy is read through the one connection
// that holds the store, as opening the file by other means would drop its locks.

import Diagnostics
import DurableFiles
import PersistentStore
import SQLite
import SystemPackage

extension BackupSet {
  /// The folder in which the copied generation of a job is made, already at the configured place.
  func copyFolder(job: String, now: Int64) -> FilePath {
    (elsewhere ?? directory).appending("\(BackupTime.text(now))-\(job)")
  }

  /// Removes what a job has made of its generation so far, if anything.
  func removeMade(_ folder: FilePath) throws {
    let parent = folder.removingLastComponent()
    guard let name = folder.lastComponent, try files.status(parent) != nil else { return }
    for made in [folder, parent.appending(name.string + ".part")] where try files.status(made) != nil {
      try remove(made)
    }
    // hopd may remove only the parent beside the store.
    if parent == directory, try files.status(parent) != nil, try files.names(in: parent).isEmpty {
      try files.removeDirectory(parent)
    }
  }

  /// Copies the database of `connection` with its external data into a generation: under `.part` until it is complete,
  /// synced and checked. `keepAlive` is called repeatedly during the copy.
  func makeCopy(
    _ folder: FilePath, of connection: Connection, _ record: BackupRecord, keepAlive: @escaping () -> Void,
    whenCopied: () throws -> Void
  ) throws {
    let parent = folder.removingLastComponent()
    guard let name = folder.lastComponent else { return }
    let part = parent.appending(name.string + ".part")
    try files.ensureDirectory(parent, mode: 0o700)
    try requireTrusted(parent)
    try removeTree(part)
    try files.makeDirectory(part, mode: 0o700)
    let copy = StoreLocation(database: part.appending(location.fileName))
    try linkExternalData(to: copy)
    try label(part, record)
    try files.createUnsyncedFile(copy.database, [], mode: 0o600)
    try HopdError.sqlite("copy the store to its backup", location.database) {
      try connection.copy("main", to: copy.database, pagesPerStep: 1000) { _, _ in
        keepAlive()
        return true
      }
    }
    // The store's owner should be able to use its backup; a process that may not change the owner keeps the copy as its
    // own.
    _ = try? files.copyAttributes(from: location.database, to: copy.database)
    try files.syncFile(copy.database)
    try HopdError.sqlite("check the backup", copy.database) {
      let check = try Connection(path: copy.database, access: .exclusive(keepsLog: false))
      check.setProgressHandler(every: 200_000) {
        keepAlive()
        return true
      }
      guard try check.text("PRAGMA quick_check(1)") == "ok" else {
        throw HopdError(.storeDamaged, "quick_check of the backup finds damage", at: Place(file: copy.database))
      }
    }
    // SQLite does not report that it could not remove a journal of its own. If a power cut undoes the journal's last
    // write, the next program that opens the backup would roll the journal back into it.
    for file in copy.sideFiles { try files.unlinkIfPresent(file) }
    try files.syncDirectory(part)
    try whenCopied()
    try files.renameNoReplace(part, to: folder)
    try files.syncDirectory(parent)
    // Syncs the name of the folder of backups too: a run that ended before its sync may have made it.
    try files.syncDirectory(parent.removingLastComponent())
  }
}
