// Sends log entries to the journal, with fields, if systemd connected standard error to it; otherwise to standard error
// as text. Libraries do not log; only the two programs and their service make a logger.

import CSystemd
import Diagnostics
import Glibc
import Logging
import Synchronization

/// The destination of log entries.
package enum LogDestination: Sendable, Equatable {
  /// The journal's own protocol, with fields.
  case journal
  /// Text with `<N>` prefixes.
  case standardErrorWithPriorities
  /// Text for people.
  case terminal(colored: Bool)

  /// Returns the journal if `$JOURNAL_STREAM` names the file that standard error is; the terminal if standard error is
  /// one.
  ///
  /// The variable alone proves nothing: programs inherit it even if their standard error is redirected
  /// (systemd.exec(5)).
  package static func detect() -> LogDestination {
    var status = stat()
    if let stream = getenv("JOURNAL_STREAM").map({ String(cString: $0) }), fstat(STDERR_FILENO, &status) == 0,
      names(stream, device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
    {
      return .journal
    }
    if isatty(STDERR_FILENO) == 1 {
      let noColor = getenv("NO_COLOR").map { $0.pointee != 0 } ?? false
      return .terminal(colored: !noColor)
    }
    return .standardErrorWithPriorities
  }

  /// Whether `stream` is the text "device:inode" of this file.
  static func names(_ stream: String, device: UInt64, inode: UInt64) -> Bool {
    let parts = stream.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2 else { return false }
    return UInt64(parts[0]) == device && UInt64(parts[1]) == inode
  }
}

/// The lowest level that is logged. All loggers share it, so that a reload can change it.
package final class LogThreshold: Sendable {
  private let value: Mutex<Logger.Level>

  /// Starts at `level`.
  package init(_ level: Logger.Level) { value = Mutex(level) }

  /// The level in force.
  package var level: Logger.Level {
    get { value.withLock { $0 } }
    set { value.withLock { $0 = newValue } }
  }
}

/// A swift-log handler for services: metadata whose keys are `JournalField` names becomes journal fields.
package struct JournalLogHandler: LogHandler {
  package var metadata: Logger.Metadata = [:]
  package var metadataProvider: Logger.MetadataProvider?
  private let threshold: LogThreshold
  private var ownLevel: Logger.Level?
  private let identifier: String
  private let destination: LogDestination
  private let descriptor: Int32

  /// Writes entries of `threshold` and above to `destination`; `descriptor` is standard error except in tests.
  package init(
    identifier: String, threshold: LogThreshold, destination: LogDestination, descriptor: Int32 = STDERR_FILENO
  ) {
    self.identifier = identifier
    self.threshold = threshold
    self.destination = destination
    self.descriptor = descriptor
  }

  package var logLevel: Logger.Level {
    get { ownLevel ?? threshold.level }
    set { ownLevel = newValue }
  }

  package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  package func log(event: LogEvent) {
    var message = event.message.description
    if let error = event.error { message += ": \(error)" }
    let entry = LogEntry(
      level: event.level, message: message,
      metadata: [metadata, metadataProvider?.get() ?? [:], event.metadata ?? [:]])
    switch destination {
    case .journal:
      // If the journal is down, the entry goes to standard error, which systemd keeps.
      if !sendToJournal(entry) { write(entry.prefixedLines) }
    case .standardErrorWithPriorities: write(entry.prefixedLines)
    case .terminal(let colored): write(entry.terminalLines(colored: colored))
    }
  }

  /// The maximum number of characters of a field: enough for any path (PATH_MAX), but a limit on an untrusted store's
  /// UUID text.
  private static let longestField = 4200

  private static func clipped(_ value: String) -> String {
    // Counts scalars, because a character can be of any length.
    guard value.utf8.count > longestField, value.unicodeScalars.count > longestField else { return value }
    let left = value.unicodeScalars.count - longestField
    return String(value.unicodeScalars.prefix(longestField)) + "… (\(left) characters omitted)"
  }

  /// The fields of the entry as `NAME=value`, in the journal's own form.
  func assignments(_ entry: LogEntry) -> [String] {
    ["MESSAGE=\(entry.journalMessage)", "PRIORITY=\(entry.priority)", "SYSLOG_IDENTIFIER=\(identifier)"]
      + entry.fields.map { field, value in
        let text = Self.clipped(value).escapingControls(keepingNewlines: false)
        return "\(field.rawValue)=\(text)"
      }
  }

  private func sendToJournal(_ entry: LogEntry) -> Bool {
    let assignments = assignments(entry).map { Array($0.utf8) }
    // One buffer that outlives the call; each field is a range of it.
    let whole = assignments.flatMap { $0 }
    return whole.withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress else { return false }
      var start = 0
      let vectors = assignments.map { field in
        defer { start += field.count }
        return iovec(iov_base: UnsafeMutableRawPointer(mutating: base + start), iov_len: field.count)
      }
      return sd_journal_sendv(vectors, Int32(clamping: vectors.count)) >= 0
    }
  }

  /// Writes each entry with one write(2), so that entries of several threads do not mix; an error loses the entry only.
  private func write(_ text: String) {
    let bytes = Array(text.utf8)
    var start = 0
    while start < bytes.count {
      let written = bytes.withUnsafeBytes { buffer in
        buffer.baseAddress.map { Glibc.write(descriptor, $0 + start, bytes.count - start) } ?? -1
      }
      if written > 0 {
        start += written
      } else if !(written < 0 && errno == EINTR) {
        return
      }
    }
  }
}
