// A store that a command makes: its external files first, then the store under a hidden name, which it loses when it is
// complete. A program that watches the folder never finds half a store.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import PersistentStore
import SystemPackage

/// The external files that a command writes beside a store.
package final class AddedExternalFiles {
  private let location: StoreLocation
  private let files = LinuxFileSystem()
  private var hasFolder = false
  /// The 16 bytes of each name that was written: a store may have a million.
  private var written: [UInt8] = []

  /// Writes files of the store at a location.
  package init(of location: StoreLocation) { self.location = location }

  /// Writes a file. A name belongs to one object and content, so a file that is there was written by the same import,
  /// which a crash ended, maybe in the middle of it.
  package func add(_ content: [UInt8], as name: ExternalFileName) throws {
    if !hasFolder {
      for directory in [location.supportDirectory, location.externalDataDirectory]
      where try files.status(directory) == nil {
        try files.makeDirectory(directory, mode: 0o755)
      }
      hasFolder = true
    }
    let path = location.externalDataDirectory.appending(name.text)
    if let status = try files.status(path) {
      if status.size == Int64(content.count), try files.read(path, limit: content.count) == content {
        return try files.syncFile(path)
      }
      try files.unlinkIfPresent(path)
    }
    try files.createFile(path, content, mode: 0o644)
    written += UUIDText.bytes(of: name.text) ?? []
  }

  /// Creates the names of the files durable: before the store that refers to them is in place.
  package func sync() throws {
    guard hasFolder else { return }
    try files.syncDirectory(location.externalDataDirectory)
    try files.syncDirectory(location.supportDirectory)
    try files.syncDirectory(location.directory)
  }

  /// Removes the files of a store that was not completed.
  package func discard() {
    guard hasFolder else { return }
    for start in stride(from: 0, to: written.count, by: 16) {
      let name = UUIDText.text(of: Array(written[start..<min(start + 16, written.count)]))
      _ = try? files.unlinkIfPresent(location.externalDataDirectory.appending(name))
    }
    written = []
    // Directories with other files stay.
    try? files.removeDirectory(location.externalDataDirectory)
    try? files.removeDirectory(location.supportDirectory)
  }
}

/// A new store, under a hidden name until it is complete.
package struct NewStore {
  private let location: StoreLocation
  private let files = LinuxFileSystem()
  private let external: AddedExternalFiles
  /// The place to write to.
  package let hidden: StoreLocation

  /// Begins a store at a location where no file of a store may exist. `job` makes the hidden name unique.
  package init(at location: StoreLocation, job: String) throws {
    self.location = location
    external = AddedExternalFiles(of: location)
    hidden = StoreLocation(database: location.directory.appending(".\(location.fileName).hop-\(job).tmp"))
    for path in [location.database, location.supportDirectory] + location.sideFiles
    where try files.status(path) != nil {
      throw HopdError(
        .alreadyExists, "already exists", at: Place(store: path), hint: "pass another path, or move that file")
    }
  }

  /// Writes an external file.
  package func keep(_ content: [UInt8], as name: ExternalFileName) throws { try external.add(content, as: name) }

  /// Syncs everything and gives the store its name.
  package func commit() throws {
    try external.sync()
    try files.syncFile(hidden.database)
    try files.renameNoReplace(hidden.database, to: location.database)
    try files.syncDirectory(location.directory)
  }

  /// Removes what was written, if the store did not get its name.
  package func discard() {
    let isComplete = (try? files.status(hidden.database)) ?? nil == nil
    for path in [hidden.database] + hidden.sideFiles { _ = try? files.unlinkIfPresent(path) }
    if !isComplete { external.discard() }
  }
}
