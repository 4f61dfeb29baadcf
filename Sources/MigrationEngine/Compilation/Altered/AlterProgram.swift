// A chain of hops as a copy of the store that is altered: what has to be done to the copy, as plain values that a plan
// can tell and a runner can do step by step. Each table stays as it is, is altered, or is written again from the store
// that the copy was made of. The result is the store that Core Data's own migration in place leaves
// (docs/formats/store-layout.md, "Apple's migration in place"); `AlterCompiler` decides.

import ManagedObjectModel
import PersistentStore
import SQLite

/// What makes the copy of a store one of the last version.
package struct AlterProgram: Sendable, Hashable {
  /// A table whose rows stay where they are.
  package struct KeptTable: Sendable, Hashable {
    /// Its name in the store, and in the last version.
    package let origin: String
    package let name: String
    /// Columns that get other names, in the table's order; join tables only.
    package let renamed: [NewName]
    /// Columns that are appended, in the order in which Core Data, hop by hop, would append them.
    package let appended: [TableColumn]
    /// What columns of every row become; others stay as they are, appended ones NULL.
    package let values: [ColumnValue]
    /// What it is in the last version, if it is a join table. Rows with a missing end, which no hop would carry, leave
    /// it.
    let join: JoinTable?

    /// Is nothing done to it?
    package var isUnchanged: Bool { origin == name && renamed.isEmpty && appended.isEmpty && values.isEmpty }
  }

  /// A table or a column with its new name.
  package struct NewName: Sendable, Hashable {
    package let before: String
    package let after: String
  }

  /// A column with its declared type.
  package struct TableColumn: Sendable, Hashable {
    package let name: String
    package let declaredType: String
  }

  /// What a column of every row becomes: an expression over the row, under `s`, as it is in the store.
  package struct ColumnValue: Sendable, Hashable {
    package let column: String
    package let value: SQLExpression
  }

  /// A table of the last version whose rows are written.
  package struct WrittenTable: Sendable, Hashable {
    package let name: String
    /// The statement that makes it, without its schema.
    let definition: Definition
    /// Why; nil for a new table, which no row of the store comes to.
    package let reason: String?

    enum Definition: Sendable, Hashable {
      case entities(EntityTable)
      case pairs(JoinTable)
    }

    func createStatement(in schema: String) -> String {
      switch definition {
      case .entities(let table): table.createStatement(in: schema)
      case .pairs(let join): join.createStatement(in: schema)
      }
    }
  }

  /// In the order of the last version's layout.
  package let kept: [KeptTable]
  package let written: [WrittenTable]
  /// Tables of the store that are written again, under whatever name, or that the last version does not have.
  package let droppedTables: [String]
  /// Indexes of the store on kept tables that the last version does not have in that form.
  package let droppedIndexes: [String]
  /// Indexes of the last version that are not there then.
  package let createdIndexes: [SchemaIndex]
  /// Core Data's bookkeeping, which is made again.
  package let bookkeeping: [String]
  /// Rows of entities in kept tables.
  package let rows: Int64

  /// Kept tables by name, with their names in the store: what a verifier has to know.
  package var origins: [String: String] {
    Dictionary(kept.map { ($0.name, $0.origin) }) { first, _ in first }
  }

  /// Must the hops before the last one be there as views? Where tables are only kept, with their names and numbers, the
  /// store says it all.
  package var needsViews: Bool {
    !written.isEmpty || !droppedTables.isEmpty
      || kept.contains { $0.origin != $0.name || $0.values.contains { $0.column == "Z_ENT" } }
  }

  // MARK: Statements

  /// The statements that give a copy, attached under `destination`, the tables of the last version: what is dropped
  /// leaves its pages and its names to what follows.
  func schemaStatements(in destination: String) -> [String] {
    let qualified = { (name: String) in SQLiteIdentifier.quoted(destination) + "." + SQLiteIdentifier.quoted(name) }
    var statements = droppedIndexes.map { "DROP INDEX IF EXISTS \(qualified($0))" }
    statements += (droppedTables + bookkeeping).map { "DROP TABLE IF EXISTS \(qualified($0))" }
    statements += renames.map { change in
      "ALTER TABLE \(qualified(change.before)) RENAME TO \(SQLiteIdentifier.quoted(change.after))"
    }
    for table in kept {
      let start = "ALTER TABLE \(qualified(table.name)) "
      statements += Self.inOrder(table.renamed, room: "ZHOPD_COLUMN").map { change in
        start + "RENAME COLUMN \(SQLiteIdentifier.bareIfPossible(change.before))"
          + " TO \(SQLiteIdentifier.bareIfPossible(change.after))"
      }
      statements += table.appended.map { column in
        start + "ADD COLUMN \(TableText.definition(of: column.name, type: column.declaredType))"
      }
    }
    return statements + written.map { $0.createStatement(in: destination) }
  }

  /// The steps by which the rows of such a copy become those of the last version; `hop` is the program of the last hop
  /// by rows, from which written tables get theirs.
  func program(_ hop: HopProgram, destination: String) -> HopProgram {
    let qualified = { (name: String) in SQLiteIdentifier.quoted(destination) + "." + SQLiteIdentifier.quoted(name) }
    var steps = kept.filter { !$0.values.isEmpty }.map {
      HopProgram.Step.chunks(Self.update(of: $0, as: qualified($0.name)))
    }
    steps += rows(of: hop)
    for join in kept.compactMap(\.join) {
      steps += [join.ownerColumn, join.targetColumn].map { column in
        .update(
          HopProgram.StatementStep(
            subject: join.name, .rows(of: join.name),
            "DELETE FROM \(qualified(join.name)) WHERE \(SQLiteIdentifier.quoted(column)) IS NULL"))
      }
    }
    steps += createdIndexes.map {
      .index(HopProgram.StatementStep(subject: $0.name, .schema, text: $0.createStatement(in: destination)))
    }
    return HopProgram(source: hop.source, destination: destination, preconditions: hop.preconditions, steps: steps)
  }

  /// The steps of the last hop that write the rows of written tables.
  private func rows(of hop: HopProgram) -> [HopProgram.Step] {
    let names = Set(written.filter { $0.reason != nil }.map(\.name))
    return hop.steps.filter { step in
      switch step {
      case .copy(let copy): names.contains(copy.rows.table)
      case .update(let statement): if case .rows(let table) = statement.effect { names.contains(table) } else { false }
      case .chunks, .policy, .validate, .index, .trigger: false
      }
    }
  }

  private static func update(of table: KeptTable, as name: String) -> HopProgram.ChunkStep {
    let values = table.values.map { "\(SQLiteIdentifier.quoted($0.column)) = \($0.value)" as SQLExpression }
    return HopProgram.ChunkStep(
      rowsOf: table.name, over: name,
      "UPDATE \(name) AS s SET \(values.joined(separator: ", ")) WHERE s.\"Z_PK\" >= ?1 AND s.\"Z_PK\" <= ?2")
  }

  // MARK: New names

  /// How many statements of the schema give new names, and how many append a column.
  var alterations: (renames: Int, columns: Int) {
    kept.reduce((renames.count, 0)) { sum, table in
      (sum.0 + Self.inOrder(table.renamed, room: "ZHOPD_COLUMN").count, sum.1 + table.appended.count)
    }
  }

  /// Tables with their new names.
  private var renames: [NewName] {
    Self.inOrder(kept.map { NewName(before: $0.origin, after: $0.name) }, room: "ZHOPD_TABLE")
  }

  /// New names in an order in which none is taken yet. Where names change places, one makes room under a name of ours,
  /// which SQLite writes without quotes as it writes Core Data's: it keeps the quotes of a column for its next name.
  private static func inOrder(_ names: [NewName], room: String) -> [NewName] {
    var waiting = names.filter { $0.before != $0.after }
    var taken = Set(waiting.map(\.before))
    var result: [NewName] = []
    while !waiting.isEmpty {
      let count = waiting.count
      // Numbers that grow are given from the last to the first, those that fall from the first to the last.
      for isReversed in [true, false] {
        let all = isReversed ? waiting.reversed() : waiting
        waiting = all.filter { name in
          guard !taken.contains(name.after) else { return true }
          taken.remove(name.before)
          result.append(name)
          return false
        }
        if isReversed { waiting.reverse() }
      }
      guard waiting.count == count, let first = waiting.first else { continue }
      let other = "\(room)_\(result.count)"
      result.append(NewName(before: first.before, after: other))
      taken.remove(first.before)
      waiting[0] = NewName(before: other, after: first.after)
    }
    return result
  }
}
