// Lightweight migration as Core Data infers it: which parts of a destination version continue which parts of a source
// version (docs/formats/migration-semantics.md, "What can be inferred" and "What cannot be inferred"). It reads only
// two models. Whether the rows of a store allow the step (missing required values, duplicates) is checked by the
// planner, which can inspect them.

import Diagnostics
import ManagedObjectModel

/// Infers how one version of a model becomes another.
package enum MappingInference {
  /// Returns the mapping from `source` to `destination`.
  ///
  /// - Throws: `not-inferable` whose `reasons` are all obstacles, each with entity, property and hint.
  package static func infer(
    from source: ManagedObjectModel, to destination: ManagedObjectModel, renames: RenameRules = RenameRules()
  ) throws(HopdError) -> InferredMapping {
    let (mapping, reasons) = attempt(from: source, to: destination, renames: renames)
    guard reasons.isEmpty else {
      throw HopdError(
        .notInferable,
        "the hop cannot be inferred, for \(reasons.count.counted("reason"))",
        at: Place(hop: "\(source.name) → \(destination.name)"),
        hint: "split the change into versions that can be inferred one after the other", reasons: reasons)
    }
    return mapping
  }

  /// Whether the named entities of `destination` alone show that the hop cannot be inferred, which takes a tenth of the
  /// time of inferring it.
  package static func isImpossible(
    from source: ManagedObjectModel, to destination: ManagedObjectModel, renames: RenameRules,
    because names: Set<String>
  ) -> Bool {
    var run = InferenceRun(source: source, destination: destination, renames: renames)
    return run.isImpossible(because: names)
  }

  /// Returns the mapping as far as it can be inferred, and all obstacles: to explain a step, even an impossible one.
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

  /// Returns all entity mappings as far as they can be made; `findings` receives the problems.
  mutating func infer() -> [EntityMapping] {
    matchEntities()
    checkHierarchies()
    let relationships = RelationshipInference(run: &self)
    var mappings: [EntityMapping] = []
    for entity in destination.orderedEntities {
      checkStorableAttributes(of: entity)
      guard let sourceName = sourceByDestination[entity.name], let origin = source.entity(named: sourceName) else {
        mappings.append(EntityMapping(adding: entity, of: destination, name: "IEM_Add_" + entity.name))
        continue
      }
      let attributes = inferAttributes(of: entity, from: origin)
      let pairs = relationships.infer(of: entity, from: origin, findings: &findings)
      let isCopy = isUnchanged(
        entity, origin, attributes.mappings, pairs.mappings, drops: attributes.dropped.count + pairs.dropped.count)
      mappings.append(
        EntityMapping(
          name: (isCopy ? "IEM_Copy_" : "IEM_Transform_") + entity.name, kind: isCopy ? .copy : .transform,
          sourceEntity: origin.name, destinationEntity: entity.name, attributes: attributes.mappings,
          relationships: pairs.mappings, droppedAttributes: attributes.dropped, droppedRelationships: pairs.dropped))
    }
    for entity in source.orderedEntities where destinationBySource[entity.name] == nil {
      mappings.append(
        EntityMapping(
          name: "IEM_Remove_" + entity.name, kind: .remove, sourceEntity: entity.name, destinationEntity: nil,
          droppedAttributes: source.storedAttributes(of: entity).map(\.name),
          droppedRelationships: relationships.dropped(of: entity)))
    }
    return mappings
  }

  /// Whether these entities are obstacles.
  mutating func isImpossible(because names: Set<String>) -> Bool {
    matchEntities()
    for entity in destination.entities where findings.reasons.isEmpty && names.contains(entity.name) {
      guard let origin = sourceByDestination[entity.name].flatMap({ source.entity(named: $0) }) else { continue }
      _ = inferAttributes(of: entity, from: origin)
    }
    return !findings.reasons.isEmpty
  }

  /// Returns the operator's names for properties of an entity, given under its own name, an ancestor's, or its new one.
  func decided(_ names: [Identified], of origin: Entity, to entity: Entity) -> [String: String] {
    if renames.renames.isEmpty { return [:] }
    return renames.decided(
      names, owners: source.lineage(of: origin).map(\.name) + destination.lineage(of: entity).map(\.name))
  }

  // MARK: Entities

  /// The key of an entity's user info that names the entity of the source whose objects it continues, in spite of its
  /// renaming identifier (docs/formats/migration-semantics.md, "Matching").
  private static let continuedEntityKey = "NSEntityRenamingShouldRebaseKey"

  private mutating func matchEntities() {
    let old = source.entities.map { Identified($0) }
    var decided = renames.decided(old, owners: [])
    for entity in destination.entities {
      guard let name = entity.userInfo[Self.continuedEntityKey], decided[name] == nil, source.entity(named: name) != nil
      else { continue }
      decided[name] = entity.name
    }
    let match = IdentifierMatch(
      source: old, destination: destination.entities.map { Identified($0) }, decided: decided,
      namesCount: renames.namesCount)
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
        hint: "keep the hierarchies separate, or move the objects with a mapping model")
    }
  }

  /// Whether no row could show a difference.
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
