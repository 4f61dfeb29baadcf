/// A relationship as its entity declares it.
package struct Relationship: Sendable, Hashable {
  private struct Fields: Sendable, Hashable {
    var name: String
    var destinationEntityName: String
    var inverseName: String?
    var isOptional: Bool
    var isTransient: Bool
    var isToMany: Bool
    var isOrdered: Bool
    var maxCount: Int64
    var minCount: Int64
    var deleteRule: DeleteRule
    var renamingIdentifier: String
    var versionHashModifier: String?
    var userInfo: [String: String]
  }

  private var fields: Boxed<Fields>

  /// The effect on the destination when the source is deleted; not part of the hash.
  package enum DeleteRule: Int, Sendable, Hashable {
    case noAction = 0
    case nullify = 1
    case cascade = 2
    case deny = 3
  }

  package var name: String {
    get { fields.value.name }
    set { fields.value.name = newValue }
  }
  /// Name of the destination entity in the model, not of a subentity.
  package var destinationEntityName: String {
    get { fields.value.destinationEntityName }
    set { fields.value.destinationEntityName = newValue }
  }
  /// Name of the inverse; nil for one-way relationships.
  package var inverseName: String? {
    get { fields.value.inverseName }
    set { fields.value.inverseName = newValue }
  }
  package var isOptional: Bool {
    get { fields.value.isOptional }
    set { fields.value.isOptional = newValue }
  }
  package var isTransient: Bool {
    get { fields.value.isTransient }
    set { fields.value.isTransient = newValue }
  }
  /// `toMany="YES"` decides, also if maxCount is 1 (docs/formats/model-files.md, "Relationship elements").
  package var isToMany: Bool {
    get { fields.value.isToMany }
    set { fields.value.isToMany = newValue }
  }
  package var isOrdered: Bool {
    get { fields.value.isOrdered }
    set { fields.value.isOrdered = newValue }
  }
  /// To-one 1; to-many the bound of the model, 0 for unbounded. Part of the hash.
  package var maxCount: Int64 {
    get { fields.value.maxCount }
    set { fields.value.maxCount = newValue }
  }
  /// As in the model, 0 if absent. Part of the hash.
  package var minCount: Int64 {
    get { fields.value.minCount }
    set { fields.value.minCount = newValue }
  }
  package var deleteRule: DeleteRule {
    get { fields.value.deleteRule }
    set { fields.value.deleteRule = newValue }
  }
  package var renamingIdentifier: String {
    get { fields.value.renamingIdentifier }
    set { fields.value.renamingIdentifier = newValue }
  }
  package var versionHashModifier: String? {
    get { fields.value.versionHashModifier }
    set { fields.value.versionHashModifier = newValue }
  }
  package var userInfo: [String: String] {
    get { fields.value.userInfo }
    set { fields.value.userInfo = newValue }
  }

  /// Creates a relationship; every parameter with a default may be omitted.
  package init(
    name: String, destinationEntityName: String, inverseName: String? = nil, isOptional: Bool = true,
    isTransient: Bool = false, isToMany: Bool = false, isOrdered: Bool = false, maxCount: Int64? = nil,
    minCount: Int64 = 0, deleteRule: DeleteRule = .nullify, renamingIdentifier: String? = nil,
    versionHashModifier: String? = nil, userInfo: [String: String] = [:]
  ) {
    fields = Boxed(
      Fields(
        name: name, destinationEntityName: destinationEntityName, inverseName: inverseName, isOptional: isOptional,
        isTransient: isTransient, isToMany: isToMany, isOrdered: isOrdered, maxCount: maxCount ?? (isToMany ? 0 : 1),
        minCount: minCount, deleteRule: deleteRule, renamingIdentifier: renamingIdentifier ?? name,
        versionHashModifier: versionHashModifier, userInfo: userInfo))
  }
}

/// A fetched property: a stored query, without column and not part of the hash.
package struct FetchedProperty: Sendable, Hashable {
  package var name: String
  package var isOptional: Bool
  /// Entity that the query fetches.
  package var fetchEntityName: String?
  package var predicate: String?
  /// Whether its query has more than an entity and a predicate, as an order or a limit.
  package var hasOptions = false
  package var renamingIdentifier: String
  package var userInfo: [String: String]

  /// Creates a fetched property.
  package init(
    name: String, isOptional: Bool = true, fetchEntityName: String? = nil, predicate: String? = nil,
    renamingIdentifier: String? = nil, userInfo: [String: String] = [:]
  ) {
    self.name = name
    self.isOptional = isOptional
    self.fetchEntityName = fetchEntityName
    self.predicate = predicate
    self.renamingIdentifier = renamingIdentifier ?? name
    self.userInfo = userInfo
  }
}

