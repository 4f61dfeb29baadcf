// What the entities and properties of one version of a chain continue in the existing store, as flat tables: the
// version before, extended by one hop. A question about the hundredth version then costs as much as one about the
// first.

import ManagedObjectModel
import MappingModel
import PersistentStore

struct VersionOrigins {
  /// What one entity continues.
  struct EntityOrigins {
    /// The store's entity; nil if a hop added this one.
    var stored: String?
    /// By name, for every stored attribute.
    var attributes: [String: AttributeOrigin] = [:]
    /// By name; one that is missing begins empty.
    var relationships: [String: PairsOrigin] = [:]
  }

  /// By the entity's name in this version.
  private(set) var entities: [String: EntityOrigins] = [:]
  /// The entities of this version by the store's entity that they continue.
  let continuations: [String: String]

  /// Extends the last version of a path by one hop.
  init(after path: MigrationPath, _ mapping: InferredMapping, isMapped: Bool, to destination: ManagedObjectModel) {
    let before = path.origins(at: path.end)
    continuations =
      before.map { before in
        before.continuations.compactMapValues { mapping.mapping(fromSource: $0)?.destinationEntity }
      }
      ?? Dictionary(
        path.sourceSchema.model.entities.compactMap { entity in
          mapping.mapping(fromSource: entity.name)?.destinationEntity.map { (entity.name, $0) }
        }, uniquingKeysWith: { first, _ in first })
    entities.reserveCapacity(mapping.entityMappings.count)
    for part in mapping.entityMappings {
      // The first mapping of an entity takes precedence.
      guard let name = part.destinationEntity, entities[name] == nil else { continue }
      let isCopy = part.kind == .copy && !isMapped
      let source = part.sourceEntity
      let known = isCopy ? source.flatMap { before?.entities[$0] } : nil
      var origins = EntityOrigins(stored: source.flatMap { path.sourceEntity(of: $0, at: path.end) })
      if let known, known.attributes.count == part.attributes.count {
        origins.attributes = known.attributes
      } else {
        origins.attributes = Self.attributes(of: part, after: path, to: destination)
      }
      if let known, part.relationships.allSatisfy({ $0.source?.entity == source }) {
        origins.relationships = known.relationships
      } else {
        origins.relationships = Self.relationships(of: part, after: path)
      }
      entities[name] = origins
    }
  }

  private static func attributes(
    of part: EntityMapping, after path: MigrationPath, to destination: ManagedObjectModel
  ) -> [String: AttributeOrigin] {
    guard let name = part.destinationEntity, let entity = destination.entity(named: name) else { return [:] }
    let definitions = destination.allAttributes(of: entity)
    var origins: [String: AttributeOrigin] = [:]
    for attribute in part.attributes where origins[attribute.destination] == nil {
      let new = definitions[attribute.destination]
      guard let sourceEntity = part.sourceEntity, let source = attribute.source else {
        origins[attribute.destination] = .added(new)
        continue
      }
      let before = path.origin(ofAttribute: source, in: sourceEntity, at: path.end)
      origins[attribute.destination] = before
      // A hop that makes an optional attribute required fills the gaps with the default.
      guard let new, !new.isOptional, let value = new.defaultValue,
        path.definition(of: source, in: sourceEntity, at: path.end)?.isOptional == true
      else { continue }
      switch before {
      case .column(let table, let name, let fallback):
        origins[attribute.destination] = .column(table: table, name: name, fallback: fallback ?? value)
      case .constant: continue
      case .null: origins[attribute.destination] = .constant(value)
      }
    }
    return origins
  }

  private static func relationships(of part: EntityMapping, after path: MigrationPath) -> [String: PairsOrigin] {
    var origins: [String: PairsOrigin] = [:]
    for relationship in part.relationships {
      guard let pairs = relationship.source,
        let before = path.origin(ofRelationship: pairs.relationship, in: pairs.entity, at: path.end)
      else { continue }
      origins[relationship.destination] = PairsOrigin(
        entity: before.entity, relationship: before.relationship,
        isInverted: before.isInverted != pairs.isInverted)
    }
    return origins
  }
}
