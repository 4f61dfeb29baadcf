// Random chains from a seed: versions with changes that lightweight migration allows, some of the hops
// with a mapping model of inferred values and random expressions, filters and look-ups; and rows that no app would
// write, with values of the wrong type.

import Diagnostics
import Expressions
import ManagedObjectModel
import PersistentStore
import SQLite
import SeededRandom
import SystemPackage

@testable import MappingModel

/// One random chain.
struct ChainWorld {
  let seed: UInt64
  /// From the store's version to the last one.
  let versions: [ManagedObjectModel]
  /// Text mappings by the index of their hop.
  let mappings: [Int: String]
  let framework: Int64
  private var dice: Dice

  /// nil if the world's chain cannot be made.
  init?(seed: UInt64) {
    self.seed = seed
    dice = Dice(seed: seed &* 977)
    framework = [637, 866, 1044, 1344][Int(seed % 4)]
    var models = RandomModels(seed: seed)
    var versions = [models.model("V1")]
    var mappings: [Int: String] = [:]
    for index in 0..<Int.random(in: 2...4, using: &dice) {
      let before = versions[index]
      // Several random changes together may be refused; then others are tried.
      let next = (0..<8).lazy.compactMap { attempt -> RandomModels? in
        var next = models
        for _ in 0...attempt { next.evolve() }
        let after = next.model("V\(index + 2)")
        // Most changes that the rows decide about would end the world.
        return (try? MappingInference.infer(from: before, to: after))?.conditions.isEmpty == true
          && after.versionHashes != before.versionHashes
          ? next : nil
      }.first
      guard let next else { return nil }
      models = next
      let after = models.model("V\(index + 2)")
      versions.append(after)
      guard dice.chance(55) else { continue }
      guard let text = ChainWorld.mapping(from: before, to: after, &dice) else { return nil }
      mappings[index] = text
    }
    guard Set(versions.map(\.versionHashes)).count == versions.count,
      StoreSchema(model: versions[0], frameworkVersion: framework).unsupported.isEmpty
    else { return nil }
    self.versions = versions
    self.mappings = mappings
  }

  /// The ends that name tables of pairs within one entity, which moves within a hierarchy may make.
  var naming: JoinTableNaming {
    JoinTableNaming(
      Set(
        versions.flatMap {
          StoreSchema(model: $0, frameworkVersion: framework).uncertainJoinTables.map { "\($0.entity).\($0.computed)" }
        }))
  }

  // MARK: Mapping models

  /// Returns the inferred mapping between two versions, with random changes that can be followed; nil if there is none.
  private static func mapping(
    from before: ManagedObjectModel, to after: ManagedObjectModel, _ dice: inout Dice
  ) -> String? {
    guard let text = try? InferredTextMapping.text(from: before, to: after),
      let plain = try? TextMapping(text: text, file: "/plain.hopmap.toml")
        .load(source: before, destination: after, beside: []).mapping
    else { return nil }
    for _ in 0..<6 {
      var generator = FusionMappings(source: before, destination: after, dice: dice)
      let changed = generator.changed(plain)
      dice = generator.dice
      guard MappingChecker.findings(in: [changed], source: before, destination: after).isEmpty,
        let text = try? changed.text(source: before, destination: after),
        let read = try? TextMapping(text: text, file: "/changed.hopmap.toml")
          .load(source: before, destination: after, beside: []).mapping,
        MappingChecker.findings(in: [read], source: before, destination: after).isEmpty
      else { continue }
      return text
    }
    return text
  }

  // MARK: Rows

  /// Spoils some values of a store: other types, limits, NULL.
  mutating func spoil(_ connection: Connection) throws {
    let schema = StoreSchema(model: versions[0], frameworkVersion: framework)
    let relationships = Set(versions[0].entities.flatMap(\.relationships).map { "Z" + $0.name.uppercased() })
    let values = [
      "'5'", "'x'", "5.0", "5.5", "x'35'", "1e300", "''", "NULL", "9007199254740993", "'1e3'", "'-0'", "-1", "x''",
    ]
    for table in schema.tables {
      let columns = try connection.rows("SELECT name, type FROM pragma_table_info(?)", [.text(table.name)]) {
        ($0.text(at: 0) ?? "", $0.text(at: 1) ?? "")
      }
      for (name, type) in columns
      where !name.hasPrefix("Z_") && type != "BLOB" && !relationships.contains(name) && dice.chance(40) {
        for _ in 0..<Int.random(in: 1...3, using: &dice) {
          let value = values.randomElement(using: &dice) ?? "NULL"
          let every = Int.random(in: 2...9, using: &dice)
          try connection.execute(
            "UPDATE \(SQLiteIdentifier.quoted(table.name)) SET \(SQLiteIdentifier.quoted(name)) = \(value)"
              + " WHERE Z_PK % \(every) = \(Int.random(in: 0..<every, using: &dice))")
        }
      }
    }
  }
}

/// Changes mapping models at random.
private struct FusionMappings {
  let source: ManagedObjectModel
  let destination: ManagedObjectModel
  var dice: Dice

  mutating func changed(_ mapping: ExplicitMapping) -> ExplicitMapping {
    var entities: [ExplicitEntityMapping] = []
    for entity in mapping.entityMappings {
      let changed = changed(entity)
      entities.append(changed)
      if dice.chance(8), let half = half(of: changed) { entities.append(half) }
    }
    return ExplicitMapping(
      name: mapping.name, path: mapping.path, sourceVersion: mapping.sourceVersion,
      destinationVersion: mapping.destinationVersion, entityMappings: entities)
  }

