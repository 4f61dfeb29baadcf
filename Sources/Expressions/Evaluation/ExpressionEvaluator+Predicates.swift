// Functions and predicates, evaluated on objects.

import Diagnostics
import ManagedObjectModel

extension ExpressionEvaluator {
  func call(
    _ function: ExpressionFunction, _ arguments: [ExpressionNode], _ bindings: Bindings
  ) throws -> ExpressionValue {
    if let problem = function.problem(ofCount: arguments.count) { throw HopdError.invalid(problem) }
    guard let first = arguments.first else { return .date(moment) }
    let value = try one(first, bindings)
    switch function {
    case .count, .sum, .min, .max, .average:
      let operation = function.combination
      return try collection(operation.rawValue, value) { try ExpressionEvaluator.combine(operation, $0) }
    case .median: return try collection(function.rawValue, value) { try ValueStatistics.median($0) }
    case .standardDeviation:
      return try collection(function.rawValue, value) { try ValueStatistics.standardDeviation($0) }
    case .mode: return try collection(function.rawValue, value) { .list(try ValueStatistics.mode($0)) }
    case .absolute, .ceiling, .floor, .truncate, .squareRoot, .logarithm, .naturalLogarithm, .exponential:
      return try Arithmetic.apply(function, value)
    case .bitwiseAnd, .bitwiseOr, .bitwiseXor, .leftShift, .rightShift:
      return try Arithmetic.bits(function, value, one(arguments[1], bindings))
    case .onesComplement: return try Arithmetic.bits(function, value, .integer(0))
    case .noIndex: return value
    case .modulus: return try Arithmetic.modulus(value, one(arguments[1], bindings))
    case .uppercase, .lowercase, .length, .canonical: return try TextFunction.apply(function, value)
    case .concatenate:
      // Every argument is evaluated, also after a nil: which rows fail must not depend on the order.
      var values = [value]
      for argument in arguments.dropFirst() { values.append(try one(argument, bindings)) }
      return try TextFunction.concatenate(values)
    case .now: return .date(moment)
    }
  }

  /// Returns the result of `combine` on a collection's members; nil for nil.
  private func collection(
    _ name: String, _ value: ExpressionValue, _ combine: ([ExpressionValue]) throws -> ExpressionValue
  ) throws -> ExpressionValue {
    switch value {
    case .null: return .null
    case .list(let members): return try combine(members)
    default: throw HopdError.mismatch("\(name) is used on a value that is not a collection")
    }
  }

  // MARK: Predicates

  func holds(_ predicate: PredicateNode, _ bindings: Bindings) throws -> Bool {
    switch predicate {
    case .constant(let value): return value
    case .and(let parts): return try parts.allSatisfy { try holds($0, bindings) }
    case .or(let parts): return try parts.contains { try holds($0, bindings) }
    case .not(let part): return try !holds(part, bindings)
    case .comparison(let comparison):
      let left = try evaluate(comparison.left, bindings)
      guard comparison.modifier != .direct else {
        return try compare(comparison, left.value, one(comparison.right, bindings))
      }
      let members: [ExpressionValue]
      switch (left, left.value) {
      // A to-one without an object counts as a member, as an attribute without a value does.
      case (.many(let ends, _), .list(let values)): members = values + (ends.contains(nil) ? [.null] : [])
      // A member without a value counts here, as it does in Core Data's SQL.
      case (.members(let values), _): members = values
      case (_, .null): members = []
      case (_, .list(let values)): members = values
      default: throw HopdError.mismatch("\(comparison.modifier.rawValue) is used on a value that is not a collection")
      }
      // Without members no comparison is made, so none can fail.
      if members.isEmpty { return comparison.modifier != .any }
      let right = try one(comparison.right, bindings)
      switch comparison.modifier {
      case .any, .direct: return try members.contains { try compare(comparison, $0, right) }
      case .all: return try members.allSatisfy { try compare(comparison, $0, right) }
      case .none: return try !members.contains { try compare(comparison, $0, right) }
      }
    }
  }

  /// Makes one comparison, without modifier (docs/formats/expressions.md, "nil").
  private func compare(_ comparison: Comparison, _ left: ExpressionValue, _ right: ExpressionValue) throws -> Bool {
    func fold(_ value: ExpressionValue) -> ExpressionValue {
      guard case .string(let text) = value, comparison.folds else { return value }
      return .string(comparison.folded(text))
    }
    switch comparison.operation {
    case .equal: return fold(left) == fold(right)
    case .notEqual: return fold(left) != fold(right)
    case .less: return fold(left).order(fold(right)).map { $0 < 0 } ?? false
    case .lessOrEqual: return fold(left).order(fold(right)).map { $0 <= 0 } ?? false
    case .greater: return fold(left).order(fold(right)).map { $0 > 0 } ?? false
    case .greaterOrEqual: return fold(left).order(fold(right)).map { $0 >= 0 } ?? false
    case .in:
      // IN on texts: whether the left text is part of the right one.
      if case .string = right { return try compare(comparison.swapped(.contains), right, left) }
      guard case .list(let members) = right else { return false }
      let value = fold(left)
      return members.contains { fold($0) == value }
    case .contains where left.isList: return try compare(comparison.swapped(.in), right, left)
    case .between:
      guard case .list(let bounds) = right, bounds.count == 2 else {
        throw HopdError.invalid("BETWEEN needs two bounds in braces")
      }
      let value = fold(left)
      guard let low = value.order(fold(bounds[0])), let high = value.order(fold(bounds[1])) else { return false }
      return low >= 0 && high <= 0
    case .beginsWith, .contains, .endsWith, .like, .matches:
      if left.isNull || right.isNull { return false }
      guard case .string(let text) = left, case .string(let pattern) = right else {
        throw HopdError.mismatch("\(comparison.operation.rawValue) is used on a value that is not a text")
      }
      return try TextFunction.holds(comparison, text, pattern, patterns: patterns)
    }
  }
}
