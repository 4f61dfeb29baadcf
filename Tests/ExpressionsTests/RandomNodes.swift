// Random expressions and predicates over `ExpressionWorld`: of every node kind, with types that the checker accepts.

import ManagedObjectModel
import SeededRandom

@testable import Expressions

/// Makes nodes.
struct RandomNodes {
  var dice: Dice
  let model: ManagedObjectModel
  private var counter = 0

  init(seed: UInt64, model: ManagedObjectModel) {
    dice = Dice(seed: seed)
    self.model = model
  }

  /// The base of a path, and its entity.
  struct Base {
    let node: ExpressionNode
    let entity: String
  }

  // MARK: Paths

  private func relationships(_ entity: String) -> [Relationship] {
    model.entity(named: entity).map {
      model.allRelationships(of: $0).values.sorted { $0.name < $1.name }
    } ?? []
  }

  private func attributes(_ entity: String, _ types: Set<AttributeType>) -> [String] {
    guard let value = model.entity(named: entity) else { return [] }
    return model.allAttributes(of: value).values.filter { types.contains($0.type) && !$0.allowsExternalStorage }
      .map(\.name).sorted()
  }

  private func step(_ base: ExpressionNode, _ steps: [KeyPathStep]) -> ExpressionNode {
    if steps.isEmpty { return base }
    if case .keyPath(let inner, let first) = base { return .keyPath(inner, first + steps) }
    return .keyPath(base, steps)
  }

  /// Returns a path of to-ones from the base.
  private mutating func one(_ base: Base) -> Base {
    var base = base
    while dice.chance(30), let next = toOnes(base.entity).randomElement(using: &dice) {
      base = Base(node: step(base.node, [.key(next.name)]), entity: next.destinationEntityName)
    }
    return base
  }

  private func toOnes(_ entity: String) -> [Relationship] { relationships(entity).filter { !$0.isToMany } }

  /// Returns a collection of objects.
  mutating func many(_ base: Base, _ depth: Int) -> Base? {
    let start = one(base)
    guard let first = relationships(start.entity).filter(\.isToMany).randomElement(using: &dice) else { return nil }
    var path = Base(node: step(start.node, [.key(first.name)]), entity: first.destinationEntityName)
    while dice.chance(25), let next = relationships(path.entity).randomElement(using: &dice) {
      path = Base(node: step(path.node, [.key(next.name)]), entity: next.destinationEntityName)
    }
    if dice.chance(10), let next = relationships(path.entity).filter(\.isToMany).randomElement(using: &dice) {
      let operation: CollectionOperator = dice.pick([.distinctUnionOfSets, .distinctUnionOfObjects, .unionOfObjects])
      return Base(
        node: step(path.node, [.collection(operation), .key(next.name)]), entity: next.destinationEntityName)
    }
    if depth > 0, dice.chance(20) {
      counter += 1
      let name = "x\(counter)"
      let inner = dice.chance(70) ? Base(node: .variable(name), entity: path.entity) : base
      return Base(node: .subquery(path.node, variable: name, predicate(inner, depth - 1)), entity: path.entity)
    }
    return path
  }

  private static let numbers: Set<AttributeType> = [.integer16, .integer32, .integer64, .boolean, .double, .float]
  private static let texts: Set<AttributeType> = [.string, .uri]

  private mutating func attribute(_ base: Base, _ types: Set<AttributeType>) -> ExpressionNode? {
    let start = one(base)
    if dice.chance(8), let members = many(base, 0) {
      let index: ElementIndex = dice.pick([.first, .last, .position(1), .position(7), .position(-1)])
      guard let name = attributes(members.entity, types).randomElement(using: &dice) else { return nil }
      return step(.element(members.node, index), [.key(name)])
    }
    return attributes(start.entity, types).randomElement(using: &dice).map { step(start.node, [.key($0)]) }
  }

  // MARK: Values

  mutating func number(_ base: Base, _ depth: Int) -> ExpressionNode {
    if depth <= 0 || dice.chance(25) {
      if dice.chance(60), let path = attribute(base, Self.numbers) { return path }
      return constantNumber()
    }
    switch dice.below(12) {
    case 0, 1, 2:
      let operation = dice.pick(ArithmeticOperator.allCases)
      return .arithmetic(operation, number(base, depth - 1), number(base, depth - 1))
    case 3: return .negated(number(base, depth - 1))
    case 4:
      let functions: [ExpressionFunction] = [
        .absolute, .ceiling, .floor, .truncate, .squareRoot, .logarithm, .naturalLogarithm, .exponential,
      ]
      if dice.chance(20) { return getter(base, depth) }
      return .function(dice.pick(functions), [number(base, depth - 1)])
    case 5: return .function(.modulus, [number(base, depth - 1), number(base, depth - 1)])
    case 6:
      if dice.chance(50) { return bits(base, depth) }
      return .function(.length, [text(base, depth - 1)])
    case 7: return .ternary(predicate(base, depth - 1), number(base, depth - 1), number(base, depth - 1))
    case 8: return .cast(text(base, depth - 1), dice.pick([.number, .integer32, .integer64, .double, .boolean]))
    case 9:
      let targets: [CastTarget] = [.number, .integer16, .integer32, .integer64, .double, .float, .boolean]
      return .cast(number(base, depth - 1), dice.pick(targets))
    default: return aggregate(base, depth) ?? constantNumber()
    }
  }

