// Reads archived predicates into trees (docs/formats/expressions.md, "Archived expressions"). Seen in compiled models
// only: the filters of mapping models are text. An operator is an object of its own, and its number, modifier and
// options are NSPredicate's public constants.

import Diagnostics
import PropertyLists

extension ArchivedExpressionReader {
  mutating func predicate(_ object: ArchivedObject, depth: Int) throws(HopdError) -> PredicateNode {
    try count(object, depth)
    switch object.className {
    case "NSTruePredicate": return .constant(true)
    case "NSFalsePredicate": return .constant(false)
    case "NSComparisonPredicate": return .comparison(try comparison(object, depth: depth))
    case "NSCompoundPredicate": return try compound(object, depth: depth)
    default: throw unsupported(object, "predicates of class \(object.className) are not supported")
    }
  }

  private mutating func compound(_ object: ArchivedObject, depth: Int) throws(HopdError) -> PredicateNode {
    var parts: [PredicateNode] = []
    for value in try object.elements("NSSubpredicates") {
      guard let part = value.object else { throw object.damaged("a part of the predicate is \(value.kind)") }
      parts.append(try predicate(part, depth: depth + 1))
    }
    switch try object.integer("NSCompoundPredicateType") ?? 0 {
    case 0:
      guard parts.count == 1 else { throw object.damaged("NOT has \(parts.count) parts") }
      return .not(parts[0])
    // An AND of no parts is true, an OR of no parts is false; one part replaces its compound.
    case 1: return parts.isEmpty ? .constant(true) : parts.count == 1 ? parts[0] : .and(parts)
    case 2: return parts.isEmpty ? .constant(false) : parts.count == 1 ? parts[0] : .or(parts)
    case let type: throw object.damaged("the compound predicate is of the unknown type \(type)")
    }
  }

  private mutating func comparison(_ object: ArchivedObject, depth: Int) throws(HopdError) -> Comparison {
    guard let left = try object.object("NSLeftExpression"), let right = try object.object("NSRightExpression"),
      let operation = try object.object("NSPredicateOperator")
    else { throw object.damaged("a side or the operator of the comparison is missing") }
    let number = try operation.integer("NSOperatorType")
    guard var kind = number.flatMap({ Self.operators[$0] }) else {
      throw unsupported(object, "the operator \(operation.className) is not supported")
    }
    // == and != are one class with a flag.
    if kind == .equal, try operation.boolean("NSNegate") { kind = .notEqual }
    let modifier: Comparison.Modifier
    switch try operation.integer("NSModifier") ?? 0 {
    case 0: modifier = .direct
    case 1: modifier = .all
    case 2: modifier = .any
    case let unknown: throw operation.damaged("its modifier \(unknown) is unknown")
    }
    // CONTAINS and IN keep their options under another name.
    let options = try operation.integer(operation.has("NSOptions") ? "NSOptions" : "NSFlags") ?? 0
    guard options & ~7 == 0 else {
      throw unsupported(object, "the options \(options) of \(kind.rawValue) are not supported")
    }
    return Comparison(
      try expression(left, depth: depth + 1), kind, try expression(right, depth: depth + 1), modifier: modifier,
      ignoresCase: options & 1 != 0, ignoresDiacritics: options & 2 != 0, isNormalized: options & 4 != 0)
  }

  /// NSPredicateOperatorType.
  private static let operators: [Int64: Comparison.Operator] = [
    0: .less, 1: .lessOrEqual, 2: .greater, 3: .greaterOrEqual, 4: .equal, 5: .notEqual, 6: .matches, 7: .like,
    8: .beginsWith, 9: .endsWith, 10: .in, 99: .contains, 100: .between,
  ]
}
