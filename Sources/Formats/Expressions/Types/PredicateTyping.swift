// Checks predicates against the model: both sides of a comparison must have one kind, patterns must be able to match,
// and a collection may be compared only with a modifier that says which members count (docs/formats/expressions.md,
// "nil", "Key paths", "Collections" and "Strings").

import Diagnostics
import ManagedObjectModel

extension ExpressionTyping {
  /// Checks a predicate and all its parts.
  mutating func check(_ predicate: PredicateNode) {
    switch predicate {
    case .constant: return
    case .comparison(let comparison): check(comparison)
    case .and(let parts), .or(let parts): for part in parts { check(part) }
    case .not(let part): check(part)
    }
  }

  private mutating func check(_ comparison: Comparison) {
    let externalBefore = externalValues
    var left = type(of: comparison.left)
    let right = type(of: comparison.right)
    if left == .unknown || right == .unknown { return }
    let text = PredicateNode.comparison(comparison)
    if comparison.modifier == .direct {
      if comparison.operation == .contains, left.isMany, !left.isDestination {
        if left != .values(.undefined) { checkEqual(right, left.member, text) }
        checkModifiers(comparison, left, right)
        return
      }
      guard !left.isMany else {
        invalid("in “\(text)”, “\(comparison.left)” is \(left.words)", hint: manyHint(comparison, right))
        return
      }
    } else {
      guard left.isMany else {
        invalid(
          "in “\(text)”, \(comparison.modifier.rawValue) requires a to-many, but “\(comparison.left)” is \(left.words)",
          hint: "remove \(comparison.modifier.rawValue)")
        return
      }
      left = left.member
    }
    if externalValues > externalBefore, left != .null, right != .null {
      unsupported(
        "in “\(text)”, an attribute with external storage is compared, of which only nil tests are supported",
        hint: "write == nil or != nil")
      return
    }
    guard checkModifiers(comparison, left, right) else { return }
    switch comparison.operation {
    case .in: checkMembership(comparison, left, right)
    case .between: checkRange(comparison, left, right)
    default:
      guard !right.isMany else {
        invalid(
          "in “\(text)”, “\(comparison.right)” is \(right.words)",
          hint: "write ANY before the left side; only IN and BETWEEN accept a collection on the right")
        return
      }
      switch comparison.operation {
      case .equal, .notEqual: checkEqual(left, right, text)
      case .less, .lessOrEqual, .greater, .greaterOrEqual: checkOrder(left, right, text)
      default: checkPattern(comparison, left, right)
      }
    }
  }

  @discardableResult
  private mutating func checkModifiers(
    _ comparison: Comparison, _ left: ExpressionType, _ right: ExpressionType
  ) -> Bool {
    guard comparison.ignoresCase || comparison.ignoresDiacritics else { return true }
    for (side, type) in [(comparison.left, left.member), (comparison.right, right.member)]
    where type != .null && type != .value(.string) && type != .value(.undefined) {
      let text = PredicateNode.comparison(comparison)
      invalid("in “\(text)”, modifiers require strings, but “\(side)” is \(type.words)")
      return false
    }
    return true
  }

  private func manyHint(_ comparison: Comparison, _ right: ExpressionType) -> String {
    if right == .null {
      return "write \(comparison.left).@count == 0 for none, \(comparison.left).@count > 0 for some"
    }
    return "write ANY, ALL or NONE before it, or an operator such as @count"
  }

  // MARK: Two sides

  /// Checks == and !=: values of one kind, or objects that can be the same one.
  private mutating func checkEqual(_ left: ExpressionType, _ right: ExpressionType, _ text: PredicateNode) {
    switch (left, right) {
    case (.null, _), (_, .null): return
    case (.value(let one), .value(let other)):
      let kind = one.kind
      if kind == .transformable || other.kind == .transformable {
        unsupported(
          "in “\(text)”, a transformable is compared, of which only nil tests are supported",
          hint: "write == nil or != nil")
        return
      }
      if kind == other.kind, kind != .other { return }
    case (.object(let one), .object(let other)): if isRelated(one, other) { return }
    default: break
    }
    clash(left, right, text)
  }

