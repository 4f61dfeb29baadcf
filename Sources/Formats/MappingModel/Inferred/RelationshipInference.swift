// The relationships of all pairs of entities. They cannot be inferred one entity at a time: a relationship and its
// inverse share their pairs, so whether one end may be carried depends on what the other end continues.

import Diagnostics
import ManagedObjectModel

struct RelationshipInference {
  /// A relationship with the entity that declares it.
  struct Key: Hashable {
    let entity: String
    let name: String

    var pairs: RelationshipMapping.SourcePairs { RelationshipMapping.SourcePairs(entity: entity, relationship: name) }

    static func precedes(_ left: Key, _ right: Key) -> Bool { (left.entity, left.name) < (right.entity, right.name) }
  }

  private let source: ManagedObjectModel
  private let destination: ManagedObjectModel
  private let destinationBySource: [String: String]
  /// For each destination entity: its relationships and the source relationships that they continue.
  private var matches: [String: [String: String]] = [:]
  /// What each declared destination relationship continues, over all entities that have it.
  private var continued: [Key: Set<Key>] = [:]
  /// Source relationships that some destination relationship continues.
  private var taken: Set<Key> = []
  /// Whether every relationship continues as it is, so that nothing needs to be matched.
  private let isUnchanged: Bool

  /// Matches the relationships of every pair of entities, and reports doubtful names.
  init(run: inout InferenceRun) {
    source = run.source
    destination = run.destination
    destinationBySource = run.destinationBySource
    isUnchanged = Self.isUnchanged(run)
    if isUnchanged { return }
    for (to, from) in run.sourceByDestination.sorted(by: { $0.key < $1.key }) {
      guard let entity = destination.entity(named: to), let origin = source.entity(named: from) else { continue }
      let names = source.storedRelationships(of: origin).map { Identified($0) }
      let match = IdentifierMatch(
        source: names, destination: destination.storedRelationships(of: entity).map { Identified($0) },
        decided: run.decided(names, of: origin, to: entity), namesCount: run.renames.namesCount)
      run.findings.add(match, kind: "relationships", owner: (from, to))
      run.findings.add(contradictionsOf: match, owner: (from, to)) { name, continued, _ in
        ([name] + [continued].compactMap { $0 }).map { .noPairs(Key(entity: from, name: $0).pairs) }
      }
      matches[to] = match.sourceByDestination
      // Only pairs that have a place on both sides continue.
      for (new, old) in match.sourceByDestination
      where source.hasStorage(ofRelationship: old, in: origin)
        && destination.hasStorage(ofRelationship: new, in: entity)
      {
        let key = Key(entity: source.declarer(of: old, in: origin), name: old)
        continued[Key(entity: destination.declarer(of: new, in: entity), name: new), default: []].insert(key)
        taken.insert(key)
      }
    }
  }

  /// Whether both versions have the same entities, hierarchies and relationships.
  private static func isUnchanged(_ run: InferenceRun) -> Bool {
    run.renames.renames.isEmpty && run.sourceByDestination.count == run.destination.entities.count
      && run.sourceByDestination.allSatisfy { $0.key == $0.value }
      && run.source.entities.elementsEqual(run.destination.entities) { old, new in
        old.name == new.name && old.parentName == new.parentName && old.relationships == new.relationships
          && new.relationships.allSatisfy { $0.renamingIdentifier == $0.name }
      }
  }

