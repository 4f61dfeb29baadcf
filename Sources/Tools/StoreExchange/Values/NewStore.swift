// A store that a command makes: its external files first, then the store under a hidden name, which it loses when it is
// complete. A program that watches the folder never finds half a store.

import Diagnostics
import DurableFiles
import PersistentStore
import SystemPackage

/// The external files that a command writes beside a store.
package final class AddedExternalFiles {
  private let location: StoreLocation
  private let files = LinuxFileSystem()
  private var written: [FilePath] = []

  /// Writes files of the store at a location.
  package init(of location: StoreLocation) { self.location = location }

  /// Writes a file, whose name no file has.
  package func add(_ content: [UInt8], as name: ExternalFileName) throws {
    if written.isEmpty {
      for directory in [location.supportDirectory, location.externalDataDirectory]
      where try files.status(directory) == nil {
        try files.makeDirectory(directory, mode: 0o755)
      }
    }
    let path = location.externalDataDirectory.appending(name.text)
    try files.createFile(path, content, mode: 0o644)
    written.append(path)
  }

  /// Creates the names of the files durable: before the store that refers to them is in place.
  package func sync() throws {
    guard !written.isEmpty else { return }
    try files.syncDirectory(location.externalDataDirectory)
    try files.syncDirectory(location.supportDirectory)
    try files.syncDirectory(location.directory)
  }

  /// Removes the files of a store that was not completed.
  package func discard() {
    guard !written.isEmpty else { return }
    for path in written { _ = try? files.unlinkIfPresent(path) }
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
        .alreadyExists, "already exists", at: Place(store: path), hint: "choose another path, or move that file")
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
