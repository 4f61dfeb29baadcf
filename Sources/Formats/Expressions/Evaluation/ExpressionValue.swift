// The value of an expression for one object, and the interface through which objects are read. Equality and order are
// those of predicates (docs/formats/expressions.md, "nil" and "Strings"): numbers by value whatever their kind, text by
// code units, never by locale.

/// An object: its concrete entity and its primary key.
package struct InstanceID: Sendable, Hashable {
  package let entity: String
  /// The primary key, Z_PK.
  package let key: Int64

  /// Creates an id.
  package init(entity: String, key: Int64) {
    self.entity = entity
    self.key = key
  }
}

/// The value of an expression.
package enum ExpressionValue: Sendable {
  case null
  case boolean(Bool)
  case integer(Int64)
  case double(Double)
  case decimal(DecimalNumber)
  case string(String)
  /// Seconds since 2001-01-01 UTC.
  case date(Double)
  case data([UInt8])
  /// 16 bytes.
  case uuid([UInt8])
  /// The column's content for a transformable, or for a binary with external storage: copied, never decoded.
  case carried([UInt8])
  case object(InstanceID)
  /// A collection: each object once, or one value per path.
  case list([ExpressionValue])

  /// Whether the value is nil.
  package var isNull: Bool { if case .null = self { true } else { false } }

  /// Whether the value is a collection.
  var isList: Bool { if case .list = self { true } else { false } }
}

/// Reads the objects of a store.
package protocol InstanceSource {
  /// Returns the value of an object's attribute, own or inherited.
  func value(ofAttribute attribute: String, in object: InstanceID) throws -> ExpressionValue
  /// Returns the objects of a relationship: in its order if it is ordered, otherwise by key; at most one for a to-one.
  /// References to missing objects give none.
  func objects(ofRelationship relationship: String, in object: InstanceID) throws -> [InstanceID]
}

extension ExpressionValue {
  /// The number as a double, a date as its seconds; nil for other values.
  var asDouble: Double? {
    switch self {
    case .boolean(let value): value ? 1 : 0
    case .integer(let value): Double(value)
    case .double(let value), .date(let value): value
    case .decimal(let value): value.double
    default: nil
    }
  }

  /// An integer, or a Boolean as 0 or 1; nil for all other values.
  var asInteger: Int64? {
    switch self {
    case .boolean(let value): value ? 1 : 0
    case .integer(let value): value
    default: nil
    }
  }

  /// Returns -1, 0 or 1 if the value is before, equal to or after the other; nil if the two have no order, as with nil.
  package func order(_ other: ExpressionValue) -> Int? {
    switch (self, other) {
    case (.string(let left), .string(let right)):
      return left.utf8.lexicographicallyPrecedes(right.utf8)
        ? -1 : right.utf8.lexicographicallyPrecedes(left.utf8) ? 1 : 0
    case (.data(let left), .data(let right)), (.uuid(let left), .uuid(let right)):
      return left.lexicographicallyPrecedes(right) ? -1 : right.lexicographicallyPrecedes(left) ? 1 : 0
    case (.decimal(let left), .decimal(let right)): return left.order(right)
    default:
      if let left = asInteger {
        if let right = other.asInteger { return left < right ? -1 : left == right ? 0 : 1 }
        if case .decimal(let right) = other { return DecimalNumber(left).order(right) }
        return other.asDouble.flatMap { ExpressionValue.order(left, $0) }
      }
      if let right = other.asInteger {
        if case .decimal(let left) = self { return left.order(DecimalNumber(right)) }
        return asDouble.flatMap { ExpressionValue.order(right, $0) }.map { -$0 }
      }
      guard let left = asDouble, let right = other.asDouble, !left.isNaN, !right.isNaN else { return nil }
      return left < right ? -1 : left == right ? 0 : 1
    }
  }

  /// Compares an integer with a double without rounding either, as SQLite does.
  private static func order(_ left: Int64, _ right: Double) -> Int? {
    if right.isNaN { return nil }
    if right >= 0x1p63 { return -1 }
    if right < -0x1p63 { return 1 }
    let whole = Int64(right.rounded(.towardZero))
    if left != whole { return left < whole ? -1 : 1 }
    let rest = right - right.rounded(.towardZero)
    return rest > 0 ? -1 : rest < 0 ? 1 : 0
  }
}

extension ExpressionValue: Hashable {
  /// `==` of predicates: both are nil, or have the same value.
  package static func == (left: ExpressionValue, right: ExpressionValue) -> Bool {
    switch (left, right) {
    case (.null, .null): true
    case (.string(let one), .string(let other)): one.utf8.elementsEqual(other.utf8)
    case (.carried(let one), .carried(let other)): one == other
    case (.object(let one), .object(let other)): one == other
    case (.list(let one), .list(let other)): one == other
    default: left.order(right) == 0
    }
  }

  package func hash(into hasher: inout Hasher) {
    switch self {
    case .null: hasher.combine(0)
    case .boolean, .integer, .double, .decimal, .date:
      let number = asDouble ?? 0
      hasher.combine(number == 0 ? 0 : number)
    case .string(let text): for byte in text.utf8 { hasher.combine(byte) }
    case .data(let bytes), .uuid(let bytes), .carried(let bytes): hasher.combine(bytes)
    case .object(let object): hasher.combine(object)
    case .list(let members): hasher.combine(members)
    }
  }
}
