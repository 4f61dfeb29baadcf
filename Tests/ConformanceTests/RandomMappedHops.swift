// Random hops with mapping models, from a seed: splits, merges, filters, groups, and relationships of every kind set
// from both ends by look-ups that may or may not fit together. Every source object has its own number, `uid`, and every
// destination object has its origin in `via`, `uid` and `uid2`, so that results can be compared without keys.

import Expressions
import ManagedObjectModel
import SeededRandom
import SystemPackage

@testable import MappingModel

/// One random hop.
struct RandomMappedHop {
  private var dice: Dice
  private(set) var sourceEntities: [Entity] = []
  private(set) var destinationEntities: [Entity] = []
  private(set) var mappings: [ExplicitEntityMapping] = []
  private var counter = 0

  init(seed: UInt64) {
    dice = Dice(seed: seed)
    sourceEntities = tree("S") {
      [
        Attribute(name: "uid", type: .integer64, isOptional: true),
        Attribute(name: "flag", type: .integer16, isOptional: true),
        Attribute(name: "code", type: .string, isOptional: true),
      ]
    }
    for _ in 0..<Int.random(in: 2...5, using: &dice) { relate() }
    destinationEntities = tree("D") {
      [
        Attribute(name: "via", type: .integer64, isOptional: true),
        Attribute(name: "uid", type: .integer64, isOptional: true),
        Attribute(name: "uid2", type: .integer64, isOptional: true),
        Attribute(name: "code", type: .string, isOptional: true),
        Attribute(name: "extra", type: .integer32, isOptional: true, defaultValue: .integer(7)),
      ]
    }
    addMappings()
    for _ in 0..<Int.random(in: 2...5, using: &dice) { addDestinationRelationship() }
  }

  var source: ManagedObjectModel { ManagedObjectModel(name: "V1", entities: sourceEntities) }
  var destination: ManagedObjectModel { ManagedObjectModel(name: "V2", entities: destinationEntities) }
  var hop: MappedHop {
    MappedHop(mappings: [
      ExplicitMapping(
        name: "V1_to_V2", path: "/V1_to_V2.cdm", sourceVersion: "V1", destinationVersion: "V2", entityMappings: mappings
      )
    ])
  }

  private mutating func name(_ stem: String) -> String {
    counter += 1
    return stem + String(counter)
  }

  // MARK: Models

  private mutating func tree(_ stem: String, _ attributes: () -> [Attribute]) -> [Entity] {
    var entities: [Entity] = []
    for _ in 0..<Int.random(in: 2...3, using: &dice) {
      entities.append(Entity(name: name(stem), attributes: attributes()))
    }
    for _ in 0..<Int.random(in: 0...3, using: &dice) {
      entities.append(Entity(name: name(stem), parentName: entities.randomElement(using: &dice)?.name))
    }
    return entities
  }

  private mutating func relate() {
    var entities = sourceEntities
    defer { sourceEntities = entities }
    guard let left = entities.indices.randomElement(using: &dice),
      let right = entities.indices.randomElement(using: &dice)
    else { return }
    let kind = Int.random(in: 0..<7, using: &dice)
    let isTwoWay = kind < 5
    let (isToMany, isInverseToMany) = [
      (true, false), (true, false), (true, true), (false, false), (true, false), (false, false), (true, false),
    ][kind]
    add(
      to: &entities, left, right, isTwoWay: isTwoWay, isToMany: isToMany, isInverseToMany: isInverseToMany,
      isOrdered: dice.chance(40), isInverseOrdered: dice.chance(40))
  }

  @discardableResult
  private mutating func add(
    to entities: inout [Entity], _ left: Int, _ right: Int, isTwoWay: Bool, isToMany: Bool, isInverseToMany: Bool,
    isOrdered: Bool, isInverseOrdered: Bool
  ) -> (String, String?)? {
    let (first, second) = (name("r"), name("r"))
    let (a, b) = (entities[left].name, entities[right].name)
    // The name of a table of pairs inside one entity is uncertain; this and the one-way form have their own tests.
    if left == right, isToMany, isInverseToMany || !isTwoWay { return nil }
    entities[left].relationships.append(
      Relationship(
        name: first, destinationEntityName: b, inverseName: isTwoWay ? second : nil, isToMany: isToMany,
        isOrdered: isToMany && isTwoWay && isOrdered))
    if isTwoWay {
      entities[right].relationships.append(
        Relationship(
          name: second, destinationEntityName: a, inverseName: first, isToMany: isInverseToMany,
          isOrdered: isInverseToMany && isInverseOrdered))
    }
    return (first, isTwoWay ? second : nil)
  }

  // MARK: Mappings

