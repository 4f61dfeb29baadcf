// Lightweight migration as Core Data infers it: what of a destination version continues what of a source version
// (docs/formats/migration-semantics.md, "What can be inferred" and "What cannot be inferred"). It reads two models and
// nothing else; whether the rows of a store allow the step (missing required values, duplicates) is for the planner,
// which can inspect them.

import Diagnostics
import ManagedObjectModel

/// Infers how one version of a model becomes another.
package enum MappingInference {
  /// The mapping from `source` to `destination`.
  ///
  /// Throws `not-inferable` whose `reasons` are all that stand in the way, each with entity, property and hint.
  package static func infer(
    from source: ManagedObjectModel, to destination: ManagedObjectModel, renames: RenameRules = RenameRules()
  ) throws(HopdError) -> InferredMapping {
    var run = InferenceRun(source: source, destination: destination, renames: renames)
    let mappings = run.infer()
    guard run.findings.reasons.isEmpty else {
      let count = run.findings.reasons.count
      throw HopdError(
        .notInferable,
        "the hop cannot be inferred, for \(count) reason\(count == 1 ? "" : "s")",
        at: Place(hop: "\(source.name) → \(destination.name)"),
        hint: "split the change into versions that can be inferred one after the other",
        reasons: run.findings.reasons)
    }
    return InferredMapping(
      sourceVersion: source.name, destinationVersion: destination.name, entityMappings: mappings,
      conditions: run.findings.conditions)
  }

  /// What would be inferred from `source` to `destination`, and everything that stands in the way of it: for whoever
  /// explains a step, also one that is impossible.
  package static func attempt(
    from source: ManagedObjectModel, to destination: ManagedObjectModel, renames: RenameRules = RenameRules()
  ) -> (mapping: InferredMapping, reasons: [HopdError]) {
    var run = InferenceRun(source: source, destination: destination, renames: renames)
    let mappings = run.infer()
    return (
      InferredMapping(
        sourceVersion: source.name, destinationVersion: destination.name, entityMappings: mappings,
        conditions: run.findings.conditions), run.findings.reasons
    )
  }
}

/// One run over a pair of models.
struct InferenceRun {
  let source: ManagedObjectModel
  let destination: ManagedObjectModel
  let renames: RenameRules
  var findings = InferenceFindings()

  /// Matched entities, both ways.
  private(set) var sourceByDestination: [String: String] = [:]
  private(set) var destinationBySource: [String: String] = [:]

  init(source: ManagedObjectModel, destination: ManagedObjectModel, renames: RenameRules) {
    self.source = source
    self.destination = destination
    self.renames = renames
  }

  /// All entity mappings, as far as they can be made; `findings` says what is wrong with them.
  mutating func infer() -> [EntityMapping] {
    matchEntities()
    checkHierarchies()
    let ordered = destination.rootEntities.flatMap { destination.subtree(of: $0) }
    let relationships = RelationshipInference(run: &self)
    var mappings: [EntityMapping] = []
    for entity in ordered {
      checkStorableAttributes(of: entity)
      guard let sourceName = sourceByDestination[entity.name], let origin = source.entity(named: sourceName) else {
        mappings.append(addition(of: entity))
        continue
      }
      let attributes = inferAttributes(of: entity, from: origin)
      let pairs = relationships.infer(of: entity, from: origin, findings: &findings)
      let isCopy = isUnchanged(
        entity, origin, attributes.mappings, pairs.mappings, drops: attributes.dropped.count + pairs.dropped.count)
      let kind: EntityMapping.Kind = isCopy ? .copy : .transform
      mappings.append(
        EntityMapping(
          name: (isCopy ? "IEM_Copy_" : "IEM_Transform_") + entity.name, kind: kind, sourceEntity: origin.name,
          destinationEntity: entity.name, attributes: attributes.mappings, relationships: pairs.mappings,
          droppedAttributes: attributes.dropped, droppedRelationships: pairs.dropped))
    }
    for entity in source.rootEntities.flatMap({ source.subtree(of: $0) })
    where destinationBySource[entity.name] == nil {
      mappings.append(
        EntityMapping(
          name: "IEM_Remove_" + entity.name, kind: .remove, sourceEntity: entity.name, destinationEntity: nil,
          droppedAttributes: source.storedAttributes(of: entity).map(\.name),
          droppedRelationships: relationships.dropped(of: entity)))
    }
    return mappings
  }

