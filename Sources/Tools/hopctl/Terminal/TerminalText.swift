// Text with words marked as good or bad. A terminal shows these words in color; elsewhere the output has the same
// words without colors (https://no-color.org).

import Diagnostics
import Glibc

/// The meaning of a word: good or bad news.
enum Mood {
  case good
  /// Something that resolves itself, or deserves a look.
  case attention
  case bad

  /// Select Graphic Rendition (ECMA-48, 8.3.117): green, yellow, bold red.
  fileprivate var sequence: String {
    switch self {
    case .good: "\u{1b}[32m"
    case .attention: "\u{1b}[33m"
    case .bad: "\u{1b}[1;31m"
    }
  }
}

/// A line, or a cell of a table, whose words may have a mood.
struct TerminalText: ExpressibleByStringInterpolation, CustomStringConvertible, Equatable {
  private struct Span: Equatable {
    var text: String
    var mood: Mood?
  }

  private var spans: [Span]

  init(_ text: String, _ mood: Mood? = nil) { spans = [Span(text: text, mood: mood)] }

  init(stringLiteral value: String) { self.init(value) }

  static func + (left: TerminalText, right: TerminalText) -> TerminalText {
    var text = left
    text.spans += right.spans
    return text
  }

  /// The text without colors.
  var description: String { spans.map(\.text).joined() }

  /// The text with control characters escaped, as it is written.
  var escaped: TerminalText {
    var text = self
    for index in spans.indices { text.spans[index].text = spans[index].text.escapingControls(keepingNewlines: false) }
    return text
  }

  /// The columns that the text takes on a terminal. Control characters must be escaped before.
  var columns: Int { spans.reduce(0) { $0 + $1.text.columns } }

  /// Returns the text in at most so many columns, with "…" for what is cut. A cut in front of the end leaves the text
  /// one mood.
  func cut(to width: Int, at place: String.Cut) -> TerminalText {
    guard columns > width else { return self }
    if place != .end { return TerminalText(description.cut(to: width, at: place), spans.first?.mood) }
    var (text, left) = (self, width)
    text.spans = []
    for span in spans where left > 0 {
      // The next span must not follow directly what is cut.
      let part = span.text.cut(to: left, at: .end)
      text.spans.append(Span(text: part, mood: span.mood))
      left = part == span.text ? left - part.columns : 0
    }
    return text
  }

  /// Returns the text to write, with control characters escaped, and with colors if `inColor`.
  func rendered(inColor: Bool, keepingNewlines: Bool = false) -> String {
    spans.map { span in
      let text = span.text.escapingControls(keepingNewlines: keepingNewlines)
      guard inColor, let mood = span.mood else { return text }
      return mood.sequence + text + "\u{1b}[0m"
    }.joined()
  }
}

extension StandardStreams.Stream {
  /// Whether words are shown in color: on a terminal that supports colors, unless NO_COLOR is set.
  var showsColor: Bool {
    guard isTerminal, getenv("NO_COLOR").map({ $0.pointee == 0 }) ?? true else { return false }
    return getenv("TERM").map { String(cString: $0) } != "dumb"
  }
}
