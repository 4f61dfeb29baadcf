// hopctl's side of the socket: one call, and its replies.

import Diagnostics
import Glibc
import SystemPackage

/// A connection to a running hopd.
package final class ControlClient {
  private let descriptor: Int32
  private let path: FilePath
  private var received: [UInt8] = []
  /// The maximum number of bytes of a reply; the server's own limit is smaller.
  private static let longestAnswer = 16 << 20
  /// How long hopd may take for an answer; an order takes half a second, and a second more while its user has no name.
  package static let patience: Duration = .seconds(5)

  /// Connects; throws `.notRunning` if no process listens.
  package init(_ path: FilePath) throws {
    self.path = path
    descriptor = try UnixSocket.connected(to: path)
  }

  deinit { close(descriptor) }

  /// Calls a method of hopd's interface and returns its result.
  package func call(_ method: String, _ parameters: [String: ControlValue] = [:], timeout: Duration = patience)
    throws -> ControlValue
  {
    try send(ControlCall(method: "\(ControlInterface.name).\(method)", parameters: .object(parameters)))
    return try result(of: next(timeout: timeout))
  }

  /// Calls a method with several replies; returns after the last reply, or when `body` returns false.
  package func stream(_ method: String, timeout: Duration = patience, _ body: (ControlValue) throws -> Bool) throws {
    try send(ControlCall(method: "\(ControlInterface.name).\(method)", more: true))
    while true {
      let reply = try next(timeout: timeout)
      guard try body(try result(of: reply)), reply.continues else { return }
    }
  }

  private func result(of reply: ControlReply) throws -> ControlValue {
    guard let error = reply.error else { return reply.parameters }
    let hint = reply.parameters["hint"]?.text
    switch error {
    case "\(ControlInterface.name).NotFound":
      throw HopdError(
        .notFound, "no such store or watch: \(reply.parameters["name"]?.text ?? "of this name")", hint: hint)
    case "\(ControlInterface.name).NotPossible":
      throw Self.refusal(
        reply.parameters["code"]?.text ?? "not-possible",
        reply.parameters["reason"]?.text ?? "hopd refused the command", hint)
    case "\(ControlInterface.name).Busy":
      throw HopdError(
        .controlUnavailable, "hopd has too many clients", at: Place(file: path), hint: "retry")
    default:
      throw HopdError(
        .controlProtocol, "hopd returned the error \(error)", at: Place(file: path),
        hint: "check that hopd and hopctl have the same version: `hopctl --version`, `systemctl restart hopd`")
    }
  }

  /// The error for a refusal by hopd; its reason may have several lines, of which the first is the summary.
  static func refusal(_ name: String, _ reason: String, _ hint: String?) -> HopdError {
    let lines = reason.split(separator: "\n").map { line in
      let text = line.drop { $0 == " " }
      return String(text.hasPrefix("- ") ? text.dropFirst(2) : text)
    }
    // These requests fail however often they are repeated, so they are usage errors.
    let code =
      name == HopdError.Code.configurationRefused.name
      ? .configurationRefused
      : HopdError.Code(name, exit: ["usage", "not-paused"].contains(name) ? .usage : .unavailable)
    return HopdError(
      code, lines.first ?? reason, hint: hint, reasons: lines.dropFirst().map { HopdError(code, $0) })
  }

  private func send(_ call: ControlCall) throws {
    let bytes = call.bytes
    var start = 0
    while start < bytes.count {
      let count = bytes.withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress?.advanced(by: start), $0.count - start, Int32(MSG_NOSIGNAL))
      }
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN { throw UnixSocket.silence(path) }
      guard count > 0 else { throw ended(Errno(rawValue: errno)) }
      start += count
    }
  }

  private func next(timeout: Duration) throws -> ControlReply {
    let until = ContinuousClock.now.advanced(by: timeout)
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
      if let end = received.firstIndex(of: 0) {
        let message = Array(received[..<end])
        received.removeFirst(end + 1)
        if let reply = ControlReply(message) { return reply }
        throw HopdError(.controlProtocol, "the reply is not a message", at: Place(file: path), hint: "retry")
      }
      guard received.count < Self.longestAnswer else {
        throw HopdError(.controlProtocol, "the reply is too long", at: Place(file: path), hint: "retry")
      }
      let left = until - .now
      let milliseconds = left.components.seconds &* 1000 &+ left.components.attoseconds / 1_000_000_000_000_000
      var poll = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      let ready = Glibc.poll(&poll, 1, Int32(clamping: max(0, milliseconds)))
      if ready < 0, errno == EINTR { continue }
      guard ready > 0 else { throw UnixSocket.silence(path) }
      let count = recv(descriptor, &buffer, buffer.count, 0)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw ended(count == 0 ? nil : Errno(rawValue: errno)) }
      received += buffer[..<count]
    }
  }

  private func ended(_ cause: Errno?) -> HopdError {
    HopdError(
      .notRunning, "hopd closed the connection", at: Place(file: path), cause: cause,
      hint: "check `systemctl status hopd`, then retry")
  }
}
