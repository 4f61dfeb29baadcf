// The hop of a stage's hook: from a version to itself, as a mapping model that carries everything unchanged, and an
// entity mapping without objects for the program. So all rules of hops with policies (limits, checkpoints, validation,
// what the verifier cannot check) apply to hooks (docs/decisions/0068).

import Diagnostics
import ManagedObjectModel
import SystemPackage

extension MappedHop {
  /// Creates a hop from `model` to itself; at its end the hook's program changes the objects.
  ///
  /// Each source table is copied into the same table, so all objects keep their primary keys.
  package init(hook: StageHook, at model: ManagedObjectModel) {
    let same = ExplicitMapping(inferred: InferredMapping(keeping: model), source: model, destination: model)
    self.init(
      mappings: [
        ExplicitMapping(
          name: hook.title, path: hook.stage.place.file ?? "", sourceVersion: model.name,
          destinationVersion: model.name,
          entityMappings: same.entityMappings + [
            ExplicitEntityMapping(
              name: hook.moment.rawValue, type: .custom, source: nil, destination: nil, policy: hook.program)
          ])
      ], hook: hook)
  }
}

extension InferredMapping {
  /// Carries everything of a version unchanged. Names decide, not renaming identifiers: both sides are one version.
  package init(keeping model: ManagedObjectModel) {
    self.init(
      sourceVersion: model.name, destinationVersion: model.name,
      entityMappings: model.orderedEntities.map { entity in
        EntityMapping(
          name: "IEM_Copy_" + entity.name, kind: .copy, sourceEntity: entity.name, destinationEntity: entity.name,
          attributes: model.storedAttributes(of: entity).map {
            AttributeMapping(destination: $0.name, source: $0.name)
          },
          relationships: model.storedRelationships(of: entity).map {
            RelationshipMapping(
              destination: $0.name,
              source: RelationshipMapping.SourcePairs(entity: entity.name, relationship: $0.name))
          })
      })
  }
}
