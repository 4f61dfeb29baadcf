// Where each key of a TOML file stands. The TOML parser checks the text and gives the values, but not their places;
// this scanner gives the places, and nothing but places, of a text that the parser has accepted. Were it wrong, an
// error would name a wrong line, and no value would change.

/// Line and column, both from 1.
package struct SourcePosition: Hashable, Sendable {
  package var line: Int
  package var column: Int
}

/// A step on the way to a value.
package enum KeyStep: Hashable, Sendable {
  case key(String)
  case index(Int)
}

/// Positions of all keys of one TOML text.
package struct KeyPositions {
  /// By the way to the value.
  package private(set) var positions: [[KeyStep]: SourcePosition] = [:]

  /// What is no TOML at a place where toml++ 3.4 does not refuse it but stops the program, by an assertion (parse_key,
  /// parse_value, parse_time) or at the end of the stack (names with thousands of dots); or what its C interface would
  /// cut without a word (NUL). Such a text must not be shown to the parser.
  package struct Stopper: Hashable, Sendable {
    package let position: SourcePosition
    /// What should stand there.
    package let expected: String
  }

  /// The first such place.
  package private(set) var stopper: Stopper?

  private let bytes: [UInt8]
  private var index = 0
  private var line = 1
  /// Characters, as the parser's own errors count them.
  private var column = 1
  /// How many tables each array of tables has so far.
  private var arrayCounts: [[KeyStep]: Int] = [:]
  /// Names and indexes on the way to a value. The parser bounds nested values, but not dotted names.
  private static let deepest = 32
  /// Keys and elements of one text: each costs its whole way here.
  private static let most = 1 << 16

  /// Scans a text.
  package init(_ text: String) {
    bytes = Array(text.utf8)
    // The parser skips a byte order mark, and so must what keeps step with it.
    if bytes.starts(with: [0xef, 0xbb, 0xbf]) {
      index = 3
    }
    var table: [KeyStep] = []
    while index < bytes.count, stopper == nil {
      skipBlank(newlines: true)
      guard let byte = peek() else { break }
      if byte == UInt8(ascii: "[") {
        table = header()
      } else {
        assignment(in: table)
      }
      skipLine()
    }
  }

  /// `[a.b]` or `[[a.b]]`; gives the path that the keys below it belong to.
  private mutating func header() -> [KeyStep] {
    let position = here
    advance()
    let isArray = peek() == UInt8(ascii: "[")
    if isArray { advance() }
    while let byte = peek(), byte == 32 || byte == 9 { advance() }
    if let byte = peek(), byte != UInt8(ascii: "]"), !Self.beginsKey(byte) { stop("the name of a table", at: here) }
    let names = dottedKey()
    var path: [KeyStep] = []
    for (offset, name) in names.enumerated() {
      path.append(.key(name.text))
      if isArray, offset == names.count - 1 {
        let number = arrayCounts[path, default: -1] + 1
        arrayCounts[path] = number
        note(path, at: position)
        path.append(.index(number))
      } else if let number = arrayCounts[path] {
        path.append(.index(number))  // A table below the newest element of an array of tables.
      }
    }
    note(path, at: position)
    return path
  }

  /// Keeps the place of a value, the first of each.
  private mutating func note(_ path: [KeyStep], at position: SourcePosition) {
    guard path.count <= Self.deepest else {
      return stop("at most \(Self.deepest) names, one in the other", at: position)
    }
    guard positions.count < Self.most else { return stop("at most \(Self.most) keys and values", at: position) }
    if positions[path] == nil { positions[path] = position }
  }

  private mutating func stop(_ expected: String, at position: SourcePosition) {
    if stopper == nil { stopper = Stopper(position: position, expected: expected) }
  }

  private static func beginsKey(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
      || "_-\"'".utf8.contains(byte)
  }

  /// `a.b = value`.
  private mutating func assignment(in table: [KeyStep]) {
    var path = table
    for name in dottedKey() {
      path.append(.key(name.text))
      note(path, at: name.position)
      if stopper != nil { return }
    }
    skipBlank(newlines: false)
    if peek() == UInt8(ascii: "=") { advance() }
    skipBlank(newlines: false)
    value(at: path)
  }

  private mutating func value(at path: [KeyStep]) {
    guard stopper == nil, let byte = peek() else { return }
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "'"): _ = quoted()
    case UInt8(ascii: "["):
      advance()
      var number = 0
      while true {
        skipBlank(newlines: true)
        guard let next = peek(), next != UInt8(ascii: "]") else { break }
        let start = index
        if next == UInt8(ascii: "}") || next >= 0x80 || next == 0x0b || next == 0x0c {
          stop("a value or a closing ]", at: here)
        }
        let element = path + [.index(number)]
        note(element, at: here)
        value(at: element)
        number += 1
        skipBlank(newlines: true)
        if peek() == UInt8(ascii: ",") { advance() }
        if index == start || stopper != nil { return }
      }
      advance()
    case UInt8(ascii: "{"):
      advance()
      while true {
        skipBlank(newlines: true)
        guard let next = peek(), next != UInt8(ascii: "}") else { break }
        let start = index
        assignment(in: path)
        skipBlank(newlines: true)
        if peek() == UInt8(ascii: ",") { advance() }
        if index == start || stopper != nil { return }
      }
      advance()
    default:
      let position = here
      let start = index
      while let next = peek(), !",]}#\n\r".utf8.contains(next) { advance() }
      if TOMLDate.looksLikeOne(bytes[start..<index]), !TOMLDate.isOne(bytes[start..<index]) {
        stop("a number, or a date and time such as 1979-05-27T07:32:00Z", at: position)
      }
    }
  }

  private mutating func dottedKey() -> [(text: String, position: SourcePosition)] {
    var names: [(String, SourcePosition)] = []
    while true {
      skipBlank(newlines: false)
      guard let byte = peek() else { return names }
      let position = here
      if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
        names.append((quoted(), position))
      } else {
        let start = index
        while let next = peek(), !" \t.=]\n\r".utf8.contains(next) { advance() }
        names.append((String(decoding: bytes[start..<index], as: UTF8.self), position))
      }
      skipBlank(newlines: false)
      guard peek() == UInt8(ascii: ".") else { return names }
      advance()
    }
  }

  /// A string of one of the four kinds; escapes are resolved, because a key may be written with them.
  private mutating func quoted() -> String {
    guard let quote = peek() else { return "" }
    let isLiteral = quote == UInt8(ascii: "'")
    let triple = [quote, quote, quote]
    let isLong = Array(bytes[index...].prefix(3)) == triple
    for _ in 0..<(isLong ? 3 : 1) { advance() }
    var content: [UInt8] = []
    while let byte = peek() {
      if byte == UInt8(ascii: "\\"), !isLiteral {
        advance()
        content += escaped()
        continue
      }
      // No string of one line goes on in the next: the parser refuses it there.
      if byte == 10, !isLong { break }
      if byte == quote {
        if !isLong {
          advance()
          break
        }
        if Array(bytes[index...].prefix(3)) == triple {
          for _ in 0..<3 { advance() }
          // Up to two quotes may stand before the closing three.
          while peek() == quote { advance() }
          break
        }
      }
      content.append(byte)
      advance()
    }
    return String(decoding: content, as: UTF8.self)
  }

  /// What follows a backslash.
  private mutating func escaped() -> [UInt8] {
    guard let byte = peek() else { return [] }
    advance()
    switch byte {
    case UInt8(ascii: "n"): return [10]
    case UInt8(ascii: "t"): return [9]
    case UInt8(ascii: "r"): return [13]
    case UInt8(ascii: "b"): return [8]
    case UInt8(ascii: "f"): return [12]
    case UInt8(ascii: "u"), UInt8(ascii: "U"):
      let length = byte == UInt8(ascii: "u") ? 4 : 8
      let digits = String(decoding: bytes[index...].prefix(length), as: UTF8.self)
      let position = here
      for _ in 0..<length { advance() }
      if UInt32(digits, radix: 16) == 0 { stop("a character other than NUL", at: position) }
      guard let value = UInt32(digits, radix: 16), let scalar = Unicode.Scalar(value) else { return [] }
      return Array(String(Character(scalar)).utf8)
    default: return [byte]
    }
  }

  private var here: SourcePosition { SourcePosition(line: line, column: column) }

  private func peek() -> UInt8? { index < bytes.count ? bytes[index] : nil }

  private mutating func advance() {
    guard index < bytes.count else { return }
    let byte = bytes[index]
    index += 1
    if byte == 10 {
      line += 1
      column = 1
    } else if byte & 0xc0 != 0x80 {
      column += 1
    }
  }

  private mutating func skipBlank(newlines: Bool) {
    while let byte = peek() {
      if byte == UInt8(ascii: "#") {
        while let next = peek(), next != 10 {
          _ = next
          advance()
        }
      } else if byte == 32 || byte == 9 || (newlines && (byte == 10 || byte == 13)) {
        advance()
      } else {
        return
      }
    }
  }

  private mutating func skipLine() {
    while let byte = peek(), byte != 10 {
      _ = byte
      advance()
    }
    advance()
  }
}