  /// Returns mappings of all stored relationships of `entity`, and the names of those of `origin` whose pairs are
  /// dropped.
  func infer(
    of entity: Entity, from origin: Entity, findings: inout InferenceFindings
  ) -> (mappings: [RelationshipMapping], dropped: [String]) {
    if isUnchanged {
      return (
        destination.storedRelationships(of: entity).map {
          RelationshipMapping(
            destination: $0.name,
            source: RelationshipMapping.SourcePairs(entity: origin.name, relationship: $0.name))
        }, []
      )
    }
    let old = source.allRelationships(of: origin)
    var mappings: [RelationshipMapping] = []
    for relationship in destination.storedRelationships(of: entity) {
      var pairs: RelationshipMapping.SourcePairs?
      let isStored = destination.hasStorage(ofRelationship: relationship.name, in: entity)
      // A relationship that had no place in the store is new, except for one that still has none.
      if let name = matches[entity.name]?[relationship.name], let before = old[name],
        !isStored || source.hasStorage(ofRelationship: name, in: origin)
      {
        if isStored {
          check(relationship, of: entity, against: before, of: origin, findings: &findings)
        } else {
          checkEmpty(relationship, of: entity, against: before, of: origin, findings: &findings)
        }
        pairs = RelationshipMapping.SourcePairs(entity: origin.name, relationship: name)
      } else {
        pairs = invertedPairs(for: relationship, of: entity, from: origin, findings: &findings)
      }
      mappings.append(RelationshipMapping(destination: relationship.name, source: pairs))
    }
    let stored = (matches[entity.name] ?? [:]).filter { destination.hasStorage(ofRelationship: $0.key, in: entity) }
    let continuing = Set(stored.values)
    return (mappings, dropped(of: origin).filter { !continuing.contains($0) })
  }

  /// Returns the stored relationships of a source entity whose pairs no inverse carries on; whether the relationship
  /// itself continues is not considered.
  func dropped(of origin: Entity) -> [String] {
    source.storedRelationships(of: origin).filter { relationship in
      source.hasStorage(ofRelationship: relationship.name, in: origin) && !isCarriedByInverse(relationship)
    }.map(\.name)
  }

  /// Whether some destination relationship continues the inverse of a source relationship.
  private func isCarriedByInverse(_ relationship: Relationship) -> Bool {
    source.inverse(of: relationship).map { taken.contains(Key(entity: $0.entity.name, name: $0.relationship.name)) }
      ?? false
  }

  /// Returns the pairs of a relationship that is new while its inverse is not: the inverse's pairs, owner and target
  /// exchanged.
  private func invertedPairs(
    for relationship: Relationship, of entity: Entity, from origin: Entity, findings: inout InferenceFindings
  ) -> RelationshipMapping.SourcePairs? {
    guard let inverse = destination.inverse(of: relationship),
      let candidates = continued[Key(entity: inverse.entity.name, name: inverse.relationship.name)]
    else { return nil }
    guard candidates.count == 1, let key = candidates.first else {
      let names = candidates.map { "\($0.entity).\($0.name)" }.sorted().joined(separator: ", ")
      findings.add(
        "its inverse \(inverse.entity.name).\(inverse.relationship.name) continues several relationships (\(names))",
        entity: destination.declarer(of: relationship.name, in: entity), property: relationship.name,
        hint: "declare one relationship for each of them")
      return nil
    }
    guard let before = source.entity(named: key.entity)?.relationships.first(where: { $0.name == key.name }),
      let target = source.entity(named: before.destinationEntityName)
    else { return nil }
    // A property that moved up the hierarchy already continues the other end, with the same pairs.
    let own = Key(entity: destination.declarer(of: relationship.name, in: entity), name: relationship.name)
    if let reverse = source.inverse(of: before),
      continued[own]?.contains(Key(entity: reverse.entity.name, name: reverse.relationship.name)) == true
    {
      return nil
    }
    // Only objects that could be targets before can be owners now.
    guard source.isEntity(origin.name, within: target.name) else { return nil }
    return RelationshipMapping.SourcePairs(entity: key.entity, relationship: key.name, isInverted: true)
  }

  // MARK: Relationship checks

