// Random models of every shape that a store can have, including shapes that RandomModels leaves out because their
// changes cannot be inferred: these models never change. A failure prints its seed.

import SeededRandom

@testable import ManagedObjectModel

/// One random model, and the same model again with other version hashes.
struct RandomShapes {
  private var dice: Dice
  private var counter = 0
  private var entities: [Entity] = []
  /// Ends that name a self many-to-many table, "Entity.relationship".
  private(set) var namingEnds: Set<String> = []

  init(seed: UInt64) {
    dice = Dice(seed: seed)
    for _ in 0..<Int.random(in: 1...4, using: &dice) { addEntity(parent: nil) }
    for _ in 0..<Int.random(in: 0...5, using: &dice) {
      if let parent = entities.randomElement(using: &dice) { addEntity(parent: parent.name) }
    }
    for _ in 0..<Int.random(in: 0...8, using: &dice) { addRelationship() }
    addClashes()
    for index in entities.indices { addIndexesAndConstraints(index) }
    addDerivedCounts()
    addDerivedValues()
  }

  /// Returns the model; `modifier` changes every version hash and nothing else.
  func model(_ name: String, modifier: String? = nil) -> ManagedObjectModel {
    var entities = entities
    for index in entities.indices { entities[index].versionHashModifier = modifier }
    return ManagedObjectModel(name: name, entities: entities)
  }

  private mutating func name(_ stem: String) -> String {
    counter += 1
    let odd = ["", "", "", "_", "Order", "select", "group", "Z", "_PK"].randomElement(using: &dice) ?? ""
    return stem + odd + String(counter)
  }

  private mutating func addEntity(parent: String?) {
    // Names in both cases: numbers follow a case-insensitive order.
    var entity = Entity(
      name: name(["E", "e", "Entity", "a"].randomElement(using: &dice) ?? "E"), parentName: parent,
      isAbstract: dice.chance(12))
    for _ in 0..<Int.random(in: 0...7, using: &dice) { entity.attributes.append(attribute()) }
    if dice.chance(10) {
      entity.fetchedProperties.append(FetchedProperty(name: name("f"), fetchEntityName: entity.name))
    }
    if dice.chance(10) { entity.userInfo = ["key": "value"] }
    entities.append(entity)
  }

  private mutating func attribute() -> Attribute {
    guard dice.chance(7) else { return plainAttribute() }
    var composite = Attribute(name: name("c"), type: .composite, isOptional: dice.chance(60))
    composite.elements = (0..<Int.random(in: 1...5, using: &dice)).map { _ in
      var element = plainAttribute()
      // Elements may have the names of the entity's properties.
      if dice.chance(20) { element.name = "text\(counter)" }
      element.isIndexed = false
      return element
    }
    return composite
  }

  private mutating func plainAttribute() -> Attribute {
    let types = AttributeType.allCases.filter { ![.undefined, .objectID, .composite].contains($0) }
    let type = types.randomElement(using: &dice) ?? .string
    return Attribute(
      name: name("a"), type: type, isOptional: dice.chance(60), isTransient: dice.chance(5),
      versionHashModifier: dice.chance(5) ? "m" : nil, isIndexed: dice.chance(15),
      allowsExternalStorage: type == .binary && dice.chance(40), preservesAfterDeletion: dice.chance(5))
  }

  private mutating func addRelationship() {
    guard let left = entities.indices.randomElement(using: &dice),
      let right = entities.indices.randomElement(using: &dice)
    else { return }
    let (first, second) = (name("r"), name("r"))
    let (a, b) = (entities[left].name, entities[right].name)
    let rule: Relationship.DeleteRule = [.nullify, .cascade, .deny, .noAction].randomElement(using: &dice) ?? .nullify
    func add(_ index: Int, _ relationship: Relationship) { entities[index].relationships.append(relationship) }
    switch Int.random(in: 0..<8, using: &dice) {
    case 0, 1, 2:
      add(
        left,
        Relationship(
          name: first, destinationEntityName: b, inverseName: second, isToMany: true, isOrdered: dice.chance(40),
          maxCount: dice.chance(20) ? 9 : nil, deleteRule: rule))
      add(right, Relationship(name: second, destinationEntityName: a, inverseName: first, deleteRule: rule))
    case 3, 4:
      add(
        left,
        Relationship(
          name: first, destinationEntityName: b, inverseName: second, isToMany: true, isOrdered: dice.chance(40)))
      add(
        right,
        Relationship(
          name: second, destinationEntityName: a, inverseName: first, isToMany: true, isOrdered: dice.chance(40)))
      if left == right { namingEnds.insert("\(a).\(dice.chance(50) ? first : second)") }
    case 5: add(left, Relationship(name: first, destinationEntityName: b))
    case 6:
      add(left, Relationship(name: first, destinationEntityName: b, isToMany: true, isOrdered: dice.chance(40)))
    default:
      // One to one; within an entity sometimes its own inverse.
      if left == right, dice.chance(50) {
        add(left, Relationship(name: first, destinationEntityName: a, inverseName: first, isToMany: dice.chance(50)))
      } else {
        add(left, Relationship(name: first, destinationEntityName: b, inverseName: second))
        add(right, Relationship(name: second, destinationEntityName: a, inverseName: first))
      }
    }
  }

