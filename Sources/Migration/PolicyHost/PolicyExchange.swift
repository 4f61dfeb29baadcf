// Frames over a program's pipes, with everything that a program could do wrong in mind: it may be slow, silent, dead,
// flooding either of its outputs, or sending what is no frame. One loop of poll(2) serves all four descriptors, so that
// nothing a program does on one of them blocks the others, and the clock is inspected in every round.

import CLinux
import Diagnostics
import Glibc
import MigrationPolicy

/// Why no message came.
enum ExchangeFailure: Error, Hashable {
  /// The time for the call is used up.
  case timeout
  /// The program has closed its output, or has exited.
  case ended
  /// A head that announces more bytes than a message may have, and whether it looks like text.
  case tooLong(Int, looksLikeText: Bool)
  /// Bytes outside its turn.
  case outOfTurn
  /// The migration was stopped.
  case stopped
  /// A call on a pipe failed.
  case system(Int32)
}

/// Sends and receives frames within limits.
final class PolicyExchange {
  private static let headLength = 4
  private static let slice: Duration = .milliseconds(200)

  let process: PolicyProcess
  let limits: PolicyLimits
  private let isStopped: () -> Bool
  private(set) var diagnostics: DiagnosticLines
  private var received: [UInt8] = []
  private var chunk = [UInt8](repeating: 0, count: 1 << 16)
  private var outputEnded = false
  /// The frame that is being sent, and how much of it the pipe has taken.
  private var frame: [UInt8] = []
  private var sent = 0

  init(
    _ process: PolicyProcess, limits: PolicyLimits, isStopped: @escaping () -> Bool,
    observer: @escaping (String) -> Void
  ) {
    self.process = process
    self.limits = limits
    self.isStopped = isStopped
    diagnostics = DiagnosticLines(observer)
  }

  /// Sends a frame and waits for one; `time` is what is left of the call's time, and is counted down.
  func exchange(_ frame: [UInt8], time: inout Duration) throws(ExchangeFailure) -> [UInt8] {
    try begin(frame)
    return try receive(time: &time)
  }

  /// Begins to send a frame: as much of it as the pipe takes at once. The program works while the engine does something
  /// else.
  func begin(_ frame: [UInt8]) throws(ExchangeFailure) {
    guard received.isEmpty else { throw .outOfTurn }
    self.frame = frame
    sent = 0
    var before = -1
    while sent > before, sent < frame.count, process.input >= 0 {
      before = sent
      try write()
    }
  }

  /// Sends the rest of the frame and waits for one. Time in which the engine does not wait for the program does not
  /// count.
  func receive(time: inout Duration) throws(ExchangeFailure) -> [UInt8] {
    let clock = ContinuousClock()
    let deadline = clock.now.advanced(by: time)
    defer { time = max(.zero, clock.now.duration(to: deadline)) }
    while true {
      if sent == frame.count || process.input < 0, let message = try takeFrame() {
        frame = []
        return message
      }
      if outputEnded { throw .ended }
      let left = clock.now.duration(to: deadline)
      guard left > .zero else { throw .timeout }
      if isStopped() { throw .stopped }
      try round(waiting: min(left, Self.slice))
    }
  }

  /// Reads the rest of the pipes of a program that was ended.
  func drain() {
    for _ in 0..<64 where !readDiagnostics() {}
    diagnostics.finish()
  }

  // MARK: One round

  private func round(waiting: Duration) throws(ExchangeFailure) {
    let isSending = sent < frame.count && process.input >= 0
    var polled = [
      pollfd(fd: process.output, events: Int16(POLLIN), revents: 0),
      pollfd(fd: diagnostics.isClosed ? -1 : process.error, events: Int16(POLLIN), revents: 0),
      pollfd(fd: process.descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: isSending ? process.input : -1, events: Int16(POLLOUT), revents: 0),
    ]
    let count = poll(&polled, nfds_t(polled.count), Int32(clamping: waiting.milliseconds))
    guard count >= 0 || errno == EINTR else { throw .system(errno) }
    guard count > 0 else { return }
    if polled[1].revents != 0 { _ = readDiagnostics() }
    if polled[3].revents != 0 { try write() }
    if polled[0].revents != 0 {
      try readOutput()
    } else if polled[2].revents != 0 {
      // The program has ended, though another may hold its output open: its own output was read before.
      outputEnded = true
    }
  }

  private func write() throws(ExchangeFailure) {
    let start = sent
    let count = frame.withUnsafeBytes { bytes in
      clinux_write_no_signal(process.input, bytes.baseAddress.map { $0 + start }, bytes.count - start)
    }
    if count > 0 {
      sent += count
    } else if count < 0, errno == EPIPE {
      // The program reads no more; its reason comes next.
      process.closeInput()
    } else if count < 0, errno != EAGAIN, errno != EINTR {
      throw .system(errno)
    }
  }

  private func readOutput() throws(ExchangeFailure) {
    let count = read(process.output, &chunk, chunk.count)
    if count == 0 { outputEnded = true }
    if count < 0, errno != EAGAIN, errno != EINTR { throw .system(errno) }
    guard count > 0 else { return }
    received.append(contentsOf: chunk[..<count])
    if let length = try announced(), received.capacity < Self.headLength + length {
      // The length is known and bounded, so the buffer grows once.
      received.reserveCapacity(Self.headLength + length)
    }
  }

  /// Length of the frame that is coming, as far as its head is there.
  private func announced() throws(ExchangeFailure) -> Int? {
    guard received.count >= Self.headLength else { return nil }
    let head = received[..<Self.headLength]
    let length = head.reduce(0) { $0 << 8 | Int($1) }
    guard length <= limits.messageBytes else {
      let isText = head.allSatisfy { $0 >= 0x20 && $0 < 0x7f || $0 == 0x0a || $0 == 0x0d || $0 == 0x09 }
      throw .tooLong(length, looksLikeText: isText)
    }
    guard received.count <= Self.headLength + length else { throw .outOfTurn }
    return length
  }

  private func takeFrame() throws(ExchangeFailure) -> [UInt8]? {
    guard let length = try announced(), received.count == Self.headLength + length else { return nil }
    let message = Array(received[Self.headLength...])
    // Releases the buffer of a large message.
    received.removeAll(keepingCapacity: received.capacity <= 1 << 20)
    return message
  }

  /// True where there is nothing more for now.
  private func readDiagnostics() -> Bool {
    guard !diagnostics.isClosed else { return true }
    let count = read(process.error, &chunk, chunk.count)
    if count > 0 {
      diagnostics.add(chunk[..<count])
      return false
    }
    if count < 0, errno == EAGAIN || errno == EINTR { return true }
    diagnostics.isClosed = true
    return true
  }
}
