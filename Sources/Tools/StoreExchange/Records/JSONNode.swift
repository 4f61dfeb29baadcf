// JSON as RFC 8259 has it, with the digits of numbers kept: a Double would round large integers and decimals. The text
// may be hostile: nesting is bounded.

import Diagnostics

/// A JSON value.
indirect enum JSONNode {
  case null
  case boolean(Bool)
  /// The digits.
  case number(String)
  case string(String)
  case array([JSONNode])
  /// The members in their order; a name may occur once.
  case object([(name: String, value: JSONNode)])

  /// Parses a text; throws a message without a place.
  init(_ bytes: [UInt8]) throws(JSONMistake) {
    var parser = JSONNodeParser(bytes: bytes)
    self = try parser.document()
  }

  /// The member of that name; nil for other values and for an absent one.
  subscript(name: String) -> JSONNode? {
    if case .object(let members) = self { members.first { $0.name == name }?.value } else { nil }
  }

  var string: String? { if case .string(let text) = self { text } else { nil } }
  var isNull: Bool { if case .null = self { true } else { false } }
}

/// A mistake in a JSON text.
struct JSONMistake: Error {
  let message: String
}

private struct JSONNodeParser {
  let bytes: [UInt8]
  private var index = 0
  private var depth = 0
  private static let deepest = 64

  init(bytes: [UInt8]) { self.bytes = bytes }

  mutating func document() throws(JSONMistake) -> JSONNode {
    let node = try value()
    skipSpace()
    guard index == bytes.count else { throw JSONMistake(message: "unexpected text after the value") }
    return node
  }

  private mutating func skipSpace() {
    while index < bytes.count, [0x20, 0x09, 0x0a, 0x0d].contains(bytes[index]) { index += 1 }
  }

