// A managed object model: one version of an app's model, as immutable values. Readers build it; hashing, planning and
// the store layout only read it. It states the facts of the file formats, not what Core Data would derive from them at
// run time.

import Synchronization

/// One version of a model: entities with their properties, and the named configurations.
package struct ManagedObjectModel: Sendable, Hashable {
  /// The version's name: the folder name without `.xcdatamodel`, "Model 2".
  package let name: String
  /// userDefinedModelVersionIdentifier as a set of texts; `[""]` if the model has none, as the compiler writes it.
  package let versionIdentifiers: [String]
  /// Entities by name, in ascending order of the name's UTF-8 bytes.
  package let entities: [Entity]
  /// Named configurations: name to entity names.
  package let configurations: [String: [String]]
  /// Composite types of the model, name to elements; empty if every composite attribute is opened.
  package let composites: [String: [Attribute]]

  /// The compiled form that the model was read from, byte for byte; nil for a model read from its source. Ignored when
  /// models are compared.
  package var compiledForm: [UInt8]? { compiledBytes.value }
  /// Hashes that the app's own compiled model states for entities whose hash cannot be computed with certainty; they
  /// replace the computed ones and are ignored when models are compared (docs/decisions/0011).
  package var declaredVersionHashes: [String: VersionHash] { declaredHashes.value }

  private var compiledBytes = Uncompared<[UInt8]?>(value: nil)
  private var declaredHashes = Uncompared<[String: VersionHash]>(value: [:])
  private var sharedCache = Uncompared<Cache>(value: Cache())
  /// The values derived from this model, such as its hashes and its layouts; copies share it.
  package var cache: Cache { sharedCache.value }
  private let propertyTable = Uncompared<PropertyTable>(value: PropertyTable())
  private let indexByName: [String: Int]
  private let childrenByName: [String: [Int]]
  /// For each entity, it and its ancestors, root first.
  private let lineages: [[Int]]

  /// Makes a model from entities whose names, parents and destinations are already checked (`ModelValidation`).
  package init(
    name: String, versionIdentifiers: [String] = [""], entities: [Entity], configurations: [String: [String]] = [:],
    composites: [String: [Attribute]] = [:]
  ) {
    self.name = name
    self.versionIdentifiers = versionIdentifiers
    self.entities = entities.map { $0.openingComposites(composites) }
      .sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    self.configurations = configurations
    let isOpened = !self.entities.contains { $0.attributes.contains { $0.type == .composite } }
    self.composites = isOpened ? [:] : composites
    let indexByName = self.entities.map(\.name).places
    self.indexByName = indexByName
    lineages = Self.lineages(of: self.entities, indexByName)
    // Sorted once for the whole model: entity numbers depend on this order, and a model may have thousands.
    childrenByName = self.entities.enumerated()
      .sorted { Entity.numberingOrder($0.element, $1.element) }
      .reduce(into: [:]) { children, entity in
        if let parent = entity.element.parentName { children[parent, default: []].append(entity.offset) }
      }
  }

  /// Returns the same model with its compiled form.
  package func compiled(to bytes: [UInt8]?) -> ManagedObjectModel {
    var copy = self
    copy.compiledBytes.value = bytes
    copy.sharedCache.value = Cache()
    return copy
  }

  /// Returns the same model with hashes that its app states.
  package func declaring(_ hashes: [String: VersionHash]) -> ManagedObjectModel {
    var copy = self
    copy.declaredHashes.value = hashes
    copy.sharedCache.value = Cache()
    return copy
  }

  /// Returns the entity of that name.
  package func entity(named name: String) -> Entity? { indexByName[name].map { entities[$0] } }

  /// Returns the parent entity, or nil for a root.
  package func parent(of entity: Entity) -> Entity? { entity.parentName.flatMap { self.entity(named: $0) } }

  /// Returns the entity and its ancestors, root first.
  package func lineage(of entity: Entity) -> [Entity] { ancestors(of: entity).map { entities[$0] } + [entity] }

  /// Returns the topmost ancestor: the entity that owns the table.
  package func root(of entity: Entity) -> Entity { ancestors(of: entity).first.map { entities[$0] } ?? entity }

  /// Returns the names of the entity of that name and of its ancestors, root first; none for an unknown name.
  package func namesOfLineage(of entity: String) -> [String] {
    indexByName[entity].map { lineages[$0].map { entities[$0].name } } ?? []
  }

  /// The ancestors by the parent's name, which an edited copy may have changed.
  private func ancestors(of entity: Entity) -> [Int] {
    entity.parentName.flatMap { indexByName[$0] }.map { lineages[$0] } ?? []
  }

  private static func lineages(of entities: [Entity], _ indexByName: [String: Int]) -> [[Int]] {
    entities.indices.map { index in
      var line = [index]
      // The reader refuses cycles; the bound prevents an endless loop for a model that was built by hand.
      while let parent = line.last.flatMap({ entities[$0].parentName }).flatMap({ indexByName[$0] }),
        line.count <= entities.count
      {
        line.append(parent)
      }
      return line.reversed()
    }
  }

  /// Returns the direct subentities, sorted case-insensitively, ties by raw name: the order of entity numbers
  /// (docs/formats/store-layout.md, "Entity numbers").
  package func subentities(of entity: Entity) -> [Entity] {
    (childrenByName[entity.name] ?? []).map { entities[$0] }
  }

  /// Returns the entity and all its descendants, depth first.
  package func subtree(of entity: Entity) -> [Entity] {
    [entity] + subentities(of: entity).flatMap { subtree(of: $0) }
  }

  /// Entities without a parent, in numbering order.
  package var rootEntities: [Entity] { entities.filter { $0.parentName == nil }.sorted(by: Entity.numberingOrder) }

  /// Returns an entity's properties, own and inherited; cached, because every query about rows needs them.
  package func properties(of entity: Entity) -> EntityProperties {
    guard let index = indexByName[entity.name], entities[index].isLike(entity) else {
      return EntityProperties(lineage: lineage(of: entity))
    }
    return propertyTable.value.properties(of: entity.name) { EntityProperties(lineage: lineage(of: entity)) }
  }

  /// Own and inherited attributes by name; a subentity's own one hides an inherited one of the same name.
  package func allAttributes(of entity: Entity) -> [String: Attribute] { properties(of: entity).attributes }

  /// Own and inherited relationships by name; a subentity's own one hides an inherited one.
  package func allRelationships(of entity: Entity) -> [String: Relationship] { properties(of: entity).relationships }

  /// The entity that declares `entity`'s property of that name, own or inherited (the lowest in the hierarchy).
  package func declaringEntity(of property: String, in entity: Entity) -> Entity? {
    properties(of: entity).lineage.last { $0.hasProperty(named: property) }
  }

  /// The inverse of a relationship, with the entity that declares it; nil for one-way relationships, and for one whose
  /// inverse names another inverse: each of its pairs is visible from its own end only.
  package func inverse(of relationship: Relationship) -> (entity: Entity, relationship: Relationship)? {
    guard let named = namedInverse(of: relationship), named.relationship.inverseName == relationship.name else {
      return nil
    }
    return named
  }

  /// The relationship that `relationship` names as its inverse, even if that one names another inverse.
  package func namedInverse(of relationship: Relationship) -> (entity: Entity, relationship: Relationship)? {
    guard let inverseName = relationship.inverseName,
      let destination = entity(named: relationship.destinationEntityName),
      let owner = lineage(of: destination).last(where: { $0.relationship(named: inverseName) != nil }),
      let inverse = owner.relationship(named: inverseName)
    else { return nil }
    return (owner, inverse)
  }

  /// The relationship that an entity itself declares under that name.
  package func ownRelationship(_ name: String, of entity: String) -> Relationship? {
    self.entity(named: entity)?.relationship(named: name)
  }
}

