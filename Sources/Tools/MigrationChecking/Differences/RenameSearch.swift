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
      fits: { $0.type == $1.type && !$0.isDerived }, name: \.name
    ).map {
      RenameSuspicion(
        part: .attribute, entity: new.name, oldEntity: old.name, old: $0.name, new: $1.name, reason: "same type")
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
        earlier.isToMany == later.isToMany
          && (earlier.destinationEntityName == later.destinationEntityName
            || mapping.mapping(fromSource: earlier.destinationEntityName)?.destinationEntity
              == later.destinationEntityName)
      }, name: \.name
    ).map {
      RenameSuspicion(
        part: .relationship, entity: new.name, oldEntity: old.name, old: $0.name, new: $1.name,
        reason: "same destination")
    }
  }

  private func entities() -> [RenameSuspicion] {
    let gone = mapping.entityMappings.filter { $0.destinationEntity == nil }
      .compactMap { $0.sourceEntity.flatMap { source.entity(named: $0) } }
      .filter { renames.renames[$0.name] == nil }
    let added = mapping.entityMappings.filter { $0.sourceEntity == nil }
      .compactMap { $0.destinationEntity.flatMap { destination.entity(named: $0) } }
    return pairs(gone, added, fits: { RenameSearch.areAlike($0, $1) }, name: \.name).map {
      RenameSuspicion(
        part: .entity, entity: nil, oldEntity: nil, old: $0.name, new: $1.name,
        reason: "most of their properties are the same")
    }
  }

  /// Whether two entities have at least half of their properties in common, and at least one.
  private static func areAlike(_ old: Entity, _ new: Entity) -> Bool {
    func names(_ entity: Entity) -> Set<String> {
      Set(entity.attributes.map(\.name) + entity.relationships.map(\.name))
    }
    let common = names(old).intersection(names(new)).count
    return common > 0 && common * 2 >= max(names(old).count, names(new).count)
  }

  /// Pairs removed parts with added ones: the most similar name first, each part once.
  private func pairs<Part>(
    _ gone: [Part], _ added: [Part], fits: (Part, Part) -> Bool, name: (Part) -> String
  ) -> [(Part, Part)] {
    var left = added
    var result: [(Part, Part)] = []
    for old in gone {
      // A name that stays while its identifier changes is a contradiction, and reported as one.
      let fitting = left.indices.filter { fits(old, left[$0]) && name(old) != name(left[$0]) }
      let near = NearestName.among(fitting.map { name(left[$0]) }, to: name(old))
      // If only one part fits, it is chosen; of several, only one with a similar name.
      guard let index = fitting.first(where: { name(left[$0]) == near }) ?? (fitting.count == 1 ? fitting.first : nil)
      else { continue }
      result.append((old, left.remove(at: index)))
    }
    return result
  }
}
