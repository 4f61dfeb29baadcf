// Prints expressions and predicates of compiled models as NSExpression and NSPredicate do. The version hash contains
// that text of derivation expressions; the other texts are for people. An object without plain text is printed as its
// name in angle brackets instead of being left out.

import Diagnostics
import PropertyLists

/// Prints archived expressions and predicates; nesting is bounded.
struct ArchivedExpressionText {
  /// A comparison that may be a minimum, a maximum or a pattern.
  struct Comparison {
    /// `SELF` or a key path.
    let left: String
    /// NSPredicateOperatorType.
    let operation: Int64
    /// The constant.
    let right: ArchivedValue
  }

  private static let maximumDepth = 24
  /// Objects that one text may print: a list that contains itself many times would unfold without end.
  private var nodes = 2_000

  /// The text of an expression.
  static func expression(_ object: ArchivedObject) throws(HopdError) -> String {
    var printer = Self()
    return try printer.expression(object, depth: 0)
  }

  /// The text of a predicate.
  static func predicate(_ object: ArchivedObject) throws(HopdError) -> String {
    var printer = Self()
    return try printer.predicate(object, depth: 0)
  }

  /// The predicates that must all hold for `object` to hold.
  static func conjuncts(of object: ArchivedObject, budget: inout Int) throws(HopdError) -> [ArchivedObject] {
    var result: [ArchivedObject] = []
    var open = [object]
    while let next = open.popLast() {
      budget -= 1
      guard budget >= 0 else { throw object.damaged("it has too many validation predicates") }
      guard next.isKind(of: "NSCompoundPredicate"), try next.integer("NSCompoundPredicateType") == 1 else {
        result.append(next)
        continue
      }
      let parts = try next.elements("NSSubpredicates").compactMap(\.object)
      guard parts.count <= budget else { throw object.damaged("it has too many validation predicates") }
      open += parts.reversed()
    }
    return result
  }

  /// The parts of a plain comparison of a key path with a constant; nil for any other predicate.
  static func comparison(_ object: ArchivedObject) throws(HopdError) -> Comparison? {
    guard object.isKind(of: "NSComparisonPredicate"), let left = try object.object("NSLeftExpression"),
      let right = try object.object("NSRightExpression"), right.isKind(of: "NSConstantValueExpression"),
      let operation = try object.object("NSPredicateOperator"),
      let number = try operation.integer("NSOperatorType"), try operation.integer("NSModifier") ?? 0 == 0
    else { return nil }
    return Comparison(left: try expression(left), operation: number, right: try right.value("NSConstantValue"))
  }

  // MARK: Expressions

  private mutating func expression(_ object: ArchivedObject, depth: Int) throws(HopdError) -> String {
    try count(object, depth)
    switch object.className {
    case "NSSelfExpression": return "SELF"
    case "NSVariableExpression": return "$" + (try object.string("NSVariable") ?? "")
    case "NSKeyPathSpecifierExpression": return try object.string("NSKeyPath") ?? ""
    case "NSConstantValueExpression": return try constant(try object.value("NSConstantValue"), depth)
    case "NSKeyPathExpression":
      let path = try texts(try object.elements("NSArguments"), depth: depth).joined(separator: ".")
      guard let operand = try object.object("NSOperand"), operand.className != "NSSelfExpression" else { return path }
      return try expression(operand, depth: depth + 1) + "." + path
    case "NSFunctionExpression":
      let selector = try object.string("NSSelectorName") ?? ""
      let list = try texts(try object.elements("NSArguments"), depth: depth).joined(separator: ", ")
      if let operand = try object.object("NSOperand"), !operand.isKind(of: "NSConstantValueExpression") {
        return "FUNCTION(\(try expression(operand, depth: depth + 1)), \"\(selector)\""
          + (list.isEmpty ? ")" : ", \(list))")
      }
      return "\(selector)(\(list))"
    case "NSAggregateExpression":
      let parts = try texts(try object.elements("NSCollection"), depth: depth)
      return "{" + parts.joined(separator: ", ") + "}"
    default: return "<\(object.className)>"
    }
  }

