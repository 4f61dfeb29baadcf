// Paths as someone typed them: relative to the working directory, and through links.

import DurableFiles
import SystemPackage

extension FilePath {
  /// The path from the root, without links. The file is there.
  func resolved() throws -> FilePath { try LinuxFileSystem().canonical(self) }

  /// The same of the folder alone: the file's own name is kept. It may be missing, or be a link that nobody is to
  /// follow. A path without a name is resolved as a whole.
  func resolvedInFolder() throws -> FilePath {
    guard let name = lastComponent, name.kind == .regular else { return try resolved() }
    let folder = removingLastComponent()
    return try (folder.isEmpty ? "." : folder).resolved().appending(name)
  }
}
