// A store that a command makes: it and its external files have hidden names until they are complete. A program that
// watches the folder never finds half a store, and the same command can be run again after a crash.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import PersistentStore
import StoreReplacement
import SystemPackage

/// The external files that a command writes beside a store.
package final class AddedExternalFiles {
  private let location: StoreLocation
  private let files = LinuxFileSystem()
  private var hasFolder = false
  private let makeList: (() throws -> AddedFileList)?
  /// The names of the files on disk; nil before the first file, and where the whole directory is new.
  private(set) var list: AddedFileList?

  /// Writes files of the store at a location. If other files may be there, their names are noted in a list.
  package init(of location: StoreLocation, list: (() throws -> AddedFileList)? = nil) {
    self.location = location
    makeList = list
  }

  /// Writes a file, or removes it. A name belongs to one object and content, so a file that is there was written by the
  /// same import, which a crash ended, maybe in the middle of it.
  package func change(_ name: ExternalFileName, to content: [UInt8]?) throws {
    let path = location.externalDataDirectory.appending(name.text)
    guard let content else {
      _ = try files.unlinkIfPresent(path)
      return
    }
    if !hasFolder {
      list = try makeList?()
      for directory in [location.supportDirectory, location.externalDataDirectory]
      where try files.status(directory) == nil {
        try files.makeDirectory(directory, mode: 0o755)
      }
      hasFolder = true
    }
    try list?.note(name)
    if let status = try files.status(path) {
      if status.size == Int64(content.count), try files.read(path, limit: content.count) == content {
        return try files.syncFile(path)
      }
      try files.unlinkIfPresent(path)
    }
    try files.createFile(path, content, mode: 0o644)
  }

  /// Creates the names of the files durable: before the store that refers to them is in place.
  package func sync() throws {
    guard hasFolder else { return }
    try files.syncDirectory(location.externalDataDirectory)
    try files.syncDirectory(location.supportDirectory)
    try files.syncDirectory(location.directory)
  }
}

/// A new store, under a hidden name until it is complete.
package struct NewStore {
  private let location: CanonicalStoreLocation
  private let area: StagingArea
  private let files = LinuxFileSystem()
  private let external: AddedExternalFiles
  /// Nil where the file system has no locks.
  private let lock: FileLock?
  /// The place to write to.
  package let hidden: StoreLocation

  private static let name = "new"
  /// Begins the name of a file that identifies the directory of external files by its inode.
  private static let support = "support-"

  /// Begins a store at a location where no file of a store may exist; what a killed command left there is removed.
  /// `job` makes the hidden name unique.
  package init(at location: CanonicalStoreLocation, job: String) throws {
    self.location = location
    area = StagingArea(location: location, job: job, files: files)
    hidden = StoreLocation(database: area.path(named: Self.name))
    external = AddedExternalFiles(of: hidden)
    lock = try Self.lock(location, files)
    if lock != nil { try removeLeftovers() }
    for path in [location.database, location.supportDirectory] + location.sideFiles
    where try files.status(path) != nil {
      throw HopdError(
        .alreadyExists, "already exists", at: Place(store: path), hint: "pass another path, or move that file")
    }
  }

  /// Locks the name: files of another command that makes the store are not leftovers.
  private static func lock(_ location: CanonicalStoreLocation, _ files: LinuxFileSystem) throws -> FileLock? {
    do {
      return try FileLock(path: StagingArea(location: location, job: "lock", files: files).path(hop: nil))
    } catch let error as HopdError where error.code == .lockedByOther {
      throw error.located(Place(store: location.database))
    } catch {
      return nil
    }
  }

  /// Removes the files of killed commands.
  private func removeLeftovers() throws {
    for leftover in try StagingArea.leftovers(of: location, files: files) {
      let name = leftover.path.lastComponent?.string ?? ""
      if name.hasSuffix("-\(Self.name).tmp") {
        try removeSupport(ofJob: leftover.job)
        try files.removeTree(StoreLocation(database: leftover.path).supportDirectory, deepest: 2)
        try StagingArea(location: location, job: leftover.job, files: files).removeAll()
      }
    }
  }

  /// Removes the directory of external files that a job has given its name, if the store did not get its own.
  private func removeSupport(ofJob job: String) throws {
    guard try files.status(location.database) == nil, let found = try files.status(location.supportDirectory) else {
      return
    }
    let mark = StagingArea(location: location, job: job, files: files)
      .path(named: "\(Self.support)\(found.identity.inode)")
    if try files.status(mark) != nil { try files.removeTree(location.supportDirectory, deepest: 2) }
  }

  /// Writes an external file, or removes it.
  package func change(_ name: ExternalFileName, to content: [UInt8]?) throws {
    try external.change(name, to: content)
  }

  /// Syncs everything and gives the store its name. A crash between the two renames leaves the directory of external
  /// files, and a file with its inode.
  package func commit() throws {
    try external.sync()
    try files.syncFile(hidden.database)
    if let support = try files.status(hidden.supportDirectory) {
      let mark = area.path(named: "\(Self.support)\(support.identity.inode)")
      try files.createUnsyncedFile(mark, [], mode: 0o600)
      try files.syncDirectory(location.directory)
      try files.renameNoReplace(hidden.supportDirectory, to: location.supportDirectory)
      try files.syncDirectory(location.directory)
    }
    try files.renameNoReplace(hidden.database, to: location.database)
    try files.syncDirectory(location.directory)
  }

  /// Removes what was written, if the store did not get its name.
  package func discard() {
    try? removeSupport(ofJob: area.job)
    try? files.removeTree(hidden.supportDirectory, deepest: 2)
    try? area.removeAll()
    lock?.release()
  }
}
