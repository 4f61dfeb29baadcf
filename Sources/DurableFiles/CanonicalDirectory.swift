// A path that came from outside is made canonical once, where it enters: calls of `DurableFileSystem` follow no link,
// and records, locks and backups are found by their path, so two spellings of it must become one.

import SystemPackage

/// A directory by its absolute path without links. Only the file system makes one.
package struct CanonicalDirectory: Hashable, Sendable {
  /// The path.
  package let path: FilePath

  /// Resolves the path. Throws `.notFound` where nothing is there.
  package init(_ path: FilePath, files: any DurableFileSystem = LinuxFileSystem()) throws {
    self.path = try files.canonical(path)
  }
}
