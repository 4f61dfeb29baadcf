// Random models and random changes that lightweight migration allows, from a seed. A failure prints its seed.

import ManagedObjectModel
import SeededRandom

/// A world of models that changes version by version. Every given name is new, so a rename never collides.
struct RandomModels {
  private var dice: Dice
  private var counter = 0
  private(set) var entities: [Entity] = []
  private let derives: Bool

  /// With `derives`, entities without parent derive an attribute of the target of each to-one.
  init(seed: UInt64, derives: Bool = false) {
    self.derives = derives
    dice = Dice(seed: seed)
    for _ in 0..<Int.random(in: 2...4, using: &dice) { addEntity(parent: nil) }
    for _ in 0..<Int.random(in: 0...3, using: &dice) { addSubentity() }
    for _ in 0..<Int.random(in: 1...5, using: &dice) { addRelationship() }
  }

  func model(_ name: String) -> ManagedObjectModel {
    ManagedObjectModel(name: name, entities: derives ? entities.map(derived) : entities)
  }

  /// Adds an attribute for each to-one; its expression follows the changes of the target.
  private func derived(_ entity: Entity) -> Entity {
    guard entity.parentName == nil else { return entity }
    var result = entity
    for relationship in entity.relationships where !relationship.isToMany {
      let target = entities.first { $0.name == relationship.destinationEntityName }?.attributes.first {
        !$0.isTransient && ![.composite, .binary].contains($0.type)
      }
      guard let target else { continue }
      result.attributes.append(
        Attribute(
          name: "d_" + relationship.name, type: target.type, isOptional: true,
          renamingIdentifier: "d_" + relationship.renamingIdentifier,
          derivationExpression: "\(relationship.name).\(target.name)"))
    }
    return result
  }

  private mutating func name(_ stem: String) -> String {
    counter += 1
    // Sometimes a name that could confuse SQL or sorting.
    let odd = ["", "", "", "_", "Order", "select", "group", "Z_"].randomElement(using: &dice) ?? ""
    return stem + odd + String(counter)
  }

  // MARK: Building

  private mutating func addEntity(parent: String?) {
    var entity = Entity(name: name("E"), parentName: parent, isAbstract: parent == nil && dice.chance(10))
    for _ in 0..<Int.random(in: 1...5, using: &dice) { entity.attributes.append(attribute()) }
    entities.append(entity)
  }

  private mutating func addSubentity() {
    guard let parent = entities.randomElement(using: &dice) else { return }
    addEntity(parent: parent.name)
  }

  /// Returns an attribute, sometimes a composite of several.
  private mutating func attribute() -> Attribute {
    guard dice.chance(8) else { return plainAttribute() }
    var composite = Attribute(name: name("c"), type: .composite, isOptional: dice.chance(70))
    composite.elements = (0..<Int.random(in: 1...4, using: &dice)).map { _ in
      var element = plainAttribute()
      element.isIndexed = false
      // In a new composite, every row has nil: a required element without default would be refused.
      if element.defaultValue == nil { element.isOptional = true }
      return element
    }
    if !composite.isOptional { composite.defaultValue = nil }
    return composite
  }

  private mutating func plainAttribute() -> Attribute {
    let types: [AttributeType] = [
      .integer16, .integer32, .integer64, .decimal, .double, .float, .string, .boolean, .date, .binary, .uuid, .uri,
      .transformable,
    ]
    let type = types.randomElement(using: &dice) ?? .string
    var value: AttributeDefault?
    if dice.chance(50) {
      switch type {
      case .integer16, .integer32, .integer64: value = .integer(Int64.random(in: -5...500, using: &dice))
      case .boolean: value = .boolean(dice.chance(50))
      case .double, .float: value = .double(Double(Int.random(in: -10...10, using: &dice)) / 4)
      case .string: value = .string(["", "it's", "\"q\"", "日本", "a\nb"].randomElement(using: &dice) ?? "")
      case .date: value = .date(Double(Int.random(in: -1000...1000, using: &dice)))
      default: break
      }
    }
    return Attribute(
      name: name("a"), type: type, isOptional: value == nil || dice.chance(60), isTransient: dice.chance(4),
      defaultValue: value, isIndexed: dice.chance(15), allowsExternalStorage: type == .binary && dice.chance(60))
  }

