// Numbers that a model's source writes as text and its archive as values: decimals, bounds of validation, counts. Both
// readers convert them to one form, so that a model has the same value from either form (docs/decisions/0011).

import Diagnostics

/// Decimal numbers as text without exponent and without leading zeros, the scale kept.
package enum DecimalText {
  /// The number mantissa × 10^exponent; the mantissa in units of 16 bits, lowest first.
  static func text(mantissa: [UInt16], exponent: Int64, isNegative: Bool) -> String {
    // 128 bits: at most 39 digits, found by dividing by ten.
    var units = mantissa.prefix(8).map { UInt32($0) }
    var digits: [UInt8] = []
    while units.contains(where: { $0 != 0 }) {
      var remainder: UInt32 = 0
      for index in units.indices.reversed() {
        let value = remainder << 16 | units[index]
        units[index] = value / 10
        remainder = value % 10
      }
      digits.append(UInt8(truncatingIfNeeded: remainder))
    }
    return text(digits: digits.reversed(), exponent: exponent, isNegative: isNegative)
  }

  /// Returns a model's text in that form; nil if it is not a decimal number.
  package static func normalized(_ text: String) -> String? {
    guard let parts = DecimalParts(text) else { return nil }
    var exponent = -Int64(parts.places)
    if let shift = parts.exponent {
      guard let power = Int64(shift), power.magnitude < 1_000 else { return nil }
      exponent += power
    }
    return Self.text(digits: parts.digits, exponent: exponent, isNegative: parts.isNegative)
  }

  private static func text(digits: [UInt8], exponent: Int64, isNegative: Bool) -> String {
    // NSDecimal's exponents are −128…127; larger ones would be a flood of zeros.
    let exponent = Int(max(-2_000, min(2_000, exponent)))
    var whole = digits
    var fraction: [UInt8] = []
    if exponent >= 0 {
      if !whole.isEmpty { whole += [UInt8](repeating: 0, count: exponent) }
    } else {
      let padded = [UInt8](repeating: 0, count: max(0, -exponent - digits.count)) + digits
      whole = Array(padded.dropLast(-exponent))
      fraction = Array(padded.suffix(-exponent))
    }
    let sign = isNegative && !digits.isEmpty ? "-" : ""
    let text = { (digits: [UInt8]) in String(decoding: digits.map { $0 + 0x30 }, as: UTF8.self) }
    return sign + (whole.isEmpty ? "0" : text(whole)) + (fraction.isEmpty ? "" : "." + text(fraction))
  }
}

/// The parts of a decimal number's text: an optional sign, digits, at most one point, an optional exponent.
package struct DecimalParts {
  package private(set) var isNegative = false
  /// The digits as numbers, without leading zeros.
  package private(set) var digits: [UInt8] = []
  /// How many digits there are, zeros included, and how many after the point.
  package private(set) var count = 0
  package private(set) var places = 0
  /// The text after `e` or `E`, unchecked.
  package private(set) var exponent: Substring?

  /// Nil for a text without a digit, or with any other character.
  package init?(_ text: String) {
    var rest = text.utf8[...]
    if let sign = rest.first, sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") {
      isNegative = sign == UInt8(ascii: "-")
      rest = rest.dropFirst()
    }
    var hasPoint = false
    while let byte = rest.first, (0x30...0x39).contains(byte) || (byte == UInt8(ascii: ".") && !hasPoint) {
      rest = rest.dropFirst()
      guard byte != UInt8(ascii: ".") else {
        hasPoint = true
        continue
      }
      count += 1
      if hasPoint { places += 1 }
      if !digits.isEmpty || byte != 0x30 { digits.append(byte - 0x30) }
    }
    if let mark = rest.first, mark == UInt8(ascii: "e") || mark == UInt8(ascii: "E") {
      exponent = Substring(rest.dropFirst())
    } else if !rest.isEmpty {
      return nil
    }
    if count == 0 { return nil }
  }
}

/// A minimum or maximum of an attribute, in the form that a model keeps.
struct ValidationBound {
  /// The text: whole numbers without a point, lengths, seconds for dates.
  let text: String

  /// The bound of an attribute of that type; nil if the text is not a number or the type has no bounds.
  init?(_ text: String, type: AttributeType) {
    switch type.form {
    case .integer, .string:
      guard let number = Double(text), let whole = Int64(text) ?? Int64(exactly: number.rounded(.towardZero)) else {
        return nil
      }
      self.text = String(whole)
    case .real where type.traits.isFloat:
      guard let number = Float(text), number.isFinite else { return nil }
      self.text = number == number.rounded() && abs(number) < 1e7 ? Self.text(Double(number)) : "\(number)"
    case .real, .date:
      guard let number = Double(text), number.isFinite else { return nil }
      self.text = Self.text(number)
    case .decimal:
      guard let decimal = DecimalText.normalized(text) else { return nil }
      self.text = decimal
    default: return nil
    }
  }

  /// A number as text; whole ones without a point.
  static func text(_ number: Double) -> String {
    if let whole = Int64(exactly: number), abs(number) < 1e15 { return String(whole) }
    return "\(number)"
  }
}

extension Relationship {
  /// A count in the form of archive and hash, 32 bits without sign: unbounded is 9223372036854775807 in a source and −1
  /// in an archive made from code, and the hash has ff ff ff ff for both (docs/formats/version-hashes.md, "Relationship
  /// digest").
  static func storedCount(_ count: Int64) -> Int64 { Int64(UInt32(truncatingIfNeeded: count)) }
}

/// UUIDs as text.
package enum UUIDText {
  /// `8-4-4-4-12` hexadecimal digits, in upper case.
  package static func text(of bytes: [UInt8]) -> String {
    var text = ""
    for (index, byte) in bytes.enumerated() {
      if [4, 6, 8, 10].contains(index) { text += "-" }
      text += (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
    }
    return text
  }

  /// The 16 bytes of such a text; nil for any other.
  package static func bytes(of text: String) -> [UInt8]? {
    // The length rules out most texts that are not a UUID, however long they are.
    guard text.utf8.count == 36 else { return nil }
    let groups = text.split(separator: "-", omittingEmptySubsequences: false)
    guard groups.map(\.utf8.count) == [8, 4, 4, 4, 12] else { return nil }
    return [UInt8](hexadecimal: groups.joined())
  }
}
