// Writes texts inside TOML documents. Names of models come from strangers' files and may contain anything.

/// Texts of TOML documents.
package enum TOMLText {
  /// A string with its quotes and escapes.
  package static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\t": result += "\\t"
      case "\r": result += "\\r"
      case _ where scalar.value < 0x20 || scalar.value == 0x7f:
        let digits = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }

  /// A key, bare where TOML allows it.
  package static func key(_ text: String) -> String {
    text.utf8.allSatisfy(isOfBareKey) && !text.isEmpty ? text : quoted(text)
  }

  /// Whether a key without quotes may contain the character.
  static func isOfBareKey(_ byte: UInt8) -> Bool {
    TOMLBareValue.isDigit(byte) || (0x61...0x7a).contains(byte | 0x20) || "_-".utf8.contains(byte)
  }
}
