// A lock on a directory itself, for work that several processes with different state directories may do in it. It needs
// no file that would stay, and the kernel frees it with the process.

import CLinux
import Diagnostics
import Glibc
import SystemPackage

/// An exclusive `flock` on a directory; held until `release()` or the end of the value's life.
package final class DirectoryLock {
  private var descriptor: Int32

  /// Takes the lock; nil while another process holds it, or if the directory was removed or recreated in the meantime.
  ///
  /// Where the directory is not on a real file system, or its file system has no locks, the result is a lock that locks
  /// nothing.
  package init?(_ directory: FilePath) throws {
    let files = LinuxFileSystem()
    let opened: Int32
    do {
      let own = try files.openDirectory(directory, flags: O_RDONLY)
      opened = try call("keep the lock", at: directory) { fcntl(own.number, F_DUPFD_CLOEXEC, 0) }
    } catch let error as HopdError where error.code == .notFound {
      descriptor = -1
      return
    }
    descriptor = opened
    do {
      try call("lock the directory", at: directory) { flock(opened, LOCK_EX | LOCK_NB) }
    } catch let error as HopdError where error.errno == .wouldBlock {
      _ = Glibc.close(opened)
      descriptor = -1
      return nil
    } catch let error as HopdError where error.errno.map(Self.lacksLocks.contains) == true {
      return
    }
    var found = stat()
    guard fstat(opened, &found) == 0, try files.status(directory)?.identity.inode == UInt64(found.st_ino) else {
      release()
      return nil
    }
  }

  /// The errors of file systems that have no locks, or none for directories.
  private static let lacksLocks: [Errno] = [.notSupported, .noLocks, .noFunction, .invalidArgument, .badFileDescriptor]

  /// Releases the lock.
  package func release() {
    guard descriptor >= 0 else { return }
    // Unlocked explicitly, not only by closing: a program that is just being started has a copy of the descriptor for a
    // moment.
    _ = flock(descriptor, LOCK_UN)
    _ = Glibc.close(descriptor)
    descriptor = -1
  }

  deinit { release() }
}
