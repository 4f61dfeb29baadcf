// Finds what an inferred hop does to each table: its rows stay in it, with values that follow from the row itself, or
// they must be written. It is read from the inserts of the hop's program, so that a kept table gets exactly the values
// that its rows would have got.

import Diagnostics
import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SQLite

/// A table of a hop's destination, described as a table of its source.
struct TableLineage: Sendable, Hashable {
  /// Its name in the source.
  let origin: String
  /// Its columns, each with its value as an expression over the source's row under `s`.
  private(set) var values: [String: SQLExpression] = [:]
  /// The appended columns, in the order in which Core Data appends them.
  private(set) var appended: [AlterProgram.TableColumn] = []

  fileprivate init(_ name: String) { origin = name }
}

/// The effect of a hop on one table of its destination.
enum TableAction: Sendable, Hashable {
  /// Its rows stay in their table.
  case keep(TableLineage)
  /// Its rows are written, for the reason given.
  case rewrite(String)
  /// It gets no rows of the source.
  case create
}

/// The actions of all tables of a hop.
struct HopLineage: Sendable {
  /// The actions by table of the destination.
  private(set) var actions: [String: TableAction] = [:]

  private typealias Reason = AlterCompiler.Reason

  /// Reads an inferred hop; throws where no statement can carry its rows.
  init(_ hop: Hop) throws(HopdError) {
    let program = try HopCompiler.compile(
      hop: hop, source: .schema("main"), destinationSchema: "staged", withIndexes: false)
    var inserts: [String: [Insertion]] = [:]
    var updated: [String: String] = [:]
    for step in program.steps {
      switch step {
      case .copy(let copy): inserts[copy.rows.table, default: []].append(copy.rows)
      case .update(let statement):
        if case .rows(let table) = statement.effect { updated[table] = statement.subject }
      case .chunks, .policy, .validate, .table, .index, .trigger: break
      }
    }
    func follow(_ table: String, _ check: (Insertion, inout TableLineage) throws(Reason) -> Void) {
      do throws(Reason) {
        actions[table] = .create
        guard let all = inserts[table], let insert = all.first else { return }
        if let subject = updated[table] { throw Reason("\(subject) is derived from other rows") }
        guard all.count == 1 else { throw Reason("rows come from several tables") }
        var lineage = TableLineage(insert.sourceTable)
        try check(insert, &lineage)
        actions[table] = .keep(lineage)
      } catch {
        actions[table] = .rewrite(error.sentence)
      }
    }
    for table in hop.destinationSchema.tables {
      follow(table.name) { insert, lineage throws(Reason) in try lineage.pass(hop, into: table, insert) }
    }
    for join in hop.destinationSchema.joinTables {
      follow(join.name) { insert, lineage throws(Reason) in try lineage.pass(hop, into: join, insert) }
    }
  }
}

extension TableLineage {
  fileprivate typealias Reason = AlterCompiler.Reason

  /// Follows the entity table into a table of the hop's destination.
  fileprivate mutating func pass(_ hop: Hop, into table: EntityTable, _ insert: Insertion) throws(Reason) {
    guard let before = hop.sourceSchema.table(named: insert.sourceTable) else {
      throw Reason("rows come from another source")
    }
    try requireAllRows(insert, conditions: [])
    guard before.uniqueConstraints == table.uniqueConstraints else { throw Reason("constraints change") }
    let wanted = Dictionary(table.columns.map { ($0.name, $0) }) { first, _ in first }
    for column in before.columns {
      guard let same = wanted[column.name] else { throw Reason("column \(column.name) is dropped") }
      guard same.declaredType == column.declaredType else { throw Reason("column \(column.name) changes its type") }
    }
    let inserted = Dictionary(insert.columns.map { ($0.name, $0.value) }) { first, _ in first }
    let known = Set(before.columns.map(\.name))
    for column in table.columns {
      let value = inserted[column.name] ?? .null
      guard value.traits.isEmpty else { throw Reason("column \(column.name) is computed") }
      values[column.name] = value
      if !known.contains(column.name) {
        appended.append(AlterProgram.TableColumn(name: column.name, declaredType: column.declaredType))
      }
    }
    guard values["Z_PK"]?.column(of: "s") == "Z_PK" else { throw Reason("primary keys change") }
  }

  /// Follows a join table into one of the hop's destination. Its columns may change their names but not their
  /// positions, because the table's text has them in order.
  fileprivate mutating func pass(_ hop: Hop, into join: JoinTable, _ insert: Insertion) throws(Reason) {
    guard let before = hop.sourceSchema.joinTable(named: insert.sourceTable) else {
      throw Reason("pairs come from a column")
    }
    let ends: [SQLExpression] = [before.ownerColumn, before.targetColumn].map {
      "\(SQLExpression.column($0)) IS NOT NULL"
    }
    try requireAllRows(insert, conditions: Set(ends))
    let inserted = Dictionary(insert.columns.map { ($0.name, $0.value) }) { first, _ in first }
    let places = join.columns.map { inserted[$0]?.column(of: "s") }
    guard places == before.columns else { throw Reason("column order changes") }
    for (new, old) in zip(join.columns, before.columns) { values[new] = .column(old) }
  }

  private func requireAllRows(_ insert: Insertion, conditions: Set<SQLExpression>) throws(Reason) {
    guard insert.tables.count == 1, !insert.mayRepeat, insert.suffix.isEmpty else {
      throw Reason("rows are merged")
    }
    guard Set(insert.conditions) == conditions else { throw Reason("some rows are omitted") }
  }
}
