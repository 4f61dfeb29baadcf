// Values without quotes or brackets: numbers, booleans, dates and times. Each function checks the whole form that TOML
// 1.0 allows before it converts anything, because Swift's own conversions accept more.

/// The meaning of a bare value.
enum TOMLBareValue {
  case value(TOMLNode.Value)
  /// The reason for which it has none.
  case wrong(String)

  /// The longest number that is converted; no useful one is longer.
  private static let longest = 256

  /// Reads a bare value; `text` ends at its last character.
  init(_ text: ArraySlice<UInt8>) {
    let shown = TextCursor.shown(String(decoding: text, as: UTF8.self))
    if text.elementsEqual("true".utf8) {
      self = .value(.boolean(true))
    } else if text.elementsEqual("false".utf8) {
      self = .value(.boolean(false))
    } else if let kind = Self.momentKind(text) {
      self = .value(.other(kind))
    } else if Self.looksLikeMoment(text) {
      self = .wrong("expected a number, or a date and time such as 1979-05-27T07:32:00Z, saw \(shown)")
    } else if text.count > Self.longest {
      self = .wrong("expected a number of at most \(Self.longest) characters")
    } else if let digits = IntegerForm(text) {
      self = digits.value.map { .value(.integer($0)) } ?? .wrong("\(shown) is outside the range of 64-bit integers")
    } else if let number = Self.real(text) {
      let isInfinite = number.isInfinite && !text.contains(UInt8(ascii: "i"))
      self =
        isInfinite ? .wrong("\(shown) is outside the range of 64-bit floating-point numbers") : .value(.real(number))
    } else {
      self = .wrong("expected a number, true, false or text in quotes, saw \(shown)")
    }
  }

  static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

  // MARK: Numbers

  /// An integer in one of the four bases.
  private struct IntegerForm {
    /// Nil beyond 64 bits.
    let value: Int64?

    /// Nil if the text has another form.
    init?(_ text: ArraySlice<UInt8>) {
      var form = BareForm(rest: text)
      let bases: [(prefix: String, radix: Int)] = [("0x", 16), ("0o", 8), ("0b", 2)]
      if let base = bases.first(where: { form.rest.starts(with: $0.prefix.utf8) }) {
        form.rest = form.rest.dropFirst(2)
        guard let digits = form.takeDigits(radix: base.radix), form.rest.isEmpty else { return nil }
        value = Int64(String(decoding: digits, as: UTF8.self), radix: base.radix)
        return
      }
      let isNegative = form.takeSign() == UInt8(ascii: "-")
      guard let digits = form.takeWholeNumber(), form.rest.isEmpty else { return nil }
      value = Int64((isNegative ? "-" : "") + String(decoding: digits, as: UTF8.self))
    }
  }

  /// A floating-point number; infinite beyond its range, nil for another form.
  private static func real(_ text: ArraySlice<UInt8>) -> Double? {
    var form = BareForm(rest: text)
    var plain = form.takeSign().map { [$0] } ?? []
    if form.rest.elementsEqual("inf".utf8) || form.rest.elementsEqual("nan".utf8) {
      return Double(String(decoding: plain + form.rest, as: UTF8.self))
    }
    guard let whole = form.takeWholeNumber() else { return nil }
    plain += whole
    if form.take(".") {
      guard let fraction = form.takeDigits(radix: 10) else { return nil }
      plain += [UInt8(ascii: ".")] + fraction
    }
    if form.take("eE") {
      plain.append(UInt8(ascii: "e"))
      if let sign = form.takeSign() { plain.append(sign) }
      guard let exponent = form.takeDigits(radix: 10) else { return nil }
      plain += exponent
    }
    return form.rest.isEmpty ? Double(String(decoding: plain, as: UTF8.self)) : nil
  }

  // MARK: Dates and times

  /// Whether a text can only be meant as a date or a time.
  private static func looksLikeMoment(_ text: ArraySlice<UInt8>) -> Bool {
    let digits = text.prefix(while: isDigit)
    guard !digits.isEmpty else { return false }
    return text.contains(UInt8(ascii: ":")) || text.dropFirst(digits.count).first == UInt8(ascii: "-")
  }