/// The properties of an entity, own and inherited.
package struct EntityProperties: Sendable {
  /// The entity and its ancestors, root first.
  package let lineage: [Entity]
  /// Attributes by name; a subentity's own one hides an inherited one of the same name.
  package let attributes: [String: Attribute]
  /// Relationships by name; a subentity's own one hides an inherited one.
  package let relationships: [String: Relationship]
  /// The attributes that have a column, by name.
  package let storedAttributes: [Attribute]
  /// The relationships that are stored, by name.
  package let storedRelationships: [Relationship]

  fileprivate init(lineage: [Entity]) {
    self.lineage = lineage
    var (attributes, relationships): ([String: Attribute], [String: Relationship]) = ([:], [:])
    for ancestor in lineage {
      for attribute in ancestor.attributes { attributes[attribute.name] = attribute }
      for relationship in ancestor.relationships { relationships[relationship.name] = relationship }
    }
    (self.attributes, self.relationships) = (attributes, relationships)
    storedAttributes = attributes.values.filter { !$0.isTransient }
      .sorted { Entity.caseInsensitiveOrder($0.name, $1.name) }
    storedRelationships = relationships.values.filter { !$0.isTransient }
      .sorted { Entity.caseInsensitiveOrder($0.name, $1.name) }
  }
}

/// Caches the properties of the entities of one model.
private final class PropertyTable: Sendable {
  /// Number of cached entities: a model may have thousands, and most queries are about a few of them.
  private static let limit = 256
  private let known = Mutex<[String: EntityProperties]>([:])

  func properties(of name: String, _ make: () -> EntityProperties) -> EntityProperties {
    if let found = known.withLock({ $0[name] }) { return found }
    let made = make()
    known.withLock { known in
      if known.count >= Self.limit { known.removeAll() }
      known[name] = made
    }
    return made
  }
}

extension Entity {
  /// Whether it is the entity of that name and not an edited copy. No caller passes one that differs only inside a
  /// property.
  fileprivate func isLike(_ other: Entity) -> Bool {
    parentName == other.parentName && attributes.count == other.attributes.count
      && relationships.count == other.relationships.count
  }
}