  private mutating func addRelationship() {
    guard let left = entities.indices.randomElement(using: &dice),
      let right = entities.indices.randomElement(using: &dice)
    else { return }
    let (first, second) = (name("r"), name("r"))
    let (a, b) = (entities[left].name, entities[right].name)
    switch Int.random(in: 0..<6, using: &dice) {
    case 0, 1, 2:  // one to many, perhaps ordered
      entities[left].relationships.append(
        Relationship(
          name: first, destinationEntityName: b, inverseName: second, isToMany: true, isOrdered: dice.chance(40)))
      entities[right].relationships.append(Relationship(name: second, destinationEntityName: a, inverseName: first))
    case 3 where left == right && dice.chance(40):  // its own inverse
      entities[left].relationships.append(
        Relationship(name: first, destinationEntityName: a, inverseName: first, isToMany: true))
    case 3:  // many to many, perhaps inside one entity
      entities[left].relationships.append(
        Relationship(
          name: first, destinationEntityName: b, inverseName: second, isToMany: true, isOrdered: dice.chance(30)))
      entities[right].relationships.append(
        Relationship(
          name: second, destinationEntityName: a, inverseName: first, isToMany: true, isOrdered: dice.chance(30)))
    case 4:  // one way, to one
      entities[left].relationships.append(Relationship(name: first, destinationEntityName: b))
    default:  // one way, to many
      guard left != right else { return }
      entities[left].relationships.append(
        Relationship(name: first, destinationEntityName: b, isToMany: true, isOrdered: dice.chance(40)))
    }
  }

  // MARK: Changing in place

  /// Makes a new version whose objects differ in added attributes alone; sometimes only other rules change.
  mutating func evolveInPlace() {
    for _ in 0..<Int.random(in: 1...4, using: &dice) {
      guard let index = entities.indices.randomElement(using: &dice) else { return }
      switch Int.random(in: 0..<6, using: &dice) {
      case 0, 1:
        var new = attribute()
        if new.defaultValue == nil { new.isOptional = true }
        entities[index].attributes.append(new)
      case 2: entities[index].versionHashModifier = name("m")
      case 3:
        let other = Int.random(in: entities[index].attributes.indices, using: &dice)
        entities[index].attributes[other].isIndexed.toggle()
        entities[index].attributes[other].versionHashModifier = name("m")
      case 4:
        let other = Int.random(in: entities[index].attributes.indices, using: &dice)
        entities[index].attributes[other].isOptional = true
        entities[index].attributes[other].versionHashModifier = name("m")
      default:
        guard let other = entities[index].relationships.indices.randomElement(using: &dice) else { continue }
        entities[index].relationships[other].versionHashModifier = name("m")
      }
    }
  }

  // MARK: Changing

  /// Makes a new version: a few changes that can be inferred. Renaming identifiers keep their first value: they are
  /// canonical names.
  mutating func evolve() {
    for _ in 0..<Int.random(in: 1...6, using: &dice) { change() }
  }

  private mutating func change() {
    guard let index = entities.indices.randomElement(using: &dice) else { return }
    switch Int.random(in: 0..<20, using: &dice) {
    case 19: changeElements(index)
    case 17, 18: widenNumber(index)
    case 16: switchExternalStorage(index)
    case 14, 15: moveRelationshipUp(index)
    case 13: renameOneEndSilently(index)
    case 0:
      var new = attribute()
      // A required attribute without default is refused if rows exist: that has its own tests.
      if new.defaultValue == nil { new.isOptional = true }
      entities[index].attributes.append(new)
    case 1: if entities[index].attributes.count > 1 { entities[index].attributes.removeLast() }
    case 2:
      if let other = entities[index].attributes.indices.randomElement(using: &dice) {
        entities[index].attributes[other].name = name("n")
      }
    case 3: renameEntity(index)
    case 4: addEntity(parent: nil)
    case 5: addEntity(parent: entities[index].name)
    case 6: removeLeaf(index)
    case 7: addRelationship()
    case 8: flipOrder(index)
    case 9: toOneBecomesToMany(index)
    case 10: moveAttributeUp(index)
    case 11: renameRelationship(index)
    default:
      if let other = entities[index].attributes.indices.randomElement(using: &dice) {
        entities[index].attributes[other].isOptional = true
      }
    }
  }

  /// Adds, renames or removes an element of a composite, or changes the order of its elements.
  private mutating func changeElements(_ index: Int) {
    for other in entities[index].attributes.indices where entities[index].attributes[other].type == .composite {
      switch Int.random(in: 0..<4, using: &dice) {
      case 0:
        var element = plainAttribute()
        element.isIndexed = false
        if element.defaultValue == nil { element.isOptional = true }
        entities[index].attributes[other].elements.append(element)
      case 1: entities[index].attributes[other].elements[0].name = name("n")
      case 2 where entities[index].attributes[other].elements.count > 1:
        entities[index].attributes[other].elements.removeLast()
      default: entities[index].attributes[other].elements.reverse()
      }
    }
  }

  private mutating func renameEntity(_ index: Int) {
    let (old, new) = (entities[index].name, name("E"))
    entities[index].name = new
    for other in entities.indices {
      if entities[other].parentName == old { entities[other].parentName = new }
      for r in entities[other].relationships.indices
      where entities[other].relationships[r].destinationEntityName == old {
        entities[other].relationships[r].destinationEntityName = new
      }
    }
  }