  /// Returns bit operations on integers, occasionally on other values, which fail in each possible case.
  private mutating func bits(_ base: Base, _ depth: Int) -> ExpressionNode {
    func integer(_ nodes: inout RandomNodes) -> ExpressionNode {
      nodes.attribute(base, [.integer16, .integer32, .integer64, .boolean])
        ?? .constant(.integer(nodes.dice.pick(ExpressionWorld.integers)))
    }
    let function: ExpressionFunction = dice.pick([
      .bitwiseAnd, .bitwiseOr, .bitwiseXor, .leftShift, .rightShift, .onesComplement,
    ])
    if function == .onesComplement { return .function(function, [integer(&self)]) }
    let isShift = function == .leftShift || function == .rightShift
    let right = isShift && dice.chance(70) ? .constant(.integer(Int64(dice.below(64)))) : integer(&self)
    return .function(function, [integer(&self), right])
  }

  /// Returns a getter of a number.
  private mutating func getter(_ base: Base, _ depth: Int) -> ExpressionNode {
    let names: [ValueGetter] = [.intValue, .integerValue, .shortValue, .floatValue, .doubleValue, .boolValue]
    if dice.chance(40) {
      let getter: ValueGetter = dice.pick([.intValue, .integerValue, .doubleValue, .boolValue, .length])
      return step(text(base, depth - 1), [.key(getter.rawValue)])
    }
    if dice.chance(20), let path = attribute(base, [.date]) { return step(path, [.key("timeIntervalSince1970")]) }
    return step(number(base, depth - 1), [.key(dice.pick(names).rawValue)])
  }

  private mutating func constantNumber() -> ExpressionNode {
    if dice.chance(8) { return .constant(.null) }
    return .constant(
      dice.chance(65)
        ? .integer(dice.pick(ExpressionWorld.integers)) : .double(dice.pick(ExpressionWorld.doubles)))
  }

  private mutating func aggregate(_ base: Base, _ depth: Int) -> ExpressionNode? {
    if dice.chance(15) {
      let members = (0..<Int.random(in: 1...3, using: &dice)).map { _ in number(base, 0) }
      return .function(
        dice.pick([.count, .sum, .min, .max, .average, .median, .standardDeviation]), [.aggregate(members)])
    }
    guard let members = many(base, depth - 1) else { return nil }
    if dice.chance(25) { return step(members.node, [.collection(.count)]) }
    if dice.chance(10) { return .element(members.node, .size) }
    var end = members
    if dice.chance(25), let next = toOnes(end.entity).randomElement(using: &dice) {
      end = Base(node: step(end.node, [.key(next.name)]), entity: next.destinationEntityName)
    }
    guard let name = attributes(end.entity, Self.numbers).randomElement(using: &dice) else { return nil }
    if dice.chance(35) {
      let path = step(end.node, [.key(name)] + (dice.chance(20) ? [.key("doubleValue")] : []))
      if dice.chance(15) { return step(path, [.collection(dice.pick([.sum, .max])), .key("self")]) }
      if dice.chance(15) { return step(path, [.collection(.count)]) }
      return .function(
        dice.pick([.count, .sum, .min, .max, .average, .median, .standardDeviation]), [path])
    }
    return step(members.node, [.collection(dice.pick([.sum, .min, .max, .average]))] + tail(members, name))
  }

  private mutating func tail(_ members: Base, _ name: String) -> [KeyPathStep] {
    if attributes(members.entity, Self.numbers).contains(name) { return [.key(name)] }
    return attributes(members.entity, Self.numbers).first.map { [.key($0)] } ?? [.key("missing")]
  }

  mutating func text(_ base: Base, _ depth: Int) -> ExpressionNode {
    if depth <= 0 || dice.chance(40) {
      if dice.chance(65), let path = attribute(base, Self.texts) { return path }
      return .constant(dice.chance(8) ? .null : .string(dice.pick(ExpressionWorld.texts)))
    }
    switch dice.below(7) {
    case 5: return .function(.concatenate, (0..<2 + dice.below(4)).map { _ in text(base, depth - 1) })
    case 0: return .function(.uppercase, [text(base, depth - 1)])
    case 1:
      if dice.chance(30) { return .function(.canonical, [text(base, depth - 1)]) }
      if dice.chance(30) { return step(number(base, depth - 1), [.key("stringValue")]) }
      return .function(.lowercase, [text(base, depth - 1)])
    case 2: return .cast(number(base, depth - 1), .string)
    case 3: return step(one(base).node, [.objectPath])
    case 4: return attribute(base, [.uuid]).map { .cast($0, .string) } ?? .constant(.string("u"))
    default: return .ternary(predicate(base, depth - 1), text(base, depth - 1), text(base, depth - 1))
    }
  }