  /// Whether a text is a date alone; a space and a time may then follow.
  static func isDate(_ text: ArraySlice<UInt8>) -> Bool {
    var form = BareForm(rest: text)
    return form.takeDate() && form.rest.isEmpty
  }

  /// The kind of an existing date or time, nil for any other text.
  private static func momentKind(_ text: ArraySlice<UInt8>) -> String? {
    var form = BareForm(rest: text)
    if form.takeTime() { return form.rest.isEmpty ? "time" : nil }
    form.rest = text
    guard form.takeDate() else { return nil }
    if form.rest.isEmpty { return "date" }
    guard form.take("Tt "), form.takeTime() else { return nil }
    if !form.rest.isEmpty, !form.take("Zz") {
      guard form.take("+-"), form.takeNumber(2, in: 0...23) != nil, form.take(":"),
        form.takeNumber(2, in: 0...59) != nil
      else { return nil }
    }
    return form.rest.isEmpty ? "date-time" : nil
  }
}

/// The unread rest of a bare value.
private struct BareForm {
  var rest: ArraySlice<UInt8>

  /// Takes one of the given characters.
  mutating func take(_ anyOf: String) -> Bool {
    guard let byte = rest.first, anyOf.utf8.contains(byte) else { return false }
    rest = rest.dropFirst()
    return true
  }

  mutating func takeSign() -> UInt8? {
    guard let byte = rest.first, take("+-") else { return nil }
    return byte
  }

  /// Takes one or more digits, with single underscores between them; returns the digits alone.
  mutating func takeDigits(radix: Int) -> [UInt8]? {
    var digits: [UInt8] = []
    var mayBreak = false
    while let byte = rest.first {
      if byte == UInt8(ascii: "_"), mayBreak {
        mayBreak = false
      } else if Self.isDigit(byte, radix: radix) {
        digits.append(byte)
        mayBreak = true
      } else {
        break
      }
      rest = rest.dropFirst()
    }
    // Also false if the last character was an underscore.
    return mayBreak ? digits : nil
  }

  /// Takes decimal digits; the first of several must not be 0.
  mutating func takeWholeNumber() -> [UInt8]? {
    guard let digits = takeDigits(radix: 10), digits.count == 1 || digits.first != UInt8(ascii: "0") else { return nil }
    return digits
  }

  private static func isDigit(_ byte: UInt8, radix: Int) -> Bool {
    switch radix {
    case 16: TOMLBareValue.isDigit(byte) || (0x61...0x66).contains(byte | 0x20)
    case 8: (0x30...0x37).contains(byte)
    case 2: (0x30...0x31).contains(byte)
    default: TOMLBareValue.isDigit(byte)
    }
  }

  /// Takes a number of exactly `count` digits.
  mutating func takeNumber(_ count: Int, in range: ClosedRange<Int>) -> Int? {
    let digits = rest.prefix(count)
    guard digits.count == count, digits.allSatisfy(TOMLBareValue.isDigit),
      let number = Int(String(decoding: digits, as: UTF8.self)), range.contains(number)
    else { return nil }
    rest = rest.dropFirst(count)
    return number
  }

  mutating func takeDate() -> Bool {
    guard let year = takeNumber(4, in: 0...9999), take("-"), let month = takeNumber(2, in: 1...12), take("-"),
      let day = takeNumber(2, in: 1...31)
    else { return false }
    let isLeapYear = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    let days = month == 2 ? (isLeapYear ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
    return day <= days
  }

  mutating func takeTime() -> Bool {
    guard takeNumber(2, in: 0...23) != nil, take(":"), takeNumber(2, in: 0...59) != nil, take(":"),
      takeNumber(2, in: 0...59) != nil
    else { return false }
    guard take(".") else { return true }
    let fraction = rest.prefix(while: TOMLBareValue.isDigit)
    rest = rest.dropFirst(fraction.count)
    return !fraction.isEmpty
  }
}
