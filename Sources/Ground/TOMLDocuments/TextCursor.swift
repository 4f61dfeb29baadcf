// Reads a document's text byte by byte and tracks the line and column of the next character. It only moves forward, so
// reading is linear in the length of the text.

/// A position in a text that moves forward.
struct TextCursor {
  private let bytes: [UInt8]
  private var index = 0
  /// The line of the next character, from 1.
  private(set) var line = 1
  /// The column of the next character, from 1.
  private(set) var column = 1

  /// Starts at the first character of a text; a byte order mark is skipped.
  init(_ text: String) {
    bytes = Array(text.utf8)
    if bytes.starts(with: [0xef, 0xbb, 0xbf]) { index = 3 }
  }

  /// The place of the next character.
  var position: SourcePosition { SourcePosition(line: line, column: column) }

  /// The next byte; nil at the end of the text.
  var next: UInt8? { index < bytes.count ? bytes[index] : nil }

  /// The byte after the next one.
  var second: UInt8? { index + 1 < bytes.count ? bytes[index + 1] : nil }

  /// Moves to the next byte.
  mutating func advance() {
    guard index < bytes.count else { return }
    let byte = bytes[index]
    index += 1
    if byte == UInt8(ascii: "\n") {
      line += 1
      column = 1
    } else if index == bytes.count || bytes[index] & 0xc0 != 0x80 {
      // The whole character has been passed.
      column += 1
    }
  }

  /// Takes the given character, if it is the next one.
  mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard next == UInt8(ascii: character) else { return false }
    advance()
    return true
  }

  /// Takes the same character three times, or not at all.
  mutating func takeThree(of byte: UInt8) -> Bool {
    guard count(of: byte, upTo: 3) == 3 else { return false }
    for _ in 0..<3 { advance() }
    return true
  }

  /// Counts how many of the next bytes are `byte`, up to a limit.
  func count(of byte: UInt8, upTo limit: Int) -> Int {
    bytes[index...].prefix(limit).prefix { $0 == byte }.count
  }

  /// Takes the bytes that satisfy a condition.
  mutating func takeAll(where condition: (UInt8) -> Bool) -> ArraySlice<UInt8> {
    let start = index
    while let byte = next, condition(byte) { advance() }
    return bytes[start..<index]
  }

  /// The bytes taken since the position of another cursor over the same text.
  func text(since start: TextCursor) -> ArraySlice<UInt8> { bytes[min(start.index, index)..<index] }

  /// Takes spaces and tabs.
  mutating func skipBlanks() {
    while let byte = next, byte == 0x20 || byte == 0x09 { advance() }
  }

  /// Takes the end of a line, LF or CR LF.
  mutating func takeLineEnd() -> Bool {
    if next == UInt8(ascii: "\r"), second == UInt8(ascii: "\n") { advance() }
    return take("\n")
  }

  /// The next character as messages show it.
  var shown: String {
    guard let first = next else { return "the end of the text" }
    let length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4
    return Self.shown(String(decoding: bytes[index...].prefix(length), as: UTF8.self))
  }

  /// The start of a text as messages show it: in quotes, without characters that could change the state of a terminal.
  static func shown(_ text: String) -> String {
    let characters = text.unicodeScalars.prefix(32).map { scalar in
      switch scalar {
      case "\n": return "\\n"
      case "\r": return "\\r"
      case "\t": return "\\t"
      default:
        let isShown = (0x20..<0x7f).contains(scalar.value) || scalar.properties.isAlphabetic
        return isShown ? String(scalar) : "\\u{\(String(scalar.value, radix: 16))}"
      }
    }
    return "'\(characters.joined())'"
  }
}
