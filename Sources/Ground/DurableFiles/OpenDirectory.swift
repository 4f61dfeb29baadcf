// A directory by its descriptor. Its path is resolved once; whatever the path leads to later, the descriptor stays.

import CLinux
import Diagnostics
import Glibc
import SystemPackage

/// A directory that is open (with O_PATH), below which files are named without following a link.
package final class OpenDirectory: Sendable {
  /// The path when it was opened: absolute, without links. For messages, records and keys.
  package let path: FilePath
  /// Device and inode.
  package let identity: FileIdentity
  /// The descriptor; it belongs to this value.
  package let descriptor: Int32

  private init(_ descriptor: consuming Descriptor, path: FilePath) throws {
    var found = clinux_file_status()
    try call("read the status", at: path) { clinux_status_at(descriptor.number, "", &found) }
    identity = FileIdentity(device: found.device, inode: found.inode)
    self.path = path
    self.descriptor = descriptor.release()
  }

  deinit { _ = Glibc.close(descriptor) }

  /// Opens the directory at a canonical path; a link in any component is an error.
  package convenience init(canonical path: FilePath) throws {
    let opened = try path.withPlatformString { text in
      try call("open the directory", at: path) { clinux_open_directory(text, clinux_o_path() | O_CLOEXEC) }
    }
    try self.init(Descriptor(opened), path: path)
  }

  /// A descriptor for fdopendir(3), which closes it; -1, with errno, where the directory cannot be read.
  package func openForListing() -> Int32 {
    clinux_openat_beneath(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK, 0)
  }

  /// Visits the entries as `FilePath.readEntries` does.
  package func readEntries(_ visit: (FolderEntry) -> Bool) throws(Errno) {
    try FolderEntry.read(openForListing(), visit)
  }

  /// Opens a directory below this one, whatever the path leads to; an empty name is this directory.
  package func directory(_ relative: FilePath) throws -> OpenDirectory {
    let path = relative.isEmpty ? path : path.appending(relative.components)
    let name = relative.isEmpty ? "." : relative
    let opened = try name.withPlatformString { text in
      try call("open the directory", at: path) {
        clinux_openat_beneath(descriptor, text, clinux_o_path() | O_DIRECTORY | O_CLOEXEC, 0)
      }
    }
    return try OpenDirectory(Descriptor(opened), path: path)
  }
}

/// A directory that its path stands for: as long as this value lives, every call of this process that opens files by a
/// path below it opens them below this very directory (CLinux/directories.c).
package final class PinnedDirectory: Sendable {
  /// The directory.
  package let directory: OpenDirectory

  /// Pins a directory. Throws `.directoryReplaced` while the path means another one: another job works in the directory
  /// that had the path before.
  package init(_ directory: OpenDirectory) throws {
    self.directory = directory
    let code = directory.path.withPlatformString { clinux_pin_directory($0, directory.descriptor) }
    guard code == 0 else {
      guard Glibc.errno == EBUSY else { throw HopdError(errno: Glibc.errno, "open the directory", at: directory.path) }
      throw HopdError(
        .directoryReplaced, "another directory has this path now, and a job is still running in the old one",
        at: Place(file: directory.path), hint: "retry when that job has finished")
    }
  }

  deinit { directory.path.withPlatformString { clinux_unpin_directory($0) } }
}

extension HopdError.Code {
  /// Another directory is where a directory was found before.
  package static let directoryReplaced = HopdError.Code("directory-replaced", exit: .unavailable, isRetryable: true)
}
