// Types of expressions, from the leaves up. A wrong part becomes a finding and has the type `unknown`, which causes no
// further findings; so one pass finds everything.

import Diagnostics
import ManagedObjectModel

/// One pass over one expression or predicate.
struct ExpressionTyping {
  let scope: ExpressionScope
  /// Variables of one object each, with its entity: those of the place, and those of enclosing SUBQUERYs.
  var variables: [String: String]
  private(set) var findings: [HopdError] = []
  /// The number of attributes with external storage in the expression: only whether they are nil can be tested.
  var externalValues = 0

  /// The replacement for the last path, if it passes two to-manys.
  var nestedPath: String?

  static let maximumFindings = 20
  static let reservedVariables: Set<String> = [
    "source", "destination", "manager", "entityPolicy", "entityMapping", "propertyMapping",
  ]

  /// The variables that a policy's method accepts unchanged.
  static let policyVariables: Set<String> = ["destination", "manager", "entityPolicy", "entityMapping"]

  private static func isForPolicy(_ argument: ExpressionNode) -> Bool {
    if case .variable(let name) = argument { policyVariables.contains(name) } else { false }
  }

  init(_ scope: ExpressionScope, variables: [String: String] = [:]) {
    self.scope = scope
    self.variables = scope.variables.merging(variables) { _, inner in inner }
  }

  // MARK: Findings

  /// Records an error; returns the type of a wrong expression.
  @discardableResult
  mutating func invalid(_ message: String, hint: String? = nil) -> ExpressionType {
    add(.expressionInvalid, message, hint)
  }

  /// Records a feature that is not supported; returns the type of a wrong expression.
  @discardableResult
  mutating func unsupported(_ message: String, hint: String? = nil) -> ExpressionType {
    add(.expressionUnsupported, message, hint)
  }

  private mutating func add(_ code: HopdError.Code, _ message: String, _ hint: String?) -> ExpressionType {
    if findings.count < Self.maximumFindings { findings.append(HopdError(code, message, hint: hint)) }
    return .unknown
  }

  /// Throws the findings.
  func finish(at place: Place) throws(HopdError) {
    guard let first = findings.first else { return }
    guard findings.count > 1 else { throw first.located(place) }
    throw HopdError(
      first.code, "the expression has \(findings.count) errors", at: place, reasons: findings.map { $0.located(place) })
  }

  // MARK: Types

  /// Returns the type of an expression.
  mutating func type(of node: ExpressionNode) -> ExpressionType {
    switch node {
    case .constant(let value): return value.type
    case .selfObject: return selfType()
    case .variable(let name): return variableType(name)
    case .keyPath(let base, let steps):
      if case .selfObject = base, scope.place != .sourceFilter {
        // Mapping models have such values, and the key can only be the source object's (docs/formats/expressions.md,
        // "Variables").
        guard let entity = scope.sourceEntity, isProperty(steps.first, of: entity) else {
          return invalid(
            "“\(node)” stands alone, without its object",
            hint: scope.sourceEntity == nil ? nil : "write $source.\(node)")
        }
        return follow(.object(entity: entity), steps[...], node)
      }
      let baseType = type(of: base)
      return follow(baseType, steps[...], node)
    case .function(let function, let arguments): return functionType(function, arguments, node)
    case .cast(let operand, let target): return castType(operand, target, node)
    case .ternary(let condition, let first, let second):
      check(condition)
      let (one, other) = (type(of: first), type(of: second))
      return unified(one, other, node)
    case .subquery(let collection, let variable, let condition):
      return subqueryType(collection, variable, condition, node)
    case .aggregate(let members): return aggregateType(members, node)
    case .element(let base, let index): return elementType(base, index, node)
    case .arithmetic(let operation, let left, let right): return arithmeticType(operation, left, right, node)
    case .negated(let operand):
      guard let number = number(operand, node) else { return .unknown }
      return .value(.arithmetic(number, .integer16))
    case .destinationInstances(let lookup, let objects): return lookupType(lookup, objects, node)
    case .policyMethod(let selector, let arguments):
      if scope.place == .sourceFilter || !scope.hasPolicy {
        invalid(
          "“\(node)” calls \(selector) of a policy, but "
            + (scope.place == .sourceFilter ? "filters have none" : "the entity mapping names none"),
          hint: scope.place == .sourceFilter ? nil : "name a policy for the entity mapping, or write another expression"
        )
      }
      for argument in arguments where !Self.isForPolicy(argument) { _ = type(of: argument) }
      return .unknown
    }
  }

  /// Whether the entity has the property that a path begins with.
  private func isProperty(_ step: KeyPathStep?, of entity: String) -> Bool {
    switch step {
    case .objectPath?: true
    case .key(let name)?:
      scope.model.entity(named: entity).map { found in
        scope.model.lineage(of: found).contains { $0.hasProperty(named: name) }
      } ?? false
    case .collection?, nil: false
    }
  }

  private mutating func selfType() -> ExpressionType {
    if scope.place == .sourceFilter, let entity = scope.sourceEntity { return .object(entity: entity) }
    return invalid("SELF has no meaning in a value", hint: "write $source")
  }

  private mutating func variableType(_ name: String) -> ExpressionType {
    if let entity = variables[name] { return .object(entity: entity) }
    if name == "source" {
      if let entity = scope.sourceEntity { return .object(entity: entity) }
      return invalid("$source has no meaning here: the entity mapping has no source")
    }
    if Self.reservedVariables.contains(name) {
      return unsupported("$\(name) is not supported here", hint: "$source is the object that is migrated")
    }
    let known = (variables.keys.sorted() + ["source"]).map { "$" + $0 }
    return invalid("the variable $\(name) is not known", hint: "variables are: " + known.joined(separator: ", "))
  }

