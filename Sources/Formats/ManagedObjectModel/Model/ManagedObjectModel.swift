// A managed object model: one version of an app's model, as immutable values. Readers build it; hashing, planning and
// the store layout only read it. It states the facts of the file formats, not what Core Data would derive from them at
// run time.

import Synchronization

/// One version of a model: entities with their properties, and the named configurations.
package struct ManagedObjectModel: Sendable, Hashable {
  private struct Fields: Sendable, Hashable {
    let name: String
    let versionIdentifiers: [String]
    let entities: [Entity]
    let configurations: [String: [String]]
    let composites: [String: [Attribute]]
    var compiledForm = Uncompared<[UInt8]?>(value: nil)
    var declaredVersionHashes = Uncompared<[String: VersionHash]>(value: [:])
    var cache = Uncompared(value: Cache())
    let properties: Uncompared<PropertyTable>
    let indexByName: [String: Int]
    let childrenByName: [String: [Int]]
    /// For each entity, it and its ancestors, root first.
    let lineages: [[Int]]
  }

  private var fields: Boxed<Fields>

  /// The version's name: the folder name without `.xcdatamodel`, "Model 2".
  package var name: String { fields.value.name }
  /// userDefinedModelVersionIdentifier as a set of texts; `[""]` if the model has none, as the compiler writes it.
  package var versionIdentifiers: [String] { fields.value.versionIdentifiers }
  /// Entities by name, in ascending order of the name's UTF-8 bytes.
  package var entities: [Entity] { fields.value.entities }
  /// Named configurations: name to entity names.
  package var configurations: [String: [String]] { fields.value.configurations }
  /// Composite types of the model, name to elements; empty if every composite attribute is opened.
  package var composites: [String: [Attribute]] { fields.value.composites }
  /// The compiled form that the model was read from, byte for byte; nil for a model read from its source. Ignored when
  /// models are compared.
  package var compiledForm: [UInt8]? { fields.value.compiledForm.value }
  /// Hashes that the app's own compiled model states for entities whose hash cannot be computed with certainty; they
  /// replace the computed ones and are ignored when models are compared (docs/decisions/0011).
  package var declaredVersionHashes: [String: VersionHash] { fields.value.declaredVersionHashes.value }
  /// The values derived from this model, such as its hashes and its layouts; copies share it.
  package var cache: Cache { fields.value.cache.value }
  private var indexByName: [String: Int] { fields.value.indexByName }

  /// Creates a model from entities whose names, parents and destinations are already checked (`ModelValidation`).
  package init(
    name: String, versionIdentifiers: [String] = [""], entities: [Entity], configurations: [String: [String]] = [:],
    composites: [String: [Attribute]] = [:]
  ) {
    let entities = entities.map { $0.openingComposites(composites) }
      .sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    let isOpened = !entities.contains { $0.attributes.contains { $0.type == .composite } }
    let indexByName = entities.map(\.name).places
    fields = Boxed(
      Fields(
        name: name, versionIdentifiers: versionIdentifiers, entities: entities, configurations: configurations,
        composites: isOpened ? [:] : composites,
        properties: Uncompared(value: PropertyTable(count: entities.count)), indexByName: indexByName,
        // Sorted once for the whole model: entity numbers depend on this order, and a model may have thousands.
        childrenByName: entities.enumerated()
          .sorted { Entity.numberingOrder($0.element, $1.element) }
          .reduce(into: [:]) { children, entity in
            if let parent = entity.element.parentName { children[parent, default: []].append(entity.offset) }
          },
        lineages: Self.lineages(of: entities, indexByName)))
  }

  /// Returns the same model with its compiled form.
  package func compiled(to bytes: [UInt8]?) -> ManagedObjectModel {
    var copy = self
    copy.fields.value.compiledForm.value = bytes
    copy.fields.value.cache.value = Cache()
    return copy
  }

  /// Returns the same model with hashes that its app states.
  package func declaring(_ hashes: [String: VersionHash]) -> ManagedObjectModel {
    var copy = self
    copy.fields.value.declaredVersionHashes.value = hashes
    copy.fields.value.cache.value = Cache()
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
    indexByName[entity].map { fields.value.lineages[$0].map { entities[$0].name } } ?? []
  }

  /// The ancestors by the parent's name, which an edited copy may have changed.
  private func ancestors(of entity: Entity) -> [Int] {
    entity.parentName.flatMap { indexByName[$0] }.map { fields.value.lineages[$0] } ?? []
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
    (fields.value.childrenByName[entity.name] ?? []).map { entities[$0] }
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
      return EntityProperties(of: entity, in: self)
    }
    return fields.value.properties.value.properties(at: index) { EntityProperties(of: entity, in: self) }
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
package final class EntityProperties: Sendable {
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
  /// The names of the relationships whose pairs have a place in a store.
  let relationshipsWithStorage: Set<String>

  fileprivate init(of entity: Entity, in model: ManagedObjectModel) {
    lineage = model.lineage(of: entity)
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
    relationshipsWithStorage = Set(
      lineage.flatMap { $0.relationships.filter(model.isStorable).map(\.name) })
  }
}

/// Caches the properties of the entities of one model.
private final class PropertyTable: Sendable {
  /// By the entity's place in the model.
  private let known: Mutex<[EntityProperties?]>

  init(count: Int) { known = Mutex(Array(repeating: nil, count: count)) }

  func properties(at index: Int, _ make: () -> EntityProperties) -> EntityProperties {
    if let found = known.withLock({ $0[index] }) { return found }
    let made = make()
    known.withLock { $0[index] = made }
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
