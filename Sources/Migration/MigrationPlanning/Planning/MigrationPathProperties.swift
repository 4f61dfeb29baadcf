// The property of the store's version that a property of a later version continues, by name, for persistent history,
// which names properties and no columns.

import ManagedObjectModel
import MappingModel

extension MigrationPath {
  /// Returns the attribute of the store's version that an attribute of version `version` continues; nil if a hop added
  /// it.
  func sourceAttribute(of attribute: String, in entity: String, at version: Int) -> String? {
    var (entity, name) = (entity, attribute)
    for mapping in mappings.prefix(version).reversed() {
      guard let part = mapping.mapping(toDestination: entity), let source = part.sourceEntity,
        let before = part.attributes.first(where: { $0.destination == name })?.source
      else { return nil }
      (entity, name) = (source, before)
    }
    return name
  }

  /// Returns the relationship of the store's version, at the same objects, that one of version `version` continues; nil
  /// if a hop added it.
  func sourceRelationship(of relationship: String, in entity: String, at version: Int) -> String? {
    var (entity, name) = (entity, relationship)
    for (index, mapping) in mappings.prefix(version).enumerated().reversed() {
      guard let part = mapping.mapping(toDestination: entity), let source = part.sourceEntity,
        let pairs = part.relationships.first(where: { $0.destination == name })?.source,
        models.indices.contains(index), let before = models[index].relationship(pairs.relationship, of: pairs.entity)
      else { return nil }
      // Only the inverse was matched: the objects have the other end.
      let own = pairs.isInverted ? models[index].inverse(of: before)?.relationship.name : before.name
      guard let own, models[index].relationship(own, of: source) != nil else { return nil }
      (entity, name) = (source, own)
    }
    return name
  }
}
