// What a program of the system says, for one question: started as policies are, within a time and a size, and ended
// whatever it does.

import Diagnostics
import Glibc
import SystemPackage

/// Asks programs.
package enum ProgramOutput {
  /// What a program wrote to standard output and how it ended; nil where it cannot be started.
  ///
  /// It runs in `/` with the environment that is given, and gets no input. Output beyond `limit` bytes ends it.
  package static func of(
    _ command: [String], environment: [String: String], limit: Int = 64 << 20, within time: Duration = .seconds(60)
  ) -> (output: [UInt8], errors: String, status: Int32)? {
    guard let name = command.first, let program = path(of: name, environment["PATH"] ?? ""),
      let process = try? PolicyProcess.start(
        program, arguments: command, environment: environment, memory: 8 << 30)
    else { return nil }
    process.closeInput()
    let deadline = ContinuousClock.now + time
    var (output, errors): ([UInt8], [UInt8]) = ([], [])
    var open = [process.output, process.error]
    while !open.isEmpty, ContinuousClock.now < deadline, output.count <= limit {
      var waited = open.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      poll(&waited, nfds_t(waited.count), 100)
      for entry in waited where entry.revents != 0 {
        let isOutput = entry.fd == process.output
        guard let bytes = read(entry.fd) else {
          open.removeAll { $0 == entry.fd }
          continue
        }
        if isOutput { output += bytes } else if errors.count < 1 << 16 { errors += bytes }
      }
    }
    let end = process.finish(waiting: open.isEmpty ? .seconds(5) : .zero)
    guard open.isEmpty, case .exit(let status) = end else { return ([], "it did not end in time", -1) }
    return (output, String(decoding: errors, as: UTF8.self), status)
  }

  /// Bytes that wait in a pipe; nil at its end.
  private static func read(_ descriptor: Int32) -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    let count = buffer.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
    if count < 0 { return errno == EINTR || errno == EAGAIN ? [] : nil }
    return count == 0 ? nil : Array(buffer.prefix(count))
  }

  private static func path(of name: String, _ folders: String) -> FilePath? {
    folders.split(separator: ":").map { FilePath(String($0)).appending(name) }.first { access($0.string, X_OK) == 0 }
  }
}
