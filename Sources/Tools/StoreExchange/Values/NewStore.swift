// A store that a command makes: its external files first, then the store under a hidden name, which it loses when it is
// complete. A program that watches the folder never finds half a store.

import Diagnostics
import DurableFiles
import PersistentStore
import SystemPackage

/// A new store, under a hidden name until it is complete.
package final class NewStore {
  private let location: StoreLocation
  private let files = LinuxFileSystem()
  /// The external files that were written.
  private var written: [FilePath] = []
  /// The place to write to.
  package let hidden: StoreLocation

  /// Begins a store at a location where no file of a store may exist. `job` makes the hidden name unique.
  package init(at location: StoreLocation, job: String) throws {
    self.location = location
    hidden = StoreLocation(database: location.directory.appending(".\(location.fileName).hop-\(job).tmp"))
    for path in [location.database, location.supportDirectory] + location.sideFiles
    where try files.status(path) != nil {
      throw HopdError(
        .alreadyExists, "already exists", at: Place(store: path), hint: "name another path, or move that one away")
    }
  }

  /// Writes an external file.
  package func keep(_ content: [UInt8], as name: ExternalFileName) throws {
    if written.isEmpty {
      try files.makeDirectory(location.supportDirectory, mode: 0o755)
      try files.makeDirectory(location.externalDataDirectory, mode: 0o755)
    }
    let path = location.externalDataDirectory.appending(name.text)
    try files.createFile(path, content, mode: 0o644)
    written.append(path)
  }

  /// Syncs everything and gives the store its name. The external files are synced before the store that refers to them
  /// gets it.
  package func commit() throws {
    if !written.isEmpty {
      try files.syncDirectory(location.externalDataDirectory)
      try files.syncDirectory(location.supportDirectory)
    }
    try files.syncFile(hidden.database)
    try files.renameNoReplace(hidden.database, to: location.database)
    try files.syncDirectory(location.directory)
    written = []
  }

  /// Removes what was written; after `commit` nothing.
  package func discard() {
    for path in [hidden.database] + hidden.sideFiles { _ = try? files.unlinkIfPresent(path) }
    guard !written.isEmpty else { return }
    for path in written { _ = try? files.unlinkIfPresent(path) }
    _ = try? files.removeDirectory(location.externalDataDirectory)
    _ = try? files.removeDirectory(location.supportDirectory)
  }
}
