// A lease is the kernel's notice that no other program has a file open; it breaks when one tries to open it. SQLite's
// locks show the programs that work with a database, but not one that has opened it and waits. Such a program would
// continue with the old file after a rename, and find the new one's side files by their path.

import CLinux
import Diagnostics
import Glibc
import SystemPackage

/// A write lease on a file of this process; it is released at the end of the value's life.
package final class FileLease {
  /// The result of an attempt to take one.
  package enum Attempt {
    /// No other program has the file open, and a program that opens it waits.
    case taken(FileLease)
    /// Another program has it open.
    case isOpenElsewhere
    /// The system grants no lease on this file: nothing is known.
    case unavailable(Obstacle)
  }

  /// Why there is no lease.
  package enum Obstacle: Hashable, Sendable {
    /// The file belongs to another user, and this process lacks CAP_LEASE.
    case otherOwner
    /// The file system has no leases, as NFS, or the system refuses for a reason of its own.
    case fileSystem

    /// The reason in words that follow "because".
    package var reason: String {
      switch self {
      case .otherOwner: "the file belongs to another user and hopd has no CAP_LEASE"
      case .fileSystem: "the file system provides no leases"
      }
    }
  }

  private let descriptor: Int32
  private var isHeld = true

  private init(_ descriptor: Int32) { self.descriptor = descriptor }

  /// Takes a lease through the one descriptor that this process has of the file: opening another one and closing it
  /// would drop the locks that SQLite holds through it. `known` is that descriptor, where the caller knows it.
  package static func take(_ file: FileIdentity, through known: Int32? = nil) -> Attempt {
    if let known, isOpen(file, as: known), clinux_take_lease(known) == 0 { return .taken(FileLease(known)) }
    guard let descriptor = descriptor(of: file) else { return .unavailable(.fileSystem) }
    do {
      try call("take a lease", at: "/proc/self/fd") { clinux_take_lease(descriptor) }
      return .taken(FileLease(descriptor))
    } catch {
      switch (error as? HopdError)?.errno {
      case .resourceTemporarilyUnavailable?: return .isOpenElsewhere
      case .permissionDenied?, .notPermitted?: return .unavailable(.otherOwner)
      default: return .unavailable(.fileSystem)
      }
    }
  }

  /// Why the system would grant no lease on this file; nil where it grants one, now or when others have closed the
  /// file.
  package static func obstacle(_ file: FileIdentity, through known: Int32? = nil) -> Obstacle? {
    if case .unavailable(let obstacle) = take(file, through: known) { return obstacle }
    return nil
  }

  /// Whether no program has tried to open the file since.
  package var isWhole: Bool { clinux_lease_is_whole(descriptor) == 1 }

  /// Releases the lease: programs that wait to open the file continue.
  package func giveBack() {
    guard isHeld else { return }
    isHeld = false
    _ = clinux_drop_lease(descriptor)
  }

  deinit { giveBack() }

  private static func isOpen(_ file: FileIdentity, as descriptor: Int32) -> Bool {
    var status = stat()
    return fstat(descriptor, &status) == 0 && UInt64(status.st_dev) == file.device
      && UInt64(status.st_ino) == file.inode
  }

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
      guard isOpen(file, as: number), fcntl(number, F_GETFL) & clinux_o_path() == 0 else { continue }
      guard found == nil else { return nil }
      found = number
    }
    return found
  }
}
