// Bytes as text: base64 for binary values, the usual form for UUIDs. Written here so that a policy does not link
// Foundation.

/// Base64 with padding (RFC 4648, section 4).
enum Base64 {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  private static let values: [UInt8] = {
    var values = [UInt8](repeating: 0xff, count: 256)
    for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
    return values
  }()

  static func encode(_ data: [UInt8]) -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity((data.count + 2) / 3 * 4)
    var index = 0
    while index < data.count {
      let left = data.count - index
      let first = data[index]
      let second = left > 1 ? data[index + 1] : 0
      let third = left > 2 ? data[index + 2] : 0
      text.append(alphabet[Int(first >> 2)])
      text.append(alphabet[Int((first & 3) << 4 | second >> 4)])
      text.append(left > 1 ? alphabet[Int((second & 15) << 2 | third >> 6)] : UInt8(ascii: "="))
      text.append(left > 2 ? alphabet[Int(third & 63)] : UInt8(ascii: "="))
      index += 3
    }
    return text
  }

  /// Returns the bytes; nil if the text is not base64.
  static func decode(_ text: String) -> [UInt8]? {
    let characters = Array(text.utf8)
    guard characters.count % 4 == 0 else { return nil }
    let padding = characters.suffix(2).reduce(0) { $0 + ($1 == UInt8(ascii: "=") ? 1 : 0) }
    var data: [UInt8] = []
    data.reserveCapacity(characters.count / 4 * 3)
    var bits: UInt32 = 0
    for (index, character) in characters.dropLast(padding).enumerated() {
      let value = values[Int(character)]
      guard value < 64 else { return nil }
      bits = bits << 6 | UInt32(value)
      if index % 4 == 3 {
        data.append(UInt8(truncatingIfNeeded: bits >> 16))
        data.append(UInt8(truncatingIfNeeded: bits >> 8))
        data.append(UInt8(truncatingIfNeeded: bits))
        bits = 0
      }
    }
    switch padding {
    case 1:
      data.append(UInt8(truncatingIfNeeded: bits >> 10))
      data.append(UInt8(truncatingIfNeeded: bits >> 2))
    case 2: data.append(UInt8(truncatingIfNeeded: bits >> 4))
    default: break
    }
    return data
  }
}

/// Hexadecimal digits, and UUIDs written with them.
enum Hexadecimal {
  static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + (value & 15) - 10
  }

  static func value(_ character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  /// Returns the digits in upper case.
  static func text(_ bytes: [UInt8]) -> String {
    String(decoding: bytes.flatMap { [digit($0 >> 4), digit($0 & 15)] }, as: UTF8.self)
  }

  /// Returns a UUID's text in upper case, with hyphens.
  static func uuid(_ bytes: [UInt8]) -> [UInt8] {
    var text: [UInt8] = []
    for (index, byte) in bytes.enumerated() {
      if index == 4 || index == 6 || index == 8 || index == 10 { text.append(UInt8(ascii: "-")) }
      text.append(digit(byte >> 4))
      text.append(digit(byte & 15))
    }
    return text
  }

  /// Returns a UUID's bytes; nil if the text is not a UUID with its hyphens.
  static func uuid(_ text: String) -> [UInt8]? {
    let characters = Array(text.utf8)
    guard characters.count == 36 else { return nil }
    var bytes: [UInt8] = []
    var index = 0
    while index < 36 {
      if index == 8 || index == 13 || index == 18 || index == 23 {
        guard characters[index] == UInt8(ascii: "-") else { return nil }
        index += 1
        continue
      }
      guard let high = value(characters[index]), let low = value(characters[index + 1]) else { return nil }
      bytes.append(high << 4 | low)
      index += 2
    }
    return bytes
  }
}

extension JSONReader {
  /// Whether the text is a decimal number as Decimal's description writes it: digits with at most one point, an
  /// optional sign before them and an optional exponent after them.
  static func isDecimal(_ text: String) -> Bool {
    if text == "NaN" { return true }
    guard text.utf8.count <= 400 else { return false }
    var digits = 0
    var exponentDigits: Int?
    var hasPoint = false
    var previous: UInt8 = 0
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"):
        if exponentDigits == nil { digits += 1 } else { exponentDigits? += 1 }
      case UInt8(ascii: "."):
        guard !hasPoint, exponentDigits == nil else { return false }
        hasPoint = true
      case UInt8(ascii: "e"), UInt8(ascii: "E"):
        guard exponentDigits == nil, digits > 0 else { return false }
        exponentDigits = 0
      case UInt8(ascii: "-"), UInt8(ascii: "+"):
        guard previous == 0 || previous | 0x20 == UInt8(ascii: "e") else { return false }
      default: return false
      }
      previous = byte
    }
    return digits > 0 && exponentDigits != 0
  }
}