  private func check(
    _ relationship: Relationship, of entity: Entity, against before: Relationship, of origin: Entity,
    findings: inout InferenceFindings
  ) {
    let declaring = source.declarer(of: before.name, in: origin)
    let pairs = RelationshipMapping.SourcePairs(entity: declaring, relationship: before.name)
    func demand(_ demand: RowCondition.Demand, _ message: String) {
      findings.demand(
        demand, entity: destination.declarer(of: relationship.name, in: entity), property: relationship.name, message,
        hint: "map the pairs in a mapping model for this hop, or drop them: "
          + RenameRules.dropping(origin.name, before.name))
    }
    if before.isToMany, !relationship.isToMany {
      demand(
        .oneTargetPerOwner(pairs),
        "a to-many becomes a to-one, which has room for one target; which one stays is not documented")
    }
    checkTarget(relationship, against: before, pairs: pairs) { demand($0, $1) }

    let inverse = destination.inverse(of: relationship)
    let inverseBefore = source.inverse(of: before)
    let keyBefore = inverseBefore.map { Key(entity: $0.entity.name, name: $0.relationship.name) }
    let continuedByInverse =
      inverse.flatMap { continued[Key(entity: $0.entity.name, name: $0.relationship.name)] } ?? []
    guard continuedByInverse.isEmpty else {
      if keyBefore.map(continuedByInverse.contains) == true { return }
      let title = inverse.map { "\($0.entity.name).\($0.relationship.name)" } ?? ""
      let names = continuedByInverse.map { "\($0.entity).\($0.name)" }.sorted().joined(separator: ", ")
      for other in continuedByInverse.sorted(by: Key.precedes) {
        demand(
          .samePairs(pairs, inverseOf: other.pairs),
          "it continues \(origin.name).\(before.name), but its inverse \(title) continues \(names), which is not "
            + "the inverse of that: the two ends have different pairs")
      }
      return
    }
    // Without an inverse, a to-one may have many owners per target; a to-many's column holds one owner
    // (docs/formats/store-layout.md, "To-many without inverse").
    let hadManyOwners = inverseBefore.map(\.relationship.isToMany) ?? !before.isToMany
    let mayHaveManyOwners = inverse.map(\.relationship.isToMany) ?? !relationship.isToMany
    if hadManyOwners, !mayHaveManyOwners {
      demand(
        .oneOwnerPerTarget(pairs),
        "a target could have several owners and now has room for one; which one stays is not documented")
    }
  }

  /// Demands that a relationship without a place in the destination's store has no pairs that only it could continue.
  private func checkEmpty(
    _ relationship: Relationship, of entity: Entity, against before: Relationship, of origin: Entity,
    findings: inout InferenceFindings
  ) {
    guard source.hasStorage(ofRelationship: before.name, in: origin), !isCarriedByInverse(before) else { return }
    let inverse = destination.inverse(of: relationship).map { "\($0.entity.name).\($0.relationship.name)" }
    let pairs = RelationshipMapping.SourcePairs(
      entity: source.declarer(of: before.name, in: origin), relationship: before.name)
    findings.demand(
      .noPairs(pairs), entity: destination.declarer(of: relationship.name, in: entity), property: relationship.name,
      "its inverse \(inverse ?? "") is transient while it is not, and no layout of a store is known for that: its "
        + "pairs would be lost",
      hint: "make both ends transient, or none, or drop the relationship: "
        + RenameRules.dropping(origin.name, before.name))
  }

  /// Demands that no row has a target that continues but that the relationship can no longer point to.
  private func checkTarget(
    _ relationship: Relationship, against before: Relationship, pairs: RelationshipMapping.SourcePairs,
    demand: (_ demand: RowCondition.Demand, _ message: String) -> Void
  ) {
    let wanted = relationship.destinationEntityName
    guard let target = source.entity(named: before.destinationEntityName) else { return }
    for possible in source.subtree(of: target) where !possible.isAbstract {
      guard let name = destinationBySource[possible.name], destination.entity(named: name) != nil,
        !destination.isEntity(name, within: wanted)
      else { continue }
      demand(
        .noTarget(pairs, of: possible.name),
        target.name == wanted
          ? "in the new version, objects of \(name) are not objects of its destination, \(wanted)"
          : "its destination changes from \(target.name) to \(wanted), and objects of \(name) are not below that")
    }
  }
}
