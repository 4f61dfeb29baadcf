// Resolves paths from the command line, which are relative to the working directory and may contain links.

import DurableFiles
import SystemPackage

extension FilePath {
  /// Returns the absolute path without links. The file must exist.
  func resolved() throws -> FilePath { try LinuxFileSystem().canonical(self) }

  /// The same for the folder only; the file's own name is kept. The file may be missing, or be a link that must not be
  /// followed. A path without a name is resolved as a whole.
  func resolvedInFolder() throws -> FilePath {
    guard let name = lastComponent, name.kind == .regular else { return try resolved() }
    let folder = removingLastComponent()
    return try (folder.isEmpty ? "." : folder).resolved().appending(name)
  }
}
