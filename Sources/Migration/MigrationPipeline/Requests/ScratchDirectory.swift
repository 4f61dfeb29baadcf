// A private folder for stores that are not kept: trial runs write there, and it is removed however the run ends.

import Diagnostics
import DurableFiles
import Glibc
import SystemPackage

/// A folder that only this user can enter, made for one run and removed after it.
package struct ScratchDirectory {
  /// The folder; canonical.
  package let path: FilePath
  private let files: any DurableFileSystem

  /// Creates a directory in `parent`, by default the temporary directory.
  package init(in parent: FilePath?, files: any DurableFileSystem = LinuxFileSystem()) throws(HopdError) {
    self.files = files
    let chosen = parent ?? Self.temporaryDirectory
    do {
      path = try CanonicalDirectory(resolving: chosen).path.appending(
        "hopd-scratch-\(String(UInt64.random(in: .min ... .max), radix: 16))")
      // Fails if the name exists, so that no other program's folder is used or removed.
      try files.makeDirectory(path, mode: 0o700)
    } catch {
      throw HopdError(
        (error as? HopdError)?.code ?? .inputOutput, "no scratch directory can be made in \(chosen.printable)",
        at: Place(file: chosen), cause: error, hint: "pass a writable directory with --scratch DIR")
    }
  }

  /// Removes the folder with everything in it. What cannot be removed stays and is reported by the error.
  package func remove() throws {
    // A store has its external data two folders deep; hopd makes nothing deeper.
    try files.removeTree(path, deepest: 16)
  }

  /// $TMPDIR, by default /var/tmp, which unlike /tmp is a disk as a rule.
  package static var temporaryDirectory: FilePath {
    if let named = getenv("TMPDIR"), named.pointee != 0 { return FilePath(String(cString: named)) }
    return "/var/tmp"
  }
}
