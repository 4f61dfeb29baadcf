// Reads the JSON of one message in place. Callers read the types that they expect and no tree is built, so a batch of
// rows costs one pass and a String per text. Separate from the messages because it does not depend on them. 64-bit
// integers and doubles are kept apart and exact; depth is bounded; every input ends in a value or an error
// (docs/decisions/0018).

/// A cursor in the JSON text of one message.
struct JSONReader {
  /// The deepest nesting of arrays and objects. Messages need 7.
  static let maxDepth = 32

  let bytes: [UInt8]
  private(set) var index: Int
  private var depth = 0

  init(_ bytes: [UInt8], at index: Int = 0) {
    self.bytes = bytes
    self.index = index
  }

  func fault(_ message: String) -> PolicyWireError { PolicyWireError(message, offset: index) }

  /// Returns the next byte that is not white space, without consuming it.
  @inline(__always)
  mutating func peek() throws -> UInt8 {
    while index < bytes.count {
      let byte = bytes[index]
      switch byte {
      case 0x20, 0x0a, 0x0d, 0x09: index += 1
      default: return byte
      }
    }
    throw fault("the message ends early")
  }

  @inline(__always)
  private mutating func take(_ byte: UInt8, _ name: StaticString) throws {
    guard try peek() == byte else { throw fault("\(name) expected") }
    index += 1
  }

  /// Calls `each` at every element of an array; `each` must consume the element.
  mutating func array(_ each: (inout JSONReader) throws -> Void) throws {
    try elements(from: UInt8(ascii: "["), "[", to: UInt8(ascii: "]"), ", or ]", each)
  }

  /// Returns the elements of an array, each read by `element`.
  mutating func list<Element>(_ element: (inout JSONReader) throws -> Element) throws -> [Element] {
    var elements: [Element] = []
    try array { reader in elements.append(try element(&reader)) }
    return elements
  }

  /// Calls `part` with the position of every element of an array; `part` must consume the element, and throws if there
  /// are too many. Returns the number of elements.
  mutating func parts(_ part: (inout JSONReader, Int) throws -> Void) throws -> Int {
    var position = 0
    try array { reader in
      try part(&reader, position)
      position += 1
    }
    return position
  }

  /// Calls `each` with every key of an object, at its value; `each` must consume the value.
  mutating func object(_ each: (inout JSONReader, String) throws -> Void) throws {
    try elements(from: UInt8(ascii: "{"), "{", to: UInt8(ascii: "}"), ", or }") { reader in
      let key = try reader.string()
      try reader.take(UInt8(ascii: ":"), ":")
      try each(&reader, key)
    }
  }

  @inline(__always)
  private mutating func elements(
    from start: UInt8, _ startName: StaticString, to end: UInt8, _ endName: StaticString,
    _ each: (inout JSONReader) throws -> Void
  ) throws {
    try take(start, startName)
    guard depth < Self.maxDepth else { throw fault("nested deeper than \(Self.maxDepth)") }
    depth += 1
    defer { depth -= 1 }
    if try peek() == end {
      index += 1
      return
    }
    while true {
      try each(&self)
      if try peek() == UInt8(ascii: ",") {
        index += 1
      } else {
        return try take(end, endName)
      }
    }
  }

  /// Returns the offset of each field of an object, so that fields may be in any order.
  mutating func fields() throws -> [String: Int] {
    var found: [String: Int] = [:]
    try object { reader, key in
      _ = try reader.peek()
      guard found.updateValue(reader.index, forKey: key) == nil else {
        throw reader.fault("the key \(key) occurs twice")
      }
      try reader.skip()
    }
    return found
  }

  /// Returns a reader at another offset of the same message.
  func moved(to offset: Int) -> JSONReader { JSONReader(bytes, at: offset) }

  /// Skips one value.
  mutating func skip() throws {
    switch try peek() {
    case UInt8(ascii: "{"): try object { reader, _ in try reader.skip() }
    case UInt8(ascii: "["): try array { reader in try reader.skip() }
    case UInt8(ascii: "\""): try skipString()
    case UInt8(ascii: "t"), UInt8(ascii: "f"): _ = try boolean()
    case UInt8(ascii: "n"): try null()
    default: _ = try number()
    }
  }

  /// Throws if anything but white space follows.
  mutating func end() throws {
    while index < bytes.count {
      switch bytes[index] {
      case 0x20, 0x0a, 0x0d, 0x09: index += 1
      default: throw fault("something follows the message")
      }
    }
  }

  // MARK: Scalars

  mutating func null() throws { try word("null") }

  mutating func boolean() throws -> Bool {
    if try peek() == UInt8(ascii: "t") {
      try word("true")
      return true
    }
    try word("false")
    return false
  }

  private mutating func word(_ word: StaticString) throws {
    _ = try peek()
    let length = word.utf8CodeUnitCount
    guard bytes.count - index >= length else { throw fault("the message ends early") }
    for offset in 0..<length where bytes[index + offset] != word.utf8Start[offset] {
      throw fault("a value expected")
    }
    index += length
  }

