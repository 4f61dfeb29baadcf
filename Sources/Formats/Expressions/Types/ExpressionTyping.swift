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
      return subqueryType(collection, variable, condition)
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
          hint: scope.place == .sourceFilter
            ? nil : "set a policy for the entity mapping, or write a different expression"
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
      return unsupported("$\(name) is not supported here", hint: "use $source, the object that is migrated")
    }
    let known = (variables.keys.sorted() + ["source"]).map { "$" + $0 }
    return invalid("the variable $\(name) is unknown", hint: "use one of: " + known.joined(separator: ", "))
  }

  // MARK: Operands

  /// Returns the type of an operand that must be a number; nil if it is not. nil itself counts as an integer.
  mutating func number(_ operand: ExpressionNode, _ node: ExpressionNode) -> AttributeType? {
    switch type(of: operand) {
    case .value(let type) where type.kind == .number: return type
    case .null: return .integer64
    case .unknown: return nil
    case let type:
      invalid("“\(node)” requires a number, but “\(operand)” is \(type.words)", hint: Self.numberHint(type, operand))
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
          "“\(node)” requires numbers, but “\(operand)” is \(type.words)", hint: Self.numberHint(type, operand))
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
            ? "use CAST with the seconds since 2001-01-01 UTC" : nil)
      }
      if case .constant(.string(let text)) = operand, target != .string, Double(text) == nil {
        invalid("“\(node)” can never be: the text is not a number")
      }
      return .value(target.type(from: from))
    case .values, .object, .objects, .destinationObjects:
      return invalid("CAST requires one value, but “\(operand)” is \(type.words)")
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
    return invalid("“\(node)” is either \(one.words) or \(other.words)")
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

// Types of functions.

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
      case let type: return invalid("\(function.rawValue) requires a string, but “\(first)” is \(type.words)")
      }
    case .concatenate:
      for argument in arguments {
        switch type(of: argument) {
        case .value(.string), .null: continue
        case .unknown: return .unknown
        case let type:
          return invalid(
            "\(function.rawValue) requires strings, but “\(argument)” is \(type.words)",
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
      guard type.integers != nil else {
        invalid("“\(node)” requires integers", hint: "write CAST(x, 'Integer 64')")
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
        "\(function.rawValue) requires a collection, but “\(argument)” is \(operand.words)",
        hint: "pass a to-many relationship, a path over one, or a list {a, b}")
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
      return invalid("“\(node)” requires numbers, but each member is \(member.words)")
    default: return combined(function.combination, operand.member, node)
    }
  }

  /// Checks the set that a key path over a collection gives (docs/formats/expressions.md, "Collections"): equal members
  /// must be recognizable, and members must not be sets themselves.
  mutating func checkSet(_ type: ExpressionType, _ node: ExpressionNode, isExternal: Bool) -> Bool {
    if case .values(let value) = type, value.kind == .transformable || isExternal {
      unsupported(
        "“\(node)” gives a set of contents that are only carried: which of them are equal is unknown",
        hint: "append @count to the relationship for the number of objects")
      return false
    }
    guard let nestedPath else { return true }
    unsupported(
      "“\(node)” goes over two to-manys: for Core Data that is a set of sets, of which nothing is counted or summed",
      hint: "write \(nestedPath) for the distinct members of all")
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
      "“\(node)” requires \(operation == .min || operation == .max ? "values with an order" : "numbers"), "
        + "but each member is \(member.words)")
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

// Types of collections.

extension ExpressionTyping {
  mutating func aggregateType(_ members: [ExpressionNode], _ node: ExpressionNode) -> ExpressionType {
    var common = ExpressionType.null
    for member in members {
      let type = type(of: member)
      if type == .unknown { return .unknown }
      guard !type.isMany else {
        return invalid("a member of the list “\(node)” is \(type.words)", hint: "put only single values in a list")
      }
      common = unified(common, type, node)
      if common == .unknown { return .unknown }
    }
    switch common {
    case .value(let type): return .values(type)
    case .object(let entity): return .objects(entity: entity, isOrdered: true)
    default: return .values(.undefined)
    }
  }

  mutating func elementType(
    _ base: ExpressionNode, _ index: ElementIndex, _ node: ExpressionNode
  ) -> ExpressionType {
    let type = type(of: base)
    if type == .unknown { return .unknown }
    guard type.isMany, !type.isDestination else {
      return invalid("“\(node)” requires a collection, but “\(base)” is \(type.words)")
    }
    if index == .size { return .value(.integer64) }
    switch type {
    case .objects(_, isOrdered: true): return type.member
    case .values:
      // The most frequent values are sorted.
      switch base {
      case .aggregate, .function(.mode, _): return type.member
      default: break
      }
    default: break
    }
    return invalid(
      "“\(node)” uses an index on a collection without an order",
      hint: "use an ordered relationship or a list, or @min or @max")
  }

  mutating func subqueryType(
    _ collection: ExpressionNode, _ variable: String, _ condition: PredicateNode
  ) -> ExpressionType {
    let type = type(of: collection)
    if Self.reservedVariables.contains(variable) || variables[variable] != nil {
      return invalid("the variable $\(variable) of SUBQUERY has a meaning already", hint: "choose another name")
    }
    guard case .objects(let entity, _) = type else {
      if type != .unknown {
        invalid("SUBQUERY requires a collection of objects, but “\(collection)” is \(type.words)")
      }
      return .unknown
    }
    variables[variable] = entity
    check(condition)
    variables[variable] = nil
    return type
  }

  mutating func lookupType(
    _ lookup: InstanceLookup, _ objects: ExpressionNode, _ node: ExpressionNode
  ) -> ExpressionType {
    guard scope.place == .relationship else {
      return invalid("“\(node)” finds objects of the destination, which only a relationship takes")
    }
    // The name in `sourceRelationship` has no effect: for a renamed relationship it is the new name, and at the end of
    // a path it belongs to another entity. The objects alone decide the lookup.
    if case .entityMapping(let name) = lookup, let known = scope.entityMappings, !known.contains(name) {
      invalid(
        "no entity mapping “\(name)”",
        hint: "use one of: " + known.sorted().prefix(20).joined(separator: ", "))
    }
    let type = type(of: objects)
    switch type {
    case .object: return .destinationObjects(lookup, isMany: false)
    case .objects, .null: return .destinationObjects(lookup, isMany: true)
    case .unknown: return .unknown
    case .value, .values, .destinationObjects:
      return invalid("“\(node)” requires objects of the source, but “\(objects)” is \(type.words)")
    }
  }
}
