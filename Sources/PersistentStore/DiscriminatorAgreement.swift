// Discriminators, the columns with the entity number of a to-one's target, compared with the targets themselves. Planner
// and verifier ask this one reader: what the one lets through, the other must not reject.

import ManagedObjectModel
import SQLite

/// How one discriminator column agrees with the rows that its relationship points to.
package struct DiscriminatorAgreement: Sendable, Hashable {
  /// Entity that declares the relationship.
  package let entity: String
  /// The to-one relationship.
  package let relationship: String
  /// The discriminator column, as Z2_BOOK.
  package let column: String
  /// Rows whose number is not that of their target; rows without a target do not count.
  package let wrong: Int64

  /// Every discriminator column of a store; the store must have the tables of `schema`.
  package static func all(schema: StoreSchema, reader: StoreReader) throws(SQLiteError) -> [DiscriminatorAgreement] {
    var found: [DiscriminatorAgreement] = []
    for table in schema.tables {
      for column in table.columns {
        guard case .discriminator(let entity, let relationship) = column.role,
          case .toOne(_, let key, _, _) = schema.storage(ofRelationship: relationship, in: entity),
          let destination = schema.model.entity(named: entity).flatMap({
            schema.model.allRelationships(of: $0)[relationship]?.destinationEntityName
          }), let target = schema.table(of: destination)
        else { continue }
        let wrong =
          try reader.connection.integer(
            "SELECT count(*) FROM \(reader.qualified(table.name)) AS s JOIN \(reader.qualified(target.name)) AS t"
              + " ON t.Z_PK = s.\(SQLiteIdentifier.quoted(key))"
              + " WHERE s.\(SQLiteIdentifier.quoted(column.name)) IS NOT t.Z_ENT") ?? 0
        found.append(
          DiscriminatorAgreement(entity: entity, relationship: relationship, column: column.name, wrong: wrong))
      }
    }
    return found
  }
}
