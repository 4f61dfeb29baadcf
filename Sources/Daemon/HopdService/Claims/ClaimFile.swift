// Opens, locks and reads claim files. Every user can write to /dev/shm, so the kernel's facts (owner and lock) decide,
// never a file's name or content alone.

import Glibc
import SystemPackage

/// Operations on claim files.
enum ClaimFile {
  /// What a file under the name of a user's claim is.
  enum State {
    /// A daemon of this user holds its lock.
    case held
    /// A daemon that has ended left it.
    case dead
    /// A file of another user.
    case foreign
  }

  // Locks of the open file description (fcntl(2)): a write lock needs a descriptor that is open for writing, which only
  // the owner of a claim and root can get. flock(2), in contrast, works for every user who can read the file.
  private static let getLock: Int32 = 36  // F_OFD_GETLK
  private static let setLock: Int32 = 37  // F_OFD_SETLK

  /// Locks a claim that is open for writing; false if another process has it locked, if only for reading.
  static func lock(_ descriptor: Int32) -> Bool {
    var lock = whole(F_WRLCK)
    return fcntl(descriptor, setLock, &lock) == 0
  }

  /// What a file under the name of a claim of `user` is. A link, or a file that cannot be opened, is not the user's.
  static func state(of path: FilePath, user: UInt32) -> State {
    let descriptor = path.withPlatformString { open($0, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) }
    guard descriptor >= 0 else { return errno == ENOENT ? .dead : .foreign }
    defer { close(descriptor) }
    guard let found = status(descriptor), found.st_uid == user else { return .foreign }
    // Only a write lock conflicts with a read lock. F_OFD_GETLK takes no lock.
    var question = whole(F_RDLCK)
    return fcntl(descriptor, getLock, &question) == 0 && question.l_type != Int16(F_UNLCK) ? .held : .dead
  }

  /// Removes a claim that no process holds.
  static func removeIfDead(_ path: FilePath) {
    let descriptor = path.withPlatformString { open($0, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) }
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    guard let found = status(descriptor), ClaimOwner.counts(found.st_uid), lock(descriptor), isNamed(path, found)
    else { return }
    _ = path.withPlatformString { unlink($0) }
  }

  /// Status of an open file.
  static func status(_ descriptor: Int32) -> stat? {
    var found = stat()
    return fstat(descriptor, &found) == 0 ? found : nil
  }

  /// Whether the path still names this file.
  static func isNamed(_ path: FilePath, _ file: stat) -> Bool {
    var there = stat()
    return path.withPlatformString { lstat($0, &there) } == 0 && there.st_ino == file.st_ino
      && there.st_dev == file.st_dev
  }

  /// The content of a claim.
  static func read(_ path: FilePath) -> [UInt8]? {
    let descriptor = path.withPlatformString { open($0, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) }
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var buffer = [UInt8](repeating: 0, count: 16_384)
    let count = Glibc.read(descriptor, &buffer, buffer.count)
    return count > 0 ? Array(buffer.prefix(count)) : nil
  }

  private static func whole(_ type: Int32) -> Glibc.flock {
    var lock = Glibc.flock()
    lock.l_type = Int16(type)
    lock.l_whence = Int16(SEEK_SET)
    return lock
  }
}

/// Decides which users' claims count, and which processes are a hopd.
enum ClaimOwner {
  /// Whether a user's claims count: this user's and root's do. In a user namespace (PrivateUsers=yes) every foreign
  /// user appears under the overflow number, which therefore does not count.
  static func counts(_ user: UInt32) -> Bool { user == 0 || (user == geteuid() && user != overflowUser) }

  /// Whether the process is a hopd of this user or of root, by /proc.
  static func isHopd(_ process: Int32) -> Bool {
    var status = stat()
    guard process > 0, stat("/proc/\(process)", &status) == 0, counts(status.st_uid),
      let program = program("/proc/\(process)/exe")
    else { return false }
    return program.lastComponent?.string == "hopd" || program == self.program("/proc/self/exe")
  }

  private static func program(_ link: String) -> FilePath? {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = readlink(link, &buffer, buffer.count)
    return count > 0 ? FilePath(String(decoding: buffer.prefix(count), as: UTF8.self)) : nil
  }

  private static let overflowUser: UInt32 = {
    let text = ClaimFile.read("/proc/sys/kernel/overflowuid").map { String(decoding: $0, as: UTF8.self) }
    return text.flatMap { UInt32($0.filter(\.isNumber)) } ?? 65534
  }()
}
