// A file or folder that a command makes: it gets its name when it is complete, so that nobody finds half of one.

import Diagnostics
import DurableFiles
import SystemPackage

/// A new file or folder, under a hidden name until it is complete. Only its owner may read it: it has users' data.
package struct NewOutput {
  private let path: FilePath
  private let isFolder: Bool
  private let files = LinuxFileSystem()
  /// The place to write to.
  package let hidden: FilePath

  /// Creates an empty file or folder that will be `path`, a canonical path under which nothing may exist. `job` makes
  /// the hidden name unique.
  package init(at path: FilePath, isFolder: Bool, job: String) throws {
    self.path = path
    self.isFolder = isFolder
    let name = path.lastComponent?.string ?? ""
    hidden = path.removingLastComponent().appending(".\(name).hop-\(job).tmp")
    guard try files.status(path) == nil else {
      throw HopdError(
        .alreadyExists, "already exists", at: Place(file: path), hint: "pass another path, or move the existing file")
    }
    if isFolder {
      try files.makeDirectory(hidden, mode: 0o700)
    } else {
      try files.createUnsyncedFile(hidden, [], mode: 0o600)
    }
  }

  /// Syncs what was written and gives it its name.
  package func commit() throws {
    if isFolder {
      for name in try files.names(in: hidden) { try files.syncFile(hidden.appending(name)) }
      try files.syncDirectory(hidden)
    } else {
      try files.syncFile(hidden)
    }
    try files.renameNoReplace(hidden, to: path)
    try files.syncDirectory(path.removingLastComponent())
  }

  /// Removes what was written.
  package func discard() {
    if isFolder {
      try? files.removeTree(hidden, deepest: 2)
    } else {
      let name = hidden.lastComponent?.string ?? ""
      for suffix in ["", "-journal", "-wal", "-shm"] {
        _ = try? files.unlinkIfPresent(hidden.removingLastComponent().appending(name + suffix))
      }
    }
  }
}