  /// Reads a number: an integer if it has neither fraction nor exponent, otherwise a double.
  mutating func number() throws -> PolicyValue {
    _ = try peek()
    let start = index
    var isNegative = false
    if bytes[index] == UInt8(ascii: "-") {
      isNegative = true
      index += 1
    }
    var magnitude: UInt64 = 0
    var digits = 0
    var overflowed = false
    while index < bytes.count, let digit = digit(at: index) {
      let (product, first) = magnitude.multipliedReportingOverflow(by: 10)
      let (sum, second) = product.addingReportingOverflow(UInt64(digit))
      overflowed = overflowed || first || second
      magnitude = sum
      digits += 1
      index += 1
    }
    let firstDigit = isNegative ? start + 1 : start
    guard digits > 0 else { throw fault("a value expected") }
    guard digits == 1 || bytes[firstDigit] != UInt8(ascii: "0") else { throw fault("a number begins with 0") }
    var isInteger = true
    if index < bytes.count, bytes[index] == UInt8(ascii: ".") {
      isInteger = false
      index += 1
      try someDigits()
    }
    if index < bytes.count, bytes[index] | 0x20 == UInt8(ascii: "e") {
      isInteger = false
      index += 1
      if index < bytes.count, bytes[index] == UInt8(ascii: "+") || bytes[index] == UInt8(ascii: "-") { index += 1 }
      try someDigits()
    }
    if isInteger {
      guard !overflowed else { throw fault("an integer beyond 64 bits") }
      guard isNegative else {
        guard let value = Int64(exactly: magnitude) else { throw fault("an integer beyond 64 bits") }
        return .integer(value)
      }
      guard magnitude <= UInt64(Int64.max) + 1 else { throw fault("an integer beyond 64 bits") }
      return .integer(Int64(truncatingIfNeeded: 0 &- magnitude))
    }
    guard index - start <= 400, let value = Double(String(decoding: bytes[start..<index], as: UTF8.self)),
      value.isFinite
    else { throw fault("a number that no double holds") }
    return .double(value)
  }

  private mutating func someDigits() throws {
    let start = index
    while index < bytes.count, digit(at: index) != nil { index += 1 }
    guard index > start else { throw fault("a digit expected") }
  }

  @inline(__always)
  private func digit(at index: Int) -> UInt8? {
    let value = bytes[index] &- UInt8(ascii: "0")
    return value < 10 ? value : nil
  }

  /// Reads a whole number.
  mutating func integer() throws -> Int64 {
    guard case .integer(let value) = try number() else { throw fault("an integer expected") }
    return value
  }

  // MARK: Text

  mutating func string() throws -> String {
    let start = try openQuote()
    let (end, isPlain) = try closeQuote()
    if isPlain {
      guard let text = String(validating: bytes[start..<end], as: UTF8.self) else {
        throw fault("text that is not UTF-8")
      }
      return text
    }
    return try unescaped(start, end)
  }

  private mutating func skipString() throws {
    let start = try openQuote()
    let (end, isPlain) = try closeQuote()
    if !isPlain { _ = try unescaped(start, end) }
  }

  private mutating func openQuote() throws -> Int {
    try take(UInt8(ascii: "\""), "a text")
    return index
  }

  /// Moves past the closing quote. Returns the end of the text, and whether it has no escapes.
  private mutating func closeQuote() throws -> (end: Int, isPlain: Bool) {
    var isPlain = true
    let end: Int? = bytes.withUnsafeBufferPointer { bytes in
      var cursor = index
      while cursor < bytes.count {
        let byte = bytes[cursor]
        if byte == UInt8(ascii: "\"") { return cursor }
        if byte == UInt8(ascii: "\\") {
          isPlain = false
          cursor += 1
        } else if byte < 0x20 {
          return nil
        }
        cursor += 1
      }
      return nil
    }
    guard let end else { throw fault("a text without end, or with a control character in it") }
    index = end + 1
    return (end, isPlain)
  }

  private func unescaped(_ start: Int, _ end: Int) throws -> String {
    var utf8: [UInt8] = []
    utf8.reserveCapacity(end - start)
    var cursor = start
    while cursor < end {
      let byte = bytes[cursor]
      cursor += 1
      guard byte == UInt8(ascii: "\\") else {
        utf8.append(byte)
        continue
      }
      guard cursor < end else { throw fault("an escape without end") }
      let escape = bytes[cursor]
      cursor += 1
      switch escape {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): utf8.append(escape)
      case UInt8(ascii: "b"): utf8.append(0x08)
      case UInt8(ascii: "f"): utf8.append(0x0c)
      case UInt8(ascii: "n"): utf8.append(0x0a)
      case UInt8(ascii: "r"): utf8.append(0x0d)
      case UInt8(ascii: "t"): utf8.append(0x09)
      case UInt8(ascii: "u"): utf8.append(contentsOf: try scalar(&cursor, end).utf8)
      default: throw fault("an unknown JSON escape")
      }
    }
    guard let text = String(validating: utf8, as: UTF8.self) else { throw fault("text that is not UTF-8") }
    return text
  }

  /// Reads the character after `\u`. A pair of surrogates is one character.
  private func scalar(_ cursor: inout Int, _ end: Int) throws -> String {
    let first = try fourDigits(&cursor, end)
    var value = UInt32(first)
    if first & 0xfc00 == 0xd800 {
      guard cursor + 1 < end, bytes[cursor] == UInt8(ascii: "\\"), bytes[cursor + 1] == UInt8(ascii: "u") else {
        throw fault("half a pair of surrogates")
      }
      cursor += 2
      let second = try fourDigits(&cursor, end)
      guard second & 0xfc00 == 0xdc00 else { throw fault("half a pair of surrogates") }
      value = 0x10000 + (UInt32(first & 0x3ff) << 10) + UInt32(second & 0x3ff)
    }
    guard let scalar = Unicode.Scalar(value) else { throw fault("half a pair of surrogates") }
    return String(scalar)
  }

  private func fourDigits(_ cursor: inout Int, _ end: Int) throws -> UInt16 {
    guard end - cursor >= 4 else { throw fault("an escape without end") }
    var value: UInt16 = 0
    for byte in bytes[cursor..<cursor + 4] {
      guard let digit = Hexadecimal.value(byte) else { throw fault("an unknown JSON escape") }
      value = value << 4 | UInt16(digit)
    }
    cursor += 4
    return value
  }
}
