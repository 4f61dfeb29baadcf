// Numbers that a model's source writes as text and its archive as values: decimals, bounds of validation, counts. Both
// readers bring them to one form, so that a model is the same value whichever way it came (docs/decisions/0011).

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

  /// The text of a model in that form; nil where it is no decimal number.
  package static func normalized(_ text: String) -> String? {
    var rest = Array(text.utf8)[...]
    var isNegative = false
    if let sign = rest.first, sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") {
      isNegative = sign == UInt8(ascii: "-")
      rest = rest.dropFirst()
    }
    var digits: [UInt8] = []
    var exponent: Int64 = 0
    var hasPoint = false
    var count = 0
    while let byte = rest.first, (0x30...0x39).contains(byte) || (byte == UInt8(ascii: ".") && !hasPoint) {
      rest = rest.dropFirst()
      guard byte != UInt8(ascii: ".") else {
        hasPoint = true
        continue
      }
      count += 1
      digits.append(byte - 0x30)
      if hasPoint { exponent -= 1 }
    }
    guard count > 0 else { return nil }
    if let mark = rest.first, mark == UInt8(ascii: "e") || mark == UInt8(ascii: "E") {
      guard let power = Int64(String(decoding: rest.dropFirst(), as: UTF8.self)), power.magnitude < 1_000 else {
        return nil
      }
      exponent += power
      rest = []
    }
    guard rest.isEmpty else { return nil }
    return Self.text(digits: Array(digits.drop { $0 == 0 }), exponent: exponent, isNegative: isNegative)
  }

  private static func text(digits: [UInt8], exponent: Int64, isNegative: Bool) -> String {
    // NSDecimal's exponents are −128…127; more would be a flood of zeros.
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

/// A minimum or maximum of an attribute, as it is kept in a model.
struct ValidationBound {
  /// The text: whole numbers without a point, lengths, seconds for dates.
  let text: String

  /// The bound for an attribute of that type; nil where the text is not a number or the type has no bounds.
  init?(_ text: String, type: AttributeType) {
    switch type {
    case .integer16, .integer32, .integer64, .string:
      guard let number = Double(text), let whole = Int64(text) ?? Int64(exactly: number.rounded(.towardZero)) else {
        return nil
      }
      self.text = String(whole)
    case .double, .date:
      guard let number = Double(text), number.isFinite else { return nil }
      self.text = Self.text(number)
    case .float:
      guard let number = Float(text), number.isFinite else { return nil }
      self.text = number == number.rounded() && abs(number) < 1e7 ? Self.text(Double(number)) : "\(number)"
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
  /// A count as the archive and the hash keep it, in 32 bits without sign: unbounded is 9223372036854775807 in a source
  /// and −1 in an archive made from code, and both enter the hash as ff ff ff ff (docs/formats/version-hashes.md,
  /// "Relationship digest").
  static func storedCount(_ count: Int64) -> Int64 { Int64(UInt32(truncatingIfNeeded: count)) }
}