/// A fetch index of an entity.
package struct FetchIndex: Sendable, Hashable {
  /// One element: a property or an expression, with type and direction.
  package struct Element: Sendable, Hashable {
    /// Kind of index that the element requires.
    package enum Kind: Sendable, Hashable { case binary, rTree, unknown }

    /// Property name; nil if the element is an expression.
    package var propertyName: String?
    package var expression: String?
    /// Type of the expression's value, as the model writes it.
    package var expressionType: String?
    package var kind = Kind.binary
    package var isAscending = true

    /// Creates an element; it has a property or an expression.
    package init(
      propertyName: String? = nil, expression: String? = nil, expressionType: String? = nil, kind: Kind = .binary,
      isAscending: Bool = true
    ) {
      self.propertyName = propertyName
      self.expression = expression
      self.expressionType = expressionType
      self.kind = kind
      self.isAscending = isAscending
    }

    /// What an index can have of a row in addition to its properties, by the word in a model.
    package enum RowPart: String, Sendable, Hashable {
      case object = "self"
      case entity

      /// The part that an expression names; nil for another expression.
      package init?(expression: String) {
        switch expression.lowercased() {
        case "self": self = .object
        case "entity", "self.entity": self = .entity
        default: return nil
        }
      }
    }

    /// The part of the row that the expression names; nil for another expression.
    var rowPart: RowPart? { expression.flatMap { RowPart(expression: $0) } }

    /// The text that stands for the element in a compound index: the property, or the expression.
    var name: String? { propertyName ?? expression }
  }

  package var name: String
  package var elements: [Element]
  package var partialPredicate: String?

  /// Creates an index.
  package init(name: String, elements: [Element], partialPredicate: String? = nil) {
    self.name = name
    self.elements = elements
    self.partialPredicate = partialPredicate
  }

  /// Whether Core Data of the framework makes of an index over one attribute that index alone, and none that is named
  /// after the attribute (docs/formats/store-layout.md, "Indexes").
  package static func standsAlone(frameworkVersion: Int64) -> Bool { (837..<977).contains(frameworkVersion) }

  /// The property of an index over one ascending property, also if it is partial. A partial one with the name of its
  /// property is left out, as no store shows which of the two indexes of that name it has.
  package var plainProperty: String? {
    guard elements.count == 1, let element = elements.first, element.kind == .binary, element.isAscending,
      partialPredicate == nil || element.propertyName != name
    else { return nil }
    return element.propertyName
  }
}

// MARK: Storage
//
// Which relationships have a place in a store, and which of several declarations has it. Layouts and inferred mappings
// must agree about it, or pairs would be lost without a word.

extension ManagedObjectModel {
  /// Whether a store has a place for the pairs of a relationship that the entity declares or inherits.
  package func hasStorage(ofRelationship name: String, in entity: Entity) -> Bool {
    properties(of: entity).relationshipsWithStorage.contains(name)
  }

  /// Returns the topmost declaration of a relationship that `entity` declares: a subentity that declares an inherited
  /// one again, with the same inverse, gets no column or table of its own.
  package func storingDeclaration(
    of relationship: Relationship, in entity: Entity
  ) -> (entity: Entity, relationship: Relationship) {
    for ancestor in lineage(of: entity).dropLast() {
      if let inherited = ancestor.relationship(named: relationship.name), isSame(relationship, as: inherited) {
        return (ancestor, inherited)
      }
    }
    return (entity, relationship)
  }

  /// A to-one has a column of its own, and so has a one-way to-many. Other to-manys are stored together with their
  /// inverse, and no layout is known if that is transient.
  func isStorable(_ relationship: Relationship) -> Bool {
    guard !relationship.isTransient else { return false }
    return !relationship.isToMany || inverse(of: relationship)?.relationship.isTransient != true
  }

  private func isSame(_ relationship: Relationship, as inherited: Relationship) -> Bool {
    guard isStorable(relationship), isStorable(inherited), relationship.isToMany == inherited.isToMany else {
      return false
    }
    switch (inverse(of: relationship), inverse(of: inherited)) {
    case (nil, nil):
      // One-way pairs are in the table of their destination.
      let targets = [relationship, inherited].map { entity(named: $0.destinationEntityName).map { root(of: $0).name } }
      return targets[0] == targets[1]
    case (let own?, let other?):
      return own.relationship.name == other.relationship.name
        && lineage(of: own.entity).contains { $0.name == other.entity.name }
    default: return false
    }
  }
}
