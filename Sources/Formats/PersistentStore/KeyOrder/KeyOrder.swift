// The key names of each entity, and the order in which Core Data processes its relationships
// (docs/formats/join-table-names.md, "Key names").

import ManagedObjectModel

/// The order in which Core Data processes the relationships of one entity.
package struct KeyOrder: Sendable {
  /// The reason why an order depends on a rule that no store has shown.
  package enum Doubt: Sendable, Hashable {
    /// The entity, or an ancestor, is the destination of a to-many without inverse, whose hidden key has no known name.
    case hiddenKey(entity: String, relationship: String)
    /// A name of the entity has letters outside ASCII: their upper case and their order are unknown.
    case lettersOutsideASCII(name: String)
    /// The sizes of larger tables are not known.
    case tooManyKeys(count: Int)
  }

  /// All key names in the order S.
  package let keys: [String]
  /// To-ones with an order key, in the order in which the order keys are added.
  package let orderKeys: [String]
  /// The reason why the order is uncertain; nil if it is certain.
  package let doubt: Doubt?

  /// The position of every key.
  private let places: [String: Int]

  init(keys: [String], orderKeys: [String], doubt: Doubt?) {
    self.keys = keys
    self.orderKeys = orderKeys
    self.doubt = doubt
    places = keys.places
  }

  /// Returns the relationship that comes first.
  package func first(of left: String, _ right: String) -> String {
    (places[right] ?? .max) < (places[left] ?? .max) ? right : left
  }
}

/// Computes the orders of a model's entities on request.
package struct KeyOrders {
  private let model: ManagedObjectModel
  private let numbers: [String: Int64]
  /// To-manys without inverse by their destination entity.
  private let oneWayToManys: [String: (entity: String, relationship: String)]
  private var known: [String: State] = [:]

  /// An entity's table L, from which its subentities start, and the additions of the pass over its order S.
  private struct State {
    let names: [KeyName]
    let orderKeys: [String]
    let order: KeyOrder
  }

  /// Creates the orders; `numbers` are the entities' numbers.
  package init(model: ManagedObjectModel, numbers: [String: Int64]) {
    self.model = model
    self.numbers = numbers
    var pointed: [String: (entity: String, relationship: String)] = [:]
    for entity in model.entities {
      for relationship in entity.relationships
      where relationship.isToMany && !relationship.isTransient && model.inverse(of: relationship) == nil
        && model.storingDeclaration(of: relationship, in: entity).entity.name == entity.name
      {
        pointed[relationship.destinationEntityName] = (entity.name, relationship.name)
      }
    }
    oneWayToManys = pointed
  }

  /// Returns the order of an entity.
  package mutating func order(of entity: Entity) -> KeyOrder {
    if let state = known[entity.name] { return state.order }
    var above: State?
    for member in model.lineage(of: entity) {
      let state = known[member.name] ?? state(of: member, below: above)
      known[member.name] = state
      above = state
    }
    return above?.order ?? KeyOrder(keys: [], orderKeys: [], doubt: nil)
  }

  private func state(of entity: Entity, below parent: State?) -> State {
    let relationships = model.allRelationships(of: entity)
    let table = keys(of: entity, relationships, below: parent)
    // The keys of order columns come last: those of the ancestors, then those that a pass over the order finds here.
    var withOrderKeys = table
    for name in parent?.orderKeys ?? [] { withOrderKeys.insert(KeyOrders.orderKey(name)) }
    var orderKeys = parent?.orderKeys ?? []
    let names = withOrderKeys.names
    for key in SizedKeyTable.order(names) ?? names {
      guard let relationship = relationships[key.text], isOrderedByInverse(relationship) else { continue }
      let orderKey = KeyOrders.orderKey(relationship.name)
      guard !withOrderKeys.contains(orderKey) else { continue }
      withOrderKeys.insert(orderKey)
      orderKeys.append(relationship.name)
    }
    let all = withOrderKeys.names
    let order = SizedKeyTable.order(all)
    let doubt = self.doubt(of: entity, keys: all) ?? (order == nil ? .tooManyKeys(count: all.count) : nil)
    return State(
      names: table.names, orderKeys: orderKeys,
      order: KeyOrder(keys: (order ?? all).map(\.text), orderKeys: orderKeys, doubt: doubt))
  }

  /// Returns table L of an entity before order keys are added.
  private func keys(
    of entity: Entity, _ relationships: [String: Relationship], below parent: State?
  ) -> GrowingKeyTable {
    var table = GrowingKeyTable(parent?.names ?? ["_ent", "_pk", "_opt"].map(KeyName.init))
    let attributes = model.allAttributes(of: entity)
    let composites = model.allComposites(of: entity)
    // A composite has a position by its own name, and its elements have the keys.
    let names = attributes.filter { !$0.value.isElement }.map(\.key) + composites.keys
    for key in KeyOrders.bucketOrder(names) {
      if let composite = composites[key.text] {
        for element in composite.elements where !composite.isTransient && !element.isTransient {
          table.insert(KeyName("\(composite.name).\(element.name)"))
        }
      } else if attributes[key.text]?.isTransient == false {
        table.insert(key)
      }
    }
    for key in KeyOrders.bucketOrder(relationships.keys) {
      guard let relationship = relationships[key.text], !relationship.isTransient else { continue }
      if !relationship.isToMany {
        let name = relationship.name.uppercased()
        table.insert(KeyName("_Z\(name)"))
        if let destination = model.entity(named: relationship.destinationEntityName),
          !model.subentities(of: destination).isEmpty
        {
          table.insert(KeyName("_Z\(numbers[destination.name] ?? 0)_\(name)"))
        }
      }
      table.insert(key)
    }
    return table
  }

  /// The bucket order of a separate table, filled alphabetically without regard to case.
  private static func bucketOrder(_ names: some Collection<String>) -> [KeyName] {
    GrowingKeyTable(names.sorted(by: Entity.caseInsensitiveOrder).map(KeyName.init)).names
  }

  private static func orderKey(_ relationship: String) -> KeyName { KeyName("_Z_FOK_\(relationship.uppercased())") }

  /// Whether the inverse of a to-one is an ordered to-many, so that it has an order key.
  private func isOrderedByInverse(_ relationship: Relationship) -> Bool {
    guard !relationship.isToMany, !relationship.isTransient, let inverse = model.inverse(of: relationship)?.relationship
    else { return false }
    return inverse.isToMany && inverse.isOrdered && !inverse.isTransient
  }

  private func doubt(of entity: Entity, keys: [KeyName]) -> KeyOrder.Doubt? {
    if let owner = model.lineage(of: entity).lazy.compactMap({ oneWayToManys[$0.name] }).first {
      return .hiddenKey(entity: owner.entity, relationship: owner.relationship)
    }
    return keys.first { !$0.text.utf8.allSatisfy { $0 < 0x80 } }.map { .lettersOutsideASCII(name: $0.text) }
  }
}