  private mutating func texts(_ values: [ArchivedValue], depth: Int) throws(HopdError) -> [String] {
    var result: [String] = []
    for value in values {
      if let object = value.object, object.isKind(of: "NSExpression") {
        result.append(try expression(object, depth: depth + 1))
      } else {
        result.append(try constant(value, depth))
      }
    }
    return result
  }

  private mutating func constant(_ value: ArchivedValue, _ depth: Int) throws(HopdError) -> String {
    switch value {
    case .null: return "nil"
    case .string(let text): return "\"\(text)\""
    case .integer(let number): return String(number)
    case .real(let number): return "\(number)"
    case .boolean(let flag): return flag ? "1" : "0"
    case .date(let seconds): return "CAST(\(seconds), \"NSDate\")"
    case .data(let bytes): return "<\(bytes.count) bytes>"
    case .object(let object):
      guard object.isList else { return "<\(object.className)>" }
      try count(object, depth)
      return "{" + (try texts(try object.elements(), depth: depth + 1).joined(separator: ", ")) + "}"
    }
  }

  // MARK: Predicates

  private mutating func predicate(_ object: ArchivedObject, depth: Int) throws(HopdError) -> String {
    try count(object, depth)
    switch object.className {
    case "NSTruePredicate": return "TRUEPREDICATE"
    case "NSFalsePredicate": return "FALSEPREDICATE"
    case "NSCompoundPredicate":
      var parts: [String] = []
      for value in try object.elements("NSSubpredicates") {
        guard let part = value.object else { throw object.damaged("a part of the predicate is \(value.kind)") }
        let text = try predicate(part, depth: depth + 1)
        parts.append(part.isKind(of: "NSCompoundPredicate") ? "(\(text))" : text)
      }
      switch try object.integer("NSCompoundPredicateType") {
      case 0: return "NOT " + (parts.first ?? "")
      case 1: return parts.joined(separator: " AND ")
      case 2: return parts.joined(separator: " OR ")
      default: return "<\(object.className)>"
      }
    case "NSComparisonPredicate":
      guard let left = try object.object("NSLeftExpression"), let right = try object.object("NSRightExpression"),
        let operation = try object.object("NSPredicateOperator"),
        let name = Self.names[try operation.integer("NSOperatorType") ?? -1]
      else { return "<\(object.className)>" }
      // CONTAINS and IN archive their options under another key.
      let options = try operation.integer(operation.has("NSOptions") ? "NSOptions" : "NSFlags") ?? 0
      // Only text operators are printed with their options.
      let suffix = Self.textual.contains(name) ? ["", "[c]", "[d]", "[cd]"][Int(options & 3)] : ""
      let modifier = ["", "ALL ", "ANY "][Int(max(0, min(2, try operation.integer("NSModifier") ?? 0)))]
      return modifier + (try expression(left, depth: depth + 1)) + " \(name)\(suffix) "
        + (try expression(right, depth: depth + 1))
    default: return "<\(object.className)>"
    }
  }

  /// NSPredicateOperatorType; 99 is CONTAINS, as in model caches.
  private static let names: [Int64: String] = [
    0: "<", 1: "<=", 2: ">", 3: ">=", 4: "==", 5: "!=", 6: "MATCHES", 7: "LIKE", 8: "BEGINSWITH", 9: "ENDSWITH",
    10: "IN", 99: "CONTAINS", 100: "BETWEEN",
  ]
  private static let textual: Set<String> = ["MATCHES", "LIKE", "BEGINSWITH", "ENDSWITH", "CONTAINS", "==", "!="]

  private mutating func count(_ object: ArchivedObject, _ depth: Int) throws(HopdError) {
    nodes -= 1
    guard depth <= Self.maximumDepth, nodes >= 0 else {
      throw object.damaged("the expression or predicate is nested deeper than \(Self.maximumDepth) or too long")
    }
  }
}