  private mutating func removeLeaf(_ index: Int) {
    let name = entities[index].name
    guard entities.count > 2, !entities.contains(where: { $0.parentName == name }) else { return }
    let gone = Set(entities[index].relationships.map(\.name))
    entities.remove(at: index)
    for other in entities.indices {
      entities[other].relationships.removeAll {
        $0.destinationEntityName == name || ($0.inverseName.map(gone.contains) ?? false)
      }
    }
  }

  private mutating func flipOrder(_ index: Int) {
    guard let other = entities[index].relationships.indices.randomElement(using: &dice),
      entities[index].relationships[other].isToMany,
      entities[index].relationships[other].inverseName != entities[index].relationships[other].name
    else { return }
    entities[index].relationships[other].isOrdered.toggle()
  }

  private mutating func toOneBecomesToMany(_ index: Int) {
    guard let other = entities[index].relationships.indices.randomElement(using: &dice),
      !entities[index].relationships[other].isToMany, entities[index].relationships[other].inverseName != nil,
      entities[index].relationships[other].destinationEntityName != entities[index].name
    else { return }
    entities[index].relationships[other].isToMany = true
    entities[index].relationships[other].maxCount = 0
  }

  private mutating func moveAttributeUp(_ index: Int) {
    guard let parentName = entities[index].parentName, !entities[index].attributes.isEmpty,
      let parent = entities.firstIndex(where: { $0.name == parentName })
    else { return }
    var moved = entities[index].attributes.removeLast()
    // The parent's other rows have no value: the attribute must be optional or have a default.
    if moved.defaultValue == nil { moved.isOptional = true }
    entities[parent].attributes.append(moved)
  }

  /// Changes an integer or Boolean to a number type that can hold all of its values.
  private mutating func widenNumber(_ index: Int) {
    let wider: [AttributeType: [AttributeType]] = [
      .boolean: [.integer16, .integer32, .integer64], .integer16: [.integer32, .integer64, .double, .float, .decimal],
      .integer32: [.integer64, .double, .decimal], .integer64: [.decimal],
    ]
    let candidates = entities[index].attributes.indices.filter {
      wider[entities[index].attributes[$0].type] != nil && !entities[index].attributes[$0].isDerived
    }
    guard let other = candidates.randomElement(using: &dice),
      let type = wider[entities[index].attributes[other].type]?.randomElement(using: &dice)
    else { return }
    let number: Int64? =
      switch entities[index].attributes[other].defaultValue {
      case .integer(let value): value
      case .boolean(let flag): flag ? 1 : 0
      default: nil
      }
    entities[index].attributes[other].type = type
    entities[index].attributes[other].defaultValue = number.map { number in
      switch type {
      case .double, .float: .double(Double(number))
      case .decimal: .decimal(String(number))
      default: .integer(number)
      }
    }
  }

  /// Moves binary values into the column or gives them their prefix.
  private mutating func switchExternalStorage(_ index: Int) {
    for other in entities[index].attributes.indices where entities[index].attributes[other].type == .binary {
      entities[index].attributes[other].allowsExternalStorage.toggle()
    }
  }

  private mutating func renameRelationship(_ index: Int) {
    guard let other = entities[index].relationships.indices.randomElement(using: &dice) else { return }
    renameRelationship(index, other)
  }

  private mutating func renameRelationship(_ index: Int, _ other: Int) {
    let (old, new) = (entities[index].relationships[other].name, name("s"))
    entities[index].relationships[other].name = new
    for e in entities.indices {
      for r in entities[e].relationships.indices where entities[e].relationships[r].inverseName == old {
        entities[e].relationships[r].inverseName = new
      }
    }
  }

  /// Moves a relationship to the parent; its inverse then points to the parent.
  private mutating func moveRelationshipUp(_ index: Int) {
    guard let parentName = entities[index].parentName, !entities[index].relationships.isEmpty,
      let parent = entities.firstIndex(where: { $0.name == parentName })
    else { return }
    let moved = entities[index].relationships.removeLast()
    entities[parent].relationships.append(moved)
    guard let inverse = moved.inverseName else { return }
    for e in entities.indices {
      for r in entities[e].relationships.indices where entities[e].relationships[r].name == inverse {
        entities[e].relationships[r].destinationEntityName = parentName
      }
    }
  }

  /// Renames without identifier: this end is new, but its inverse is not, so the pairs come through the inverse.
  private mutating func renameOneEndSilently(_ index: Int) {
    guard let other = entities[index].relationships.indices.randomElement(using: &dice),
      entities[index].relationships[other].inverseName != nil
    else { return }
    renameRelationship(index, other)
    entities[index].relationships[other].renamingIdentifier = entities[index].relationships[other].name
  }
}
