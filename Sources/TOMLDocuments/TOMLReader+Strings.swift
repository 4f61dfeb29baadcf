// The four kinds of strings; two of them may also be keys.

import Diagnostics

extension TOMLReader {
  /// Reads a string of any kind, from its first quotation mark.
  mutating func string() throws(HopdError) -> String {
    guard let quote = cursor.next else { throw expected("a string", in: .string) }
    if cursor.takeThree(of: quote) { return try lines(quotedBy: quote) }
    cursor.advance()
    return try line(quotedBy: quote)
  }

  /// Reads the rest of a single-line string, after its first quotation mark.
  mutating func line(quotedBy quote: UInt8) throws(HopdError) -> String {
    var content: [UInt8] = []
    while let byte = cursor.next, byte != quote {
      try takeCharacter(byte, quotedBy: quote, into: &content)
    }
    guard cursor.next == quote else { throw unfinished(quote, 1) }
    cursor.advance()
    return String(decoding: content, as: UTF8.self)
  }

  /// Reads the rest of a multi-line string, after its first three quotation marks. The value has LF as end of line,
  /// also for CR LF.
  private mutating func lines(quotedBy quote: UInt8) throws(HopdError) -> String {
    _ = cursor.takeLineEnd()
    var content: [UInt8] = []
    while let byte = cursor.next {
      if byte == quote {
        // Up to two marks may precede the three that end the string.
        let run = cursor.count(of: quote, upTo: 5)
        for _ in 0..<run { cursor.advance() }
        content += [UInt8](repeating: quote, count: run < 3 ? run : run - 3)
        if run >= 3 { return String(decoding: content, as: UTF8.self) }
      } else if cursor.takeLineEnd() {
        content.append(UInt8(ascii: "\n"))
      } else if byte == UInt8(ascii: "\\"), quote == UInt8(ascii: "\""), takeJoinedLines() {
        continue
      } else {
        try takeCharacter(byte, quotedBy: quote, into: &content)
      }
    }
    throw unfinished(quote, 3)
  }

  private func unfinished(_ quote: UInt8, _ count: Int) -> HopdError {
    expected("\(count == 1 ? "a" : "three") closing \(Unicode.Scalar(quote))", in: .string)
  }

  /// Takes one byte of the content, or one escape sequence if the string allows them.
  private mutating func takeCharacter(
    _ byte: UInt8, quotedBy quote: UInt8, into content: inout [UInt8]
  ) throws(HopdError) {
    if byte == UInt8(ascii: "\\"), quote == UInt8(ascii: "\"") {
      content += try escapedCharacter()
    } else if byte == UInt8(ascii: "\n") {
      throw unfinished(quote, 1)
    } else if Self.isControl(byte) {
      throw expected("no control character", in: .string)
    } else {
      content.append(byte)
      cursor.advance()
    }
  }

  /// Takes a backslash at the end of a line, with all white space up to the next character; returns false and takes
  /// nothing if the backslash has another meaning.
  private mutating func takeJoinedLines() -> Bool {
    var ahead = cursor
    ahead.advance()
    // A backslash followed by blanks alone is a mistake, which the caller reports.
    ahead.skipBlanks()
    guard ahead.takeLineEnd() else { return false }
    repeat { ahead.skipBlanks() } while ahead.takeLineEnd()
    cursor = ahead
    return true
  }

  /// Returns the UTF-8 bytes of an escape sequence.
  private mutating func escapedCharacter() throws(HopdError) -> [UInt8] {
    cursor.advance()
    guard let byte = cursor.next else { throw expected("an escape sequence", in: .string) }
    if let character = Self.simpleEscape(byte) {
      cursor.advance()
      return [character]
    }
    guard byte == UInt8(ascii: "u") || byte == UInt8(ascii: "U") else {
      throw expected("one of b, t, n, f, r, u, U, \" and \\ after a backslash", in: .string)
    }
    cursor.advance()
    let position = cursor.position
    var number: UInt32 = 0
    for _ in 0..<(byte == UInt8(ascii: "u") ? 4 : 8) {
      guard let next = cursor.next, next < 0x80, let digit = Character(Unicode.Scalar(next)).hexDigitValue else {
        throw expected("a hexadecimal digit", in: .string)
      }
      // At most eight digits fit in 32 bits.
      number = number << 4 | UInt32(digit)
      cursor.advance()
    }
    // NUL would end the value where the system reads it, as a path or an argument.
    guard number != 0 else { throw mistake("expected a character other than NUL", in: .string, at: position) }
    guard let scalar = Unicode.Scalar(number) else {
      throw mistake("expected the number of a Unicode character", in: .string, at: position)
    }
    return Array(String(Character(scalar)).utf8)
  }

  /// The character for one letter after a backslash.
  private static func simpleEscape(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "b"): 0x08
    case UInt8(ascii: "t"): 0x09
    case UInt8(ascii: "n"): 0x0a
    case UInt8(ascii: "f"): 0x0c
    case UInt8(ascii: "r"): 0x0d
    case UInt8(ascii: "\""), UInt8(ascii: "\\"): byte
    default: nil
    }
  }
}
