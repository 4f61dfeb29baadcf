// The kernel's word that nobody else has a file open, and that it is told of whoever tries to. SQLite's locks say who works
// with a database; they say nothing of a program that has opened it and waits. Such a program would go on with the old file
// after a rename, and find the new one's side files by their path.

import CLinux
import Diagnostics
import Glibc
import SystemPackage

/// A write lease on a file of this process; it is given back with the end of the value.
package final class FileLease {
  /// What an attempt to take one found.
  package enum Attempt {
    /// Nobody else has the file open, and whoever opens it waits.
    case taken(FileLease)
    /// Somebody else has it open.
    case isOpenElsewhere
    /// Not this process's file, or a file system without leases: nothing is known.
    case unknown
  }

  private let descriptor: Int32
  private var isHeld = true

  private init(_ descriptor: Int32) { self.descriptor = descriptor }

  /// Takes a lease through the one descriptor that this process has of the file: opening another one and closing it would drop
  /// the locks that SQLite holds through it.
  package static func take(_ file: FileIdentity) -> Attempt {
    guard let descriptor = descriptor(of: file) else { return .unknown }
    if clinux_take_lease(descriptor) == 0 { return .taken(FileLease(descriptor)) }
    return Glibc.errno == EAGAIN ? .isOpenElsewhere : .unknown
  }

  /// Has nobody tried to open the file since?
  package var isWhole: Bool { clinux_lease_is_whole(descriptor) == 1 }

  /// Gives the lease back: who waits to open the file goes on.
  package func giveBack() {
    guard isHeld else { return }
    isHeld = false
    _ = clinux_drop_lease(descriptor)
  }

  deinit { giveBack() }

  /// This process's descriptor of a file; nil where it has none or several.
  private static func descriptor(of file: FileIdentity) -> Int32? {
    guard let stream = opendir("/proc/self/fd") else { return nil }
    defer { closedir(stream) }
    var found: Int32?
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      guard let number = Int32(name) else { continue }
      var status = stat()
      guard fstat(number, &status) == 0, UInt64(status.st_dev) == file.device, UInt64(status.st_ino) == file.inode,
        fcntl(number, F_GETFL) & clinux_o_path() == 0
      else { continue }
      guard found == nil else { return nil }
      found = number
    }
    return found
  }
}
