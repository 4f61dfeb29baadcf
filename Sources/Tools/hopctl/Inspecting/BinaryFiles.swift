// Writes binary values to separate files named by their digest: equal values share a file, and `sha256sum` finds a file
// whose content does not match its name.

import Diagnostics
import DurableFiles
import Glibc
import ManagedObjectModel
import PersistentStore
import SystemPackage

/// A directory for binary values as files.
struct BinaryFiles: BinaryValueFiles {
  private let directory: FilePath
  private let files = LinuxFileSystem()
  /// The file being written; it is renamed when its digest is known.
  private let part: FilePath

  /// Makes `path` (mode 0700), absolute or below the working directory, if it is missing; throws if it is not a
  /// directory.
  init(_ path: FilePath) throws {
    directory = try path.isAbsolute ? path : FilePath(".").resolved().pushing(path).lexicallyNormalized()
    part = directory.appending(".hopctl-\(getpid()).part")
    try files.ensureDirectory(directory)
  }

  func add(_ produce: ((ArraySlice<UInt8>) throws -> Void) throws -> Void) throws -> BinaryValueFile {
    // A killed run may have left this file, if its process ID is reused.
    _ = try files.unlinkIfPresent(part)
    var digest = ContentDigest.Running()
    var count: Int64 = 0
    do {
      let file = try opened()
      do {
        try produce { bytes in
          _ = try file.writeAll(bytes)
          digest.add(bytes)
          count &+= Int64(bytes.count)
        }
      } catch {
        try? file.close()
        throw error
      }
      try file.close()
    } catch {
      try? files.unlink(part)
      throw (error as? Errno).map(failed) ?? error
    }
    let name = digest.sha256()
    try files.rename(part, to: directory.appending(name))
    return BinaryValueFile(name: name, bytes: count, digest: name)
  }

  private func opened() throws -> FileDescriptor {
    try FileDescriptor.open(
      part, .writeOnly, options: [.create, .exclusiveCreate, .noFollow, .closeOnExec], permissions: [.ownerReadWrite])
  }

  private func failed(_ code: Errno) -> HopdError {
    let kind: HopdError.Code =
      switch code {
      case .noSpace, .diskQuotaExceeded: .noSpace
      case .permissionDenied, .notPermitted, .readOnlyFileSystem: .noPermission
      default: .inputOutput
      }
    return HopdError(
      kind, "cannot write a binary value", at: Place(file: directory), cause: code,
      hint: "choose a writable directory with enough free space")
  }
}
