/// A property by its entity and its name.
package struct PropertyKey: Hashable, Sendable {
  package let entity: String
  package let property: String

  package init(entity: String, property: String) {
    self.entity = entity
    self.property = property
  }
}

/// One entity as the model declares it, with its own properties only; the model finds inherited ones.
package struct Entity: Sendable, Hashable {
  /// Name, unique in the model.
  package var name: String
  /// Class of its objects; never compared (docs/formats/model-files.md, "Differences between source and compiled
  /// model").
  package var className: String?
  /// Name of the parent entity.
  package var parentName: String?
  /// Abstract entities have no rows of their own but have an entity number.
  package var isAbstract: Bool
  /// The canonical name by which it is matched between versions: `elementID`, else its own name.
  package var renamingIdentifier: String
  /// Text mixed into the version hash; nil where absent or empty.
  package var versionHashModifier: String?
  /// Own attributes, by name; in a model, elements replace their composites (`CompositeAttributes.swift`).
  package var attributes: [Attribute]
  /// Own composite attributes whose elements are among the attributes.
  package var composites: [Attribute] = []
  /// Own relationships, by name.
  package var relationships: [Relationship]
  /// Own fetched properties, by name; they have no column and are not part of the hash.
  package var fetchedProperties: [FetchedProperty]
  /// Fetch indexes.
  package var fetchIndexes: [FetchIndex]
  /// Old-style compound indexes: lists of attribute names.
  package var compoundIndexes: [[String]]
  /// Uniqueness constraints: lists of attribute names in declared order.
  package var uniquenessConstraints: [[String]]
  /// User info of the entity.
  package var userInfo: [String: String]

  /// Makes an entity; every parameter with a default may be omitted.
  package init(
    name: String, className: String? = nil, parentName: String? = nil, isAbstract: Bool = false,
    renamingIdentifier: String? = nil, versionHashModifier: String? = nil, attributes: [Attribute] = [],
    relationships: [Relationship] = [], fetchedProperties: [FetchedProperty] = [], fetchIndexes: [FetchIndex] = [],
    compoundIndexes: [[String]] = [], uniquenessConstraints: [[String]] = [], userInfo: [String: String] = [:]
  ) {
    self.name = name
    self.className = className
    self.parentName = parentName
    self.isAbstract = isAbstract
    self.renamingIdentifier = renamingIdentifier ?? name
    self.versionHashModifier = versionHashModifier
    self.attributes = attributes
    self.relationships = relationships
    self.fetchedProperties = fetchedProperties
    self.fetchIndexes = fetchIndexes
    self.compoundIndexes = compoundIndexes
    self.uniquenessConstraints = uniquenessConstraints
    self.userInfo = userInfo
  }

  /// Whether the entity itself declares an attribute, relationship or fetched property of that name.
  package func hasProperty(named name: String) -> Bool {
    attributes.contains { $0.name == name } || composites.contains { $0.name == name }
      || relationships.contains { $0.name == name } || fetchedProperties.contains { $0.name == name }
  }

  /// Names of its own attributes, relationships and fetched properties, in that order.
  var propertyNames: [String] {
    attributes.map(\.name) + relationships.map(\.name) + fetchedProperties.map(\.name)
  }

  /// The relationship of that name that the entity itself declares.
  package func relationship(named name: String) -> Relationship? { relationships.first { $0.name == name } }

  /// Sets the old flag `isIndexed` of each attribute that has a fetch index of its own with one ascending binary
  /// element, as the model compiler does (docs/formats/store-layout.md, "Indexes"). Models built in code lack it.
  mutating func markIndexedAttributes() {
    let names = Set(fetchIndexes.compactMap(\.plainProperty))
    for index in attributes.indices where names.contains(attributes[index].name) { attributes[index].isIndexed = true }
  }

  /// Returns the entity with its properties in ascending order of their names; no format has a meaningful order.
  func withSortedProperties() -> Entity {
    var copy = self
    copy.attributes.sort { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    copy.relationships.sort { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    copy.fetchedProperties.sort { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    return copy
  }

  /// Case-insensitive by name, ties by the raw name: the order in which Core Data numbers entities
  /// (docs/formats/store-layout.md, "Entity numbers").
  package static func numberingOrder(_ left: Entity, _ right: Entity) -> Bool {
    caseInsensitiveOrder(left.name, right.name)
  }

  /// Case-insensitive order of two names, ties by the raw bytes.
  package static func caseInsensitiveOrder(_ left: String, _ right: String) -> Bool {
    let (lowLeft, lowRight) = (left.lowercased(), right.lowercased())
    if lowLeft != lowRight { return lowLeft.utf8.lexicographicallyPrecedes(lowRight.utf8) }
    return left.utf8.lexicographicallyPrecedes(right.utf8)
  }
}
