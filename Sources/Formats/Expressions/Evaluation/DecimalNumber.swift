// Decimal arithmetic as NSDecimalNumber does it: 38 digits, rounded half up if more would be needed, exponents from
// -128 to 127. It works on digits and not on machine words: rows with decimals are few, and digits are easier to
// verify.

import ManagedObjectModel

/// A decimal number of at most 38 digits.
package struct DecimalNumber: Sendable, Hashable {
  /// The digits, highest first, without zeros at either end; empty for 0.
  private let digits: [UInt8]
  /// The number is digits × 10^exponent.
  private let exponent: Int
  private let isNegative: Bool

  private static let precision = 38
  private static let exponents = -128...127

  /// Returns nil if the number is too large; a number that is too small becomes 0.
  private init?(_ digits: [UInt8], exponent: Int, isNegative: Bool) {
    var digits = Array(digits.drop { $0 == 0 })
    var exponent = exponent
    let limit = DecimalNumber.precision
    let surplus = max(digits.count - limit, digits.isEmpty ? 0 : DecimalNumber.exponents.lowerBound - exponent)
    if surplus > 0 {
      let isUp = surplus <= digits.count && digits[digits.count - surplus] >= 5
      digits.removeLast(min(surplus, digits.count))
      exponent += surplus
      if isUp {
        digits = DecimalNumber.sum(digits, [1])
      }
    }
    while digits.last == 0 {
      digits.removeLast()
      exponent += 1
    }
    if digits.isEmpty { exponent = 0 }
    // A large exponent may still be written as zeros after the digits.
    guard exponent <= DecimalNumber.exponents.upperBound + limit - digits.count else { return nil }
    self.digits = digits
    self.exponent = exponent
    self.isNegative = isNegative && !digits.isEmpty
  }

  private init(unchecked digits: [UInt8], exponent: Int, isNegative: Bool) {
    self.digits = digits
    self.exponent = exponent
    self.isNegative = isNegative
  }

  /// The integer as a decimal.
  package init(_ value: Int64) {
    var digits = String(value.magnitude).utf8.map { $0 - 0x30 }
    var exponent = 0
    while digits.last == 0 {
      digits.removeLast()
      exponent += 1
    }
    self.init(unchecked: digits, exponent: digits.isEmpty ? 0 : exponent, isNegative: value < 0)
  }

  /// The shortest decimal that reads back as the double; nil for infinities, NaN and numbers that are too large.
  package init?(_ value: Double) {
    guard value.isFinite else { return nil }
    self.init(value.description)
  }

  /// Reads an optional sign, digits with at most one point, and an optional exponent; nil for any other text.
  package init?(_ text: String) {
    guard let parts = DecimalParts(text), parts.count <= 100_000 else { return nil }
    var exponent = -parts.places
    if let tail = parts.exponent {
      guard tail.utf8.count <= 7, let shift = Int(tail) else { return nil }
      exponent += shift
    }
    self.init(parts.digits, exponent: exponent, isNegative: parts.isNegative)
  }

  /// The nearest double.
  package var double: Double { Double("\(isNegative ? "-" : "")\(digitText)e\(exponent)") ?? 0 }

  /// The number as an integer; nil if it is not whole or does not fit.
  package var integer: Int64? {
    guard exponent >= 0, exponent + digits.count <= 19 else { return digits.isEmpty ? 0 : nil }
    return Int64("\(isNegative ? "-" : "")\(digitText)\(String(repeating: "0", count: exponent))")
  }

  /// Whether the number is 0.
  package var isZero: Bool { digits.isEmpty }

  private var digitText: String {
    digits.isEmpty ? "0" : String(decoding: digits.map { $0 + 0x30 }, as: UTF8.self)
  }

  // MARK: Order

  /// Returns -1, 0 or 1.
  package func order(_ other: DecimalNumber) -> Int {
    if isNegative != other.isNegative { return isNegative ? -1 : 1 }
    let magnitude = DecimalNumber.magnitudeOrder(self, other)
    return isNegative ? -magnitude : magnitude
  }

  private static func magnitudeOrder(_ left: DecimalNumber, _ right: DecimalNumber) -> Int {
    if left.isZero || right.isZero { return left.isZero ? (right.isZero ? 0 : -1) : 1 }
    let (one, other) = (left.digits.count + left.exponent, right.digits.count + right.exponent)
    if one != other { return one < other ? -1 : 1 }
    return left.digits.lexicographicallyPrecedes(right.digits)
      ? -1 : right.digits.lexicographicallyPrecedes(left.digits) ? 1 : 0
  }

  // MARK: Overflow-checked arithmetic

  /// The number with the opposite sign.
  package var negated: DecimalNumber {
    DecimalNumber(unchecked: digits, exponent: exponent, isNegative: !isNegative && !isZero)
  }

  /// The number without its sign.
  package var magnitude: DecimalNumber { DecimalNumber(unchecked: digits, exponent: exponent, isNegative: false) }

  /// The sum.
  package func adding(_ other: DecimalNumber) -> DecimalNumber? {
    if isZero { return other }
    if other.isZero { return self }
    let low = min(exponent, other.exponent)
    // Exponents are bounded, so there are at most a few hundred digits.
    let left = digits + Array(repeating: 0, count: exponent - low)
    let right = other.digits + Array(repeating: 0, count: other.exponent - low)
    if isNegative == other.isNegative {
      return DecimalNumber(DecimalNumber.sum(left, right), exponent: low, isNegative: isNegative)
    }
    let order = DecimalNumber.magnitudeOrder(self, other)
    if order == 0 { return DecimalNumber(0) }
    return order > 0
      ? DecimalNumber(DecimalNumber.difference(left, right), exponent: low, isNegative: isNegative)
      : DecimalNumber(DecimalNumber.difference(right, left), exponent: low, isNegative: other.isNegative)
  }

  /// The difference.
  package func subtracting(_ other: DecimalNumber) -> DecimalNumber? { adding(other.negated) }

  /// The product.
  package func multiplied(by other: DecimalNumber) -> DecimalNumber? {
    var product = [Int](repeating: 0, count: digits.count + other.digits.count)
    for (row, one) in digits.reversed().enumerated() {
      for (column, two) in other.digits.reversed().enumerated() { product[row + column] += Int(one) * Int(two) }
    }
    var carry = 0
    let result = product.map { place -> UInt8 in
      let value = place + carry
      carry = value / 10
      return UInt8(value % 10)
    }
    return DecimalNumber(
      result.reversed(), exponent: exponent + other.exponent, isNegative: isNegative != other.isNegative)
  }

  /// The quotient. The divisor must not be 0.
  package func divided(by other: DecimalNumber) -> DecimalNumber? {
    guard !other.isZero else { return nil }
    // Enough digits to round the last kept one correctly. A remainder makes the digit after it odd, so it is never
    // exactly 5.
    let places = DecimalNumber.precision + 2 + other.digits.count
    var rest: [UInt8] = []
    var quotient: [UInt8] = []
    for digit in digits + Array(repeating: 0, count: places) {
      rest = Array((rest + [digit]).drop { $0 == 0 })
      var times: UInt8 = 0
      while !DecimalNumber.precedes(rest, other.digits) {
        rest = Array(DecimalNumber.difference(rest, other.digits).drop { $0 == 0 })
        times += 1
      }
      quotient.append(times)
    }
    return DecimalNumber(
      quotient, exponent: exponent - other.exponent - places, isNegative: isNegative != other.isNegative)
  }

  /// The whole part, toward zero.
  package var truncated: DecimalNumber {
    guard exponent < 0 else { return self }
    let kept = Array(digits.dropLast(min(digits.count, -exponent)))
    return DecimalNumber(kept, exponent: 0, isNegative: isNegative) ?? self
  }

  /// The greatest whole number that is not greater than this one.
  package var floor: DecimalNumber? {
    let whole = truncated
    return isNegative && whole != self ? whole.subtracting(DecimalNumber(1)) : whole
  }

  /// The smallest whole number that is not smaller than this one.
  package var ceiling: DecimalNumber? { negated.floor?.negated }

  // MARK: Digits

  private static func sum(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var carry: UInt8 = 0
    for place in 0..<max(left.count, right.count) {
      let value =
        carry + (place < left.count ? left[left.count - 1 - place] : 0)
        + (place < right.count ? right[right.count - 1 - place] : 0)
      result.append(value % 10)
      carry = value / 10
    }
    if carry > 0 { result.append(carry) }
    return result.reversed()
  }

  /// Returns the greater number less the smaller.
  private static func difference(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var borrow: Int8 = 0
    for place in 0..<left.count {
      var value = Int8(left[left.count - 1 - place]) - borrow
      value -= place < right.count ? Int8(right[right.count - 1 - place]) : 0
      borrow = value < 0 ? 1 : 0
      result.append(UInt8(value < 0 ? value + 10 : value))
    }
    return result.reversed()
  }

  private static func precedes(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.count == right.count ? left.lexicographicallyPrecedes(right) : left.count < right.count
  }
}

extension DecimalNumber: CustomStringConvertible {
  /// The digits with a point, never with an exponent.
  package var description: String {
    let sign = isNegative ? "-" : ""
    if exponent >= 0 { return sign + digitText + (isZero ? "" : String(repeating: "0", count: exponent)) }
    let text = Array(digitText.utf8)
    let point = text.count + exponent
    if point > 0 {
      return sign + String(decoding: text[..<point], as: UTF8.self) + "."
        + String(decoding: text[point...], as: UTF8.self)
    }
    return sign + "0." + String(repeating: "0", count: -point) + String(decoding: text, as: UTF8.self)
  }
}
