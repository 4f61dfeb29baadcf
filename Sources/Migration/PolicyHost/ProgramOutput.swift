// Runs a system program and collects its output: started as policies are, within a time and a size, and always ended.

import CLinux
import Diagnostics
import Glibc
import SystemPackage

/// Runs programs for their output.
package enum ProgramOutput {
  /// How much of standard error is kept.
  private static let errorLimit = 1 << 16

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
      let process = try? PolicyProcess.start(program, arguments: command, environment: environment, memory: memory)
    else { return nil }
    var sent = 0
    if input.isEmpty { process.closeInput() }
    let deadline = ContinuousClock.now + time
    var (output, errors): ([UInt8], [UInt8]) = ([], [])
    var open = [process.output, process.error]
    var isCutShort = false
    // Its child processes may keep the pipes open: they are read until the program itself has ended, and nothing waits
    // in them.
    while !isCutShort {
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
        if entry.fd == process.output { output += bytes } else { errors += bytes }
      }
      if errors.count > 2 * errorLimit { errors.removeFirst(errors.count - errorLimit) }
      if hasEnded, ready == 0 || open.isEmpty { break }
      isCutShort = output.count > limit || ContinuousClock.now >= deadline
    }
    guard case .exit(let status) = process.finish(waiting: .zero), !isCutShort else {
      return ([], "it did not end in time", -1)
    }
    return (output, String(decoding: errors.suffix(errorLimit), as: UTF8.self), status)
  }

  /// The file of a program: its name is looked for in the folders of `folders`, in the form of PATH; nil where none has
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
