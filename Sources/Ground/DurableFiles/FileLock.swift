// One owner per store: an advisory lock on a file of hopd's own. It is never taken on a store, because closing any
// descriptor of a store drops the locks SQLite holds on it (docs/formats/replacement.md, "P2: One owner"). The kernel
// frees it with the process.

import Diagnostics
import Glibc
import SystemPackage

extension HopdError.Code {
  /// Another hopd or hopctl works on this store.
  package static let lockedByOther = HopdError.Code("locked-by-other", exit: .unavailable, isRetryable: true)
}

/// An exclusive `flock` on a lock file; held until `release()` or the end of the value's life.
package final class FileLock {
  /// The lock file. It goes with the lock.
  package let path: FilePath
  private var descriptor: Int32

  /// Takes the lock or throws `.lockedByOther` at once. Makes the lock file if it is missing; its directory must exist.
  package init(path: FilePath) throws {
    self.path = path
    let files = LinuxFileSystem()
    while true {
      let file = try FileLock.open(path, files)
      do {
        try call("lock", at: path) { flock(file.number, LOCK_EX | LOCK_NB) }
      } catch let error as HopdError where error.errno == .wouldBlock {
        let owner = String(decoding: (try? files.read(path, limit: 64)) ?? [], as: UTF8.self).filter(\.isNumber)
        throw HopdError(
          .lockedByOther,
          "the lock is held by another hopd or hopctl" + (owner.isEmpty ? "" : " (process \(owner))"),
          at: Place(file: path), hint: "retry when it has finished")
      }
      // A former holder may have removed the file between the two calls: a lock on a file without a name keeps no other
      // process out.
      guard try FileLock.isNamed(path, file.number) else { continue }
      // A program that is started meanwhile must not inherit it: it would keep the lock for as long as it lives.
      descriptor = try call("keep the lock", at: path) { fcntl(file.number, F_DUPFD_CLOEXEC, 0) }
      break
    }
    try files.adoptByDirectoryOwner(path)
    // Only for the text of a refusal; the lock itself is the kernel's.
    FileLock.note(Array("\(getpid())\n".utf8), in: descriptor)
  }

  private static func open(_ path: FilePath, _ files: LinuxFileSystem) throws -> Descriptor {
    do {
      return try files.open(path, "open the lock file", O_RDWR | O_CREAT, mode: 0o600)
    } catch let error as HopdError where error.code == .noSpace {
      throw HopdError(
        .noSpace, "no lock file can be made in hopd's state directory: \(error.message)", at: Place(file: path),
        cause: error.cause,
        hint: "free space or inodes there: df -h -i \(path.removingLastComponent().quotedForShell)")
    }
  }

  /// Whether the name still refers to the open file.
  private static func isNamed(_ path: FilePath, _ descriptor: Int32) throws -> Bool {
    var mine = stat()
    try call("check the lock file", at: path) { fstat(descriptor, &mine) }
    guard let there = try LinuxFileSystem().status(path) else { return false }
    return there.identity == FileIdentity(device: UInt64(mine.st_dev), inode: UInt64(mine.st_ino))
  }

  /// Writes the holder into a lock file, in place of its former content: only for readers, so it is not synced and no
  /// failure is reported.
  package static func note(_ text: [UInt8], in descriptor: Int32) {
    _ = ftruncate(descriptor, 0)
    _ = pwrite(descriptor, text, text.count, 0)
  }

  /// Removes lock files that no process holds: those of killed processes. Returns how many.
  @discardableResult
  package static func sweep(_ directory: FilePath) -> Int {
    let files = LinuxFileSystem()
    var count = 0
    for name in (try? files.names(in: directory)) ?? [] where name.string.hasSuffix(".lock") {
      guard let lock = try? FileLock(path: directory.appending(name)) else { continue }
      lock.release()
      count += 1
    }
    return count
  }

  /// Removes the lock file and releases the lock.
  package func release() {
    guard descriptor >= 0 else { return }
    // Under the lock: a process that has opened the file meanwhile checks its name once more when it has the lock.
    if (try? FileLock.isNamed(path, descriptor)) == true { try? LinuxFileSystem().unlink(path) }
    // Unlocked explicitly, not only by closing: a program that is just being started has a copy of the descriptor for a
    // moment.
    _ = flock(descriptor, LOCK_UN)
    _ = close(descriptor)
    descriptor = -1
  }

  deinit { release() }
}