  private mutating func value() throws(JSONMistake) -> JSONNode {
    skipSpace()
    guard index < bytes.count else { throw JSONMistake(message: "a value is missing") }
    switch bytes[index] {
    case UInt8(ascii: "{"): return try object()
    case UInt8(ascii: "["): return try array()
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"): return try word("true", .boolean(true))
    case UInt8(ascii: "f"): return try word("false", .boolean(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    default: return .number(try number())
    }
  }

  private mutating func word(_ text: String, _ node: JSONNode) throws(JSONMistake) -> JSONNode {
    guard bytes[index...].starts(with: text.utf8) else { throw JSONMistake(message: "a value is not JSON") }
    index += text.utf8.count
    return node
  }

  private mutating func enter() throws(JSONMistake) {
    depth += 1
    index += 1
    guard depth <= Self.deepest else {
      throw JSONMistake(message: "values are nested more than \(Self.deepest) levels deep")
    }
  }

  /// Takes a character after white space; whether it was there.
  private mutating func taken(_ character: UInt8) -> Bool {
    skipSpace()
    guard index < bytes.count, bytes[index] == character else { return false }
    index += 1
    return true
  }

  private mutating func object() throws(JSONMistake) -> JSONNode {
    try enter()
    defer { depth -= 1 }
    var members: [(name: String, value: JSONNode)] = []
    if taken(UInt8(ascii: "}")) { return .object(members) }
    var names: Set<String> = []
    repeat {
      skipSpace()
      guard index < bytes.count, bytes[index] == UInt8(ascii: "\"") else {
        throw JSONMistake(message: "the name of a member is missing")
      }
      let name = try string()
      // Objects are small, but a hostile one need not be.
      if members.count == 32 { names = Set(members.map(\.name)) }
      let isNew = members.count < 32 ? !members.contains { $0.name == name } : names.insert(name).inserted
      guard isNew else { throw JSONMistake(message: "a member occurs twice") }
      guard taken(UInt8(ascii: ":")) else { throw JSONMistake(message: "a colon is missing") }
      members.append((name, try value()))
    } while taken(UInt8(ascii: ","))
    guard taken(UInt8(ascii: "}")) else { throw JSONMistake(message: "an object is not closed") }
    return .object(members)
  }

  private mutating func array() throws(JSONMistake) -> JSONNode {
    try enter()
    defer { depth -= 1 }
    var elements: [JSONNode] = []
    if taken(UInt8(ascii: "]")) { return .array(elements) }
    repeat { elements.append(try value()) } while taken(UInt8(ascii: ","))
    guard taken(UInt8(ascii: "]")) else { throw JSONMistake(message: "an array is not closed") }
    return .array(elements)
  }

  private mutating func number() throws(JSONMistake) -> String {
    let start = index
    func digits() -> Int { bytes[index...].prefix { (0x30...0x39).contains($0) }.count }
    if bytes[index] == UInt8(ascii: "-") { index += 1 }
    let whole = digits()
    let hasLeadingZero = whole > 1 && bytes[index] == 0x30
    index += whole
    var isNumber = whole > 0 && !hasLeadingZero
    if index < bytes.count, bytes[index] == UInt8(ascii: ".") {
      index += 1
      let count = digits()
      isNumber = isNumber && count > 0
      index += count
    }
    if index < bytes.count, bytes[index] | 0x20 == UInt8(ascii: "e") {
      index += 1
      if index < bytes.count, [UInt8(ascii: "+"), UInt8(ascii: "-")].contains(bytes[index]) { index += 1 }
      let count = digits()
      isNumber = isNumber && count > 0
      index += count
    }
    guard isNumber else { throw JSONMistake(message: "a value is not JSON") }
    return String(decoding: bytes[start..<index], as: UTF8.self)
  }

  private mutating func string() throws(JSONMistake) -> String {
    index += 1
    let start = index
    while index < bytes.count, bytes[index] != 0x22, bytes[index] != 0x5c, bytes[index] >= 0x20 { index += 1 }
    guard index < bytes.count, bytes[index] >= 0x20 else { throw JSONMistake(message: "a string is not closed") }
    if bytes[index] == 0x22 {
      defer { index += 1 }
      return try text(bytes[start..<index])
    }
    var content = Array(bytes[start..<index])
    while index < bytes.count {
      let byte = bytes[index]
      index += 1
      switch byte {
      case 0x22: return try text(content[...])
      case 0x5c: try escape(into: &content)
      case 0..<0x20: throw JSONMistake(message: "a string has a control character that is not escaped")
      default: content.append(byte)
      }
    }
    throw JSONMistake(message: "a string is not closed")
  }

  private func text(_ content: ArraySlice<UInt8>) throws(JSONMistake) -> String {
    guard let text = String(validating: content, as: UTF8.self) else {
      throw JSONMistake(message: "a string is not UTF-8")
    }
    return text
  }

  private mutating func escape(into content: inout [UInt8]) throws(JSONMistake) {
    guard index < bytes.count else { throw JSONMistake(message: "a string is not closed") }
    let byte = bytes[index]
    index += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): content.append(byte)
    case UInt8(ascii: "b"): content.append(0x08)
    case UInt8(ascii: "f"): content.append(0x0c)
    case UInt8(ascii: "n"): content.append(0x0a)
    case UInt8(ascii: "r"): content.append(0x0d)
    case UInt8(ascii: "t"): content.append(0x09)
    case UInt8(ascii: "u"):
      var value = try hexadecimal()
      if (0xd800...0xdbff).contains(value), bytes[index...].starts(with: "\\u".utf8) {
        index += 2
        let low = try hexadecimal()
        guard (0xdc00...0xdfff).contains(low) else { throw JSONMistake(message: "half of a surrogate pair is missing") }
        value = 0x10000 + (value - 0xd800) << 10 + (low - 0xdc00)
      }
      guard let scalar = Unicode.Scalar(value) else {
        throw JSONMistake(message: "half of a surrogate pair is missing")
      }
      content.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
    default: throw JSONMistake(message: "an escape in a string is unknown")
    }
  }

  private mutating func hexadecimal() throws(JSONMistake) -> UInt32 {
    let digits = bytes[index...].prefix(4)
    guard digits.count == 4, digits.allSatisfy({ Unicode.Scalar($0).properties.isASCIIHexDigit }),
      let value = UInt32(String(decoding: digits, as: UTF8.self), radix: 16)
    else { throw JSONMistake(message: "an escape in a string is unknown") }
    index += 4
    return value
  }
}
