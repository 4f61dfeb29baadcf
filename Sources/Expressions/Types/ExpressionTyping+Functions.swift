// Types of functions.

import Diagnostics
import ManagedObjectModel

extension ExpressionTyping {
  mutating func functionType(
    _ function: ExpressionFunction, _ arguments: [ExpressionNode], _ node: ExpressionNode
  ) -> ExpressionType {
    if let problem = function.problem(ofCount: arguments.count) {
      return invalid(problem)
    }
    guard let first = arguments.first else { return .value(.date) }
    switch function {
    case .now: return .value(.date)
    case .noIndex: return type(of: first)
    case .count, .sum, .min, .max, .average, .median, .mode, .standardDeviation:
      return collectionType(function, first, node)
    case .absolute, .ceiling, .floor, .truncate:
      guard let number = number(first, node) else { return .unknown }
      return .value(.arithmetic(number, .integer16))
    case .squareRoot, .logarithm, .naturalLogarithm, .exponential:
      return number(first, node) == nil ? .unknown : .value(.double)
    case .bitwiseAnd, .bitwiseOr, .bitwiseXor, .leftShift, .rightShift, .onesComplement, .modulus:
      return integers(arguments, node) ? .value(.integer64) : .unknown
    case .uppercase, .lowercase, .length, .canonical:
      switch type(of: first) {
      case .value(.string), .null: return .value(function == .length ? .integer64 : .string)
      case .unknown: return .unknown
      case let type: return invalid("\(function.rawValue) wants a string, but “\(first)” gives \(type.words)")
      }
    case .concatenate:
      for argument in arguments {
        switch type(of: argument) {
        case .value(.string), .null: continue
        case .unknown: return .unknown
        case let type:
          return invalid(
            "\(function.rawValue) wants strings, but “\(argument)” gives \(type.words)",
            hint: type.isCastable ? "write CAST(\(argument), 'NSString')" : nil)
        }
      }
      return .value(.string)
    }
  }

  /// Whether all operands are integers.
  private mutating func integers(_ operands: [ExpressionNode], _ node: ExpressionNode) -> Bool {
    for operand in operands {
      guard let type = number(operand, node) else { return false }
      guard type.isInteger else {
        invalid("“\(node)” wants integers", hint: "write CAST(x, 'Integer 64')")
        return false
      }
    }
    return true
  }

  private mutating func collectionType(
    _ function: ExpressionFunction, _ argument: ExpressionNode, _ node: ExpressionNode
  ) -> ExpressionType {
    let externalBefore = externalValues
    let operand = type(of: argument)
    if operand == .unknown { return .unknown }
    guard operand.isMany else {
      return invalid(
        "\(function.rawValue) wants a collection, but “\(argument)” gives \(operand.words)",
        hint: "a collection is a to-many relationship, a path over one, or a list {a, b}")
    }
    if case .keyPath = argument, !checkSet(operand, argument, isExternal: externalValues > externalBefore) {
      return .unknown
    }
    switch (function, operand.member) {
    case (.mode, .value(.undefined)): return .values(.undefined)
    case (.median, .value(.undefined)), (.standardDeviation, .value(.undefined)): return .null
    case (.median, .value(let type)) where type.kind == .number: return .value(type == .decimal ? .decimal : .double)
    case (.mode, .value(let type)) where type.kind == .number: return .values(type)
    case (.standardDeviation, .value(let type)) where type.kind == .number: return .value(.double)
    case (.median, let member), (.mode, let member), (.standardDeviation, let member):
      return invalid("“\(node)” wants numbers, but each member gives \(member.words)")
    default: return combined(function.combination, operand.member, node)
    }
  }

  /// Checks the set that a key path over a collection gives (docs/formats/expressions.md, "Collections"): equal members
  /// must be recognisable, and members must not be sets themselves.
  mutating func checkSet(_ type: ExpressionType, _ node: ExpressionNode, isExternal: Bool) -> Bool {
    if case .values(let value) = type, value.kind == .transformable || isExternal {
      unsupported(
        "“\(node)” gives a set of contents that are only carried: which of them are equal is not known",
        hint: "write @count behind the relationship, for the number of objects")
      return false
    }
    guard let nestedPath else { return true }
    unsupported(
      "“\(node)” goes over two to-manys: for Core Data that is a set of sets, of which nothing is counted or summed",
      hint: "for the members of all, each once, write \(nestedPath)")
    return false
  }

  /// Returns the type of a collection's count, sum, minimum and so on, for the type of its members.
  mutating func combined(
    _ operation: CollectionOperator, _ member: ExpressionType, _ node: ExpressionNode
  ) -> ExpressionType {
    switch (operation, member) {
    case (.count, _): return .value(.integer64)
    case (_, .unknown): return .unknown
    // The empty list.
    case (.sum, .value(.undefined)): return .value(.integer64)
    case (_, .value(.undefined)): return .null
    case (.sum, .value(let type)) where type.kind == .number: return .value(.arithmetic(type, .integer16))
    case (.average, .value(let type)) where type.kind == .number:
      return .value(type == .decimal ? .decimal : .double)
    case (.min, .value(let type)), (.max, .value(let type)):
      if type.kind.isOrdered { return .value(type) }
    default: break
    }
    return invalid(
      "“\(node)” wants \(operation == .min || operation == .max ? "values with an order" : "numbers"), "
        + "but each member gives \(member.words)")
  }
}

extension ExpressionFunction {
  /// The collection operator that does the same; count for functions that combine no values.
  package var combination: CollectionOperator {
    switch self {
    case .sum: .sum
    case .min: .min
    case .max: .max
    case .average: .average
    default: .count
    }
  }
}

extension ExpressionType {
  /// Whether CAST can make a text of the type.
  fileprivate var isCastable: Bool {
    guard case .value(let type) = self else { return false }
    return type.kind == .number || type.kind == .uuid
  }
}
