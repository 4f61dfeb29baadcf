// The two folders of a store's generations: who may write to them, which process works in them, and how a generation
// moves from the one beside the store to the configured one.

import Diagnostics
import DurableFiles
import Glibc
import PersistentStore
import SystemPackage

extension HopdError.Code {
  /// Another user could have put files into the folder of backups.
  package static let backupFolderUnsafe = HopdError.Code("backup-folder-unsafe", exit: .noPermission)
}

extension BackupSet {
  /// The folder beside the store, and the configured one.
  var places: [FilePath] { [directory, elsewhere].compactMap { $0 } }

  /// Throws unless the folder is writable only by users who could replace the store anyway: this process's user, root,
  /// the store's owner, and the owner of the directory that contains the folder.
  ///
  /// In a directory that many users write to, any of them could make the folder before hopd does, and forge or delete
  /// backups in it.
  func requireTrusted(_ folder: FilePath) throws {
    guard let status = try files.status(folder) else { return }
    let place = Place(store: location.database, file: folder)
    let owners = [
      try files.status(location.database)?.owner, try files.status(folder.removingLastComponent())?.owner,
    ]
    guard status.owner == geteuid() || status.owner == 0 || owners.contains(status.owner) else {
      throw HopdError(
        .backupFolderUnsafe,
        "the backup directory belongs to another user (\(AccountName.ofUser(status.owner))), who could forge backups",
        at: place,
        hint: "check its contents, then move it; hopd creates a new one")
    }
    guard status.mode & 0o022 == 0 else {
      throw HopdError(
        .backupFolderUnsafe,
        "other users can write to the backup directory (mode \(String(status.mode, radix: 8))) and forge backups",
        at: place, hint: "check its contents, then run: chmod go-w \(folder.quotedForShell)")
    }
  }

  /// Locks both folders until the result is released, so that no other process removes what is being made; makes
  /// `making` if it does not exist.
  ///
  /// hopd and hopctl may have different state directories, and then do not share a lock of the store; they share these.
  /// Waits for `patience`, then throws `.lockedByOther`.
  func lock(making: FilePath? = nil, patience: Duration = .seconds(10), keepAlive: () -> Void = {}) throws -> BackupLock
  {
    let end = ContinuousClock.now + patience
    while true {
      if let lock = try takeLock(making: making) { return lock }
      guard ContinuousClock.now < end else {
        throw HopdError(
          .lockedByOther, "another hopd or hopctl works on the backups of this store",
          at: Place(store: location.database, file: directory), hint: "retry when it has finished")
      }
      keepAlive()
      usleep(20_000)
    }
  }

  private func takeLock(making: FilePath?) throws -> BackupLock? {
    if let making { try files.ensureDirectory(making, mode: 0o700) }
    var locks: [DirectoryLock] = []
    for place in places where try files.status(place)?.kind == .directory {
      try requireTrusted(place)
      guard let lock = try DirectoryLock(place) else { return nil }
      locks.append(lock)
    }
    return BackupLock(locks)
  }

  // MARK: A generation by its folder

  /// The store that the label of a generation names; where the folder is beside a store, that store, whatever its path
  /// was when the label was written. A folder beside a store needs no label: its database has the store's name.
  package static func store(ofGeneration folder: FilePath, files: any DurableFileSystem) -> CanonicalStoreLocation? {
    let parent = folder.removingLastComponent()
    func beside(_ name: FilePath.Component) -> CanonicalStoreLocation? {
      let store = CanonicalStoreLocation(unresolved: parent.removingLastComponent().appending(name))
      return parent.lastComponent?.string == ".\(NameLabel.label(of: store.fileName)).hopd-backups" ? store : nil
    }
    guard let record = record(in: folder, files: files) else {
      return ((try? files.names(in: folder)) ?? []).lazy.compactMap(beside).first
    }
    guard let name = record.store.path.lastComponent else { return nil }
    return beside(name) ?? CanonicalStoreLocation(unresolved: record.store.path)
  }

  /// The store whose backups are in a folder beside it; nil for other folders, and where nothing in the folder names
  /// the store.
  package static func store(ofBackups folder: FilePath, files: any DurableFileSystem) -> CanonicalStoreLocation? {
    guard folder.lastComponent?.string.hasSuffix(".hopd-backups") == true else { return nil }
    return ((try? files.names(in: folder)) ?? []).lazy.compactMap {
      store(ofGeneration: folder.appending($0), files: files)
    }.first
  }

  // MARK: The configured place

  /// Copies a generation to the configured place, syncs it, and removes the one beside the store. A generation that a
  /// crash left in both places is afterwards only in the configured one.
  func moveElsewhere(_ folder: FilePath) throws -> FilePath {
    guard let elsewhere, let name = folder.lastComponent else { return folder }
    try files.ensureDirectory(elsewhere)
    try requireTrusted(elsewhere)
    let part = elsewhere.appending(name.string + ".part")
    let target = elsewhere.appending(name)
    if try files.status(target.appending(location.fileName)) == nil {
      try removeTree(part)
      try removeTree(target)  // the rest of one that was being removed
      try copyTree(folder, to: part)
      try files.renameNoReplace(part, to: target)
    }
    try files.syncDirectory(elsewhere)
    // Syncs the folder's own name too: a run that ended before its sync may have made it.
    try files.syncDirectory(elsewhere.removingLastComponent())
    try remove(folder)
    return target
  }

  /// Complete generations that are beside the store although another place is configured: a move was cut off or failed,
  /// or the place was configured later.
  func generationsToMove() throws -> [BackupGeneration] {
    guard elsewhere != nil else { return [] }
    return try generations().filter { $0.directory.removingLastComponent() == directory }
  }
}

/// The right to make and remove generations of a store.
final class BackupLock {
  private let locks: [DirectoryLock]

  init(_ locks: [DirectoryLock]) { self.locks = locks }

  /// Releases the locks.
  func release() { for lock in locks { lock.release() } }

  deinit { release() }
}