  /// Adds names for the same column: in sibling entities, and in another case.
  private mutating func addClashes() {
    guard dice.chance(40) else { return }
    let shared = name("text")
    for index in entities.indices where dice.chance(60) {
      guard !hasProperty(shared, at: index) else { continue }
      entities[index].attributes.append(Attribute(name: shared, type: .string, isOptional: true))
      if dice.chance(30) {
        let upper = shared.uppercased()
        guard upper != shared, !hasProperty(upper, at: index) else { continue }
        entities[index].attributes.append(Attribute(name: upper, type: .integer32, isOptional: true))
      }
    }
  }

  /// Whether the entity, or one above or below it, has the property.
  private func hasProperty(_ property: String, at index: Int) -> Bool {
    let model = ManagedObjectModel(name: "", entities: entities)
    let entity = entities[index]
    return (model.lineage(of: entity) + model.subtree(of: entity)).contains { $0.hasProperty(named: property) }
  }

  private mutating func addIndexesAndConstraints(_ index: Int) {
    let stored = entities[index].attributes.filter { !$0.isTransient && !$0.isDerived }
    let plain = stored.filter { ![.binary, .transformable, .composite].contains($0.type) }
    if dice.chance(25), plain.count > 1 {
      entities[index].compoundIndexes.append(plain.shuffled(using: &dice).prefix(2).map(\.name))
    }
    if dice.chance(30), let first = plain.randomElement(using: &dice) {
      var elements = [FetchIndex.Element(propertyName: first.name, isAscending: dice.chance(70))]
      if dice.chance(40), let other = plain.first(where: { $0.name != first.name }) {
        elements.append(FetchIndex.Element(propertyName: other.name, isAscending: dice.chance(50)))
      }
      // Partial ones have conditions of the forms that stores show.
      let number = plain.first { [.integer16, .integer32, .integer64, .boolean].contains($0.type) }
      let condition = dice.chance(50) ? number.map { dice.chance(50) ? "\($0.name) == 1" : "\($0.name) != nil" } : nil
      entities[index].fetchIndexes.append(
        FetchIndex(name: "by" + first.name, elements: elements, partialPredicate: condition))
    }
    let wide: Set<AttributeType> = [.string, .uri, .uuid, .integer64, .double, .date]
    if dice.chance(20), let key = plain.first(where: { wide.contains($0.type) }) {
      entities[index].uniquenessConstraints.append([key.name])
    }
  }

  /// Adds counts over to-many relationships whose other end is to-one.
  private mutating func addDerivedCounts() {
    let model = ManagedObjectModel(name: "", entities: entities)
    for index in entities.indices {
      guard dice.chance(20) else { continue }
      let counted = entities[index].relationships.first { relationship in
        relationship.isToMany && model.inverse(of: relationship).map { !$0.relationship.isToMany } == true
      }
      guard let counted else { continue }
      entities[index].attributes.append(
        Attribute(
          name: name("count"), type: .integer64, isOptional: true, derivationExpression: "\(counted.name).@count"))
    }
  }

  /// Adds attributes of to-ones' targets to entities without parent.
  private mutating func addDerivedValues() {
    let model = ManagedObjectModel(name: "", entities: entities)
    for index in entities.indices where entities[index].parentName == nil {
      let toOnes = entities[index].relationships.filter { !$0.isToMany && !$0.isTransient }
      guard dice.chance(30), let toOne = toOnes.randomElement(using: &dice),
        let destination = model.entity(named: toOne.destinationEntityName)
      else { continue }
      let candidates = model.allAttributes(of: destination).values.filter {
        !$0.isTransient && !$0.isDerived && !$0.isElement && $0.type != .composite && !$0.allowsExternalStorage
      }.sorted { $0.name < $1.name }
      guard let target = candidates.randomElement(using: &dice) else { continue }
      entities[index].attributes.append(
        Attribute(
          name: name("value"), type: target.type, isOptional: true,
          derivationExpression: "\(toOne.name).\(target.name)"))
    }
  }
}
