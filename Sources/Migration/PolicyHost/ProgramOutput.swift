// Runs a program and collects its output: started as policies are, within a time and a size, and always ended.

import CLinux
import Diagnostics
import Glibc
import SystemPackage

/// Runs programs for their output.
package enum ProgramOutput {
  /// How much of standard error is kept.
  private static let errorLimit = 1 << 16

  /// Limits of a program.
  package struct Limits: Sendable {
    /// Bytes of standard output; a program that writes more is ended.
    package var output = 64 << 20
    /// Time until it is ended.
    package var time = Duration.seconds(60)
    /// Bytes of private memory (RLIMIT_DATA).
    package var memory: Int64 = 8 << 30

    /// Creates limits.
    package init(output: Int = 64 << 20, time: Duration = .seconds(60), memory: Int64 = 8 << 30) {
      (self.output, self.time, self.memory) = (output, time, memory)
    }
  }

  /// How a program ended.
  package enum End: Sendable, Hashable {
    case exit(Int32)
    case signal(Int32)
    case outOfTime
    case tooMuchOutput
    case unknown
  }

  /// The output of a program, and how it ended.
  package struct Result: Sendable {
    /// Standard output.
    package var output: [UInt8] = []
    /// The end of standard error.
    package var errors: [UInt8] = []
    /// How it ended.
    package var end = End.unknown
  }

  /// A program's standard output and how it ended; nil where it cannot be started. The status is -1 where it was ended
  /// because its time was over or it wrote too much.
  ///
  /// It runs in `/` with the given environment, and gets `input`. Output beyond `limit` bytes ends it, with all of its
  /// group. A name with `/` is the program's path.
  package static func of(
    _ command: [String], environment: [String: String], input: [UInt8] = [], memory: Int64 = 8 << 30,
    limit: Int = 64 << 20, within time: Duration = .seconds(60)
  ) -> (output: [UInt8], errors: String, status: Int32)? {
    guard let name = command.first,
      let program = name.contains("/") ? FilePath(name) : path(of: name, environment["PATH"] ?? ""),
      let result = try? run(
        command, at: program, environment: environment, input: input,
        limits: Limits(output: limit, time: time, memory: memory))
    else { return nil }
    guard case .exit(let status) = result.end else { return ([], "it did not end in time", -1) }
    return (result.output, String(decoding: result.errors, as: UTF8.self), status)
  }

  /// Runs the program at a path to its end, or ends it with all of its group. The values of `exact` are passed byte for
  /// byte. Throws if it cannot be started.
  package static func run(
    _ command: [String], at program: FilePath, environment: [String: String], exact: [String: [UInt8]] = [:],
    input: [UInt8] = [], limits: Limits
  ) throws -> Result {
    let process = try PolicyProcess.start(
      program, arguments: command, environment: environment, exact: exact, memory: limits.memory)
    var sent = 0
    if input.isEmpty { process.closeInput() }
    let deadline = ContinuousClock.now + limits.time
    var result = Result()
    var open = [process.output, process.error]
    var cut: End?
    // Its child processes may keep the pipes open: they are read until the program itself has ended, and nothing waits
    // in them.
    while cut == nil {
      let hasEnded = process.hasEnded(within: open.isEmpty ? .milliseconds(100) : .zero)
      var waited = open.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      if process.input >= 0 { waited.append(pollfd(fd: process.input, events: Int16(POLLOUT), revents: 0)) }
      let ready = poll(&waited, nfds_t(waited.count), hasEnded || open.isEmpty ? 0 : 100)
      for entry in waited where entry.revents != 0 {
        guard entry.fd != process.input else {
          write(input, &sent, to: process)
          continue
        }
        guard let bytes = read(entry.fd) else {
          open.removeAll { $0 == entry.fd }
          continue
        }
        if entry.fd == process.output { result.output += bytes } else { result.errors += bytes }
      }
      if result.errors.count > 2 * errorLimit { result.errors.removeFirst(result.errors.count - errorLimit) }
      if hasEnded, ready == 0 || open.isEmpty { break }
      if result.output.count > limits.output {
        cut = .tooMuchOutput
      } else if ContinuousClock.now >= deadline {
        cut = .outOfTime
      }
    }
    let end: End =
      switch process.finish(waiting: .zero) {
      case .exit(let status): .exit(status)
      case .signal(let number): .signal(number)
      case .unknown: .unknown
      }
    result.errors = Array(result.errors.suffix(errorLimit))
    result.end = cut ?? end
    return result
  }

  /// The file of a program: its name is searched for in `folders`, in the form of PATH; nil if none has
  /// it.
  package static func path(of name: String, _ folders: String) -> FilePath? {
    folders.split(separator: ":").map { FilePath(String($0)).appending(name) }.first { access($0.string, X_OK) == 0 }
  }

  /// Writes as much of the input as the pipe takes, and closes it at the end, or where the program reads no more.
  private static func write(_ input: [UInt8], _ sent: inout Int, to process: PolicyProcess) {
    let start = sent
    let count = input.withUnsafeBytes { bytes in
      clinux_write_no_signal(process.input, bytes.baseAddress.map { $0 + start }, bytes.count - start)
    }
    if count > 0 { sent += count }
    if sent == input.count || count < 0 && errno != EAGAIN && errno != EINTR { process.closeInput() }
  }

  /// Bytes that wait in a pipe; nil at its end.
  private static func read(_ descriptor: Int32) -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    let count = buffer.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
    if count < 0 { return errno == EINTR || errno == EAGAIN ? [] : nil }
    return count == 0 ? nil : Array(buffer.prefix(count))
  }
}
