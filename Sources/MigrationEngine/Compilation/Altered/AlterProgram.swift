// A chain of hops as a copy of the store that is altered: what has to be done to the copy, as plain values that a plan
// can tell and a runner can do step by step. Only chains get one whose result is the store that Core Data's own
// migration in place leaves (docs/formats/store-layout.md, "Apple's migration in place"); `AlterCompiler` decides.

import ManagedObjectModel
import PersistentStore
import SQLite

/// What makes the copy of a store one of the last version.
package struct AlterProgram: Sendable, Hashable {
  /// A column that a hop adds.
  package struct AddedColumn: Sendable, Hashable {
    /// Its table and its definition there.
    package let table: String
    package let column: String
    package let declaredType: String
    /// The default, which every row gets (docs/formats/store-layout.md, "Apple's migration in place"); nil where rows
    /// stay NULL.
    package let literal: SQLExpression?
  }

  /// In the order in which Core Data, hop by hop, would add them.
  package let added: [AddedColumn]
  /// Indexes of the store that the last version does not have in that form.
  package let droppedIndexes: [String]
  /// Indexes of the last version that the store does not have in that form.
  package let createdIndexes: [SchemaIndex]
  /// Join tables, whose rows with a missing end no hop would carry.
  package let joinTables: [JoinTable]
  /// Core Data's bookkeeping, which is made again.
  package let droppedTables: [String]
  /// Rows that the last hop would have read.
  package let rows: Int64

  /// What is done beside the copying, in a few words.
  package var summary: String {
    let tables = Set(added.map(\.table)).count
    let parts = [
      added.isEmpty
        ? "" : "\(Self.count(added.count, "column")) added to \(Self.count(tables, "table"))",
      createdIndexes.isEmpty ? "" : "\(Self.count(createdIndexes.count, "index", "indexes")) made",
      droppedIndexes.isEmpty ? "" : "\(Self.count(droppedIndexes.count, "index", "indexes")) dropped",
    ].filter { !$0.isEmpty }
    return parts.isEmpty ? "no table changes" : parts.joined(separator: ", ")
  }

  private static func count(_ number: Int, _ word: String, _ plural: String? = nil) -> String {
    "\(number) \(number == 1 ? word : plural ?? word + "s")"
  }

  /// The statements, for a copy that is attached under `destination`.
  func program(source: SourceTables, destination: String) -> HopProgram {
    let prefix = SQLiteIdentifier.quoted(destination) + "."
    let qualified = { (name: String) in prefix + SQLiteIdentifier.quoted(name) }
    var steps: [HopProgram.Step] = []
    // Their pages are taken by what follows.
    steps += droppedIndexes.map {
      .update(HopProgram.StatementStep(subject: $0, .schema, "DROP INDEX IF EXISTS \(qualified($0))"))
    }
    steps += added.map { column in
      .update(
        HopProgram.StatementStep(
          subject: "\(column.table).\(column.column)", .schema,
          text: "ALTER TABLE \(qualified(column.table)) ADD COLUMN "
            + TableText.definition(of: column.column, type: column.declaredType)))
    }
    steps += filledTables.map { table in
      let values = added.filter { $0.table == table && $0.literal != nil }.map {
        "\(SQLiteIdentifier.quoted($0.column)) = \($0.literal?.text ?? "NULL")"
      }
      let name = qualified(table)
      return .chunks(
        HopProgram.ChunkStep(
          subject: table, nextKey: "SELECT min(\"Z_PK\") FROM \(name) WHERE \"Z_PK\" >= ?1",
          actions: [
            HopProgram.Action(
              .rows(of: table),
              "UPDATE \(name) SET \(values.joined(separator: ", ")) WHERE \"Z_PK\" >= ?1 AND \"Z_PK\" <= ?2",
              isRanged: true)
          ]))
    }
    steps += joinTables.flatMap { join in
      [join.ownerColumn, join.targetColumn].map { column in
        .update(
          HopProgram.StatementStep(
            subject: join.name, .rows(of: join.name),
            "DELETE FROM \(qualified(join.name)) WHERE \(SQLiteIdentifier.quoted(column)) IS NULL"))
      }
    }
    steps += createdIndexes.map {
      .index(HopProgram.StatementStep(subject: $0.name, .schema, text: $0.createStatement(in: destination)))
    }
    steps += droppedTables.map {
      .update(HopProgram.StatementStep(subject: $0, .schema, "DROP TABLE IF EXISTS \(qualified($0))"))
    }
    return HopProgram(source: source, destination: destination, preconditions: [], steps: steps)
  }

  private var filledTables: [String] {
    var tables: [String] = []
    for column in added where column.literal != nil && !tables.contains(column.table) { tables.append(column.table) }
    return tables
  }
}
