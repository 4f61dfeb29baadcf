// The escapes of Core Data's XML stores; Xcode's mapping models are such stores.

/// Text of Core Data's XML stores.
package enum XMLStoreText {
  /// Returns the text with `\uXXYY` replaced by the UTF-16 unit 0xYYXX: Core Data's XML stores swap the two bytes, so
  /// that `\u3e00` is `>` (docs/formats/mapping-models.md, "Escapes in texts"). Any other backslash is literal.
  package static func unescaped(_ text: String) -> String {
    let bytes = Array(text.utf8)
    guard bytes.contains(UInt8(ascii: "\\")) else { return text }
    var result = ""
    var run: [UInt8] = []
    var units: [UInt16] = []
    func close() {
      if !units.isEmpty { result += String(decoding: units, as: UTF16.self) }
      if !run.isEmpty { result += String(decoding: run, as: UTF8.self) }
      units = []
      run = []
    }
    var index = 0
    while index < bytes.count {
      if let unit = escape(in: bytes, at: index) {
        if !run.isEmpty { close() }
        units.append(unit)
        index += 6
      } else {
        if !units.isEmpty { close() }
        run.append(bytes[index])
        index += 1
      }
    }
    close()
    return result
  }

  /// Returns the UTF-16 unit of the escape at `index`.
  private static func escape(in bytes: [UInt8], at index: Int) -> UInt16? {
    guard bytes.count - index >= 6, bytes[index] == UInt8(ascii: "\\"), bytes[index + 1] == UInt8(ascii: "u") else {
      return nil
    }
    var value: UInt16 = 0
    for byte in bytes[(index + 2)..<(index + 6)] {
      guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { return nil }
      value = value << 4 | UInt16(truncatingIfNeeded: digit)
    }
    return value.byteSwapped
  }

  /// Returns the text without white space around it.
  package static func trimmed(_ text: String) -> String {
    var part = text.drop(while: \.isWhitespace)
    while let last = part.last, last.isWhitespace { part.removeLast() }
    return String(part)
  }
}
