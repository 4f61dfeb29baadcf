// The type of an expression, known before any row is read: the checker refuses types that clash, and the SQL compiler
// and the evaluator use them to read values.

import ManagedObjectModel

/// The static type of an expression.
package enum ExpressionType: Sendable, Hashable {
  /// The constant nil, which fits everywhere.
  case null
  /// One value, or nil.
  case value(AttributeType)
  /// Many values: an attribute over a to-many, a list in braces, a union operator. `undefined` for the empty list.
  case values(AttributeType)
  /// One object of that entity or of one below it, or nil.
  case object(entity: String)
  /// Many objects.
  case objects(entity: String, isOrdered: Bool)
  /// The objects that the hop made for one source object (`isMany` false) or for several.
  case destinationObjects(InstanceLookup, isMany: Bool)
  /// The result of a policy's method; also of a wrong expression, whose error is reported elsewhere.
  case unknown
}

extension ExpressionType {
  /// Whether it is a collection.
  package var isMany: Bool {
    switch self {
    case .values, .objects: true
    case .destinationObjects(_, let isMany): isMany
    case .null, .value, .object, .unknown: false
    }
  }

  /// The type of a collection's members; the type itself if it is not a collection.
  package var member: ExpressionType {
    switch self {
    case .values(let type): .value(type)
    case .objects(let entity, _): .object(entity: entity)
    default: self
    }
  }

  /// The type in words, for messages: "a number", "objects of Person".
  var words: String {
    switch self {
    case .null: "nil"
    case .value(let type): type.kind.words
    case .values(let type): type == .undefined ? "a list" : "many values (\(type.kind.words) each)"
    case .object(let entity): "an object of \(entity)"
    case .objects(let entity, _): "many objects of \(entity)"
    case .destinationObjects: "objects of the destination"
    case .unknown: "the result of a policy"
    }
  }
}

/// The kind of values that compare and convert with one another: all numbers are one kind (NSNumber).
package enum ValueKind: Sendable, Hashable {
  case number
  case string
  case date
  case binary
  case uuid
  case uri
  case transformable
  /// No type, an object's ID, or a composite: no operation accepts them.
  case other

  /// The kind in words with an article, for messages.
  var words: String {
    switch self {
    case .number: "a number"
    case .string: "a string"
    case .date: "a date"
    case .binary: "binary data"
    case .uuid: "a UUID"
    case .uri: "a URI"
    case .transformable: "a transformable"
    case .other: "a value without a type"
    }
  }

  /// Whether `<` orders the values.
  package var isOrdered: Bool { self == .number || self == .string || self == .date }
}

extension AttributeType {
  /// The kind of the type's values.
  package var kind: ValueKind {
    switch form {
    case .integer, .boolean, .real, .decimal: .number
    case .string: .string
    case .date: .date
    case .binary: .binary
    case .uuid: .uuid
    case .uri: .uri
    case .transformable: .transformable
    case .other: .other
    }
  }

  /// Returns the type of `a op b` for numbers: decimal if one side is decimal, otherwise real if one side is real,
  /// otherwise 64-bit integer.
  package static func arithmetic(_ left: AttributeType, _ right: AttributeType) -> AttributeType {
    if left == .decimal || right == .decimal { return .decimal }
    return left.integers != nil && right.integers != nil ? .integer64 : .double
  }
}

extension CastTarget {
  /// The type of the result; nil for NSNumber, whose type depends on the operand.
  package var type: AttributeType? {
    switch self {
    case .string: .string
    case .number: nil
    case .decimal: .decimal
    case .date: .date
    case .integer16: .integer16
    case .integer32: .integer32
    case .integer64: .integer64
    case .double: .double
    case .float: .float
    case .boolean: .boolean
    }
  }

  /// Returns the type of the result for an operand of that type. NSNumber keeps whole numbers whole; anything different
  /// becomes a Double.
  package func type(from operand: AttributeType?) -> AttributeType {
    if let type { return type }
    guard let operand, operand.integers != nil || operand == .float else { return .double }
    return operand == .boolean ? .integer64 : operand
  }
}
