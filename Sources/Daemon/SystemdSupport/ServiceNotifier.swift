// Notifications to systemd about the service: ready, reloading, stopping, the status line, the watchdog. It is separate
// because it must never hold up the work: a missing, broken or full notification socket loses a message, no more.
//
// The datagrams are sent here and not by sd_notify(3): that call blocks forever when the socket's queue is full (tried
// with systemd 252 and a socket that no process reads). The protocol itself is documented as stable in sd_notify(3).

// The C library's socket types have no module of their own: the compiler finds them in the first module that has them.
import CSystemd
import Diagnostics
import Glibc
import Synchronization

/// Notifies the service manager of the state of the service; does nothing without a service manager.
package final class ServiceNotifier: Sendable {
  private struct StatusLine {
    var sent = ""
    var sentAt: ContinuousClock.Instant?
    var waiting: String?
    /// Whether a line was not made because it could not be sent yet.
    var isOwed = false
  }

  /// Path of the socket, `@` in front for an abstract one; nil without a service manager.
  private let socketPath: String?
  private let line = Mutex(StatusLine())

  /// Uses the socket that `$NOTIFY_SOCKET` names.
  package convenience init() {
    self.init(socketPath: getenv("NOTIFY_SOCKET").map { String(cString: $0) })
  }

  /// Uses the given socket; nil, or a path that is neither absolute nor abstract, makes every call a no-op.
  package init(socketPath: String?) {
    let usable = socketPath.map { $0.utf8.count > 1 && ($0.hasPrefix("/") || $0.hasPrefix("@")) } ?? false
    self.socketPath = usable ? socketPath : nil
  }

  /// Reports that start-up or reload is complete: `READY=1` with the status line.
  package func ready(_ status: String, now: ContinuousClock.Instant = .now) {
    send(["READY=1", statusAssignment(status, now: now)], mayWait: true)
  }

  /// Reports that a reload begins; `ready` ends it.
  ///
  /// Type=notify-reload of newer systemd waits for MONOTONIC_USEC (sd_notify(3)); 252 ignores it.
  package func reloading() {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    let microseconds = Int64(now.tv_sec) &* 1_000_000 &+ Int64(now.tv_nsec) / 1000
    send(["RELOADING=1", "MONOTONIC_USEC=\(microseconds)"], mayWait: true)
  }

  /// Reports that the service begins to stop.
  package func stopping(_ status: String, now: ContinuousClock.Instant = .now) {
    send(["STOPPING=1", statusAssignment(status, now: now)], mayWait: true)
  }

  /// Whether a status line would be sent now: its owner need not make one for each of many events a second. If not,
  /// `nextStatus` is when to ask again.
  package func takesStatus(now: ContinuousClock.Instant) -> Bool {
    guard socketPath != nil else { return false }
    return line.withLock { line in
      line.isOwed = line.sentAt.map { now < $0.advanced(by: .seconds(1)) } ?? false
      return !line.isOwed
    }
  }

  /// Sets the line that `systemctl status` shows. At most one line per second is sent; the newest one held back is sent
  /// by the next `status` or `flushStatus`.
  package func status(_ text: String, now: ContinuousClock.Instant = .now) {
    let text = Self.oneLine(text)
    line.withLock { $0.waiting = text == $0.sent ? nil : text }
    flushStatus(now: now)
  }

  /// Sends the status line that the limit of one per second held back, if it is due.
  package func flushStatus(now: ContinuousClock.Instant = .now) {
    let assignment = line.withLock { Self.due(&$0, now: now) }
    if let assignment { send([assignment], mayWait: false) }
  }

  /// When a status line that was held back may be sent. The owner must call `flushStatus` or `takesStatus` then, or the
  /// last line is lost.
  package var nextStatus: ContinuousClock.Instant? {
    line.withLock { line in
      (line.waiting == nil && !line.isOwed) || socketPath == nil ? nil : line.sentAt?.advanced(by: .seconds(1))
    }
  }

  /// Extends the timeout of a start or stop to this much time from now.
  package func extendTimeout(microseconds: UInt64) {
    send(["EXTEND_TIMEOUT_USEC=\(microseconds)"], mayWait: false)
  }

  /// Sends a watchdog ping. `WatchdogPolicy` decides when.
  package func watchdogPing() { send(["WATCHDOG=1"], mayWait: false) }

  /// Reports that the service is about to end because of `errno`.
  package func failure(errno code: Int32, status: String, now: ContinuousClock.Instant = .now) {
    send(["ERRNO=\(code)", statusAssignment(status, now: now)], mayWait: true)
  }

  private func statusAssignment(_ status: String, now: ContinuousClock.Instant) -> String {
    let text = Self.oneLine(status)
    line.withLock { $0 = StatusLine(sent: text, sentAt: now) }
    return "STATUS=\(text)"
  }

  private static func due(_ line: inout StatusLine, now: ContinuousClock.Instant) -> String? {
    guard let text = line.waiting else { return nil }
    if let last = line.sentAt, now < last.advanced(by: .seconds(1)) { return nil }
    line = StatusLine(sent: text, sentAt: now)
    return "STATUS=\(text)"
  }

  /// A newline would begin another assignment: a file name must not be able to send READY=1.
  private static func oneLine(_ text: String) -> String {
    if text.unicodeScalars.allSatisfy(\.isLineSafe) { return text }
    var result = ""
    for scalar in text.unicodeScalars {
      result.unicodeScalars.append(scalar.isLineSafe ? scalar : " ")
    }
    return result
  }

  /// Sends one datagram. Messages with `mayWait` change the unit's state and wait up to half a second for a full queue;
  /// the others are dropped.
  private func send(_ assignments: [String], mayWait: Bool) {
    guard let socketPath else { return }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let name = Array(socketPath.utf8)
    let capacity = MemoryLayout.size(ofValue: address.sun_path)
    guard name.count < capacity else { return }
    withUnsafeMutableBytes(of: &address.sun_path) { bytes in
      bytes.copyBytes(from: name)
      if name.first == UInt8(ascii: "@") { bytes.storeBytes(of: 0, as: UInt8.self) }
    }
    // An abstract name ends with its length, not with a NUL.
    let length = MemoryLayout<sockaddr_un>.size - capacity + name.count + (name.first == UInt8(ascii: "@") ? 0 : 1)

    let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    var flags = Int32(MSG_NOSIGNAL)
    if mayWait {
      var limit = timeval(tv_sec: 0, tv_usec: 500_000)
      setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    } else {
      flags |= Int32(MSG_DONTWAIT)
    }
    let message = Array(assignments.joined(separator: "\n").utf8)
    withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
        _ = sendto(descriptor, message, message.count, flags, generic, socklen_t(length))
      }
    }
  }
}