  private func key(_ name: String, of variable: String = "source") -> ExpressionNode {
    .keyPath(.variable(variable), [.key(name)])
  }

  private mutating func filter() -> SourceFilter? {
    guard dice.chance(30) else { return nil }
    let predicate: PredicateNode =
      dice.chance(50)
      ? .comparison(
        Comparison(.keyPath(.selfObject, [.key("flag")]), dice.chance(50) ? .equal : .notEqual, .constant(.integer(1))))
      : .comparison(Comparison(.keyPath(.selfObject, [.key("uid")]), .less, .constant(.integer(1030))))
    return SourceFilter(text: "", predicate: predicate)
  }

  private mutating func keepRule() -> KeepRule {
    [.lowest, .highest, .latest(key("flag"))].randomElement(using: &dice) ?? .lowest
  }

  private mutating func grouping(_ entity: Entity) -> SourceGrouping {
    switch Int.random(in: 0..<12, using: &dice) {
    case 0: return .distinctBy([key("code")], keep: keepRule())
    case 1: return .deduplicate(by: dice.chance(50) ? [key("code")] : [key("code"), key("flag")], keep: keepRule())
    case 2, 3:
      let many = source.allRelationships(of: entity).values.filter(\.isToMany).sorted { $0.name < $1.name }
      guard let relationship = many.randomElement(using: &dice) else { return .each }
      return .expand(key(relationship.name), entity: relationship.destinationEntityName)
    default: return .each
    }
  }

  private mutating func addMappings() {
    for entity in sourceEntities {
      for _ in 0..<([0, 1, 1, 1, 1, 1, 1, 2, 2, 3].randomElement(using: &dice) ?? 1) {
        guard let to = destinationEntities.randomElement(using: &dice) else { continue }
        let index = mappings.count
        let grouping = grouping(entity)
        var attributes = [
          ExplicitPropertyMapping(name: "via", value: .expression(.constant(.integer(Int64(index))))),
          ExplicitPropertyMapping(name: "uid", value: .expression(key("uid"))),
          ExplicitPropertyMapping(name: "extra", value: dice.chance(50) ? nil : .expression(.constant(.null))),
        ]
        if case .expand = grouping {
          attributes.append(ExplicitPropertyMapping(name: "uid2", value: .expression(key("uid", of: "each"))))
        }
        let toOnes = source.allRelationships(of: entity).values.filter { !$0.isToMany }.sorted { $0.name < $1.name }
        if let toOne = toOnes.randomElement(using: &dice), dice.chance(30) {
          attributes.append(
            ExplicitPropertyMapping(
              name: "code", value: .expression(.keyPath(.variable("source"), [.key(toOne.name), .key("code")]))))
        } else if dice.chance(80) {
          attributes.append(ExplicitPropertyMapping(name: "code", value: .expression(key("code"))))
        }
        mappings.append(
          ExplicitEntityMapping(
            name: "M\(index)", type: .transform, source: entity.name, destination: to.name, filter: filter(),
            attributes: attributes, grouping: grouping))
      }
    }
  }

  private func isKind(_ entity: String, of other: String, in model: ManagedObjectModel) -> Bool {
    model.entity(named: entity).map { model.lineage(of: $0).contains { $0.name == other } } ?? false
  }

  /// Adds a relationship that roughly continues one of the source, and its setters on both ends.
  private mutating func addDestinationRelationship() {
    guard let mapping = mappings.randomElement(using: &dice), let from = mapping.source, let to = mapping.destination,
      let entity = source.entity(named: from),
      let before = source.allRelationships(of: entity).values.sorted(by: { $0.name < $1.name })
        .randomElement(using: &dice)
    else { return }
    let others = mappings.filter { isKind($0.source ?? "", of: before.destinationEntityName, in: source) }
    guard let other = others.randomElement(using: &dice), let target = other.destination else { return }
    let model = destination
    var ends: [String] = []
    for name in [to, target] {
      ends.append(model.entity(named: name).flatMap { model.lineage(of: $0).randomElement(using: &dice)?.name } ?? name)
    }
    guard let left = destinationEntities.firstIndex(where: { $0.name == ends.first }),
      let right = destinationEntities.firstIndex(where: { $0.name == ends.last })
    else { return }
    let inverse = source.inverse(of: before)?.relationship
    let isAlike = dice.chance(88)
    var entities = destinationEntities
    guard
      let names = add(
        to: &entities, left, right, isTwoWay: isAlike ? inverse != nil : dice.chance(70),
        isToMany: isAlike ? before.isToMany : dice.chance(50),
        isInverseToMany: isAlike ? inverse?.isToMany ?? false : dice.chance(50),
        isOrdered: isAlike ? before.isOrdered : dice.chance(40),
        isInverseOrdered: isAlike ? inverse?.isOrdered ?? false : dice.chance(40))
    else { return }
    destinationEntities = entities
    let isPolymorphic = dice.chance(40)
    setAll(names.0, from: before, isPolymorphic: isPolymorphic)
    if let name = names.1, dice.chance(70) {
      setAll(name, from: inverse ?? before, isPolymorphic: dice.chance(70) ? isPolymorphic : !isPolymorphic)
    }
  }

