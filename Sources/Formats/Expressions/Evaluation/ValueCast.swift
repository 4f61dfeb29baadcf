// CAST, checked: the whole text must be a number, and it must fit (docs/formats/expressions.md, "CAST"). SQLite's own
// CAST never fails, so it is not used.

import Diagnostics
import ManagedObjectModel

/// CAST of a value.
enum ValueCast {
  /// Returns the value as `target`; nil stays nil.
  static func apply(_ target: CastTarget, to value: ExpressionValue) throws(HopdError) -> ExpressionValue {
    if value.isNull { return .null }
    switch target.type?.form {
    case .string?:
      guard let text = text(of: value) else { throw .cast(to: "text") }
      return .string(text)
    case .decimal?:
      if case .string(let text) = value {
        guard isNumber(text), let decimal = DecimalNumber(text) else { throw .cast(to: "a decimal number") }
        return .decimal(decimal)
      }
      guard let decimal = Arithmetic.decimal(value) else { throw .cast(to: "a decimal number") }
      return .decimal(decimal)
    case .date?:
      // There is no agreed text of a date.
      if case .string = value { throw .cast(to: "a date") }
      guard let seconds = value.asDouble else { throw .cast(to: "a date") }
      return .date(seconds)
    case .integer?:
      let size = target.type?.traits.bits ?? 64
      return .integer(try integer(value, in: target.type?.integers ?? .min ... .max, "\(size) bits"))
    case .boolean?: return .boolean(try integer(value, in: 0...1, "a Boolean") == 1)
    case .real?:
      guard let real = try number(value).asDouble else { throw .cast(to: "a number") }
      return Arithmetic.number(target.type == .float ? try float(real) : real)
    default: return try number(value)
    }
  }

  /// Returns the shortest text that reads back equal, whole numbers without a point; nil if the value has no text.
  static func text(of value: ExpressionValue) -> String? {
    switch value {
    case .string(let text): text
    case .boolean(let value): value ? "1" : "0"
    case .integer(let value): String(value)
    case .double(let value), .date(let value): text(of: value)
    case .decimal(let value): value.description
    case .uuid(let bytes): UUIDText.text(of: bytes)
    case .null, .data, .carried, .object, .list: nil
    }
  }

  private static func text(of value: Double) -> String {
    if value == 0 { return "0" }
    let text = value.description
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }

  /// Whether the text is a sign, digits with at most one point, and an exponent. `Double(_:)` would accept "inf" and
  /// hexadecimal too.
  private static func isNumber(_ text: String) -> Bool {
    guard text.utf8.contains(where: { (0x30...0x39).contains($0) }), text.utf8.count <= 100_000 else { return false }
    return text.utf8.allSatisfy { byte in
      (0x30...0x39).contains(byte) || "+-.eE".utf8.contains(byte)
    }
  }

  private static func number(_ value: ExpressionValue) throws(HopdError) -> ExpressionValue {
    switch value {
    case .string(let text):
      guard isNumber(text) else { throw .cast(to: "a number") }
      if let integer = Int64(text) { return .integer(integer) }
      guard let real = Double(text) else { throw .cast(to: "a number") }
      // Converting digits without point or exponent that exceed 64 bits would lose some of them.
      guard text.utf8.contains(where: { ".eE".utf8.contains($0) }) else { throw .overflow("64 bits") }
      guard real.isFinite else { throw .overflow("a double") }
      return .double(real)
    case .boolean(let value): return .integer(value ? 1 : 0)
    case .date(let value): return .double(value)
    case .decimal(let value): return value.integer.map { .integer($0) } ?? .double(value.double)
    case .integer, .double: return value
    default: throw .cast(to: "a number")
    }
  }

  /// Returns the value as an integer if it is exactly one.
  static func integer(
    _ value: ExpressionValue, in range: ClosedRange<Int64>, _ target: String
  ) throws(HopdError) -> Int64 {
    let result: Int64?
    switch try number(value) {
    case .integer(let value): result = value
    case .double(let value):
      guard value == value.rounded(.towardZero) else { throw .cast(to: "an integer: it has a fraction") }
      result = Int64(exactly: value)
    default: result = nil
    }
    guard let result, range.contains(result) else { throw .overflow(target) }
    return result
  }

  /// Returns the nearest float, as a double.
  static func float(_ value: Double) throws(HopdError) -> Double {
    let float = Float(value)
    guard float.isFinite || !value.isFinite else { throw .overflow("a float") }
    return Double(float)
  }
}
