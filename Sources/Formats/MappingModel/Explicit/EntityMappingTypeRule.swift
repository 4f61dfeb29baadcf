// The type that compilation gives to an entity mapping (docs/formats/mapping-models.md, "Compiling a source", rule 6),
// one rule for Xcode's sources and for text mappings. The type is bookkeeping: a Copy runs its property mappings as a
// Transform does.

import ManagedObjectModel

extension EntityMappingType {
  /// Returns the type of a mapping with these entities and this policy.
  static func compiled(
    policy: String?, source: String?, destination: String?, from sourceModel: ManagedObjectModel,
    to destinationModel: ManagedObjectModel, isGrouped: Bool = false
  ) -> EntityMappingType {
    if policy != nil { return .custom }
    guard let source else { return .add }
    guard let destination else { return .remove }
    guard !isGrouped, let origin = sourceModel.entity(named: source),
      let target = destinationModel.entity(named: destination),
      isContinued(origin, sourceModel, by: target, destinationModel)
    else { return .transform }
    return .copy
  }

  /// Whether the destination keeps everything of the source unchanged; additions are allowed.
  private static func isContinued(
    _ origin: Entity, _ source: ManagedObjectModel, by target: Entity, _ destination: ManagedObjectModel
  ) -> Bool {
    guard source.lineage(of: origin).dropLast().map(\.name) == destination.lineage(of: target).dropLast().map(\.name)
    else { return false }
    let attributes = destination.allAttributes(of: target)
    let relationships = destination.allRelationships(of: target)
    // A change of optionality alone makes a Transform too (docs/formats/mapping-models.md, "Mapping types").
    return source.allAttributes(of: origin).values.allSatisfy { before in
      attributes[before.name].map { $0.type == before.type && $0.isOptional == before.isOptional } ?? false
    }
      && source.allRelationships(of: origin).values.allSatisfy { before in
        guard let after = relationships[before.name] else { return false }
        return after.destinationEntityName == before.destinationEntityName && after.isToMany == before.isToMany
          && after.isOptional == before.isOptional
      }
  }
}