  /// Sets the relationship in every mapping whose objects have it.
  private mutating func setAll(_ name: String, from before: Relationship, isPolymorphic: Bool) {
    for index in mappings.indices {
      guard let to = mappings[index].destination, let entity = destination.entity(named: to),
        let relationship = destination.allRelationships(of: entity)[name],
        let value = value(for: relationship, of: mappings[index], from: before, isPolymorphic: isPolymorphic)
      else { continue }
      let mapping = mappings[index]
      mappings[index] = ExplicitEntityMapping(
        name: mapping.name, type: mapping.type, source: mapping.source, destination: mapping.destination,
        filter: mapping.filter, attributes: mapping.attributes,
        relationships: (mapping.relationships
          + [ExplicitPropertyMapping(name: name, value: value, isCopied: isCopied(value))]).sorted {
            $0.name < $1.name
          }, grouping: mapping.grouping)
    }
  }

  /// Whether a text mapping would have copied it: only plain look-ups can be copies.
  private mutating func isCopied(_ value: PropertyValue) -> Bool {
    guard case .expression(.destinationInstances(_, .keyPath(.variable("source"), let steps))) = value else {
      return false
    }
    return steps.count == 1 && dice.chance(35)
  }

  private mutating func value(
    for relationship: Relationship, of mapping: ExplicitEntityMapping, from before: Relationship, isPolymorphic: Bool
  ) -> PropertyValue? {
    guard let from = mapping.source, let entity = source.entity(named: from) else { return nil }
    let own = source.allRelationships(of: entity)
    let fitting = mappings.filter {
      isKind($0.destination ?? "", of: relationship.destinationEntityName, in: destination)
    }
    switch Int.random(in: 0..<20, using: &dice) {
    case 0: return .expression(.constant(.null))
    case 1: return nil
    case 2:
      guard let other = fitting.filter({ $0.source == from }).randomElement(using: &dice) else { return nil }
      return .expression(.destinationInstances(.entityMapping(other.name), .variable("source")))
    case 3:
      let grouped = fitting.filter { if case .distinctBy = $0.grouping { true } else { false } }
      guard let other = grouped.randomElement(using: &dice) else { break }
      return .grouped(mapping: other.name, keys: [key("code")])
    case 4:
      let attribute = dice.chance(70) ? "uid" : "code"
      return .matching(entity: relationship.destinationEntityName, attribute: attribute, key: key(attribute))
    case 5: return path(for: relationship, entity: entity, fitting: fitting)
    default: break
    }
    let natural = own[before.name] ?? own.values.sorted { $0.name < $1.name }.randomElement(using: &dice)
    guard let used = natural, own[before.name] != nil || dice.chance(40) else { return nil }
    if isPolymorphic { return .expression(.destinationInstances(.sourceRelationship(used.name), key(used.name))) }
    let possible = fitting.filter { isKind($0.source ?? "", of: used.destinationEntityName, in: source) }
    guard let other = possible.randomElement(using: &dice) else { return nil }
    return .expression(.destinationInstances(.entityMapping(other.name), key(used.name)))
  }

  /// Returns a path of two relationships.
  private mutating func path(
    for relationship: Relationship, entity: Entity, fitting: [ExplicitEntityMapping]
  ) -> PropertyValue? {
    guard
      let first = source.allRelationships(of: entity).values.sorted(by: { $0.name < $1.name }).randomElement(
        using: &dice),
      let middle = source.entity(named: first.destinationEntityName),
      let second = source.allRelationships(of: middle).values.sorted(by: { $0.name < $1.name })
        .randomElement(using: &dice),
      let other = fitting.filter({ isKind($0.source ?? "", of: second.destinationEntityName, in: source) })
        .randomElement(using: &dice)
    else { return nil }
    let steps: [KeyPathStep] =
      first.isToMany && second.isToMany
      ? [.key(first.name), .collection(.distinctUnionOfSets), .key(second.name)]
      : [.key(first.name), .key(second.name)]
    return .expression(.destinationInstances(.entityMapping(other.name), .keyPath(.variable("source"), steps)))
  }
}
