// Traces an entity, attribute or relationship of any version in a chain back to the tables of the existing store.
// Costs, drops, checks and expectations use it.

import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite

/// The source of an attribute's values.
enum AttributeOrigin: Hashable {
  /// A column of the store; NULLs become `fallback` if a hop makes an optional attribute required.
  case column(table: String, name: String, fallback: AttributeDefault?)
  /// The default with which some hop added the attribute.
  case constant(AttributeDefault)
  /// Added without a default.
  case null

  /// The source of an attribute that a hop adds.
  static func added(_ attribute: Attribute?) -> AttributeOrigin {
    attribute?.defaultValue.map(AttributeOrigin.constant) ?? .null
  }

  /// The value in a row of the store, as an SQL expression.
  var sql: String {
    switch self {
    case .null: return "NULL"
    case .constant(let value): return value.sqlValue.literal
    case .column(_, let name, let fallback):
      let quoted = SQLiteIdentifier.quoted(name)
      return fallback.map { "coalesce(\(quoted), \($0.sqlValue.literal))" } ?? quoted
    }
  }
}

/// A column of the store or of the result.
struct StoredColumn: Hashable {
  let table: String
  let name: String
}

/// The source of a relationship's pairs.
struct PairsOrigin: Hashable {
  /// A relationship of the store's version, and the entity through which it is reached.
  let entity: String
  let relationship: String
  /// Whether owner and target have changed sides.
  let isInverted: Bool
}

struct MigrationPath {
  /// Layout of the existing store.
  let sourceSchema: StoreSchema
  /// The store's version, then the version after each hop.
  private(set) var models: [ManagedObjectModel]
  private(set) var mappings: [InferredMapping] = []
  /// Names of the mapping models of each hop; empty for an inferred one.
  private(set) var mappingModels: [[String]] = []
  /// What each version after the store's continues in the store: each hop extends the version before it once.
  private var origins: [VersionOrigins] = []

  init(sourceSchema: StoreSchema, edges: [MigrationGraph.Edge] = []) {
    self.sourceSchema = sourceSchema
    models = [sourceSchema.model]
    for edge in edges { append(edge) }
  }

  /// The migration path over consecutive hops of a plan, from the layout that the first of them reads.
  init(sourceSchema: StoreSchema, hops: [Hop]) {
    self.init(sourceSchema: sourceSchema)
    for hop in hops { append(hop.mapping, mapped: hop.mapped, to: hop.destination) }
  }

  /// Adds the next hop.
  mutating func append(_ edge: MigrationGraph.Edge) {
    append(edge.mapping, mapped: edge.mapped, to: edge.destination.model)
  }

  private mutating func append(_ mapping: InferredMapping, mapped: MappedHop?, to destination: ManagedObjectModel) {
    origins.append(VersionOrigins(after: self, mapping, isMapped: mapped != nil, to: destination))
    models.append(destination)
    mappings.append(mapping)
    mappingModels.append(mapped?.mappings.map(\.name) ?? [])
  }

  /// Returns the first hops of the migration path.
  func prefix(_ hops: Int) -> MigrationPath {
    var part = self
    part.models = Array(models.prefix(hops + 1))
    part.mappings = Array(mappings.prefix(hops))
    part.mappingModels = Array(mappingModels.prefix(hops))
    part.origins = Array(origins.prefix(hops))
    return part
  }

  /// Whether a mapping model makes the objects of version `version` again.
  func isMapped(to version: Int) -> Bool {
    mappingModels.indices.contains(version - 1) && !mappingModels[version - 1].isEmpty
  }

  /// Index of the last version.
  var end: Int { mappings.count }

  /// Returns the title of the hop to version `version`, for errors.
  func hop(to version: Int) -> String { "\(models[version - 1].name) → \(models[version].name)" }

  /// What the entities of version `version` continue; nil for the store's own version, which continues itself.
  func origins(at version: Int) -> VersionOrigins? {
    let version = min(version, end)
    return version > 0 ? origins[version - 1] : nil
  }

  /// Returns the store's entity that an entity of version `version` continues; nil if a hop added it.
  func sourceEntity(of entity: String, at version: Int) -> String? {
    guard let origins = origins(at: version) else { return entity }
    return origins.entities[entity]?.stored
  }

  /// Returns the entity of version `version` that continues the store's entity; nil if a hop drops it.
  func entity(continuing source: String, at version: Int) -> String? {
    guard let origins = origins(at: version) else { return source }
    return origins.continuations[source]
  }

  /// Returns the column or constant that an attribute of version `version` comes from.
  func origin(ofAttribute attribute: String, in entity: String, at version: Int) -> AttributeOrigin {
    guard version <= end, let origins = origins(at: version) else {
      guard let table = sourceSchema.table(of: entity),
        let column = sourceSchema.column(ofAttribute: attribute, in: entity)
      else { return .null }
      return .column(table: table.name, name: column, fallback: nil)
    }
    return origins.entities[entity]?.attributes[attribute]
      ?? .added(definition(of: attribute, in: entity, at: version))
  }

  /// Returns the store's relationship whose pairs a relationship of version `version` holds; nil if they begin empty.
  func origin(ofRelationship relationship: String, in entity: String, at version: Int) -> PairsOrigin? {
    guard let origins = origins(at: version) else {
      return PairsOrigin(entity: entity, relationship: relationship, isInverted: false)
    }
    return origins.entities[entity]?.relationships[relationship]
  }

  /// Returns the same with the topmost entity that declares the store's relationship, so that its subentities share it.
  func declaredOrigin(ofRelationship relationship: String, in entity: String, at version: Int) -> PairsOrigin? {
    origin(ofRelationship: relationship, in: entity, at: version).map { origin in
      PairsOrigin(
        entity: sourceSchema.storingEntity(ofRelationship: origin.relationship, in: origin.entity)
          ?? sourceSchema.model.declarer(of: origin.relationship, in: origin.entity),
        relationship: origin.relationship, isInverted: origin.isInverted)
    }
  }

  /// Returns the attribute as version `version` defines it for an entity.
  func definition(of attribute: String, in entity: String, at version: Int) -> Attribute? {
    models.indices.contains(version) ? models[version].attribute(attribute, of: entity) : nil
  }
}
