// Formats log entries for standard error. Separate from the handler so that the escaping can be tested: file names and
// error texts are untrusted, and a newline in one must not forge an entry.

import Diagnostics
import Logging

/// One log entry, ready for any destination.
struct LogEntry {
  var level: Logger.Level
  var message: String
  /// Journal fields in the order of `JournalField`.
  var fields: [(JournalField, String)]
  /// Metadata under other names, sorted by name.
  var others: [(String, String)]

  init(level: Logger.Level, message: String, metadata: [Logger.Metadata]) {
    self.level = level
    self.message = message
    var merged: Logger.Metadata = [:]
    for part in metadata { merged.merge(part) { $1 } }
    fields = JournalField.allCases.compactMap { field in
      merged.removeValue(forKey: field.rawValue).map { (field, "\($0)") }
    }
    others = merged.sorted { $0.key < $1.key }.map { ($0.key, "\($0.value)") }
  }

  /// syslog(3)'s number of the level: 7 debug … 3 error.
  var priority: Int {
    switch level {
    case .trace, .debug: 7
    case .info: 6
    case .notice: 5
    case .warning: 4
    case .error, .critical: 3
    }
  }

  /// MESSAGE= of the journal: the text, with metadata that has no field appended.
  var journalMessage: String {
    message.escapingControls(keepingNewlines: true) + Self.assignments(others)
  }

  /// Lines for standard error that is not a terminal: `<N>` before each line, further lines of an entry indented, so
  /// that no text within an entry can look like another one.
  var prefixedLines: String {
    lines(first: "<\(priority)>", further: "<\(priority)>    ")
  }

  /// Lines for a terminal: the level as a word, the text, the fields.
  func terminalLines(colored: Bool) -> String {
    let word: String? =
      switch level {
      case .trace: "trace"
      case .debug: "debug"
      case .info, .notice: nil
      case .warning: "warning"
      case .error, .critical: "error"
      }
    var head = word.map { $0 + ": " } ?? ""
    if colored, !head.isEmpty {
      head = (priority <= 3 ? "\u{1b}[1;31m" : priority == 4 ? "\u{1b}[1;33m" : "\u{1b}[2m") + head + "\u{1b}[0m"
    }
    return lines(first: head, further: "    ")
  }

  /// The text and its metadata, with a prefix for the first line and one for each further line.
  private func lines(first: String, further: String) -> String {
    // A MESSAGE_ID is of no use in plain text.
    let visible = fields.filter { $0.0 != .messageID }.map { ($0.0.rawValue, $0.1) }
    return (message.escapingControls(keepingNewlines: true) + Self.assignments(visible + others))
      .split(separator: "\n", omittingEmptySubsequences: true).enumerated()
      .map { ($0.offset == 0 ? first : further) + $0.element + "\n" }.joined()
  }

  private static func assignments(_ pairs: [(String, String)]) -> String {
    pairs.map { " \($0.0.escapingControls(keepingNewlines: false))=\($0.1.quotedValue)" }.joined()
  }
}

extension String {
  /// The value of `key=value`: in quotation marks if it is empty or has a space, a quotation mark or `=`.
  fileprivate var quotedValue: String {
    let safe = escapingControls(keepingNewlines: false)
    guard safe.isEmpty || safe.utf8.contains(where: { " \"=".utf8.contains($0) }) else { return safe }
    return "\"" + safe.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\\\"") + "\""
  }
}
