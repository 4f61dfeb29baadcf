// Makes text from strangers' files fit for a line on a terminal or in a log. Names in models and stores may contain
// anything: a newline must not forge a second message, an escape sequence must not reach the terminal, and a name of a
// megabyte must not bury the rest.

extension Unicode.Scalar {
  /// Whether the character is neither a control character nor one that changes how a line reads.
  package var isLineSafe: Bool {
    // Nearly all characters are ASCII; they need no look-up in Unicode's tables.
    if value < 0x7f { return value >= 0x20 }
    // Every name of a hop has an arrow.
    if self == "→" { return true }
    return switch properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: false
    default: true
    }
  }

  /// The character as `\xNN` or `\u{…}`.
  fileprivate var escaped: String {
    value < 0x100 ? "\\x" + [UInt8(truncatingIfNeeded: value)].hexadecimal : "\\u{\(String(value, radix: 16))}"
  }
}

extension Sequence<UInt8> {
  /// Two hexadecimal digits for each byte, in lower case.
  package var hexadecimal: String { map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
}

extension Sequence<UInt8> {
  /// The bytes as one word for a shell in the form `$'…'`, with octal digits for all but plain characters.
  ///
  /// Quotation marks are digits too: for a shell that does not know the form, this is a quoted word all the same.
  var withDigitsForShell: String {
    let word = map { byte -> String in
      let isPlain = (0x20..<0x7f).contains(byte) && !"'\\!".utf8.contains(byte)
      if isPlain { return String(Unicode.Scalar(byte)) }
      let digits: [UInt8] = [byte >> 6, (byte >> 3) & 7, byte & 7]
      return "\\" + digits.map { String($0) }.joined()
    }
    return "$'" + word.joined() + "'"
  }
}

extension [UInt8] {
  /// The bytes of hexadecimal digits, two per byte; nil for any other text.
  package init?(hexadecimal text: some StringProtocol) {
    let digits = text.utf8.compactMap { $0 < 0x80 ? Character(Unicode.Scalar($0)).hexDigitValue : nil }
    guard digits.count == text.utf8.count, digits.count % 2 == 0 else { return nil }
    self = stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
  }
}

extension String {
  /// The text with control characters shown as `\xNN` or `\u{…}`; `keepingNewlines` keeps its newlines.
  package func escapingControls(keepingNewlines: Bool) -> String {
    if unicodeScalars.allSatisfy({ $0.isLineSafe }) { return self }
    var result = ""
    for scalar in unicodeScalars {
      if scalar.isLineSafe || (keepingNewlines && scalar == "\n") {
        result.unicodeScalars.append(scalar)
      } else {
        result += scalar.escaped
      }
    }
    return result
  }

  /// The text, shortened in the middle if it has more than `limit` characters; the gap states how many are left out.
  func clipped(to limit: Int = 2000) -> String {
    // A character may consist of any number of scalars, so scalars are counted.
    guard utf8.count > limit, unicodeScalars.count > limit else { return self }
    let end = limit / 4
    let left = unicodeScalars.count - limit
    return String(unicodeScalars.prefix(limit - end)) + "… (\(left) characters omitted) …"
      + String(unicodeScalars.suffix(end))
  }

  /// The text as one printable line.
  package var printableLine: String { clipped().escapingControls(keepingNewlines: false) }

  /// A hint as one printable line. It is cut only at its end: what is left of a command must not begin in the middle of
  /// a quoted word.
  package var printableHint: String {
    let (limit, text) = (2000, escapingControls(keepingNewlines: false))
    guard text.utf8.count > limit, text.unicodeScalars.count > limit else { return text }
    return String(text.unicodeScalars.prefix(limit)) + "… (\(text.unicodeScalars.count - limit) characters omitted)"
  }

  /// The lines of a foreign text, joined into one line.
  package var joiningLines: String { split(whereSeparator: \.isNewline).joined(separator: "; ") }

  /// The text as one word for a shell, in quotation marks if it needs them, and with digits for control characters.
  package var quotedForShell: String {
    if !isEmpty, utf8.allSatisfy(Self.shellBytes.contains) { return self }
    return unicodeScalars.allSatisfy(\.isLineSafe)
      ? "'" + replacing("'", with: "'\\''") + "'" : utf8.withDigitsForShell
  }

  private static let shellBytes = Set(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+,:@%".utf8)
}
