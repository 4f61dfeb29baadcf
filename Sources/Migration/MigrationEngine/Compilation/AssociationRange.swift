import MappingModel

/// The keys of the objects that an entity mapping makes from source objects.
package struct AssociationRange: Sendable, Hashable {
  /// The index in `MappedHop.entityMappings`.
  package let index: Int
  package let mapping: ExplicitEntityMapping
  package let kind: AssociationLayout.Kind
  package let sourceEntity: String
  package let sourceTable: String
  package let sourceNumber: Int64
  package let destinationEntity: String
  package let destinationTable: String
  package let destinationNumber: Int64
  /// The number added to the source key; not for expanded objects, nor for objects that policies make besides the
  /// standard ones.
  package let offset: Int64

  /// Whether keys alone determine the associated objects.
  package var isArithmetic: Bool { kind == .each }
}