  /// Names that somebody gave for the properties of an entity: under its own name, its ancestors', or its new one.
  func decided(_ names: [Identified], of origin: Entity, to entity: Entity) -> [String: String] {
    renames.decided(names, owners: source.lineage(of: origin).map(\.name) + destination.lineage(of: entity).map(\.name))
  }

  // MARK: Entities

  private mutating func matchEntities() {
    let old = source.entities.map { Identified(name: $0.name, identifier: $0.renamingIdentifier) }
    let match = IdentifierMatch(
      source: old,
      destination: destination.entities.map { Identified(name: $0.name, identifier: $0.renamingIdentifier) },
      decided: renames.decided(old, owners: []), namesCount: renames.namesCount)
    findings.add(match, kind: "entities", owner: nil)
    findings.add(contradictionsOf: match, owner: nil) { name, continued, _ in
      ([name] + [continued].compactMap { $0 }).map { .noObjects(of: $0) }
    }
    sourceByDestination = match.sourceByDestination
    for (to, from) in match.sourceByDestination { destinationBySource[from] = to }
  }

  /// Entities without a common parent in the source may not get one (docs/formats/migration-semantics.md, "What cannot
  /// be inferred"): their rows are in different tables, where the same Z_PK means different objects.
  private mutating func checkHierarchies() {
    for root in destination.rootEntities {
      var members: [String: [String]] = [:]
      for entity in destination.subtree(of: root) {
        guard let name = sourceByDestination[entity.name], let origin = source.entity(named: name) else { continue }
        members[source.root(of: origin).name, default: []].append(entity.name)
      }
      guard members.count > 1 else { continue }
      let listed = members.sorted { $0.key < $1.key }
        .map { "\($0.value.sorted().joined(separator: ", ")) below \($0.key)" }.joined(separator: "; ")
      findings.add(
        "hierarchies cannot be merged: the entities below \(root.name) come from several hierarchies of the source "
          + "(\(listed)); Apple's documents list neither a common new parent for former roots nor an entity that "
          + "moves into another hierarchy",
        entity: root.name,
        hint: "keep the hierarchies apart, or move the objects with a mapping of your own")
    }
  }

  private func addition(of entity: Entity) -> EntityMapping {
    EntityMapping(
      name: "IEM_Add_" + entity.name, kind: .add, sourceEntity: nil, destinationEntity: entity.name,
      attributes: destination.storedAttributes(of: entity).map {
        AttributeMapping(destination: $0.name, source: nil)
      },
      relationships: destination.storedRelationships(of: entity).map {
        RelationshipMapping(destination: $0.name, source: nil)
      })
  }

  /// Nothing differs that a row could show.
  private func isUnchanged(
    _ entity: Entity, _ origin: Entity, _ attributes: [AttributeMapping], _ relationships: [RelationshipMapping],
    drops: Int
  ) -> Bool {
    guard entity.name == origin.name, entity.isAbstract == origin.isAbstract, drops == 0,
      entity.parentName.map({ sourceByDestination[$0] == origin.parentName && $0 == origin.parentName })
        ?? (origin.parentName == nil)
    else { return false }
    let (oldAttributes, newAttributes) = (source.allAttributes(of: origin), destination.allAttributes(of: entity))
    let (oldRelationships, newRelationships) = (
      source.allRelationships(of: origin), destination.allRelationships(of: entity)
    )
    return attributes.allSatisfy { mapping in
      mapping.source == mapping.destination
        && oldAttributes[mapping.destination]?.isOptional == newAttributes[mapping.destination]?.isOptional
        && oldAttributes[mapping.destination]?.type == newAttributes[mapping.destination]?.type
    }
      && relationships.allSatisfy { mapping in
        guard let carried = mapping.source, !carried.isInverted, carried.relationship == mapping.destination,
          let old = oldRelationships[mapping.destination], let new = newRelationships[mapping.destination]
        else { return false }
        return old.isToMany == new.isToMany && old.isOrdered == new.isOrdered && old.isOptional == new.isOptional
          && old.destinationEntityName == new.destinationEntityName && old.inverseName == new.inverseName
      }
  }
}

extension ManagedObjectModel {
  /// Own and inherited attributes that have a column, by name.
  func storedAttributes(of entity: Entity) -> [Attribute] { properties(of: entity).storedAttributes }

  /// Own and inherited relationships that are stored, by name.
  func storedRelationships(of entity: Entity) -> [Relationship] { properties(of: entity).storedRelationships }

  /// Name of the entity that declares what `entity` has under that name.
  func declarer(of property: String, in entity: Entity) -> String {
    declaringEntity(of: property, in: entity)?.name ?? entity.name
  }
}
