// Values as Swift has them: literals in, optionals out.

extension PolicyValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
  ExpressibleByBooleanLiteral, ExpressibleByNilLiteral, ExpressibleByArrayLiteral
{
  /// A text.
  public init(stringLiteral value: String) { self = .string(value) }
  /// A whole number.
  public init(integerLiteral value: Int64) { self = .integer(value) }
  /// A double.
  public init(floatLiteral value: Double) { self = .double(value) }
  /// A truth value.
  public init(booleanLiteral value: Bool) { self = .boolean(value) }
  /// No value.
  public init(nilLiteral: ()) { self = .null }
  /// A list.
  public init(arrayLiteral elements: PolicyValue...) { self = .list(elements) }

  /// A text or no value.
  public init(_ text: String?) { self = text.map { .string($0) } ?? .null }

  /// Is there no value?
  public var isNull: Bool { self == .null }

  /// The text of a String, of a URI, or the digits of a Decimal.
  public var string: String? {
    switch self {
    case .string(let text), .uri(let text), .decimal(let text): text
    default: nil
    }
  }

  /// The whole number.
  public var integer: Int64? {
    switch self {
    case .integer(let value): value
    case .boolean(let flag): flag ? 1 : 0
    default: nil
    }
  }

  /// The number, or the seconds of a date.
  public var double: Double? {
    switch self {
    case .double(let value), .date(let value): value
    case .integer(let value): Double(exactly: value)
    default: nil
    }
  }

  /// The truth value; numbers are true unless 0.
  public var boolean: Bool? {
    switch self {
    case .boolean(let flag): flag
    case .integer(let value): value != 0
    default: nil
    }
  }

  /// The bytes of a Binary Data, a Transformable or a UUID.
  public var bytes: [UInt8]? {
    switch self {
    case .data(let bytes), .transformable(let bytes), .uuid(let bytes): bytes
    default: nil
    }
  }
}

extension PolicyValue {
  /// The value as a literal of predicate text; nil where there is no form for it.
  fileprivate var literal: String? {
    switch self {
    case .null: return "NULL"
    case .boolean(let flag): return flag ? "TRUE" : "FALSE"
    case .integer(let value):
      // The lowest number has no positive form that could stand behind a minus.
      return value == .min ? "(-9223372036854775807 - 1)" : value < 0 ? "(\(value))" : "\(value)"
    case .double(let value): return value.isFinite ? "(\(value))" : nil
    case .decimal(let digits): return "CAST('\(digits)', 'NSDecimalNumber')"
    case .date(let seconds): return seconds.isFinite ? "CAST(\(seconds), 'NSDate')" : nil
    case .string(let text): return text.quotedForPredicate
    case .list(let values):
      let parts = values.map(\.literal)
      guard !parts.contains(nil) else { return nil }
      return "{" + parts.compactMap { $0 }.joined(separator: ", ") + "}"
    case .data, .uuid, .uri, .transformable, .object, .objects: return nil
    }
  }

  /// Predicate text with every `%@` replaced by an argument's literal, safely quoted.
  static func predicate(_ format: String, _ arguments: [PolicyValue]) throws -> String {
    guard !arguments.isEmpty else { return format }
    var text = ""
    var rest = format[...]
    for argument in arguments {
      guard let mark = rest.firstRange(of: "%@") else { throw PolicyError("more arguments than %@ in the predicate") }
      guard let literal = argument.literal else {
        throw PolicyError("binary data, UUIDs, URIs and objects have no form in a predicate's text")
      }
      text += rest[..<mark.lowerBound] + literal
      rest = rest[mark.upperBound...]
    }
    guard rest.firstRange(of: "%@") == nil else { throw PolicyError("fewer arguments than %@ in the predicate") }
    return text + rest
  }
}

extension String {
  /// In single quotes, with the escapes of the predicate language.
  fileprivate var quotedForPredicate: String {
    var text = "'"
    for scalar in unicodeScalars {
      switch scalar {
      case "'": text += "\\'"
      case "\\": text += "\\\\"
      case "\n": text += "\\n"
      case "\r": text += "\\r"
      case "\t": text += "\\t"
      default: text.unicodeScalars.append(scalar)
      }
    }
    return text + "'"
  }
}
