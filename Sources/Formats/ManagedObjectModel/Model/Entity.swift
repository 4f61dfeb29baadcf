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
  private struct Fields: Sendable, Hashable {
    var name: String
    var className: String?
    var parentName: String?
    var isAbstract: Bool
    var renamingIdentifier: String
    var versionHashModifier: String?
    var attributes: [Attribute]
    var composites: [Attribute] = []
    var relationships: [Relationship]
    var fetchedProperties: [FetchedProperty]
    var fetchIndexes: [FetchIndex]
    var compoundIndexes: [[String]]
    var uniquenessConstraints: [[String]]
    var userInfo: [String: String]
  }

  private var fields: Boxed<Fields>

  /// Name, unique in the model.
  package var name: String {
    get { fields.value.name }
    set { fields.value.name = newValue }
  }
  /// Class of its objects; never compared (docs/formats/model-files.md, "Differences between source and compiled
  /// model").
  package var className: String? {
    get { fields.value.className }
    set { fields.value.className = newValue }
  }
  /// Name of the parent entity.
  package var parentName: String? {
    get { fields.value.parentName }
    set { fields.value.parentName = newValue }
  }
  /// Abstract entities have no rows of their own but have an entity number.
  package var isAbstract: Bool {
    get { fields.value.isAbstract }
    set { fields.value.isAbstract = newValue }
  }
  /// The canonical name by which it is matched between versions: `elementID`, or its own name.
  package var renamingIdentifier: String {
    get { fields.value.renamingIdentifier }
    set { fields.value.renamingIdentifier = newValue }
  }
  /// Text mixed into the version hash; nil where absent or empty.
  package var versionHashModifier: String? {
    get { fields.value.versionHashModifier }
    set { fields.value.versionHashModifier = newValue }
  }
  /// Own attributes, by name; in a model, elements replace their composites (`CompositeAttributes.swift`).
  package var attributes: [Attribute] {
    get { fields.value.attributes }
    set { fields.value.attributes = newValue }
  }
  /// Own composite attributes whose elements are among the attributes.
  package var composites: [Attribute] {
    get { fields.value.composites }
    set { fields.value.composites = newValue }
  }
  /// Own relationships, by name.
  package var relationships: [Relationship] {
    get { fields.value.relationships }
    set { fields.value.relationships = newValue }
  }
  /// Own fetched properties, by name; they have no column and are not part of the hash.
  package var fetchedProperties: [FetchedProperty] {
    get { fields.value.fetchedProperties }
    set { fields.value.fetchedProperties = newValue }
  }
  /// Fetch indexes.
  package var fetchIndexes: [FetchIndex] {
    get { fields.value.fetchIndexes }
    set { fields.value.fetchIndexes = newValue }
  }
  /// Old-style compound indexes: lists of attribute names.
  package var compoundIndexes: [[String]] {
    get { fields.value.compoundIndexes }
    set { fields.value.compoundIndexes = newValue }
  }
  /// Uniqueness constraints: lists of attribute names in declared order.
  package var uniquenessConstraints: [[String]] {
    get { fields.value.uniquenessConstraints }
    set { fields.value.uniquenessConstraints = newValue }
  }
  /// User info of the entity.
  package var userInfo: [String: String] {
    get { fields.value.userInfo }
    set { fields.value.userInfo = newValue }
  }

  /// Creates an entity; every parameter with a default may be omitted.
  package init(
    name: String, className: String? = nil, parentName: String? = nil, isAbstract: Bool = false,
    renamingIdentifier: String? = nil, versionHashModifier: String? = nil, attributes: [Attribute] = [],
    relationships: [Relationship] = [], fetchedProperties: [FetchedProperty] = [], fetchIndexes: [FetchIndex] = [],
    compoundIndexes: [[String]] = [], uniquenessConstraints: [[String]] = [], userInfo: [String: String] = [:]
  ) {
    fields = Boxed(
      Fields(
        name: name, className: className, parentName: parentName, isAbstract: isAbstract,
        renamingIdentifier: renamingIdentifier ?? name, versionHashModifier: versionHashModifier,
        attributes: attributes, relationships: relationships, fetchedProperties: fetchedProperties,
        fetchIndexes: fetchIndexes, compoundIndexes: compoundIndexes, uniquenessConstraints: uniquenessConstraints,
        userInfo: userInfo))
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
