// The drops of a mapped hop: source entities that no entity mapping takes, and source properties that no expression
// reads. A plan counts their rows and values before any row is migrated.

import ManagedObjectModel

extension MappedHop {
  /// Returns the name trail with the drops of the whole hop: every entity whose objects no entity mapping takes to the
  /// destination, and every property of a taken entity, own or inherited, that no expression reads from its objects.
  /// Each drop is reported once, however many mappings an entity has.
  package func trail(from source: ManagedObjectModel, to destination: ManagedObjectModel) -> InferredMapping {
    let names = nameTrail(source: source, destination: destination)
    // Without a destination the objects are dropped, unless a policy takes them.
    let taken = Set(entityMappings.filter { $0.destination != nil || $0.policy != nil }.compactMap(\.source))
    let read = policies.isEmpty ? properties(readFrom: source) : nil
    var reported: Set<String> = []
    var mappings = names.entityMappings.compactMap { mapping -> EntityMapping? in
      guard let name = mapping.sourceEntity, let entity = source.entity(named: name) else { return mapping }
      if mapping.destinationEntity == nil, taken.contains(name) { return nil }
      // An abstract entity has no objects; its properties are those of the entities below it.
      let isFirst = reported.insert(name).inserted && mapping.destinationEntity != nil && !entity.isAbstract
      var copy = mapping
      (copy.droppedAttributes, copy.droppedRelationships) = isFirst ? unread(entity, in: source, read) : ([], [])
      return copy
    }
    // The trail has no entity mapping for objects that are merged, divided or added to those of another entity.
    for entity in source.orderedEntities
    where !entity.isAbstract && taken.contains(entity.name) && reported.insert(entity.name).inserted {
      let (attributes, relationships) = unread(entity, in: source, read)
      mappings.append(
        EntityMapping(
          name: entity.name, kind: .transform, sourceEntity: entity.name, destinationEntity: nil,
          droppedAttributes: attributes, droppedRelationships: relationships))
    }
    return InferredMapping(
      sourceVersion: names.sourceVersion, destinationVersion: names.destinationVersion, entityMappings: mappings)
  }

  /// Returns the stored properties of a source entity that no expression of the hop reads; none if the hop has
  /// policies, which may read them.
  private func unread(
    _ entity: Entity, in model: ManagedObjectModel, _ read: ReadProperties?
  ) -> (attributes: [String], relationships: [String]) {
    guard let read else { return ([], []) }
    let relationships = model.storedRelationships(of: entity).filter { relationship in
      // The pairs continue if either end is read.
      !read.reads(relationship.name, of: entity)
        && !(model.inverse(of: relationship).map { read.reads($0.relationship.name, of: $0.entity) } ?? false)
    }
    return (
      model.storedAttributes(of: entity).map(\.name).filter { !read.reads($0, of: entity) }, relationships.map(\.name)
    )
  }

  private func properties(readFrom source: ManagedObjectModel) -> ReadProperties {
    var read = ReadProperties(model: source)
    for mapping in entityMappings where mapping.destination != nil {
      read.add(mapping) { _ in false }
      // The entity that a filter chooses may say what the value said.
      read.add(filterOf: mapping)
    }
    return read
  }
}
