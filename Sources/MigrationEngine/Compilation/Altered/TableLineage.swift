// Finds the fate of each table of a store over a chain of inferred hops: its rows stay in it, with values that follow
// from the row itself, or they must be written. It is read from the inserts of each hop's program, so that a kept table
// gets exactly the values that its rows would have got.

import Diagnostics
import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SQLite

/// A table of some version in a chain, described as a table of the original store.
struct TableLineage: Sendable, Hashable {
  /// Its name in the store.
  let origin: String
  /// Its current columns, each with its value as an expression over the store's row under `s`.
  private(set) var values: [String: SQLExpression]
  /// The appended columns, in the order in which the hops appended them.
  private(set) var appended: [AlterProgram.TableColumn] = []

  /// A table of the store, unchanged.
  fileprivate init(_ name: String, columns: [String]) {
    origin = name
    values = Dictionary(columns.map { ($0, .column($0)) }) { first, _ in first }
  }
}

/// The effect of a chain on one table of its last version.
enum TableFate: Sendable, Hashable {
  /// Its rows stay in their table.
  case kept(TableLineage)
  /// Its rows are written, for the reason given.
  case written(String)
  /// It gets no rows of the store.
  case new
}

/// The fates of all tables of a chain.
struct ChainLineage: Sendable {
  /// The fates by table of the last version.
  private(set) var fates: [String: TableFate]

  private typealias Reason = AlterCompiler.Reason

  /// Reads the hops, which must be inferred.
  init(_ hops: [Hop]) throws(HopdError) {
    fates = [:]
    let first = hops.first?.sourceSchema
    for table in first?.tables ?? [] {
      fates[table.name] = .kept(TableLineage(table.name, columns: table.columns.map(\.name)))
    }
    for join in first?.joinTables ?? [] {
      fates[join.name] = .kept(TableLineage(join.name, columns: join.columns))
    }
    for hop in hops { try pass(hop) }
  }

  private mutating func pass(_ hop: Hop) throws(HopdError) {
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
    var next: [String: TableFate] = [:]
    func follow(_ table: String, _ check: (Insertion, inout TableLineage) throws(Reason) -> Void) {
      do throws(Reason) {
        let all = (inserts[table] ?? []).filter { fates[$0.sourceTable] != .new }
        next[table] = .new
        guard let insert = all.first else { return }
        if let subject = updated[table] { throw Reason("\(subject) is worked out from other rows") }
        guard all.count == 1 else { throw Reason("its rows come from several tables") }
        guard var lineage = try lineage(of: insert.sourceTable) else { return }
        try check(insert, &lineage)
        next[table] = .kept(lineage)
      } catch {
        next[table] = .written(error.sentence)
      }
    }
    for table in hop.destinationSchema.tables {
      follow(table.name) { insert, lineage throws(Reason) in try lineage.pass(hop, into: table, insert) }
    }
    for join in hop.destinationSchema.joinTables {
      follow(join.name) { insert, lineage throws(Reason) in try lineage.pass(hop, into: join, insert) }
    }
    fates = next
  }

  private func lineage(of table: String) throws(Reason) -> TableLineage? {
    switch fates[table] {
    case .kept(let lineage): return lineage
    case .written(let reason): throw Reason(reason)
    case .new, nil: return nil
    }
  }
}

extension TableLineage {
  fileprivate typealias Reason = AlterCompiler.Reason

  /// Follows the entity table into a table of the hop's destination.
  fileprivate mutating func pass(_ hop: Hop, into table: EntityTable, _ insert: Insertion) throws(Reason) {
    guard let before = hop.sourceSchema.table(named: insert.sourceTable) else {
      throw Reason("its rows come from elsewhere")
    }
    try requireAllRows(insert, conditions: [])
    guard before.uniqueConstraints == table.uniqueConstraints else { throw Reason("its constraints change") }
    let wanted = Dictionary(table.columns.map { ($0.name, $0) }) { first, _ in first }
    for column in before.columns {
      guard let same = wanted[column.name] else { throw Reason("its column \(column.name) goes") }
      guard same.declaredType == column.declaredType else { throw Reason("its column \(column.name) changes its type") }
    }
    let inserted = Dictionary(insert.columns.map { ($0.name, $0.value) }) { first, _ in first }
    let known = Set(before.columns.map(\.name))
    var next: [String: SQLExpression] = [:]
    for column in table.columns {
      let value = (inserted[column.name] ?? .null).replacing(columnsOf: "s", by: values)
      guard value.traits.isEmpty else { throw Reason("its column \(column.name) is worked out from elsewhere") }
      next[column.name] = value
      if !known.contains(column.name) {
        appended.append(AlterProgram.TableColumn(name: column.name, declaredType: column.declaredType))
      }
    }
    guard next["Z_PK"]?.column(of: "s") == "Z_PK" else { throw Reason("its rows get other keys") }
    values = next
  }

  /// Follows a join table into one of the hop's destination. Its columns may change their names but not their
  /// positions, because the table's text has them in order.
  fileprivate mutating func pass(_ hop: Hop, into join: JoinTable, _ insert: Insertion) throws(Reason) {
    guard let before = hop.sourceSchema.joinTable(named: insert.sourceTable) else {
      throw Reason("its pairs come from a column")
    }
    let ends: [SQLExpression] = [before.ownerColumn, before.targetColumn].map {
      "\(SQLExpression.column($0)) IS NOT NULL"
    }
    try requireAllRows(insert, conditions: Set(ends))
    let inserted = Dictionary(insert.columns.map { ($0.name, $0.value) }) { first, _ in first }
    let places = join.columns.map { inserted[$0]?.column(of: "s") }
    guard places == before.columns else { throw Reason("its columns change their places") }
    var next: [String: SQLExpression] = [:]
    for (new, old) in zip(join.columns, before.columns) { next[new] = values[old] }
    values = next
  }

  private func requireAllRows(_ insert: Insertion, conditions: Set<SQLExpression>) throws(Reason) {
    guard insert.tables.count == 1, !insert.mayRepeat, insert.suffix.isEmpty else {
      throw Reason("its rows are put together")
    }
    guard Set(insert.conditions) == conditions else { throw Reason("some of its rows are left out") }
  }
}
