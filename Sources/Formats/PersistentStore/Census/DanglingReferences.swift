// References to missing rows. Real stores have some; a migration may not add any. This file lists the columns that can
// have them, and the statement that counts them; `StoreCensus` runs it only where some are possible.

import ManagedObjectModel
import SQLite

/// References of one relationship whose target (or owner) row does not exist.
package struct DanglingReferences: Sendable, Hashable {
  /// Entity that declares the relationship.
  package let entity: String
  /// The relationship; for a many-to-many the one that names the join table.
  package let relationship: String
  /// Rows with such a reference.
  package let count: Int64

  /// The columns of one relationship that can have missing targets.
  struct Place {
    let entity: String
    let relationship: String
    let table: String
    /// Columns with keys, and the tables that they refer to.
    let ends: [(column: String, target: String)]
    /// Whether it is the table of a many-to-many. Its columns must have keys, others may be NULL.
    let isJoin: Bool

    /// Counts the rows whose target is missing.
    func query(_ reader: StoreReader) -> String {
      let conditions = ends.map { end in
        let key = "t.\(SQLiteIdentifier.quoted(end.column))"
        return (isJoin ? "" : "\(key) IS NOT NULL AND ")
          + "NOT EXISTS (SELECT 1 FROM \(reader.qualified(end.target)) AS x WHERE x.Z_PK = \(key))"
      }
      return "SELECT count(*) FROM \(reader.qualified(table)) AS t WHERE \(conditions.joined(separator: " OR "))"
    }
  }

  /// All places of a layout.
  static func places(in schema: StoreSchema) -> [Place] {
    var places: [Place] = []
    for table in schema.tables {
      for column in table.columns {
        let (entity, relationship, end): (String, String, String?)
        switch column.role {
        case .toOne(let owner, let name):
          (entity, relationship) = (owner, name)
          end = schema.model.ownRelationship(name, of: owner)?.destinationEntityName
        case .owner(let owner, let name): (entity, relationship, end) = (owner, name, owner)
        default: continue
        }
        guard let target = end.flatMap(schema.table(of:)) else { continue }
        places.append(
          Place(
            entity: entity, relationship: relationship, table: table.name, ends: [(column.name, target.name)],
            isJoin: false))
      }
    }
    for join in schema.joinTables {
      guard let owners = schema.table(of: join.entity), let targets = schema.table(of: join.inverseEntity) else {
        continue
      }
      places.append(
        Place(
          entity: join.entity, relationship: join.relationship, table: join.name,
          ends: [(join.ownerColumn, owners.name), (join.targetColumn, targets.name)], isJoin: true))
    }
    return places
  }
}
