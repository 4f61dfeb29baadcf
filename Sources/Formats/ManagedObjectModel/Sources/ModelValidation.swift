// Validates a model before it is used: hashing, planning and the store layout rely on existing names, inheritance
// without cycles and bounded sizes. Every fault is reported, not only the first, because the model is corrected in an
// editor on another machine. Features of real models (one-way relationships, inherited properties declared again) are
// not faults.

import Diagnostics

/// The checks of one model version.
package enum ModelValidation {
  /// Depth of nested composite types.
  static let maximumCompositeDepth = 8
  /// Elements of one composite type with nested ones opened.
  static let maximumCompositeElements = 1_000

  /// Returns the model of `source`; throws one error with all faults as reasons.
  package static func validated(_ source: ModelSource, at place: Place = Place()) throws(HopdError)
    -> ManagedObjectModel
  {
    if let error = source.tooMuchText { throw error.located(place) }
    let check = ModelCheck(source: source)
    guard check.count > 0 else { return source.model }
    var reasons = check.faults.map { $0.located(place) }
    if check.count > reasons.count {
      reasons.append(HopdError(.invalidModel, "and \(check.count - reasons.count) more"))
    }
    throw HopdError(
      .invalidModel, "the model version “\(source.name)” has \(check.count == 1 ? "a fault" : "\(check.count) faults")",
      at: place, hint: "correct the model in Xcode's model editor and copy it here again", reasons: reasons)
  }
}

/// One run of all checks over one source.
struct ModelCheck {
  let source: ModelSource
  /// Index of the first entity of each name.
  let indexByName: [String: Int]
  /// Index of each entity's parent. Every relationship and index walks a lineage: by numbers, because looking up long
  /// names at every step would take minutes.
  private let parents: [Int?]
  /// A number for every name of a property.
  let numbers: [String: Int]
  /// Whether any of these names is a key path, as the names of a composite's elements are.
  let hasDottedNames: Bool
  /// Names of own properties per entity, and relationships by name for the inverse check, by number.
  let ownNames: [Set<Int>]
  private let ownRelationships: [[Int: Relationship]]
  /// The opened form of each composite type, by the type's name.
  var opened: [String: Opened] = [:]
  /// Composite types whose elements have proper and different names.
  var soundComposites: Set<String> = []
  /// The first faults: those of a hostile model would fill the memory.
  var faults: [HopdError] = []
  /// Number of all faults.
  var count = 0

  init(source: ModelSource) {
    self.source = source
    let indexByName = source.entities.map(\.name).places
    self.indexByName = indexByName
    parents = source.entities.map { $0.parentName.flatMap { indexByName[$0] } }
    var numbers: [String: Int] = [:]
    func number(_ name: String) -> Int {
      if let known = numbers[name] { return known }
      numbers[name] = numbers.count
      return numbers.count - 1
    }
    ownRelationships = source.entities.map { entity in
      Dictionary(entity.relationships.map { (number($0.name), $0) }, uniquingKeysWith: { first, _ in first })
    }
    ownNames = zip(source.entities, ownRelationships).map { entity, relationships in
      Set(relationships.keys).union(entity.attributes.map { number($0.name) })
        .union(entity.fetchedProperties.map { number($0.name) })
    }
    self.numbers = numbers
    hasDottedNames = numbers.keys.contains { $0.utf8.contains(UInt8(ascii: ".")) }
    run()
  }

  private mutating func run() {
    faults = source.errors
    count = faults.count
    if source.entities.isEmpty { fault("the model has no entities") }
    checkNames()
    let sound = checkInheritance()
    checkComposites()
    checkSizes(inheritanceIsSound: sound)
    // Properties are looked up in the lineage, which is safe only if every lineage ends.
    if sound {
      checkRelationships()
      checkReferences()
    }
    checkConfigurations()
  }

  // MARK: Names

  private mutating func checkNames() {
    for (index, entity) in source.entities.enumerated() {
      checkName(entity.name, "an entity", at: place(ofEntity: index))
      if let first = indexByName[entity.name], first != index {
        let other = source.line(ofEntity: first).map { " (first in line \($0))" } ?? ""
        fault("duplicate entity of this name\(other)", at: place(ofEntity: index))
      }
      var seen: [String: Int] = [:]
      for name in entity.propertyNames {
        let occurrence = seen[name, default: 0]
        seen[name] = occurrence + 1
        let place = place(ofProperty: name, occurrence: occurrence, entity: index)
        checkName(name, "a property", at: place)
        if occurrence > 0 { fault("the entity has a second property of this name", at: place) }
      }
    }
  }

  private mutating func checkName(_ name: String, _ what: String, at place: Place) {
    if name.isEmpty {
      fault("\(what) has no name", at: place)
    } else if name.unicodeScalars.contains("\0") {
      fault("the name of \(what) contains a NUL character", at: place)
    }
  }

  // MARK: Inheritance

