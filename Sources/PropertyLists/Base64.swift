// Base64 without Foundation: XML property lists contain data in it, and Core Data writes the digests of a model in it.

/// Standard base64 with padding.
package enum Base64 {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// The text of `bytes`.
  package static func encode(_ bytes: some Sequence<UInt8>) -> String {
    var output: [UInt8] = []
    var bits: UInt32 = 0
    var held = 0
    for byte in bytes {
      bits = (bits << 8 | UInt32(byte)) & 0xffff
      held += 8
      while held >= 6 {
        held -= 6
        output.append(alphabet[Int(bits >> UInt32(held) & 0x3f)])
      }
    }
    if held > 0 { output.append(alphabet[Int(bits << UInt32(6 - held) & 0x3f)]) }
    while output.count % 4 != 0 { output.append(UInt8(ascii: "=")) }
    return String(decoding: output, as: UTF8.self)
  }

  /// The bytes of a text, white space ignored; nil if the text is not base64.
  package static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
    var output: [UInt8] = []
    var bits: UInt32 = 0
    var held = 0
    var digits = 0
    var padding = 0
    for character in text {
      let digit: UInt8
      switch character {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): digit = character - UInt8(ascii: "A")
      case UInt8(ascii: "a")...UInt8(ascii: "z"): digit = character - UInt8(ascii: "a") + 26
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = character - UInt8(ascii: "0") + 52
      case UInt8(ascii: "+"): digit = 62
      case UInt8(ascii: "/"): digit = 63
      case UInt8(ascii: "="):
        padding += 1
        continue
      case 0x20, 0x09, 0x0a, 0x0d: continue
      default: return nil
      }
      guard padding == 0 else { return nil }
      digits += 1
      bits = (bits << 6 | UInt32(digit)) & 0xffff
      held += 6
      if held >= 8 {
        held -= 8
        output.append(UInt8(truncatingIfNeeded: bits >> UInt32(held)))
      }
    }
    // 4 digits make 3 bytes; padding fills up a last group of 2 or 3 digits, a single digit is not a byte.
    guard digits % 4 != 1, padding == (4 - digits % 4) % 4 else { return nil }
    return output
  }
}
