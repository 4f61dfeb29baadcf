// References of a staged store that are known to be sound, because the hop that wrote it copied columns that were sound
// in its source, or made both rows of one row. Recorded for the next hop: a staged store has no index for a check.

import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SQLite

/// The record of a staged store.
struct VerifiedReferences {
  let connection: Connection
  /// The staged store's schema name.
  let schema: String

  /// The table, which is removed when the store is sealed.
  static let name = "HOPD_SOUND"

  private var qualified: String { SQLiteIdentifier.quoted(schema) + "." + Self.name }

  /// Records the references that a program has written and that are certainly sound: only those between tables with
  /// insertions and no other statement, because a later statement that sets, corrects or removes rows could break them.
  func note(_ program: HopProgram, hop: Hop, references: ReferenceCache) throws(SQLiteError) {
    guard let written = WrittenTables(program, of: hop) else { return }
    try connection.execute("CREATE TABLE \(qualified) (\"table\", \"column\", target_table, target_number)")
    for reference in Self.references(of: hop.destinationSchema)
    where try reference.follows(from: written, connection, references) {
      try connection.run("INSERT INTO \(qualified) VALUES (?, ?, ?, ?)", Self.values(reference))
    }
  }

  /// Whether a reference is recorded as sound.
  func contains(_ reference: SourceReference) throws(SQLiteError) -> Bool {
    guard try connection.hasTable(Self.name, in: schema) else { return false }
    return try connection.value(
      "SELECT 1 FROM \(qualified) WHERE \"table\" = ? AND \"column\" = ? AND target_table = ? AND target_number = ?",
      Self.values(reference)) != nil
  }

  private static func values(_ reference: SourceReference) -> [SQLiteValue] {
    [.text(reference.table), .text(reference.column), .text(reference.targetTable), .integer(reference.targetNumber)]
  }

  /// Every to-one of a layout, and both ends of its pairs, with each entity that they may point to.
  private static func references(of layout: StoreSchema) -> [SourceReference] {
    let pairs = layout.joinTables.flatMap { join in
      [(join.ownerColumn, join.entity), (join.targetColumn, join.inverseEntity)].flatMap { column, entity in
        references(of: join.name, column, to: entity, in: layout)
      }
    }
    return pairs
      + layout.tables.flatMap { table in
        table.columns.flatMap { column -> [SourceReference] in
          guard case .toOne(let entity, let name) = column.role,
            let relationship = layout.model.entity(named: entity)?.relationships.first(where: { $0.name == name })
          else { return [] }
          return references(of: table.name, column.name, to: relationship.destinationEntityName, in: layout)
        }
      }
  }

  private static func references(
    of table: String, _ column: String, to entity: String, in layout: StoreSchema
  ) -> [SourceReference] {
    guard let target = layout.table(of: entity) else { return [] }
    return layout.numbersOfSubtree(of: entity).map {
      SourceReference(table: table, column: column, targetTable: target.name, targetNumber: $0)
    }
  }
}
