// The source of every entity and property of a destination version, as lightweight migration infers it. It holds names
// only; the planner reads it for costs and warnings, and the engine turns it into SQL.

import ManagedObjectModel

/// An inferred mapping from one model version to another.
package struct InferredMapping: Sendable, Hashable {
  /// Version names.
  package let sourceVersion: String
  package let destinationVersion: String
  /// One mapping per destination entity (in entity-number order), then one `remove` per dropped source entity.
  package let entityMappings: [EntityMapping]
  /// What the rows must fulfil if the models alone do not decide.
  package let conditions: [RowCondition]

  /// Creates a mapping.
  package init(
    sourceVersion: String, destinationVersion: String, entityMappings: [EntityMapping],
    conditions: [RowCondition] = []
  ) {
    self.sourceVersion = sourceVersion
    self.destinationVersion = destinationVersion
    self.entityMappings = entityMappings
    self.conditions = conditions
    placeByDestination = Self.places(entityMappings.map(\.destinationEntity))
    placeBySource = Self.places(entityMappings.map(\.sourceEntity))
  }

  /// Positions in `entityMappings`; the first mapping of an entity takes precedence.
  private let placeByDestination: [String: Int]
  private let placeBySource: [String: Int]

  private static func places(_ names: [String?]) -> [String: Int] {
    Dictionary(names.enumerated().compactMap { place, name in name.map { ($0, place) } }) { first, _ in first }
  }

  /// Returns the mapping whose destination is that entity.
  package func mapping(toDestination entity: String) -> EntityMapping? {
    placeByDestination[entity].map { entityMappings[$0] }
  }

  /// Returns the mapping whose source is that entity.
  package func mapping(fromSource entity: String) -> EntityMapping? {
    placeBySource[entity].map { entityMappings[$0] }
  }
}

/// One entity's part of a mapping.
package struct EntityMapping: Sendable, Hashable {
  /// Core Data's mapping types as far as inference makes them (docs/formats/migration-semantics.md, "Mapping types").
  package enum Kind: String, Sendable, Hashable { case add, remove, copy, transform }

  /// IEM_Add_X, IEM_Remove_X, IEM_Copy_X or IEM_Transform_X (docs/formats/migration-semantics.md, "Names of inferred
  /// mappings").
  package let name: String
  package let kind: Kind
  /// nil for `add`.
  package let sourceEntity: String?
  /// nil for `remove`.
  package let destinationEntity: String?
  /// One per stored attribute of the destination entity, own **and inherited**, by name, including derived ones.
  package internal(set) var attributes: [AttributeMapping] = []
  /// One per stored relationship of the destination entity, own **and inherited**, by name.
  package internal(set) var relationships: [RelationshipMapping] = []
  /// Stored attributes of the source entity (own and inherited) that no destination attribute continues.
  package internal(set) var droppedAttributes: [String] = []
  /// Stored relationships of the source entity (own and inherited) whose pairs no destination relationship continues.
  package internal(set) var droppedRelationships: [String] = []
}

extension EntityMapping {
  /// The mapping to an entity that continues no other one.
  init(adding entity: Entity, of model: ManagedObjectModel, name: String) {
    self.init(
      name: name, kind: .add, sourceEntity: nil, destinationEntity: entity.name,
      attributes: model.storedAttributes(of: entity).map { AttributeMapping(destination: $0.name, source: nil) },
      relationships: model.storedRelationships(of: entity).map {
        RelationshipMapping(destination: $0.name, source: nil)
      })
  }
}

/// The source of a destination attribute's values.
package struct AttributeMapping: Sendable, Hashable {
  /// Name in the destination entity.
  package let destination: String
  /// Name in the source entity; nil for an added attribute, which gets its default in every existing row.
  package let source: String?
}

/// The source of a destination relationship's pairs (owner, target).
package struct RelationshipMapping: Sendable, Hashable {
  /// Name in the destination entity.
  package let destination: String
  /// The source relationship that holds the same pairs, or nil for an added one, which stays empty.
  package let source: SourcePairs?

  /// A source relationship whose pairs are carried over.
  package struct SourcePairs: Sendable, Hashable {
    /// The source entity whose relationship this is, and the relationship's name there.
    package let entity: String
    package let relationship: String
    /// False: its owner is the destination's owner. True: only the inverse was matched (the relationship itself is new,
    /// its inverse is not), so owner and target are exchanged.
    package let isInverted: Bool

    /// Creates a reference to a source relationship.
    package init(entity: String, relationship: String, isInverted: Bool = false) {
      self.entity = entity
      self.relationship = relationship
      self.isInverted = isInverted
    }
  }
}
