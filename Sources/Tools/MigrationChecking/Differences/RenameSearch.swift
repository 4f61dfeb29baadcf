// Finds names that look like renames although the models do not connect them. A rename without a renaming identifier
// drops the values of the old name, and no rule of Core Data detects it. Every part of the program that suspects
// renames uses this search.

import Diagnostics
import ManagedObjectModel
import MappingModel

/// Finds renames without an identifier.
struct RenameSearch {
  let source: ManagedObjectModel
  let destination: ManagedObjectModel
  let mapping: InferredMapping
  /// The operator's decisions about names.
  let renames: RenameRules

  func suspicions() -> [RenameSuspicion] {
    entities()
      + mapping.entityMappings.flatMap { part -> [RenameSuspicion] in
        guard let new = part.destinationEntity.flatMap({ destination.entity(named: $0) }),
          let old = part.sourceEntity.flatMap({ source.entity(named: $0) })
        else { return [] }
        return attributes(part, old, new) + relationships(part, old, new)
      }
  }

  private func attributes(_ part: EntityMapping, _ old: Entity, _ new: Entity) -> [RenameSuspicion] {
    let before = source.allAttributes(of: old)
    let gone = part.droppedAttributes.filter { isOpen($0, of: old) }
    let added = part.attributes.filter { $0.source == nil }.map(\.destination)
    return pairs(
      gone.compactMap { before[$0] }, new.attributes.filter { added.contains($0.name) && !$0.isDerived },
      fits: { $0.type == $1.type && !$0.isDerived },
      isSame: { $0.isOptional == $1.isOptional && $0.defaultValue == $1.defaultValue }, name: \.name
    ).map {
      RenameSuspicion(
        part: .attribute, entity: new.name, oldEntity: old.name, old: $0.name, new: $1.name,
        identifier: $0.renamingIdentifier, reason: "same type")
    }
  }

  /// Whether the entity itself declares the property, and the operator has not decided about it.
  private func isOpen(_ property: String, of entity: Entity) -> Bool {
    source.declaringEntity(of: property, in: entity)?.name == entity.name
      && renames.renames["\(entity.name).\(property)"] == nil
  }

  private func relationships(_ part: EntityMapping, _ old: Entity, _ new: Entity) -> [RenameSuspicion] {
    let before = source.allRelationships(of: old)
    let gone = part.droppedRelationships.filter { isOpen($0, of: old) }
    let added = part.relationships.filter { $0.source == nil }.map(\.destination)
    return pairs(
      gone.compactMap { before[$0] }, new.relationships.filter { added.contains($0.name) },
      fits: { earlier, later in
        earlier.isToMany == later.isToMany && leadsToSame(earlier, later)
      }, isSame: { $0.isOptional == $1.isOptional && $0.isOrdered == $1.isOrdered }, name: \.name
    ).map {
      RenameSuspicion(
        part: .relationship, entity: new.name, oldEntity: old.name, old: $0.name, new: $1.name,
        identifier: $0.renamingIdentifier, reason: "same destination")
    }
  }

  private func entities() -> [RenameSuspicion] {
    let gone = mapping.entityMappings.filter { $0.destinationEntity == nil }
      .compactMap { $0.sourceEntity.flatMap { source.entity(named: $0) } }
      .filter { renames.renames[$0.name] == nil }
    let added = mapping.entityMappings.filter { $0.sourceEntity == nil }
      .compactMap { $0.destinationEntity.flatMap { destination.entity(named: $0) } }
    return pairs(gone, added, fits: { areAlike($0, $1) }, isSame: { _, _ in false }, name: \.name).map {
      RenameSuspicion(
        part: .entity, entity: nil, oldEntity: nil, old: $0.name, new: $1.name,
        identifier: $0.renamingIdentifier, reason: "most of their properties are the same")
    }
  }

  private func leadsToSame(_ earlier: Relationship, _ later: Relationship) -> Bool {
    earlier.destinationEntityName == later.destinationEntityName
      || mapping.mapping(fromSource: earlier.destinationEntityName)?.destinationEntity == later.destinationEntityName
  }

  /// Whether two entities have two properties and two thirds of all in common, by name and type. One common name, such
  /// as `name`, says nothing.
  private func areAlike(_ old: Entity, _ new: Entity) -> Bool {
    let attributes = new.attributes.count { later in
      old.attributes.contains { $0.name == later.name && $0.type == later.type }
    }
    let relationships = new.relationships.count { later in
      old.relationships.contains {
        $0.name == later.name && $0.isToMany == later.isToMany && leadsToSame($0, later)
      }
    }
    func size(_ entity: Entity) -> Int { entity.attributes.count + entity.relationships.count }
    let common = attributes + relationships
    return common >= 2 && common * 3 >= max(size(old), size(new)) * 2
  }

  /// Pairs each removed part with the added one that it may be, if each is the only choice of the other.
  private func pairs<Part>(
    _ gone: [Part], _ added: [Part], fits: (Part, Part) -> Bool, isSame: (Part, Part) -> Bool, name: (Part) -> String
  ) -> [(Part, Part)] {
    // A name that stays while its identifier changes is a contradiction, and reported as one.
    func mayBe(_ old: Part, _ new: Part) -> Bool { fits(old, new) && name(old) != name(new) }
    /// The part with a similar name; otherwise the only one, or the only one with the same definition.
    func choice(_ parts: [Part], for other: Part, isSame: (Part) -> Bool) -> Part? {
      if let near = NearestName.among(parts.map(name), to: name(other)) { return parts.first { name($0) == near } }
      if parts.count == 1 { return parts.first }
      let same = parts.filter(isSame)
      return same.count == 1 ? same.first : nil
    }
    return gone.compactMap { old in
      let choices = added.filter { mayBe(old, $0) }
      guard let new = choice(choices, for: old, isSame: { isSame(old, $0) }),
        let back = choice(gone.filter { mayBe($0, new) }, for: new, isSame: { isSame($0, new) }),
        name(back) == name(old)
      else { return nil }
      return (old, new)
    }
  }
}
