// A path that came from outside is resolved once, where it enters: calls of `DurableFileSystem` follow no link, and
// records, locks and backups are found by their path, so two spellings of it must become one.

import Diagnostics
import SystemPackage

/// A directory by its absolute path without links. While the value lives, the path means this very directory.
package struct CanonicalDirectory: Hashable, Sendable {
  /// The path.
  package let path: FilePath
  /// What keeps the path's meaning; nil on a disk without descriptors, or where no directory is.
  private let pin: PinnedDirectory?

  /// Resolves a typed or configured path. Throws `.notFound` if nothing exists there.
  package init(resolving path: FilePath, files: any DurableFileSystem = LinuxFileSystem()) throws {
    try self.init(unresolved: files.canonical(path), files: files)
  }

  /// Takes a path that was canonical when it was noted, as in a record, and resolves nothing: a link in it is an error.
  package init(unresolved path: FilePath, files: any DurableFileSystem = LinuxFileSystem()) throws {
    self.path = path
    do { pin = try files.pin(path) } catch let error as HopdError where error.errno == .notDirectory { pin = nil }
  }

  /// Takes a directory that is open. Throws `.directoryReplaced` while its path means another one.
  package init(_ directory: OpenDirectory) throws {
    path = directory.path
    pin = try PinnedDirectory(directory)
  }

  /// Device and inode; nil on a disk without descriptors.
  package var identity: FileIdentity? { pin?.directory.identity }

  package static func == (a: Self, b: Self) -> Bool { a.path == b.path }

  package func hash(into hasher: inout Hasher) { hasher.combine(path) }
}
