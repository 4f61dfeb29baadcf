// Swift's literals as values, and values as Swift's optionals.

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

  /// A text, or no value.
  public init(_ text: String?) { self = text.map { .string($0) } ?? .null }

  /// Whether there is no value.
  public var isNull: Bool { self == .null }

  /// The text of a String, the text of a URI, or the digits of a Decimal; otherwise nil.
  public var string: String? {
    switch self {
    case .string(let text), .uri(let text), .decimal(let text): text
    default: nil
    }
  }

  /// The whole number, or nil.
  public var integer: Int64? {
    switch self {
    case .integer(let value): value
    case .boolean(let flag): flag ? 1 : 0
    default: nil
    }
  }

  /// The number, or the seconds of a date; otherwise nil.
  public var double: Double? {
    switch self {
    case .double(let value), .date(let value): value
    case .integer(let value): Double(exactly: value)
    default: nil
    }
  }

  /// The truth value; a number is true unless it is 0.
  public var boolean: Bool? {
    switch self {
    case .boolean(let flag): flag
    case .integer(let value): value != 0
    default: nil
    }
  }

  /// The bytes of a Binary Data, a Transformable or a UUID; otherwise nil.
  public var bytes: [UInt8]? {
    switch self {
    case .data(let bytes), .transformable(let bytes), .uuid(let bytes): bytes
    default: nil
    }
  }
}
