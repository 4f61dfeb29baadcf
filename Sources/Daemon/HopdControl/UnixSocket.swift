// The socket itself: its path, its mode, and its peers.

import CLinux
import Diagnostics
import DurableFiles
import Glibc
import SystemPackage

extension HopdError.Code {
  /// hopd does not run, or does not listen.
  package static let notRunning = HopdError.Code("not-running", exit: .notRunning)
  /// hopd runs, and does not answer in time.
  package static let notAnswering = HopdError.Code("not-answering", exit: .temporaryFailure, isRetryable: true)
  /// The control socket cannot be made.
  package static let controlUnavailable = HopdError.Code("control-unavailable", exit: .unavailable, isRetryable: true)
  /// hopd cannot put its configuration in force; the old one stays.
  package static let configurationRefused = HopdError.Code("configuration-refused", exit: .configuration)
  /// The reply does not follow the protocol.
  package static let controlProtocol = HopdError.Code("control-protocol", exit: .software)
}

/// The process at the other end, as the kernel reports it.
package struct ControlPeer: Sendable, Hashable {
  /// User ID, as this process's user namespace numbers users (docs/decisions/0086).
  package let user: UInt32
  /// Process ID; 0 if it is not visible.
  package let process: Int32

  /// Creates a peer.
  package init(user: UInt32, process: Int32) {
    self.user = user
    self.process = process
  }
}

/// System calls on Unix sockets.
enum UnixSocket {
  /// Creates a listening socket at `path`, for its owner and its group. A socket without a listener is replaced.
  static func listening(at path: FilePath) throws -> Int32 {
    let files = LinuxFileSystem()
    if let there = try files.status(path) {
      guard there.kind == .socket else {
        throw HopdError(
          .controlUnavailable, "the path exists and is not a socket", at: Place(file: path),
          hint: "move the file, or set control.socket to another path")
      }
      if let other = try? connected(to: path) {
        close(other)
        throw HopdError(
          .controlUnavailable, "another hopd listens on this socket", at: Place(file: path),
          hint: "set control.socket of one of them to another path")
      }
      _ = try files.unlinkIfPresent(path)
    }
    let descriptor = try made()
    let failed = try withAddress(path) { address, length in
      bind(descriptor, address, length) != 0 || chmod(path.string, 0o660) != 0 || listen(descriptor, 64) != 0
    }
    if failed {
      let code = errno
      close(descriptor)
      throw HopdError(
        .controlUnavailable, "cannot create the control socket", at: Place(file: path), cause: Errno(rawValue: code),
        hint: "make its directory writable by hopd, or set control.socket to another path, or to \"\" to disable it")
    }
    return descriptor
  }

  /// Returns a socket that is connected to `path`.
  static func connected(to path: FilePath) throws -> Int32 {
    let descriptor = try made()
    // Connecting waits while the queue of a daemon that accepts nothing is full, and sending while its buffer is.
    var limit = timeval(tv_sec: Int(ControlClient.patience.components.seconds), tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    let code = try withAddress(path) { address, length in
      connect(descriptor, address, length) == 0 ? 0 : errno
    }
    if code == 0 { return descriptor }
    close(descriptor)
    switch code {
    case EAGAIN, ETIMEDOUT: throw silence(path)
    case ENOENT, ECONNREFUSED:
      throw HopdError(
        .notRunning, "hopd does not listen on this socket", at: Place(file: path),
        hint: "run `systemctl start hopd`, or pass another socket with --socket")
    case EACCES, EPERM:
      throw HopdError(
        .noPermission, "permission denied: cannot connect to the control socket", at: Place(file: path),
        cause: Errno(rawValue: code),
        hint: "run it as root, or as a member of the group hopd: `usermod -aG hopd USER`")
    default:
      throw HopdError(
        .controlUnavailable, "cannot connect to hopd", at: Place(file: path), cause: Errno(rawValue: code),
        hint: "retry")
    }
  }

  /// The error for a daemon that takes too long.
  static func silence(_ path: FilePath) -> HopdError {
    HopdError(
      .notAnswering, "hopd does not respond", at: Place(file: path),
      hint: "check `systemctl status hopd`; hopd may still execute the command once it continues")
  }

  private static func made() throws -> Int32 {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    if descriptor >= 0 { return descriptor }
    throw HopdError(.controlUnavailable, "cannot create a socket", cause: Errno(rawValue: errno), hint: "retry")
  }

  private static func withAddress<T>(
    _ path: FilePath, _ body: (UnsafePointer<sockaddr>, socklen_t) -> T
  ) throws -> T {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let name = Array(path.string.utf8)
    guard name.count < MemoryLayout.size(ofValue: address.sun_path), !name.isEmpty, !name.contains(0) else {
      throw HopdError(
        .controlUnavailable, "the path of the socket is empty or longer than 107 bytes", at: Place(file: path),
        hint: "pass a shorter path")
    }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
  }

  /// The peer of a connection; nil if the kernel does not report it.
  static func peer(of descriptor: Int32) -> ControlPeer? {
    var (process, user): (pid_t, uid_t) = (0, 0)
    guard clinux_peer(descriptor, &process, &user) == 0 else { return nil }
    return ControlPeer(user: user, process: process)
  }
}