  /// Whether all parents exist and every lineage ends within the limit.
  private mutating func checkInheritance() -> Bool {
    var isSound = true
    /// Depth of entities whose lineage is known to end.
    var depths: [Int: Int] = [:]
    /// Entities on or below a cycle or a lineage that is too deep: each is reported once.
    var reported: Set<Int> = []
    for (index, entity) in source.entities.enumerated() {
      if let parent = entity.parentName, indexByName[parent] == nil {
        fault("the parent entity “\(parent)” is not in the model", at: place(ofEntity: index))
      }
      var path: [Int] = []
      var onPath: Set<Int> = []
      var next: Int? = index
      var base = 0
      while let current = next {
        if let depth = depths[current] {
          base = depth
          break
        }
        if reported.contains(current) {
          base = -1
          break
        }
        if !onPath.insert(current).inserted {
          isSound = false
          let circle = path.drop { $0 != current }.map { source.entities[$0].name } + [source.entities[current].name]
          fault(
            "its inheritance goes in a circle: \(circle.prefix(20).joined(separator: " → "))",
            at: place(ofEntity: current))
          base = -1
          break
        }
        path.append(current)
        next = parents[current]
      }
      if base < 0 {
        reported.formUnion(path)
        continue
      }
      for member in path.reversed() {
        base += 1
        depths[member] = base
        if base == ModelLimits.inheritanceDepth + 1 {
          isSound = false
          fault("it has more than \(ModelLimits.inheritanceDepth) entities above it", at: place(ofEntity: member))
        }
      }
    }
    return isSound
  }

  /// Indexes of an entity and its ancestors, itself first.
  func line(of index: Int) -> [Int] {
    var line = [index]
    var next = parents[index]
    while let current = next, line.count <= ModelLimits.inheritanceDepth {
      line.append(current)
      next = parents[current]
    }
    return line
  }

  private mutating func checkSizes(inheritanceIsSound: Bool) {
    if source.entities.count > ModelLimits.entities {
      fault("the model has more than \(ModelLimits.entities) entities", code: .modelTooLarge)
    }
    guard inheritanceIsSound else { return }
    let own = zip(source.entities, ownNames).map { entity, names in
      var sizes = (properties: names.count, bytes: entity.relationships.reduce(0) { $0 + $1.hashedBytes })
      for attribute in entity.attributes {
        sizes.bytes += attribute.hashedBytes
        // In the table and in the hash, a composite attribute counts as many attributes as its type has elements.
        for element in attribute.elements {
          sizes.properties += 1
          sizes.bytes += element.hashedBytes
        }
        guard attribute.type == .composite, let type = opened[attribute.compositeTypeName ?? ""] else { continue }
        sizes.properties += type.elements
        sizes.bytes += type.bytes
      }
      return sizes
    }
    var properties = 0
    var bytes = 0
    for index in source.entities.indices {
      for member in line(of: index) {
        properties += own[member].properties
        bytes += own[member].bytes
      }
      guard properties <= ModelLimits.inheritedProperties else {
        fault(
          "the entities have more than \(ModelLimits.inheritedProperties) properties, inherited ones counted",
          code: .modelTooLarge)
        return
      }
      guard bytes <= ModelLimits.inheritedTextBytes else {
        fault(
          "the names of the properties have more than \(ModelLimits.inheritedTextBytes) bytes, inherited ones counted",
          code: .modelTooLarge)
        return
      }
    }
  }

  // MARK: Relationships

  private mutating func checkRelationships() {
    for (index, entity) in source.entities.enumerated() {
      for relationship in entity.relationships {
        let place = place(ofProperty: relationship.name, entity: index)
        let destination = relationship.destinationEntityName
        guard let target = indexByName[destination] else {
          fault(
            destination.isEmpty
              ? "it has no destination entity" : "its destination entity “\(destination)” is not in the model",
            at: place)
          continue
        }
        // One-way relationships are legal (1,430 of 33,750 seen).
        guard let inverseName = relationship.inverseName else { continue }
        guard let number = numbers[inverseName],
          let owner = self.line(of: target).first(where: { ownRelationships[$0][number] != nil }),
          let inverse = ownRelationships[owner][number]
        else {
          fault("its inverse “\(inverseName)” is not a relationship of “\(destination)”", at: place)
          continue
        }
        if inverse.inverseName != relationship.name {
          // Xcode compiles it with a warning. A to-one has a column of its own, whatever its inverse names; no store
          // shows the tables and columns of the others (docs/formats/model-files.md, "Bent inverses").
          if !relationship.isToMany, !inverse.isOrdered { continue }
          let actual = inverse.inverseName.map { "“\($0)”" } ?? "none"
          fault("its inverse “\(destination).\(inverseName)” names another inverse: \(actual)", at: place)
        } else if !isRelated(index, to: inverse.destinationEntityName) {
          fault(
            "its inverse “\(destination).\(inverseName)” leads to “\(inverse.destinationEntityName)”, not back",
            at: place)
        }
      }
    }
  }

  /// Whether the entity of that name is the given one, its ancestor or its descendant.
  private func isRelated(_ index: Int, to name: String) -> Bool {
    guard let other = indexByName[name] else { return false }
    return line(of: index).contains(other) || line(of: other).contains(index)
  }
}
