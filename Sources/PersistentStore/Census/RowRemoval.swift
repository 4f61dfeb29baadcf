// Taking objects out of a store that is being built: what points to them becomes nil, as Core Data's nullify does, and
// pairs of theirs go. Deletion rules of the model are not followed: they refer to what a user deletes, not of what a
// migration leaves out.

import ManagedObjectModel
import SQLite

/// The statements that take rows out of one table of a store and leave no reference to them.
package struct RowRemoval: Sendable {
  /// In order. Each finds the keys by the query given.
  package let statements: [String]

  /// Takes rows of `table` out of the layout's store under `schema`; `keys` is a query for their Z_PK.
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
        case .owner(let entity, _):
          guard members.contains(entity) else { continue }
          statements.append(
            "UPDATE \(qualified(other.name)) SET \(quoted(column.name)) = NULL"
              + " WHERE \(quoted(column.name)) IN (\(keys))")
        case .primaryKey, .entityNumber, .saveCount, .attribute, .discriminator, .orderKey: continue
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
