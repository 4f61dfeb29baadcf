// Removes objects from a store that is being built: references to them become nil, as with Core Data's nullify, and
// their pairs are deleted. The model's delete rules are not applied: they are for objects that a user deletes, not for
// objects that a migration leaves out.

import ManagedObjectModel
import SQLite

/// The statements that remove rows from one table of a store and all references to them.
package struct RowRemoval: Sendable {
  /// The statements in order. Each finds the keys with the given query.
  package let statements: [String]

  /// Creates the statements that remove rows of `table` in the store under `schema`; `keys` is a query for their Z_PK.
  package init(table: EntityTable, layout: StoreSchema, schema: String, keys: String) {
    func quoted(_ name: String) -> String { SQLiteIdentifier.quoted(name) }
    func qualified(_ name: String) -> String { quoted(schema) + "." + quoted(name) }
    var statements: [String] = []
    let members = Set(table.entities)
    for other in layout.tables {
      for column in other.columns {
        switch column.role {
        case .toOne(let entity, let relationship):
          guard let owner = layout.model.entity(named: entity),
            let target = layout.model.allRelationships(of: owner)[relationship]?.destinationEntityName,
            members.contains(target), let columns = layout.storage(ofRelationship: relationship, in: entity)?.ownColumns
          else { continue }
          let cleared = columns.names.map { "\(quoted($0)) = NULL" }
          statements.append(
            "UPDATE \(qualified(other.name)) SET \(cleared.joined(separator: ", "))"
              + " WHERE \(quoted(columns.key)) IN (\(keys))")
        case .owner(let entity, let relationship):
          guard members.contains(entity),
            case .owned(let columns)? = layout.storage(ofRelationship: relationship, in: entity)
          else { continue }
          let cleared = columns.names.map { "\(quoted($0)) = NULL" }
          statements.append(
            "UPDATE \(qualified(other.name)) SET \(cleared.joined(separator: ", "))"
              + " WHERE \(quoted(column.name)) IN (\(keys))")
        case .primaryKey, .entityNumber, .saveCount, .attribute, .discriminator, .orderKey, .ownerOrder: continue
        }
      }
    }
    for join in layout.joinTables {
      for (entity, column) in [(join.entity, join.ownerColumn), (join.inverseEntity, join.targetColumn)]
      where members.contains(entity) {
        statements.append("DELETE FROM \(qualified(join.name)) WHERE \(quoted(column)) IN (\(keys))")
      }
    }
    statements.append("DELETE FROM \(qualified(table.name)) WHERE \"Z_PK\" IN (\(keys))")
    self.statements = statements
  }
}