  private func isRelated(_ one: String, _ other: String) -> Bool {
    func lineage(_ name: String) -> [String] {
      scope.model.entity(named: name).map { scope.model.lineage(of: $0).map(\.name) } ?? []
    }
    return lineage(one).contains(other) || lineage(other).contains(one)
  }

  private mutating func checkOrder(_ left: ExpressionType, _ right: ExpressionType, _ text: PredicateNode) {
    switch (left, right) {
    case (.null, _), (_, .null): return
    case (.value(let one), .value(let other)):
      if one.kind == other.kind, one.kind.isOrdered { return }
    default: break
    }
    clash(left, right, text)
  }

  private mutating func clash(_ left: ExpressionType, _ right: ExpressionType, _ text: PredicateNode) {
    var hint: String?
    switch (left, right) {
    case (.value(.date), .value(let other)) where [.number, .string].contains(other.kind),
      (.value(let other), .value(.date)) where [.number, .string].contains(other.kind):
      hint =
        "write CAST(N, 'NSDate') for a date, with N seconds since 2001-01-01 UTC; for example, "
        + "$(($(date -ud 2026-11-28 +%s) - 978307200)) in the shell"
    case (.value(.uuid), .value(.string)), (.value(.string), .value(.uuid)):
      hint = "a UUID is CAST('00000000-0000-0000-0000-000000000000', 'NSUUID')"
    case (.value(.string), .value(let other)) where other.kind == .number,
      (.value(let other), .value(.string)) where other.kind == .number:
      hint = "write numbers without quotes, and texts in quotes"
    default: break
    }
    invalid("in “\(text)”, \(left.words) is compared with \(right.words)", hint: hint)
  }

  // MARK: Lists

  private mutating func checkMembership(_ comparison: Comparison, _ left: ExpressionType, _ right: ExpressionType) {
    let text = PredicateNode.comparison(comparison)
    if right == .value(.string) {
      // IN on texts: whether the left text is part of the right one.
      checkPattern(comparison.swapped(.contains), right, left, as: text)
      return
    }
    guard right.isMany, !right.isDestination else {
      invalid("in “\(text)”, IN requires a list on its right, but there is \(right.words)", hint: "write {a, b}")
      return
    }
    if right == .values(.undefined) { return }
    checkEqual(left, right.member, text)
  }

  private mutating func checkRange(_ comparison: Comparison, _ left: ExpressionType, _ right: ExpressionType) {
    let text = PredicateNode.comparison(comparison)
    guard case .aggregate(let bounds) = comparison.right, bounds.count == 2 else {
      invalid("in “\(text)”, BETWEEN requires a list of two on its right", hint: "write x BETWEEN {1, 5}")
      return
    }
    if right == .values(.undefined) { return }
    checkOrder(left, right.member, text)
  }

  // MARK: Patterns

  private mutating func checkPattern(
    _ comparison: Comparison, _ left: ExpressionType, _ right: ExpressionType, as written: PredicateNode? = nil
  ) {
    let text = written ?? PredicateNode.comparison(comparison)
    for (side, type) in [(comparison.left, left), (comparison.right, right)]
    where type != .null && type != .value(.string) {
      invalid(
        "in “\(text)”, \(comparison.operation.rawValue) requires strings, but “\(side)” is \(type.words)",
        hint: type.isMany ? "write ANY before the comparison" : nil)
      return
    }
    if case .constant(.string("")) = comparison.right {
      invalid(
        "in “\(text)”, the pattern is empty, and what that matches is unknown",
        hint: "write == '' for an empty string, != nil for any string")
      return
    }
    guard comparison.operation == .matches, right != .null else { return }
    guard case .constant(.string(let pattern)) = comparison.right else {
      unsupported("in “\(text)”, MATCHES requires a pattern in quotes", hint: "write a literal pattern, or use LIKE")
      return
    }
    do throws(HopdError) {
      _ = try RegularPattern(pattern, ignoringCase: comparison.ignoresCase)
    } catch {
      unsupported("in “\(text)”, \(error.message)", hint: error.hint ?? "write a simpler pattern, or use LIKE")
    }
  }
}