  private mutating func changed(_ mapping: ExplicitEntityMapping) -> ExplicitEntityMapping {
    guard let from = mapping.source.flatMap({ source.entity(named: $0) }),
      let to = mapping.destination.flatMap({ destination.entity(named: $0) })
    else { return mapping }
    let known = destination.allAttributes(of: to)
    var attributes: [ExplicitPropertyMapping] = []
    for attribute in mapping.attributes {
      guard let wanted = known[attribute.name], dice.chance(45), let value = value(of: wanted, from: from) else {
        attributes.append(attribute)
        continue
      }
      attributes.append(ExplicitPropertyMapping(name: attribute.name, value: .expression(value)))
    }
    let relationships = mapping.relationships.filter { _ in !dice.chance(8) }
    return ExplicitEntityMapping(
      name: mapping.name, type: .transform, source: mapping.source, destination: mapping.destination,
      filter: dice.chance(15) ? filter(from) : nil, attributes: attributes, relationships: relationships,
      grouping: grouping(from))
  }

  /// Returns another object of the same source object, without relationships.
  private mutating func half(of mapping: ExplicitEntityMapping) -> ExplicitEntityMapping? {
    let concrete = destination.entities.filter { !$0.isAbstract }
    guard let from = mapping.source.flatMap({ source.entity(named: $0) }),
      let to = concrete.randomElement(using: &dice)
    else { return nil }
    let wanted = destination.allAttributes(of: to).values.filter { !$0.isTransient && !$0.isDerived }
      .sorted { $0.name < $1.name }
    var attributes: [ExplicitPropertyMapping] = []
    for attribute in wanted {
      guard let value = value(of: attribute, from: from) else { continue }
      attributes.append(ExplicitPropertyMapping(name: attribute.name, value: .expression(value)))
    }
    return ExplicitEntityMapping(
      name: "Half of \(mapping.name)", type: .transform, source: mapping.source, destination: to.name,
      attributes: attributes)
  }

  private mutating func grouping(_ from: Entity) -> SourceGrouping {
    guard dice.chance(5), let key = stored(from).filter({ $0.type == .string }).randomElement(using: &dice) else {
      return .each
    }
    return .deduplicate(by: [path(key.name)], keep: .lowest)
  }

  private mutating func filter(_ from: Entity) -> SourceFilter? {
    guard let attribute = stored(from).randomElement(using: &dice) else { return nil }
    let key = ExpressionNode.keyPath(.selfObject, [.key(attribute.name)])
    let isNumber = [.integer16, .integer32, .integer64, .double, .float].contains(attribute.type)
    let predicate = PredicateNode.comparison(
      isNumber
        ? Comparison(key, .less, .constant(.integer(Int64.random(in: 1...900, using: &dice))))
        : Comparison(key, .notEqual, .constant(.null)))
    return SourceFilter(text: predicate.description, predicate: predicate)
  }

  // MARK: Expressions

  private func path(_ steps: String...) -> ExpressionNode { .keyPath(.variable("source"), steps.map { .key($0) }) }

  private func stored(_ entity: Entity) -> [Attribute] {
    source.allAttributes(of: entity).values.filter { !$0.isTransient && !$0.isDerived }.sorted { $0.name < $1.name }
  }

  /// Returns a value of the attribute's type.
  private mutating func value(of wanted: Attribute, from: Entity) -> ExpressionNode? {
    if wanted.isOptional, dice.chance(5) { return .constant(.null) }
    guard let operand = operand(of: wanted.type, from: from) else { return text(of: wanted, from: from) }
    switch wanted.type {
    case .integer16, .integer32, .integer64:
      switch Int.random(in: 0..<5, using: &dice) {
      case 0: return operand
      case 1:
        let small = PredicateNode.comparison(Comparison(operand, .less, .constant(.integer(1000))))
        return .ternary(small, .arithmetic(.add, operand, .constant(.integer(1))), operand)
      case 2: return .constant(.integer(Int64.random(in: -3...99, using: &dice)))
      case 3: return .ternary(isNil(operand), .constant(.integer(7)), operand)
      default: return operand
      }
    case .double, .float:
      return dice.chance(50) ? .arithmetic(.multiply, operand, .constant(.double(0.5))) : operand
    case .string:
      switch Int.random(in: 0..<5, using: &dice) {
      case 0: return .function(.concatenate, [operand, .constant(.string("-x"))])
      case 1: return .function(.uppercase, [operand])
      case 2: return .ternary(isNil(operand), .constant(.string("none")), operand)
      case 3: return .constant(.string("it's"))
      default: return operand
      }
    default: return operand
    }
  }

  /// Returns a number as text, for a text attribute without a text source.
  private mutating func text(of wanted: Attribute, from: Entity) -> ExpressionNode? {
    guard wanted.type == .string else { return nil }
    return operand(of: .integer32, from: from).map { .cast($0, .string) }
  }

  private func isNil(_ node: ExpressionNode) -> PredicateNode {
    .comparison(Comparison(node, .equal, .constant(.null)))
  }

  /// Returns a path to an attribute of a type: of the object, or of one that it refers to.
  private mutating func operand(of type: AttributeType, from: Entity) -> ExpressionNode? {
    let toOnes = source.allRelationships(of: from).values.filter { !$0.isToMany }.sorted { $0.name < $1.name }
    if dice.chance(30), let toOne = toOnes.randomElement(using: &dice),
      let target = source.entity(named: toOne.destinationEntityName),
      let attribute = stored(target).filter({ $0.type == type }).randomElement(using: &dice)
    {
      return path(toOne.name, attribute.name)
    }
    return stored(from).filter { $0.type == type }.randomElement(using: &dice).map { path($0.name) }
  }
}
