// Evaluates expressions and predicates on one object at a time. Its results define their meaning
// (docs/formats/expressions.md, "One meaning"). SQL is an optimization that must agree with it, row by row.

import Diagnostics
import ManagedObjectModel

/// Evaluates expressions and predicates on instances.
package struct ExpressionEvaluator {
  /// The model of the objects, and the entity of `$source`.
  package let scope: ExpressionScope
  /// Reads the objects.
  package let source: any InstanceSource
  /// The value of `now()`: seconds since 2001-01-01 UTC.
  package let moment: Double
  /// Returns the destination objects of source objects; nil if lookups are refused.
  package var lookup: ((InstanceLookup, [InstanceID]?) throws -> [InstanceID])?
  /// Calls a policy's method with its arguments; nil if such calls are refused.
  package var policyMethod: ((String, [ExpressionValue]) throws -> ExpressionValue)?
  let patterns = PatternCache()

  /// Creates an evaluator.
  package init(scope: ExpressionScope, source: any InstanceSource, moment: Double) {
    self.scope = scope
    self.source = source
    self.moment = moment
  }

  /// Returns the value of an expression. `object` is `$source`; in a filter it is SELF.
  package func value(
    _ node: ExpressionNode, on object: InstanceID?, variables: [String: InstanceID] = [:]
  ) throws -> ExpressionValue {
    try located(object) { try evaluate(node, Bindings(object: object, variables: variables)).value }
  }

  /// Whether the predicate is true for the object.
  package func isTrue(
    _ predicate: PredicateNode, on object: InstanceID?, variables: [String: InstanceID] = [:]
  ) throws -> Bool {
    try located(object) { try holds(predicate, Bindings(object: object, variables: variables)) }
  }

  /// Returns the objects that an expression reaches, in order, each once; nil gives none.
  package func objects(
    _ node: ExpressionNode, on object: InstanceID?, variables: [String: InstanceID] = [:]
  ) throws -> [InstanceID] {
    try located(object) {
      try collectionObjects(evaluate(node, Bindings(object: object, variables: variables)).value)
    }
  }

  private func located<Result>(_ object: InstanceID?, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as HopdError {
      throw error.located(Place(entity: object?.entity, row: object?.key))
    }
  }

  private static func objects(_ members: [ExpressionValue]) throws -> [InstanceID] {
    var seen: Set<InstanceID> = []
    return try members.compactMap { member in
      switch member {
      case .null: return nil
      case .object(let id): return seen.insert(id).inserted ? id : nil
      default: throw HopdError.mismatch("a value is used where objects are required")
      }
    }
  }

  /// The objects that SELF and the variables refer to.
  struct Bindings {
    var object: InstanceID?
    var variables: [String: InstanceID]
  }

  /// The result of a part of a key path. The entity is kept even without an object, because the rest of the path needs
  /// it.
  enum Reached {
    case one(InstanceID?, entity: String)
    /// The objects of a collection; nil for a member whose to-one is nil.
    case many([InstanceID?], entity: String?)
    case values([ExpressionValue])
    /// The values of a key path over a collection, one for each member: KVC makes a set of them.
    case members([ExpressionValue])
    case single(ExpressionValue)

    var value: ExpressionValue {
      switch self {
      case .one(let id, _): return id.map { .object($0) } ?? .null
      case .many(let members, _):
        var seen: Set<InstanceID> = []
        return .list(members.compactMap { id in id.flatMap { seen.insert($0).inserted ? .object($0) : nil } })
      case .values(let values): return .list(values)
      case .members(let values):
        var seen: Set<ExpressionValue> = []
        return .list(values.filter { !$0.isNull && seen.insert($0).inserted })
      case .single(let value): return value
      }
    }
  }

  // MARK: Expressions

  func evaluate(_ node: ExpressionNode, _ bindings: Bindings) throws -> Reached {
    switch node {
    case .constant(let constant): return .single(ExpressionValue(constant))
    case .selfObject: return try object(bindings.object, "SELF")
    case .variable("source"): return try object(bindings.object, "$source")
    case .variable(let name): return try object(bindings.variables[name], "$\(name)")
    case .keyPath(let base, let steps): return try path(base, steps, bindings)
    case .function(.noIndex, let arguments) where arguments.count == 1: return try evaluate(arguments[0], bindings)
    case .function(let function, let arguments): return .single(try call(function, arguments, bindings))
    case .cast(let operand, let target): return .single(try ValueCast.apply(target, to: one(operand, bindings)))
    case .ternary(let predicate, let yes, let no): return try evaluate(holds(predicate, bindings) ? yes : no, bindings)
    case .subquery(let collection, let variable, let predicate):
      let reached = try evaluate(collection, bindings)
      var inner = bindings
      let members = try collectionObjects(reached.value).filter { id in
        inner.variables[variable] = id
        return try holds(predicate, inner)
      }
      var entity: String?
      if case .many(_, let known) = reached { entity = known }
      return .many(members, entity: entity)
    case .aggregate(let members): return .values(try members.map { try one($0, bindings) })
    case .element(let collection, let index): return try element(evaluate(collection, bindings), index)
    case .arithmetic(let operation, let left, let right):
      return .single(try Arithmetic.apply(operation, one(left, bindings), one(right, bindings)))
    case .negated(let operand): return .single(try Arithmetic.negate(one(operand, bindings)))
    case .destinationInstances(let found, let argument):
      guard let lookup else { throw HopdError.invalid("objects of the destination are used where there are none") }
      let value = try one(argument, bindings)
      let sources: [InstanceID]? = if case .constant(.null) = argument { nil } else { try collectionObjects(value) }
      return .many(try lookup(found, sources), entity: nil)
    case .policyMethod(let selector, let arguments):
      guard let policyMethod else { throw HopdError.invalid("a policy's method is called where there is no policy") }
      return .single(try policyMethod(selector, try arguments.map { try one($0, bindings) }))
    }
  }

  /// Evaluates the expression to one value.
  func one(_ node: ExpressionNode, _ bindings: Bindings) throws -> ExpressionValue {
    try evaluate(node, bindings).value
  }

  func object(_ id: InstanceID?, _ name: String) throws -> Reached {
    guard let id else { throw HopdError.invalid("\(name) is used where it has no object") }
    return .one(id, entity: id.entity)
  }

  /// Returns a value as objects: one, several, or none for nil.
  private func collectionObjects(_ value: ExpressionValue) throws -> [InstanceID] {
    switch value {
    case .null: []
    case .object(let id): [id]
    case .list(let members): try ExpressionEvaluator.objects(members)
    default: throw HopdError.mismatch("a value is used where objects are required")
    }
  }

  private func element(_ reached: Reached, _ index: ElementIndex) throws -> Reached {
    guard case .list(let members) = reached.value else {
      if reached.value.isNull { return .single(.null) }
      throw HopdError.mismatch("an index is used on a value that is not a collection")
    }
    let member: ExpressionValue?
    switch index {
    case .size: return .single(.integer(Int64(members.count)))
    case .first: member = members.first
    case .last: member = members.last
    case .position(let position):
      member = Int(exactly: position).flatMap { members.indices.contains($0) ? members[$0] : nil }
    }
    if case .object(let id)? = member { return .one(id, entity: id.entity) }
    if case .many(_, let entity?) = reached { return .one(nil, entity: entity) }
    return .single(member ?? .null)
  }

  // MARK: Key paths

  private func path(_ base: ExpressionNode, _ steps: [KeyPathStep], _ bindings: Bindings) throws -> Reached {
    // Numbers of Float attributes are written with fewer digits, so the getter's operand must be tracked.
    var isFloat = false
    if case .key(let name)? = steps.last, ValueGetter.isWritten(name) {
      isFloat = ExpressionTyping.isFloat(
        base, steps.dropLast(), scope, variables: bindings.variables.mapValues(\.entity))
    }
    return try follow(evaluate(base, bindings), steps[...], isFloat: isFloat)
  }

  private func follow(_ start: Reached, _ steps: ArraySlice<KeyPathStep>, isFloat: Bool) throws -> Reached {
    var reached = start
    var rest = steps
    while let step = rest.popFirst() {
      switch step {
      case .key(let name): reached = try property(name, of: reached, isFloat: isFloat)
      case .objectPath: reached = try objectPath(of: reached)
      case .collection(let operation): return try collect(operation, reached, rest, isFloat: isFloat)
      }
    }
    return reached
  }

  private func property(_ name: String, of reached: Reached, isFloat: Bool) throws -> Reached {
    switch reached {
    case .one(let id, let entity):
      guard let relationship = try relationship(name, of: id?.entity ?? entity) else {
        guard let id else { return .single(.null) }
        return .single(try source.value(ofAttribute: name, in: id))
      }
      let objects = try id.map { try source.objects(ofRelationship: name, in: $0) } ?? []
      return relationship.isToMany
        ? .many(objects, entity: relationship.destinationEntityName)
        : .one(objects.first, entity: relationship.destinationEntityName)
    case .many(let members, let entity):
      guard let owner = entity ?? members.lazy.compactMap({ $0?.entity }).first else { return .members([]) }
      guard let relationship = try relationship(name, of: owner) else {
        return .members(try members.map { try $0.map { try source.value(ofAttribute: name, in: $0) } ?? .null })
      }
      let objects = try members.flatMap { member -> [InstanceID?] in
        let found: [InstanceID?] = try member.map { try source.objects(ofRelationship: name, in: $0) } ?? []
        return relationship.isToMany ? found : [found.first ?? nil]
      }
      return .many(objects, entity: relationship.destinationEntityName)
    case .single(.null): return .single(.null)
    case .single(.object(let id)): return try property(name, of: .one(id, entity: id.entity), isFloat: isFloat)
    case .single(.list(let members)), .values(let members):
      if members.contains(where: { if case .object = $0 { true } else { false } }) || members.isEmpty {
        return try property(name, of: .many(try ExpressionEvaluator.objects(members), entity: nil), isFloat: isFloat)
      }
      return .values(try members.map { try getter(name, $0, isFloat: isFloat) })
    case .members(let members): return .members(try members.map { try getter(name, $0, isFloat: isFloat) })
    case .single(let value): return .single(try getter(name, value, isFloat: isFloat))
    }
  }

  private func getter(_ name: String, _ value: ExpressionValue, isFloat: Bool) throws -> ExpressionValue {
    guard let getter = ValueGetter(rawValue: name) else {
      throw HopdError.mismatch("\(name) is used on a value that is not an object")
    }
    return try GetterValue.apply(getter, to: value, isFloat: isFloat)
  }

  private func relationship(_ name: String, of entityName: String) throws -> Relationship? {
    guard let entity = scope.model.entity(named: entityName) else {
      throw HopdError.invalid("the model has no entity \(entityName)")
    }
    for ancestor in scope.model.lineage(of: entity).reversed() {
      if let relationship = ancestor.relationships.first(where: { $0.name == name }) { return relationship }
      if ancestor.attributes.contains(where: { $0.name == name }) { return nil }
    }
    throw HopdError.invalid("\(entityName) has no attribute or relationship \(name)")
  }

  private func objectPath(of reached: Reached) throws -> Reached {
    func path(_ id: InstanceID) -> ExpressionValue { .string("/\(id.entity)/p\(id.key)") }
    switch reached.value {
    case .null: return .single(.null)
    case .object(let id): return .single(path(id))
    case .list(let members): return .values(try ExpressionEvaluator.objects(members).map(path))
    default: throw HopdError.mismatch("objectID is used on a value that is not an object")
    }
  }

  /// Applies a collection operator to its path.
  private func collect(
    _ operation: CollectionOperator, _ reached: Reached, _ path: ArraySlice<KeyPathStep>, isFloat: Bool
  ) throws -> Reached {
    let members: Reached
    switch reached {
    case .many(_, let entity): members = .many(try collectionObjects(reached.value), entity: entity)
    case .values: members = reached
    case .members: members = .single(reached.value)
    case .single(.list): members = reached
    // A collection behind a nil object is empty; a single object is not a collection.
    case .single(.null), .one(nil, _): members = .values([])
    default: throw HopdError.mismatch("\(operation.rawValue) is used on a value that is not a collection")
    }
    let result = try follow(members, path, isFloat: isFloat)
    let values: [ExpressionValue]
    switch (result, result.value) {
    // The operator applies to every member, and the members' values do not form a set.
    case (.members(let all), _): values = all
    case (_, .list(let all)): values = all
    default: throw HopdError.mismatch("\(operation.rawValue) is used on a value that is not a collection")
    }
    switch operation {
    case .count, .sum, .min, .max, .average: return .single(try ExpressionEvaluator.combine(operation, values))
    case .unionOfObjects, .distinctUnionOfObjects, .distinctUnionOfSets:
      if case .many = result { return result }
      let present = values.filter { !$0.isNull }
      if operation == .unionOfObjects { return .values(present) }
      var seen: Set<ExpressionValue> = []
      return .values(present.filter { seen.insert($0).inserted })
    }
  }

  /// Combines values by @count, @sum, @avg, @min or @max (docs/formats/expressions.md, "Collections").
  static func combine(_ operation: CollectionOperator, _ values: [ExpressionValue]) throws -> ExpressionValue {
    switch operation {
    case .sum, .average:
      var sum = ValueSum()
      for value in values { try sum.add(value) }
      return operation == .sum ? try sum.sum() : try sum.average()
    case .min, .max:
      var best = ExpressionValue.null
      for value in values where !value.isNull {
        guard !best.isNull else {
          best = value
          continue
        }
        guard let order = value.order(best) else {
          throw HopdError.mismatch("\(operation.rawValue) has members that cannot be compared")
        }
        if operation == .min ? order < 0 : order > 0 { best = value }
      }
      return best
    default: return .integer(Int64(values.count))
    }
  }
}

extension ExpressionValue {
  /// The value of a constant.
  package init(_ constant: ConstantValue) {
    switch constant {
    case .null: self = .null
    case .boolean(let value): self = .boolean(value)
    case .integer(let value): self = .integer(value)
    case .double(let value): self = Arithmetic.number(value)
    case .decimal(let text): self = DecimalNumber(text).map { .decimal($0) } ?? .null
    case .string(let text): self = .string(text)
    case .date(let seconds): self = .date(seconds)
    case .data(let bytes): self = .data(bytes)
    case .uuid(let bytes): self = .uuid(bytes)
    }
  }
}

// Functions and predicates, evaluated on objects.

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

  /// Creates one comparison, without modifier (docs/formats/expressions.md, "nil").
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
