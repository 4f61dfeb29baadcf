// A hop as changes of a file: of a copy of the store, or of the staged store that the hop before has left. Plain values
// that a plan can show and a runner can execute step by step. Each table stays unchanged, is altered, or is written
// again from the source.
// The result is the store that Core Data's own migration in place leaves (docs/formats/store-layout.md, "Apple's
// migration in place"); `AlterCompiler` decides.

import ManagedObjectModel
import PersistentStore
import SQLite

/// The changes that convert a file of the hop's source to its destination.
package struct AlterProgram: Sendable, Hashable {
  /// A table that keeps its rows.
  package struct KeptTable: Sendable, Hashable {
    /// Its name in the source, and in the destination.
    package let origin: String
    package let name: String
    /// The columns with new names, in the table's order; join tables only.
    package let renamed: [NewName]
    /// The appended columns, in the order in which Core Data would append them.
    package let appended: [TableColumn]
    /// The new values of columns, for every row. Other columns keep their values, and appended ones are NULL.
    package let values: [ColumnValue]
    /// The join table in the destination; nil for other tables. Rows with a missing end are deleted, as no hop would
    /// copy them.
    let join: JoinTable?

    /// Whether the table stays unchanged.
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

  /// The new value of a column in every row: an expression over the source's row, under `s`.
  package struct ColumnValue: Sendable, Hashable {
    package let column: String
    package let value: SQLExpression
  }

  /// A table of the destination whose rows are written.
  package struct WrittenTable: Sendable, Hashable {
    package let name: String
    /// The statement that creates it, without its schema.
    let definition: Definition
    /// The reason; nil for a new table, which gets no rows of the source.
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

  /// In the order of the destination's layout.
  package let kept: [KeptTable]
  package let written: [WrittenTable]
  /// The tables of the source that are written again, under any name, or that the destination does not have.
  package let droppedTables: [String]
  /// The tables of persistent history, where it ends.
  package let droppedHistory: [String]
  /// The indexes on kept tables that the destination does not have in that form.
  package let droppedIndexes: [String]
  /// The indexes that are missing after that; in the last hop of a chain only.
  package let createdIndexes: [SchemaIndex]
  /// The rows of entities in kept tables.
  package let rows: Int64

  /// Whether rows of the source are read while the file is altered. If not, a staged store is altered where it stands.
  package var readsSource: Bool { written.contains { $0.reason != nil } }

  // MARK: Statements

  /// Returns the statements that give a file, attached under `destination`, the tables of the hop's destination. Drops
  /// come first, because later statements reuse the pages and the names.
  func schemaStatements(in destination: String) -> [String] {
    let qualified = { (name: String) in SQLiteIdentifier.quoted(destination) + "." + SQLiteIdentifier.quoted(name) }
    var statements = droppedIndexes.map { "DROP INDEX IF EXISTS \(qualified($0))" }
    statements += (droppedTables + droppedHistory).map { "DROP TABLE IF EXISTS \(qualified($0))" }
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

  /// Returns the steps that convert the rows of such a file. `hop` is the hop's program for writing all rows; written
  /// tables get their rows from it.
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
    var program = HopProgram(
      source: hop.source, destination: destination, preconditions: hop.preconditions, steps: steps)
    program.replacesBookkeeping = true
    return program
  }

  /// The hop's steps that write the rows of written tables.
  private func rows(of hop: HopProgram) -> [HopProgram.Step] {
    let names = Set(written.filter { $0.reason != nil }.map(\.name))
    return hop.steps.filter { step in
      switch step {
      case .copy(let copy): names.contains(copy.rows.table)
      case .update(let statement): if case .rows(let table) = statement.effect { names.contains(table) } else { false }
      case .chunks, .policy, .validate, .table, .index, .trigger: false
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

  /// The number of schema statements that give new names, and of those that append a column.
  var alterations: (renames: Int, columns: Int) {
    kept.reduce((renames.count, 0)) { sum, table in
      (sum.0 + Self.inOrder(table.renamed, room: "ZHOPD_COLUMN").count, sum.1 + table.appended.count)
    }
  }

  /// The tables with new names.
  private var renames: [NewName] {
    Self.inOrder(kept.map { NewName(before: $0.origin, after: $0.name) }, room: "ZHOPD_TABLE")
  }

  /// Orders new names so that none is in use when it is given. If names are exchanged, one table or column first gets a
  /// temporary name, which SQLite writes without quotes like Core Data's: it keeps a column's quotes in the next name.
  private static func inOrder(_ names: [NewName], room: String) -> [NewName] {
    var waiting = names.filter { $0.before != $0.after }
    var taken = Set(waiting.map(\.before))
    var result: [NewName] = []
    while !waiting.isEmpty {
      let count = waiting.count
      // Rising numbers are given from the last to the first, falling ones from the first to the last.
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

// Describes what a hop that alters a file changes in each table, in words for plans and journals.

/// The change of one table.
package struct TableChange: Sendable, Hashable {
  /// The kind of change.
  package enum Action: String, Sendable, Hashable {
    /// Nothing changes.
    case kept
    /// Its rows stay; its name, columns, or values in its rows change.
    case altered
    /// The table is created, and its rows are written.
    case written
    /// The table is not in the destination.
    case removed
  }

  /// Its name in the destination, or in the source if it is removed.
  package let table: String
  package let action: Action
  /// The change, or the reason why its rows are written.
  package let reason: String
}

extension AlterProgram {
  /// The changes of all tables: those of the destination, and those that are removed.
  package var changes: [TableChange] {
    let made = Set(written.map(\.name))
    return kept.map { TableChange(table: $0.name, action: $0.isUnchanged ? .kept : .altered, reason: $0.change) }
      + written.map { TableChange(table: $0.name, action: .written, reason: $0.reason ?? "new table") }
      + droppedTables.filter { !made.contains($0) }.map {
        TableChange(table: $0, action: .removed, reason: "not in the next version")
      }
  }

  /// A short summary of the work apart from copying.
  package var summary: String {
    let changes = changes
    func tables(_ action: TableChange.Action) -> Int { changes.count { $0.action == action } }
    let columns = kept.reduce(0) { $0 + $1.appended.count }
    let growing = kept.count { !$0.appended.isEmpty }
    let revalued = kept.count { !$0.values.isEmpty }
    let renamed = kept.count { $0.origin != $0.name }
    let parts = [
      columns == 0 ? "" : "\(Self.count(columns, "column")) added to \(Self.count(growing, "table"))",
      renamed == 0 ? "" : "\(Self.count(renamed, "table")) renamed",
      revalued == 0 ? "" : "values set in \(Self.count(revalued, "table"))",
      written.isEmpty ? "" : "\(Self.count(written.count, "table")) written",
      tables(.removed) == 0 ? "" : "\(Self.count(tables(.removed), "table")) removed",
      createdIndexes.isEmpty ? "" : "\(Self.count(createdIndexes.count, "index", "indexes")) created",
      droppedIndexes.isEmpty ? "" : "\(Self.count(droppedIndexes.count, "index", "indexes")) dropped",
    ].filter { !$0.isEmpty }
    return parts.isEmpty ? "no table changes" : parts.joined(separator: ", ")
  }

  private static func count(_ number: Int, _ word: String, _ plural: String? = nil) -> String {
    "\(number) \(number == 1 ? word : plural ?? word + "s")"
  }
}

extension AlterProgram.KeptTable {
  /// The change of the table.
  fileprivate var change: String {
    let filled = values.filter { $0.column != "Z_ENT" }
    let parts = [
      origin == name ? "" : "renamed from \(origin)",
      renamed.isEmpty ? "" : "columns renamed",
      appended.isEmpty ? "" : "adds \(appended.map(\.name).joined(separator: ", "))",
      filled.count == values.count ? "" : "entity numbers change",
      filled.isEmpty ? "" : "sets \(filled.map(\.column).joined(separator: ", "))",
    ].filter { !$0.isEmpty }
    return parts.isEmpty ? "unchanged" : parts.joined(separator: "; ")
  }
}
