// Conditions that two models leave open and the rows of a store decide. A hop is inferred under conditions, and refused
// only if a row of the given store breaks one. Core Data writes first and loses data silently
// (docs/formats/migration-semantics.md, "What the rows decide").

import Diagnostics

/// One condition of a hop on the rows that it reads.
package struct RowCondition: Sendable, Hashable {
  /// The kinds of conditions. Entities and properties are those of the hop's source version.
  package enum Demand: Sendable, Hashable {
    /// No target of the relationship has two owners.
    case oneOwnerPerTarget(RelationshipMapping.SourcePairs)
    /// No owner has two targets.
    case oneTargetPerOwner(RelationshipMapping.SourcePairs)
    /// No target is an object of exactly that entity.
    case noTarget(RelationshipMapping.SourcePairs, of: String)
    /// Two relationships hold the same pairs, each from its own end.
    case samePairs(RelationshipMapping.SourcePairs, inverseOf: RelationshipMapping.SourcePairs)
    /// The relationship has no pair.
    case noPairs(RelationshipMapping.SourcePairs)
    /// Every object of the entity has the same value under both readings.
    case sameValues(entity: String, AttributeReading, AttributeReading)
    /// The entity has no objects.
    case noObjects(of: String)
  }

  /// What the rows must fulfil.
  package let demand: Demand
  /// Entity and property of the hop's destination version that need the condition.
  package let entity: String
  package let property: String?
  /// The problem if a row breaks the condition, and the remedy.
  package let message: String
  package let hint: String
}

/// One reading of where the values of a destination attribute come from.
package enum AttributeReading: Sendable, Hashable {
  /// From an attribute of the source entity.
  case source(String)
  /// From the default of the destination attribute; nil if it has none.
  case standard(entity: String, attribute: String)
}
