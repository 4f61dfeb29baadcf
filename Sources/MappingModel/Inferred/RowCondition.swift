// What two models leave open and the rows of a store decide: a hop is inferred under conditions, and refused only where
// a row of the store at hand breaks one. Core Data writes first and loses without a word
// (docs/formats/migration-semantics.md, "What the rows decide").

import Diagnostics

/// One demand of a hop on the rows that it reads.
package struct RowCondition: Sendable, Hashable {
  /// The demands. Entities and properties are those of the hop's source version.
  package enum Demand: Sendable, Hashable {
    /// No target of the relationship has two owners.
    case oneOwnerPerTarget(RelationshipMapping.SourcePairs)
    /// No owner has two targets.
    case oneTargetPerOwner(RelationshipMapping.SourcePairs)
    /// No target is an object of that entity itself.
    case noTarget(RelationshipMapping.SourcePairs, of: String)
    /// Two relationships hold the same pairs, seen from both ends.
    case samePairs(RelationshipMapping.SourcePairs, inverseOf: RelationshipMapping.SourcePairs)
    /// The relationship has no pair.
    case noPairs(RelationshipMapping.SourcePairs)
    /// Every object of the entity has the same value by both readings.
    case sameValues(entity: String, AttributeReading, AttributeReading)
    /// The entity has no objects.
    case noObjects(of: String)
  }

  /// What the rows must fulfil.
  package let demand: Demand
  /// Entity and property of the hop's destination version that need it.
  package let entity: String
  package let property: String?
  /// What is wrong where a row breaks it, and what to do then.
  package let message: String
  package let hint: String
}

/// One way to read where the values of a destination attribute come from.
package enum AttributeReading: Sendable, Hashable {
  /// From an attribute of the source entity.
  case source(String)
  /// From the default of the destination attribute, nil where it has none.
  case standard(entity: String, attribute: String)
}
