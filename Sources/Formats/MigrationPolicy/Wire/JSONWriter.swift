// Writes the JSON of one message directly into the bytes of its frame, after the length. Doubles always have a fraction
// or an exponent and integers never do, so that a reader can tell them apart.

/// Writes one message.
struct JSONWriter {
  /// The length of the frame's head: four bytes, the most significant first.
  static let headLength = 4

  private(set) var bytes: [UInt8]

  /// Continues bytes that another writer began.
  init(_ begun: [UInt8]) { bytes = begun }

  init() {
    bytes = [UInt8](repeating: 0, count: Self.headLength)
  }

  /// Returns the frame: head and JSON; nil if the length does not fit in the head.
  consuming func framed() -> [UInt8]? {
    guard let length = UInt32(exactly: bytes.count - Self.headLength) else { return nil }
    for position in 0..<Self.headLength {
      bytes[position] = UInt8(truncatingIfNeeded: length >> UInt32(24 - 8 * position))
    }
    return bytes
  }

  /// Appends JSON text that is constant in the code.
  mutating func raw(_ text: StaticString) {
    bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  mutating func byte(_ character: Unicode.Scalar) { bytes.append(UInt8(ascii: character)) }

  /// Appends `[…]`: each element as `element` writes it, with commas between.
  @inline(__always)
  mutating func array<Elements: Sequence>(
    _ elements: Elements, _ element: (inout JSONWriter, Elements.Element) throws -> Void
  ) rethrows {
    byte("[")
    var isFirst = true
    for each in elements {
      if !isFirst { byte(",") }
      isFirst = false
      try element(&self, each)
    }
    byte("]")
  }

  /// Appends `{…}`, sorted by name: each value as `value` writes it.
  mutating func object<Value>(_ values: [String: Value], _ value: (inout JSONWriter, Value) -> Void) {
    byte("{")
    var isFirst = true
    for (name, each) in values.sorted(by: { $0.key < $1.key }) {
      if !isFirst { byte(",") }
      isFirst = false
      string(name)
      byte(":")
      value(&self, each)
    }
    byte("}")
  }

  /// Appends JSON text that is constant in the code, then a JSON string.
  mutating func raw(_ start: StaticString, string text: String) {
    raw(start)
    string(text)
  }

  mutating func integer(_ value: Int64) {
    if value < 0 { bytes.append(UInt8(ascii: "-")) }
    var magnitude = value.magnitude
    let start = bytes.count
    repeat {
      bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: magnitude % 10))
      magnitude /= 10
    } while magnitude > 0
    bytes[start...].reverse()
  }

  /// Appends a finite double, in the shortest form that reads back as the same value.
  mutating func finite(_ value: Double) { bytes.append(contentsOf: value.description.utf8) }

  mutating func string(_ text: String) {
    var text = text
    text.withUTF8 { string(utf8: UnsafeRawBufferPointer($0)) }
  }

  private mutating func string(utf8: UnsafeRawBufferPointer) {
    bytes.append(UInt8(ascii: "\""))
    var copied = 0
    for (index, byte) in utf8.enumerated()
    where byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
      bytes.append(contentsOf: utf8[copied..<index])
      escape(byte)
      copied = index + 1
    }
    bytes.append(contentsOf: utf8[copied...])
    bytes.append(UInt8(ascii: "\""))
  }

  private mutating func escape(_ byte: UInt8) {
    switch byte {
    case UInt8(ascii: "\""): raw("\\\"")
    case UInt8(ascii: "\\"): raw("\\\\")
    case 0x0a: raw("\\n")
    case 0x0d: raw("\\r")
    case 0x09: raw("\\t")
    default:
      raw("\\u00")
      bytes.append(Hexadecimal.digit(byte >> 4))
      bytes.append(Hexadecimal.digit(byte & 15))
    }
  }

  /// Appends a JSON string of ASCII characters that need no escape.
  mutating func ascii(_ characters: [UInt8]) {
    bytes.append(UInt8(ascii: "\""))
    bytes.append(contentsOf: characters)
    bytes.append(UInt8(ascii: "\""))
  }
}
