// The getters of Foundation's classes (docs/formats/expressions.md, "Getters"): for key paths on objects, and for the
// function that SQL calls.

import Diagnostics
import ManagedObjectModel
import PersistentStore

#if canImport(Glibc)
  import Glibc
#endif

/// Getters on values.
enum GetterValue {
  /// Returns the getter's value; nil for nil. `isFloat` marks a number of a Float attribute, which has fewer digits.
  static func apply(
    _ getter: ValueGetter, to value: ExpressionValue, isFloat: Bool
  ) throws(HopdError) -> ExpressionValue {
    switch value {
    case .null: return .null
    case .string(let text): return try apply(getter, toText: text)
    case .boolean, .integer, .double, .decimal: return try apply(getter, toNumber: value, isFloat: isFloat)
    case .date(let seconds):
      switch getter {
      case .itself: return value
      case .timeIntervalSinceReferenceDate: return .double(seconds)
      case .timeIntervalSince1970: return .double(seconds + Double(DateText.secondsFrom1970))
      case .description: return .string(try text(ofDate: seconds))
      default: throw missing(getter)
      }
    case .uuid:
      switch getter {
      case .itself: return value
      case .uuidString, .description: return ValueCast.text(of: value).map { .string($0) } ?? .null
      default: throw missing(getter)
      }
    case .data(let bytes):
      switch getter {
      case .itself: return value
      case .length: return .integer(Int64(bytes.count))
      default: throw missing(getter)
      }
    case .carried, .object, .list: throw missing(getter)
    }
  }

  private static func missing(_ getter: ValueGetter) -> HopdError {
    .mismatch("\(getter.rawValue) is used on a value that has no such getter")
  }

  // MARK: Numbers

  private static func apply(
    _ getter: ValueGetter, toNumber value: ExpressionValue, isFloat: Bool
  ) throws(HopdError) -> ExpressionValue {
    if let integers = getter.integers { return .integer(try truncated(value, in: integers.range, getter)) }
    switch getter {
    case .itself: return value
    case .description, .stringValue: return .string(text(of: value, isFloat: isFloat))
    case .boolValue: return .boolean(value.asDouble.map { $0 != 0 } ?? false)
    case .doubleValue: return value.asDouble.map { Arithmetic.number($0) } ?? .null
    case .floatValue:
      return try value.asDouble.map { (real) throws(HopdError) in
        Arithmetic.number(try ValueCast.float(real))
      } ?? .null
    default: throw missing(getter)
    }
  }

  /// Returns the number without its fraction. A number that does not fit is an error of the row; C would cut bits off.
  private static func truncated(
    _ value: ExpressionValue, in range: ClosedRange<Int64>, _ getter: ValueGetter
  ) throws(HopdError) -> Int64 {
    let whole: Int64? =
      switch value {
      case .boolean(let value): value ? 1 : 0
      case .integer(let value): value
      case .double(let value): Int64(exactly: value.rounded(.towardZero))
      case .decimal(let value): value.truncated.integer
      default: nil
      }
    guard let whole, range.contains(whole) else { throw .overflow(getter.rawValue) }
    return whole
  }

  /// Writes 16 significant digits of a double, 7 of a float.
  private static func text(of value: ExpressionValue, isFloat: Bool) -> String {
    guard case .double(let real) = value else { return ValueCast.text(of: value) ?? "" }
    if real.isInfinite { return real < 0 ? "-inf" : "+inf" }
    var bytes = [CChar](repeating: 0, count: 40)
    let count = withVaList([real]) { vsnprintf(&bytes, bytes.count, isFloat ? "%0.7g" : "%0.16g", $0) }
    return String(decoding: bytes.prefix(max(0, Int(count))).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Writes a date as NSDate describes it: "2001-01-01 00:00:00 +0000".
  private static func text(ofDate seconds: Double) throws(HopdError) -> String {
    // Before the Gregorian calendar, and for years without four digits, there is no agreed text of a date.
    guard let whole = Int64(exactly: seconds.rounded(.down)), (-13_190_860_800..<252_423_993_600).contains(whole),
      let (day, time) = DateText.parts(secondsSince2001: whole)
    else { throw .cast(to: "the text of a date: its year is not between 1583 and 9999") }
    return "\(day) \(time) +0000"
  }

  // MARK: Texts

  private static func apply(_ getter: ValueGetter, toText text: String) throws(HopdError) -> ExpressionValue {
    switch getter {
    case .itself, .description, .absoluteString, .relativeString: return .string(text)
    case .length: return try TextFunction.apply(.length, .string(text))
    case .uppercaseString: return try TextFunction.apply(.uppercase, .string(text))
    case .lowercaseString: return try TextFunction.apply(.lowercase, .string(text))
    case .boolValue: return .boolean(isTrue(text))
    case .doubleValue: return .double(leadingDouble(text))
    case .floatValue: return .double(Double(Float(leadingDouble(text))))
    default:
      guard let integers = getter.integers else { throw missing(getter) }
      return .integer(leadingInteger(text, in: integers.range))
    }
  }

  private static func withoutLeadingSpace(_ text: String) -> Substring.UTF8View {
    text.unicodeScalars.drop { $0.properties.isWhitespace }.utf8Text
  }

  private static func takeSign(_ rest: inout Substring.UTF8View) -> Bool {
    guard let sign = rest.first, sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") else { return false }
    rest = rest.dropFirst()
    return sign == UInt8(ascii: "-")
  }

  /// Returns the number at the beginning of the text, or 0; out of range, the nearest bound.
  private static func leadingInteger(_ text: String, in range: ClosedRange<Int64>) -> Int64 {
    min(max(AttributeDefault.leadingInteger(withoutLeadingSpace(text)), range.lowerBound), range.upperBound)
  }

  /// Returns the number at the beginning of the text, or 0.
  private static func leadingDouble(_ text: String) -> Double {
    let all = withoutLeadingSpace(text)
    var rest = all
    _ = takeSign(&rest)
    func takeDigits() -> Int {
      let digits = rest.prefix { (0x30...0x39).contains($0) }.count
      rest = rest.dropFirst(digits)
      return digits
    }
    var digits = takeDigits()
    if rest.first == UInt8(ascii: ".") {
      rest = rest.dropFirst()
      digits += takeDigits()
    }
    guard digits > 0 else { return 0 }
    var end = rest
    if rest.first == UInt8(ascii: "e") || rest.first == UInt8(ascii: "E") {
      rest = rest.dropFirst()
      _ = takeSign(&rest)
      if takeDigits() > 0 { end = rest }
    }
    return strtod(String(decoding: all.prefix(all.count - end.count), as: UTF8.self), nil)
  }

  /// Whether the text begins with Y, y, T, t or a digit from 1 to 9, after spaces, a sign and zeros.
  private static func isTrue(_ text: String) -> Bool {
    var rest = withoutLeadingSpace(text)
    _ = takeSign(&rest)
    guard let first = rest.drop(while: { $0 == UInt8(ascii: "0") }).first else { return false }
    return "YyTt123456789".utf8.contains(first)
  }
}

extension Substring.UnicodeScalarView {
  fileprivate var utf8Text: Substring.UTF8View { Substring(self).utf8 }
}
