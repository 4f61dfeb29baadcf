// Runs a system program and collects its output: started as policies are, within a time and a size, and always ended.

import Diagnostics
import Glibc
import SystemPackage

/// Runs programs for their output.
package enum ProgramOutput {
  /// How a program ended.
  package enum End: Sendable, Hashable {
    case exit(Int32)
    case signal(Int32)
    /// It was ended because the run was stopped.
    case stopped
    /// It was ended because its time was over.
    case late
    /// It was ended because it wrote too much.
    case talkative
    case notStarted
  }

  /// The output of a program, and how it ended.
  package struct Answer: Sendable, Hashable {
    /// Standard output.
    package var output: [UInt8]
    /// The end of standard error.
    package var errors: String
    package var end: End
  }

  /// How much of standard error is kept.
  private static let errorLimit = 1 << 16

  /// A program's standard output and how it ended; nil where it cannot be started.
  ///
  /// It runs in `/` with the given environment, and gets no input. Output beyond `limit` bytes ends it.
  package static func of(
    _ command: [String], environment: [String: String], limit: Int = 64 << 20, within time: Duration = .seconds(60)
  ) -> (output: [UInt8], errors: String, status: Int32)? {
    guard let name = command.first, let program = path(of: name, environment["PATH"] ?? "") else { return nil }
    let answer = run(
      program, arguments: command, environment: environment, limit: limit, within: time, memory: 8 << 30)
    switch answer.end {
    case .exit(let status): return (answer.output, answer.errors, status)
    case .notStarted: return nil
    default: return ([], "it did not end in time", -1)
    }
  }

  /// Runs a program in `/` without input, and ends it with all of its group when its time is over, it writes more than
  /// `limit` bytes, or `isStopped` returns true. `arguments` begin with its name.
  package static func run(
    _ program: FilePath, arguments: [String], environment: [String: String], limit: Int, within time: Duration,
    memory: Int64? = nil, isStopped: () -> Bool = { false }
  ) -> Answer {
    guard
      let process = try? PolicyProcess.start(
        program, arguments: arguments, environment: environment, memory: memory)
    else { return Answer(output: [], errors: "", end: .notStarted) }
    process.closeInput()
    let deadline = ContinuousClock.now + time
    var answer = Answer(output: [], errors: "", end: .stopped)
    var errors: [UInt8] = []
    var open = [process.output, process.error]
    var early: End?
    // Its child processes may keep the pipes open: they are read until the program itself has ended, and nothing waits
    // in them.
    while early == nil {
      let hasEnded = process.hasEnded(within: open.isEmpty ? .milliseconds(100) : .zero)
      var waited = open.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      let ready = poll(&waited, nfds_t(waited.count), hasEnded || open.isEmpty ? 0 : 100)
      for entry in waited where entry.revents != 0 {
        guard let bytes = read(entry.fd) else {
          open.removeAll { $0 == entry.fd }
          continue
        }
        if entry.fd == process.output { answer.output += bytes } else { errors += bytes }
      }
      if errors.count > 2 * errorLimit { errors.removeFirst(errors.count - errorLimit) }
      if hasEnded, ready == 0 || open.isEmpty { break }
      if answer.output.count > limit { early = .talkative }
      if isStopped() { early = .stopped }
      if ContinuousClock.now >= deadline { early = .late }
    }
    let end = process.finish(waiting: .zero)
    answer.errors = String(decoding: errors.suffix(errorLimit), as: UTF8.self)
    switch (early, end) {
    case (let early?, _): answer.end = early
    case (nil, .exit(let status)): answer.end = .exit(status)
    case (nil, .signal(let number)): answer.end = .signal(number)
    case (nil, .unknown): answer.end = .signal(0)
    }
    return answer
  }

  /// The file of a program: its name is looked for in the folders of `folders`, in the form of PATH; nil where none has
  /// it.
  package static func path(of name: String, _ folders: String) -> FilePath? {
    folders.split(separator: ":").map { FilePath(String($0)).appending(name) }.first { access($0.string, X_OK) == 0 }
  }

  /// Bytes that wait in a pipe; nil at its end.
  private static func read(_ descriptor: Int32) -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    let count = buffer.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
    if count < 0 { return errno == EINTR || errno == EAGAIN ? [] : nil }
    return count == 0 ? nil : Array(buffer.prefix(count))
  }
}
