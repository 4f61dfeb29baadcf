// References to rows that are not there. Stores in the field have some; a migration may not add any. Planner and
// verifier count with this one reader, so that the two numbers mean the same.

import ManagedObjectModel
import SQLite

/// References of one relationship whose target (or owner) row does not exist.
package struct DanglingReferences: Sendable, Hashable {
  /// Entity that declares the relationship.
  package let entity: String
  /// The relationship; of a many-to-many the one that names the join table.
  package let relationship: String
  /// Rows with such a reference.
  package let count: Int64

  /// The sum over all relationships of a store.
  package static func count(schema: StoreSchema, reader: StoreReader) throws(SQLiteError) -> Int64 {
    try find(schema: schema, reader: reader).reduce(0) { $0 &+ $1.count }
  }

  /// Every relationship of a store with dangling references; the store must have the tables of `schema`.
  package static func find(schema: StoreSchema, reader: StoreReader) throws(SQLiteError) -> [DanglingReferences] {
    var found: [DanglingReferences] = []
    func note(_ entity: String, _ relationship: String, _ sql: String) throws(SQLiteError) {
      guard let count = try reader.connection.integer(sql), count > 0 else { return }
      found.append(DanglingReferences(entity: entity, relationship: relationship, count: count))
    }
    for table in schema.tables {
      for column in table.columns {
        switch column.role {
        case .toOne(let entity, let relationship):
          guard
            let destination = schema.model.entity(named: entity)?.relationships.first(where: {
              $0.name == relationship
            })?.destinationEntityName, let target = schema.table(of: destination)
          else { continue }
          try note(
            entity, relationship,
            "SELECT count(*) FROM \(reader.qualified(table.name)) AS t WHERE \(key("t", column.name)) IS NOT NULL AND "
              + isMissing("t", column.name, in: target.name, reader))
        case .owner(let entity, let relationship):
          guard let owners = schema.table(of: entity) else { continue }
          try note(
            entity, relationship,
            "SELECT count(*) FROM \(reader.qualified(table.name)) AS t WHERE \(key("t", column.name)) IS NOT NULL AND "
              + isMissing("t", column.name, in: owners.name, reader))
        default: continue
        }
      }
    }
    for join in schema.joinTables {
      guard let owners = schema.table(of: join.entity), let targets = schema.table(of: join.inverseEntity) else {
        continue
      }
      try note(
        join.entity, join.relationship,
        "SELECT count(*) FROM \(reader.qualified(join.name)) AS t WHERE "
          + isMissing("t", join.ownerColumn, in: owners.name, reader) + " OR "
          + isMissing("t", join.targetColumn, in: targets.name, reader))
    }
    return found
  }

  private static func key(_ alias: String, _ column: String) -> String {
    alias + "." + SQLiteIdentifier.quoted(column)
  }

  private static func isMissing(
    _ alias: String, _ column: String, in table: String, _ reader: StoreReader
  ) -> String {
    "NOT EXISTS (SELECT 1 FROM \(reader.qualified(table)) AS x WHERE x.Z_PK = \(key(alias, column)))"
  }
}
