// Compares discriminators, the columns with the entity number of a to-one's target, with the targets. This file lists
// the columns, and the statement that counts those that disagree; `StoreCensus` runs it only where one may.

import ManagedObjectModel
import SQLite

/// The agreement of one discriminator column with the rows that its relationship points to.
package struct DiscriminatorAgreement: Sendable, Hashable {
  /// Entity that declares the relationship.
  package let entity: String
  /// The to-one relationship.
  package let relationship: String
  /// The discriminator column, as Z2_BOOK.
  package let column: String
  /// Rows whose number differs from their target's; rows without a target do not count.
  package let wrong: Int64

  /// The columns of one discriminator.
  struct Place {
    let entity: String
    let relationship: String
    let table: String
    let column: String
    /// The column with the target's key, and the target's table.
    let key: String
    let target: String

    /// Counts the rows whose number is not their target's.
    func query(_ reader: StoreReader) -> String {
      "SELECT count(*) FROM \(reader.qualified(table)) AS s JOIN \(reader.qualified(target)) AS t"
        + " ON t.Z_PK = s.\(SQLiteIdentifier.quoted(key)) WHERE s.\(SQLiteIdentifier.quoted(column)) IS NOT t.Z_ENT"
    }
  }

  /// All places of a layout.
  static func places(in schema: StoreSchema) -> [Place] {
    schema.tables.flatMap { table in
      table.columns.compactMap { column in
        guard case .discriminator(let entity, let relationship) = column.role,
          let key = schema.storage(ofRelationship: relationship, in: entity)?.ownColumns?.key,
          let destination = schema.model.entity(named: entity).flatMap({
            schema.model.allRelationships(of: $0)[relationship]?.destinationEntityName
          }), let target = schema.table(of: destination)
        else { return nil }
        return Place(
          entity: entity, relationship: relationship, table: table.name, column: column.name, key: key,
          target: target.name)
      }
    }
  }
}
