// Standard output and standard error. A failed write is an error: a dump into a full disk must not look complete.

import Diagnostics
import Glibc
import SystemPackage

/// Writes to the two streams.
enum StandardStreams {
  enum Stream: Int32 {
    case output = 1
    case error = 2

    var isTerminal: Bool { isatty(rawValue) == 1 }

    /// The size of the terminal at this moment; nil if the stream is none. What a terminal does not know counts as 24
    /// rows, or as 80 columns.
    var size: (rows: Int, columns: Int)? {
      guard isTerminal else { return nil }
      var size = winsize()
      guard ioctl(rawValue, UInt(TIOCGWINSZ), &size) == 0 else { return (24, 80) }
      return (size.ws_row > 0 ? Int(size.ws_row) : 24, size.ws_col > 0 ? Int(size.ws_col) : 80)
    }
  }

  /// Writes all bytes, or throws.
  static func write(_ bytes: [UInt8], to stream: Stream) throws(HopdError) {
    var start = 0
    while start < bytes.count {
      let count = bytes.withUnsafeBytes {
        Glibc.write(stream.rawValue, $0.baseAddress?.advanced(by: start), $0.count - start)
      }
      if count < 0 {
        if errno == EINTR { continue }
        let code = errno
        throw HopdError(
          code == ENOSPC ? .noSpace : .inputOutput, "cannot write the output", cause: Errno(rawValue: code))
      }
      start += count
    }
  }

  /// Writes a text, or throws.
  static func write(_ text: String, to stream: Stream) throws(HopdError) { try write(Array(text.utf8), to: stream) }

  /// Writes a line to standard error, with control characters escaped. Failures are ignored: there is no other stream
  /// to report them on.
  static func report(_ text: String) { report(TerminalText(text)) }

  /// The same for a line whose words may have a mood.
  static func report(_ text: TerminalText) {
    try? write(text.rendered(inColor: Stream.error.showsColor, keepingNewlines: true) + "\n", to: .error)
  }
}
