// Writes JSON in pieces: an object with a million members on one line must not be held in memory, so a line is written
// in portions. Only for dumps and exports; all other code in the project encodes whole values.

import PropertyLists

/// Writes JSON text into a buffer that is emitted whenever it is full.
package struct JSONLines {
  private var buffer: [UInt8] = []
  private let emit: ([UInt8]) throws -> Void
  private static let portion = 64 << 10

  /// Creates a writer; `emit` receives portions of text, and a line may span several.
  package init(emit: @escaping ([UInt8]) throws -> Void) {
    self.emit = emit
    buffer.reserveCapacity(JSONLines.portion + 4096)
  }

  /// Emits the rest of the buffer.
  package mutating func flush() throws {
    if !buffer.isEmpty { try emit(buffer) }
    buffer.removeAll(keepingCapacity: true)
  }

  /// Writes punctuation, or text that is already JSON.
  package mutating func raw(_ text: String) throws {
    buffer.append(contentsOf: text.utf8)
    if buffer.count >= JSONLines.portion { try flush() }
  }

  /// Writes a string in quotes. Control characters, quotes and backslashes are escaped (RFC 8259, section 7); so are
  /// U+2028 and U+2029, which some readers treat as the end of a line.
  package mutating func string(_ text: String) throws {
    buffer.append(UInt8(ascii: "\""))
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 0x22: buffer.append(contentsOf: [0x5c, 0x22])
      case 0x5c: buffer.append(contentsOf: [0x5c, 0x5c])
      case 0x08: buffer.append(contentsOf: "\\b".utf8)
      case 0x09: buffer.append(contentsOf: "\\t".utf8)
      case 0x0a: buffer.append(contentsOf: "\\n".utf8)
      case 0x0c: buffer.append(contentsOf: "\\f".utf8)
      case 0x0d: buffer.append(contentsOf: "\\r".utf8)
      case 0..<0x20, 0x7f, 0x2028, 0x2029:
        let digits = String(scalar.value, radix: 16)
        buffer.append(contentsOf: "\\u".utf8)
        buffer.append(contentsOf: String(repeating: "0", count: 4 - digits.utf8.count).utf8)
        buffer.append(contentsOf: digits.utf8)
      case 0..<0x80: buffer.append(UInt8(truncatingIfNeeded: scalar.value))
      default: buffer.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
      }
      if buffer.count >= JSONLines.portion { try flush() }
    }
    buffer.append(UInt8(ascii: "\""))
  }

  /// Writes a number; one that JSON cannot represent becomes a string: "NaN", "Infinity", "-Infinity".
  package mutating func number(_ value: Double) throws {
    if value.isNaN {
      try string("NaN")
    } else if value.isInfinite {
      try string(value < 0 ? "-Infinity" : "Infinity")
    } else {
      try raw(String(value))
    }
  }
}

extension JSONLines {
  /// Returns a text as a JSON string.
  package static func quoted(_ text: String) throws -> String {
    var bytes: [UInt8] = []
    var lines = JSONLines { bytes += $0 }
    try lines.string(text)
    try lines.flush()
    return String(decoding: bytes, as: UTF8.self)
  }
}