  mutating func date(_ base: Base, _ depth: Int) -> ExpressionNode {
    switch dice.below(depth > 0 ? 6 : 3) {
    case 0: return .function(.now, [])
    case 1: return .constant(.date(dice.pick([0, 10.11, 7, -3])))
    case 3: return .arithmetic(dice.pick([.add, .subtract]), date(base, depth - 1), .constant(.integer(60)))
    case 4: return .cast(.constant(.integer(dice.pick([0, 7]))), .date)
    default: return attribute(base, [.date]) ?? .function(.now, [])
    }
  }

  private mutating func decimal(_ base: Base, _ depth: Int) -> ExpressionNode {
    let path = attribute(base, [.decimal]) ?? .constant(.decimal("10.11"))
    return depth > 0 && dice.chance(40)
      ? .arithmetic(dice.pick([.add, .multiply]), path, .constant(.integer(3))) : path
  }

  /// Returns two expressions that may be compared.
  private mutating func pair(_ base: Base, _ depth: Int) -> (ExpressionNode, ExpressionNode, isText: Bool) {
    switch dice.below(12) {
    case 0, 1, 2, 3: return (number(base, depth), number(base, depth), false)
    case 4, 5, 6: return (text(base, depth), text(base, depth), true)
    case 7: return (date(base, depth), date(base, depth), false)
    case 8: return (decimal(base, depth), dice.chance(50) ? decimal(base, 0) : number(base, 0), false)
    case 9:
      let left = attribute(base, [.uuid]) ?? .constant(.uuid([UInt8](repeating: 1, count: 16)))
      return (left, .constant(.uuid([UInt8](repeating: 1, count: 16))), false)
    case 10: return (attribute(base, [.binary]) ?? .constant(.data([])), .constant(.data([1])), false)
    default:
      let object = one(base)
      return (object.node, dice.chance(50) ? .constant(.null) : one(base).node, false)
    }
  }

  // MARK: Predicates

  mutating func predicate(_ base: Base, _ depth: Int) -> PredicateNode {
    if depth > 0, dice.chance(35) {
      let parts = (0..<Int.random(in: 1...3, using: &dice)).map { _ in predicate(base, depth - 1) }
      switch dice.below(3) {
      case 0: return .and(parts)
      case 1: return .or(parts)
      default: return .not(parts[0])
      }
    }
    if dice.chance(3) { return .constant(dice.chance(50)) }
    if dice.chance(30), let quantified = quantified(base, depth) { return quantified }
    let (left, right, isText) = pair(base, depth - 1)
    return .comparison(comparison(left, right, isText: isText, .direct, base))
  }

  private mutating func quantified(_ base: Base, _ depth: Int) -> PredicateNode? {
    guard let members = many(base, depth - 1) else { return nil }
    var end = members
    if dice.chance(20), let next = toOnes(end.entity).randomElement(using: &dice) {
      end = Base(node: step(end.node, [.key(next.name)]), entity: next.destinationEntityName)
    }
    let isText = dice.chance(50)
    guard let name = attributes(end.entity, isText ? Self.texts : Self.numbers).randomElement(using: &dice) else {
      return nil
    }
    let left = step(end.node, [.key(name)])
    if dice.chance(20) {
      // The reverse: whether the collection contains a value.
      let value = isText ? text(base, 0) : number(base, 0)
      return .comparison(
        dice.chance(50)
          ? Comparison(value, .in, left, ignoresCase: isText && dice.chance(30))
          : Comparison(left, .contains, value, ignoresCase: isText && dice.chance(30)))
    }
    let right = isText ? text(base, 0) : number(base, 1)
    return .comparison(comparison(left, right, isText: isText, dice.pick([.any, .all, .none]), base))
  }

  private mutating func comparison(
    _ left: ExpressionNode, _ right: ExpressionNode, isText: Bool, _ modifier: Comparison.Modifier, _ base: Base
  ) -> Comparison {
    var operations: [Comparison.Operator] = [.equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual]
    if isText { operations += [.beginsWith, .contains, .endsWith, .like, .matches, .in, .between] }
    let operation = dice.pick(operations)
    var right = right
    switch operation {
    case .in: right = .aggregate([right] + (0..<dice.below(4)).map { _ in text(base, 0) })
    case .between: right = .aggregate([text(base, 0), right])
    case .like: if dice.chance(70) { right = .constant(.string(dice.pick(Self.wildcards))) }
    case .matches: right = .constant(.string(dice.pick(Self.patterns)))
    default: break
    }
    return Comparison(
      left, operation, right, modifier: modifier, ignoresCase: isText && dice.chance(30),
      ignoresDiacritics: isText && dice.chance(30))
  }

  private static let wildcards = [
    "a*", "*b", "*a*", "a?b", "?", "*", "a\\*b", "a\\?b", "a[b", "**b*", "😀", "é*", "a*b*",
  ]
  private static let patterns = ["a.*", "[a-c]+", "\\d+", ".", "(a|ä)b?", "", "\\w*", "[^a]{1,3}", "ß|ss"]
}
