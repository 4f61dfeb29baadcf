// The entities and properties of a store's version that a migration path drops: what the models alone show, before any
// row is counted. Parts that a hop of the path adds, and a later one drops, hold nothing of the store.

import ManagedObjectModel
import MappingModel
import PersistentStore

/// One entity or property that a hop drops.
package struct DroppedPart: Sendable, Hashable {
  /// Index of the hop that drops it.
  package let hop: Int
  /// Entity and property by their names in that hop's source version; no property if the entity goes with its objects.
  package let entity: String
  package let property: String?
  /// Table and column of the existing store that hold the values; no column if the entity goes.
  let table: String
  let column: String?
}

/// Finds what a migration path drops.
package struct DropSearch {
  /// The rows to count for a part.
  enum Rows {
    /// Those of an entity of the store.
    case objects(of: String)
    /// Those of an entity of the store that have a value in the part's column.
    case values(of: String)
    /// Those of the part's join table.
    case pairs
    /// Those with an owner of an entity of the store.
    case owned(ToOneColumns, owner: String)
  }

  private let migrationPath: MigrationPath
  /// In the order of hops, entities and properties; each once.
  private(set) var parts: [DroppedPart] = []
  private(set) var rows: [DroppedPart: [Rows]] = [:]

  /// Searches the hops of a chain that begins with `source`.
  package init(_ edges: [MigrationGraph.Edge], from source: ManagedObjectModel, frameworkVersion: Int64) {
    self.init(
      MigrationPath(sourceSchema: StoreSchema(model: source, frameworkVersion: frameworkVersion), edges: edges))
  }

  init(_ migrationPath: MigrationPath) {
    self.migrationPath = migrationPath
    for (hop, mapping) in migrationPath.mappings.enumerated() {
      for entity in mapping.entityMappings {
        guard let name = entity.sourceEntity, let stored = migrationPath.sourceEntity(of: name, at: hop) else {
          continue
        }
        if entity.kind == .remove {
          noteRemoval(of: name, stored: stored, hop: hop)
        } else {
          noteAttributes(entity.droppedAttributes, of: name, stored: stored, hop: hop)
          noteRelationships(entity.droppedRelationships, of: name, stored: stored, hop: hop)
        }
      }
    }
  }

  /// What a store can lose: an abstract entity has no objects.
  package var losses: [DroppedPart] {
    parts.filter { part in
      part.property != nil || migrationPath.models[part.hop].entity(named: part.entity)?.isAbstract == false
    }
  }

  private mutating func note(_ part: DroppedPart, _ found: Rows) {
    if rows[part] == nil { parts.append(part) }
    rows[part, default: []].append(found)
  }

  private mutating func noteRemoval(of entity: String, stored: String, hop: Int) {
    let table = migrationPath.sourceSchema.table(of: stored)?.name ?? ""
    note(DroppedPart(hop: hop, entity: entity, property: nil, table: table, column: nil), .objects(of: stored))
  }

  private mutating func noteAttributes(_ names: [String], of entity: String, stored: String, hop: Int) {
    // A derived value is not data of its own: nothing is lost with it.
    for name in names where migrationPath.definition(of: name, in: entity, at: hop)?.isDerived != true {
      if case .column(let table, let column, _) = migrationPath.origin(ofAttribute: name, in: entity, at: hop) {
        note(name, of: entity, hop: hop, table: table, column: column, stored: stored)
      }
    }
  }

  private mutating func noteRelationships(_ names: [String], of entity: String, stored: String, hop: Int) {
    for name in names {
      guard let origin = migrationPath.origin(ofRelationship: name, in: entity, at: hop),
        let storage = migrationPath.sourceSchema.storage(ofRelationship: origin.relationship, in: origin.entity)
      else { continue }
      let declarer = migrationPath.models[hop].declarer(of: name, in: entity)
      switch storage {
      case .toOne(let columns, _), .members(let columns):
        // Both ends are dropped together; the pairs are counted at the end whose rows hold the column.
        guard (storage.ownColumns != nil) != origin.isInverted else { continue }
        note(name, of: entity, hop: hop, table: columns.table, column: columns.key, stored: stored)
      case .join(let columns):
        // Both ends are dropped together; the pairs are counted once.
        guard !parts.contains(where: { $0.hop == hop && $0.table == columns.table }) else { continue }
        let column = columns.join.targetColumn
        note(
          DroppedPart(hop: hop, entity: declarer, property: name, table: columns.table, column: column), .pairs)
      case .owned(let columns):
        // The count is by owner: another entity may keep the relationship.
        note(
          DroppedPart(hop: hop, entity: declarer, property: name, table: columns.table, column: columns.key),
          .owned(columns, owner: stored))
      }
    }
  }

  /// Notes a column of one entity's rows. An inherited property collects those of all subentities that drop it, but
  /// mapping models say for each entity which of its properties it keeps.
  private mutating func note(
    _ property: String, of entity: String, hop: Int, table: String, column: String, stored: String
  ) {
    let named =
      migrationPath.isMapped(to: hop + 1) ? entity : migrationPath.models[hop].declarer(of: property, in: entity)
    note(
      DroppedPart(hop: hop, entity: named, property: property, table: table, column: column), .values(of: stored))
  }
}