  // MARK: Operands

  /// Returns the type of an operand that must be a number; nil if it is not. nil itself counts as an integer.
  mutating func number(_ operand: ExpressionNode, _ node: ExpressionNode) -> AttributeType? {
    switch type(of: operand) {
    case .value(let type) where type.kind == .number: return type
    case .null: return .integer64
    case .unknown: return nil
    case let type:
      invalid("“\(node)” wants a number, but “\(operand)” gives \(type.words)", hint: Self.numberHint(type, operand))
      return nil
    }
  }

  static func numberHint(_ type: ExpressionType, _ operand: ExpressionNode) -> String? {
    switch type {
    case .value(.string), .value(.date): "write CAST(\(operand), 'NSNumber')"
    default: nil
    }
  }

  private mutating func arithmeticType(
    _ operation: ArithmeticOperator, _ left: ExpressionNode, _ right: ExpressionNode, _ node: ExpressionNode
  ) -> ExpressionType {
    let types = (type(of: left), type(of: right))
    // A date and an interval give a date, two dates an interval.
    switch (types.0, operation, types.1) {
    case (.unknown, _, _), (_, _, .unknown): return .unknown
    case (.value(.date), .subtract, .value(.date)): return .value(.double)
    case (.value(.date), .add, .value(let span)), (.value(.date), .subtract, .value(let span)),
      (.value(let span), .add, .value(.date)):
      if span.kind == .number { return .value(.date) }
    default: break
    }
    var numbers: [AttributeType] = []
    for (operand, type) in [(left, types.0), (right, types.1)] {
      switch type {
      case .value(let number) where number.kind == .number: numbers.append(number)
      case .null: numbers.append(.integer16)
      default:
        return invalid(
          "“\(node)” wants numbers, but “\(operand)” gives \(type.words)", hint: Self.numberHint(type, operand))
      }
    }
    return .value(operation == .power ? .double : .arithmetic(numbers[0], numbers[1]))
  }

  private mutating func castType(
    _ operand: ExpressionNode, _ target: CastTarget, _ node: ExpressionNode
  ) -> ExpressionType {
    let type = type(of: operand)
    switch type {
    case .null, .unknown: return .value(target.type(from: nil))
    case .value(let from):
      let isPossible =
        switch (from.kind, target) {
        case (.number, _), (.string, .string), (.uuid, .string), (.date, .date): true
        case (.string, .date), (.date, .string): false
        case (.string, _), (.date, _): true
        default: false
        }
      guard isPossible else {
        return unsupported(
          "CAST cannot make \(target.type(from: from).kind.words) of \(from.kind.words)",
          hint: from == .string && target == .date
            ? "dates have no agreed form as text: CAST seconds since 2001-01-01 UTC" : nil)
      }
      if case .constant(.string(let text)) = operand, target != .string, Double(text) == nil {
        invalid("“\(node)” can never be: the text is not a number")
      }
      return .value(target.type(from: from))
    case .values, .object, .objects, .destinationObjects:
      return invalid("CAST wants one value, but “\(operand)” gives \(type.words)")
    }
  }

  // MARK: Two types in one place

  /// Returns a type that holds values of both; records a finding if there is none.
  mutating func unified(_ one: ExpressionType, _ other: ExpressionType, _ node: ExpressionNode) -> ExpressionType {
    if one == other { return one }
    switch (one, other) {
    case (.unknown, _), (_, .unknown): return .unknown
    case (.null, let type), (let type, .null): return type
    case (.value(let left), .value(let right)):
      if left.kind == .number, right.kind == .number { return .value(.arithmetic(left, right)) }
    case (.values(let left), .values(let right)):
      if left == .undefined { return other }
      if right == .undefined { return one }
      if left.kind == .number, right.kind == .number { return .values(.arithmetic(left, right)) }
    case (.object(let left), .object(let right)):
      if let entity = commonAncestor(left, right) { return .object(entity: entity) }
    case (.objects(let left, let isOrdered), .objects(let right, let isAlsoOrdered)):
      if let entity = commonAncestor(left, right) {
        return .objects(entity: entity, isOrdered: isOrdered && isAlsoOrdered)
      }
    case (.destinationObjects(let lookup, let isMany), .destinationObjects(_, let isAlsoMany)):
      return .destinationObjects(lookup, isMany: isMany || isAlsoMany)
    default: break
    }
    return invalid("“\(node)” gives either \(one.words) or \(other.words)")
  }

  private func commonAncestor(_ left: String, _ right: String) -> String? {
    guard let one = scope.model.entity(named: left), let other = scope.model.entity(named: right) else { return nil }
    let names = Set(scope.model.lineage(of: other).map(\.name))
    return scope.model.lineage(of: one).last { names.contains($0.name) }?.name
  }
}

extension ExpressionType {
  var isDestination: Bool { if case .destinationObjects = self { true } else { false } }
}

extension ConstantValue {
  /// The type of the constant.
  package var type: ExpressionType {
    switch self {
    case .null: .null
    case .boolean: .value(.boolean)
    case .integer: .value(.integer64)
    case .double: .value(.double)
    case .decimal: .value(.decimal)
    case .string: .value(.string)
    case .date: .value(.date)
    case .data: .value(.binary)
    case .uuid: .value(.uuid)
    }
  }
}
