// The names of a mapped hop: which entity, attribute and relationship of the destination plainly continues which one of
// the source. Decisions on the layout of the new store (names of tables, triggers) need no more, and an inferred
// mapping has the same shape, so one function serves both kinds of hops.

import Expressions
import ManagedObjectModel

extension MappedHop {
  /// Returns the hop's plain continuations in the shape of an inferred mapping.
  ///
  /// Each destination entity uses the first mapping that makes one object per source object: attributes that are
  /// `$source.x`, and relationships that hold the objects made for `$source.r`, or whose inverse does. Computed values
  /// have no source here. It is not used to migrate rows.
  package func nameTrail(source: ManagedObjectModel, destination: ManagedObjectModel) -> InferredMapping {
    let trail = NameTrail(hop: self, source: source, destination: destination)
    return InferredMapping(
      sourceVersion: source.name, destinationVersion: destination.name, entityMappings: trail.entityMappings())
  }
}

private struct NameTrail {
  let source: ManagedObjectModel
  let destination: ManagedObjectModel
  /// The mapping that decides about a destination entity.
  private var mappings: [String: ExplicitEntityMapping] = [:]
  /// The source entity that a destination entity continues, abstract ones included.
  private var origins: [String: String] = [:]

  init(hop: MappedHop, source: ManagedObjectModel, destination: ManagedObjectModel) {
    self.source = source
    self.destination = destination
    for mapping in hop.entityMappings {
      guard case .each = mapping.grouping, let name = mapping.destination, mappings[name] == nil,
        let origin = mapping.source, source.entity(named: origin) != nil
      else { continue }
      mappings[name] = mapping
      origins[name] = origin
    }
    for entity in destination.entities where entity.isAbstract && origins[entity.name] == nil {
      guard let (mapping, origin) = origin(ofAbstract: entity) else { continue }
      mappings[entity.name] = mapping
      origins[entity.name] = origin
    }
  }

  /// An abstract entity has no objects and no mapping. The first mapped entity below it shows what it continues: the
  /// ancestor of that entity's source with the same renaming identifier or name.
  private func origin(ofAbstract entity: Entity) -> (ExplicitEntityMapping, String)? {
    for below in destination.subtree(of: entity) {
      guard let mapping = mappings[below.name], let name = mapping.source, let origin = source.entity(named: name)
      else { continue }
      let ancestors = source.lineage(of: origin)
      let match =
        ancestors.first { $0.renamingIdentifier == entity.renamingIdentifier }
        ?? ancestors.first { $0.name == entity.name }
      if let match { return (mapping, match.name) }
    }
    return nil
  }

  func entityMappings() -> [EntityMapping] {
    let taken = Set(origins.values)
    return destination.orderedEntities.map(entityMapping)
      + source.orderedEntities.filter { !taken.contains($0.name) }.map { entity in
        EntityMapping(
          name: entity.name, kind: .remove, sourceEntity: entity.name, destinationEntity: nil,
          droppedAttributes: source.storedAttributes(of: entity).map(\.name),
          droppedRelationships: source.storedRelationships(of: entity).map(\.name))
      }
  }

  private func entityMapping(to entity: Entity) -> EntityMapping {
    let mapping = mappings[entity.name]
    guard let mapping, let name = origins[entity.name], let origin = source.entity(named: name) else {
      return EntityMapping(adding: entity, of: destination, name: entity.name)
    }
    let known = Set(source.storedAttributes(of: origin).map(\.name))
    let attributes = destination.storedAttributes(of: entity).map { attribute in
      let value = mapping.attributes.first { $0.name == attribute.name }?.value
      let origin: String? = if case .expression(let node)? = value { node.sourceProperty } else { nil }
      return AttributeMapping(destination: attribute.name, source: origin.flatMap { known.contains($0) ? $0 : nil })
    }
    let relationships = destination.storedRelationships(of: entity).map { relationship in
      RelationshipMapping(
        destination: relationship.name, source: pairs(of: relationship, mapping, from: origin) ?? inverted(relationship)
      )
    }
    let keptAttributes = Set(attributes.compactMap(\.source))
    let keptPairs = Set(relationships.compactMap(\.source?.relationship))
    return EntityMapping(
      name: mapping.name, kind: mapping.type == .copy ? .copy : .transform, sourceEntity: name,
      destinationEntity: entity.name, attributes: attributes, relationships: relationships,
      droppedAttributes: known.subtracting(keptAttributes).sorted(),
      droppedRelationships: source.storedRelationships(of: origin).map(\.name).filter { !keptPairs.contains($0) })
  }

  private func pairs(
    of relationship: Relationship, _ mapping: ExplicitEntityMapping, from origin: Entity
  ) -> RelationshipMapping.SourcePairs? {
    let value = mapping.relationships.first { $0.name == relationship.name }?.value
    guard case .expression(.destinationInstances(_, let objects))? = value, let name = objects.sourceProperty,
      source.allRelationships(of: origin)[name] != nil
    else { return nil }
    return RelationshipMapping.SourcePairs(entity: origin.name, relationship: name)
  }

  /// Returns the pairs of a relationship that only its inverse sets.
  private func inverted(_ relationship: Relationship) -> RelationshipMapping.SourcePairs? {
    guard let inverse = destination.inverse(of: relationship) else { return nil }
    for owner in destination.subtree(of: inverse.entity) {
      guard let mapping = mappings[owner.name], let origin = origins[owner.name].flatMap({ source.entity(named: $0) }),
        let found = pairs(of: inverse.relationship, mapping, from: origin)
      else { continue }
      return RelationshipMapping.SourcePairs(entity: found.entity, relationship: found.relationship, isInverted: true)
    }
    return nil
  }
}
