// Decides whether a chain runs on a copy of the store. Altering a copy gives the same result as writing all rows, in a
// fraction of the time if most rows stay unchanged. Each table is either kept, or its rows are written as in any other
// hop. Tables are kept only in forms that were seen in Core Data's own stores.

import Diagnostics
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

/// The execution of a whole chain.
package enum AlterDecision: Sendable, Hashable {
  /// On an altered copy.
  case copyAndAlter(AlterProgram)
  /// By writing all rows, for a reason.
  case chunks(reason: String)
}

/// Decides from the plan alone.
package struct AlterCompiler {
  /// From this version on Core Data appends columns; earlier versions made the table again
  /// (docs/formats/store-layout.md, "Apple's migration in place").
  private static let appendsSince: Int64 = 977

  private let plan: MigrationPlan
  private let source: StoreSchema
  private let last: Hop
  private var final: StoreSchema { last.destinationSchema }

  /// Returns the decision for a plan, with its reason.
  package static func decide(
    _ plan: MigrationPlan, options: EngineOptions = EngineOptions()
  ) throws(HopdError) -> AlterDecision {
    guard options.altering != .never else { return .chunks(reason: "altering copies is switched off") }
    guard let first = plan.hops.first, let last = plan.hops.last else { return .chunks(reason: "there is no hop") }
    guard options.fusesHops || plan.hops.count == 1 else { return .chunks(reason: "fusing is switched off") }
    let compiler = AlterCompiler(plan: plan, source: first.sourceSchema, last: last)
    let program: AlterProgram
    do throws(Reason) {
      try compiler.checkHops()
      try compiler.checkHistory()
      let bookkeeping = try compiler.checkFile()
      program = compiler.program(try compiler.fates(), bookkeeping: bookkeeping)
      guard plan.found.givesPagesBack || program.droppedTables.isEmpty else {
        throw Reason("tables are removed, and the file does not give their pages back")
      }
      if options.altering == .whereFaster { try AlterCost(plan: plan, program: program).check(options) }
      guard program.needsViews, plan.hops.count > 1 else { return .copyAndAlter(program) }
    } catch {
      return .chunks(reason: error.sentence)
    }
    // Written tables are read through views of the earlier hops.
    let groups = try HopFusion.groups(of: plan, options: options)
    guard let boundary = groups.lazy.compactMap(\.boundary).first else { return .copyAndAlter(program) }
    return .chunks(reason: boundary)
  }

  /// The reason for writing all rows.
  struct Reason: Error {
    let sentence: String
    init(_ sentence: String) { self.sentence = sentence }
  }

  // MARK: The chain

  private func checkHops() throws(Reason) {
    for hop in plan.hops {
      if hop.mapped != nil {
        throw Reason("\(hop.title) \(hop.hook == nil ? "follows mapping models" : "runs a program over its objects")")
      }
      guard hop.computed.isEmpty, hop.sourceSchema.derivations.isEmpty, hop.destinationSchema.derivations.isEmpty else {
        throw Reason("\(hop.title) has derived attributes")
      }
    }
    guard final.rTrees.isEmpty, final.triggers.isEmpty else {
      throw Reason("the last version has triggers or R-Tree indexes")
    }
  }

  /// Checks that history can stay in its tables, with at most some values changed.
  private func checkHistory() throws(Reason) {
    if let cleared = plan.clearedHistory.first(where: { $0.rows > 0 }) {
      throw Reason("the rows of \(cleared.table) stay behind, and a copy would carry them")
    }
    guard let carry = last.history else { return }
    guard carry.cutoff == nil else { throw Reason("a part of the persistent history stays behind") }
    if let mirroring = carry.mirroring, !(mirroring.numbers.isEmpty && mirroring.removed.isEmpty) {
      throw Reason("the entity numbers in the tables of CloudKit mirroring change")
    }
    let found = Dictionary(plan.found.objects.map { ($0.name, $0.sql) }, uniquingKeysWith: { a, _ in a })
    for statement in final.history?.statements ?? []
    where found[statement.name] != statement.createStatement {
      throw Reason("\(statement.name) of the persistent history changes")
    }
  }

  private struct LineageKey: Hashable, Sendable {}

  /// Returns the fate of each table according to the hops alone; the same for all stores on the same migration path.
  private func fates() throws(Reason) -> [String: TableFate] {
    do {
      return try plan.memo.fact(LineageKey()) { () throws(HopdError) in try ChainLineage(plan.hops) }.fates
    } catch {
      // The pipeline refuses such a hop with its reason.
      throw Reason("its rows cannot be carried: \(error.message)")
    }
  }

  // MARK: The file

  /// Checks that the tables of the file can be altered. Returns Core Data's bookkeeping in it.
  private func checkFile() throws(Reason) -> [String] {
    let found = plan.found
    if let table = found.internalTables.first { throw Reason("the store has the table \(table) of SQLite's own") }
    // Free pages would be copied too, with the deleted data in them.
    guard found.freePages <= found.pages / 4 else {
      throw Reason("\(found.freePages) of the \(found.pages) pages of the file are free")
    }
    let known = Set(source.tables.map(\.name) + source.joinTables.map(\.name))
    var bookkeeping: [String] = []
    var seen: Set<String> = []
    for object in found.objects {
      switch object.type {
      case "index": continue
      case "table": break
      default: throw Reason("the store has the \(object.type) \(object.name)")
      }
      seen.insert(object.name)
      if known.contains(object.name) {
        continue
      } else if HistoryLayout.isHistory(table: object.name) {
        if last.history == nil { bookkeeping.append(object.name) }
      } else if last.history != nil, MirroringLayout.isMirroring(object.name) {
        continue
      } else if ["Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE"].contains(object.name) {
        bookkeeping.append(object.name)
      } else {
        throw Reason("the store has the table \(object.name), which is not in its version")
      }
    }
    for name in known.sorted() where !seen.contains(name) { throw Reason("the store lacks the table \(name)") }
    return bookkeeping
  }

  // MARK: The tables

  private func program(_ fates: [String: TableFate], bookkeeping: [String]) -> AlterProgram {
    let texts = Dictionary(
      plan.found.objects.filter { $0.type == "table" }.map { ($0.name, $0.sql ?? "") }, uniquingKeysWith: { a, _ in a })
    var kept: [AlterProgram.KeptTable] = []
    var written: [AlterProgram.WrittenTable] = []
    var taken: Set<String> = []
    func sort(
      _ name: String, _ definition: AlterProgram.WrittenTable.Definition,
      _ keep: (TableLineage) throws(Reason) -> AlterProgram.KeptTable
    ) {
      do throws(Reason) {
        switch fates[name] {
        case .kept(let lineage):
          let table = try keep(lineage)
          guard taken.insert(lineage.origin).inserted else { throw Reason("its rows are shared with another table") }
          kept.append(table)
        case .written(let reason): throw Reason(reason)
        case .new, nil: written.append(.init(name: name, definition: definition, reason: nil))
        }
      } catch {
        written.append(.init(name: name, definition: definition, reason: error.sentence))
      }
    }
    for table in final.tables {
      sort(table.name, .entities(table)) { lineage throws(Reason) in
        try keep(table, lineage, text: texts[lineage.origin] ?? "")
      }
    }
    for join in final.joinTables {
      sort(join.name, .pairs(join)) { lineage throws(Reason) in
        try keep(join, lineage, text: texts[lineage.origin] ?? "")
      }
    }
    let dropped = (source.tables.map(\.name) + source.joinTables.map(\.name)).filter { !taken.contains($0) }
    let indexes = indexes(kept)
    return AlterProgram(
      kept: kept, written: written, droppedTables: dropped, droppedIndexes: indexes.dropped,
      createdIndexes: indexes.created, bookkeeping: bookkeeping,
      rows: kept.reduce(0) { [rows = last.rowsByTable] in $0 &+ (rows[$1.name] ?? 0) })
  }

  private func keep(
    _ table: EntityTable, _ lineage: TableLineage, text: String
  ) throws(Reason) -> AlterProgram.KeptTable {
    guard let before = source.table(named: lineage.origin) else {
      throw Reason("its rows come from elsewhere")
    }
    try checkText(text, of: before)
    guard lineage.appended.isEmpty || source.frameworkVersion >= Self.appendsSince else {
      throw Reason("Core Data of framework \(source.frameworkVersion) makes a table again to add a column")
    }
    let appended = Set(lineage.appended.map(\.name))
    var values: [AlterProgram.ColumnValue] = []
    for column in table.columns {
      guard let value = lineage.values[column.name] else { continue }
      guard appended.contains(column.name) ? !value.isNull : value.column(of: "s") != column.name else { continue }
      // While rows are updated one by one, two could briefly have the same value.
      if final.isUnique(column.name, in: table) { throw Reason("its column \(column.name) changes and must be unique") }
      values.append(AlterProgram.ColumnValue(column: column.name, value: value))
    }
    return AlterProgram.KeptTable(
      origin: lineage.origin, name: table.name, renamed: [],
      appended: lineage.appended, values: values, join: nil)
  }

  private func keep(_ join: JoinTable, _ lineage: TableLineage, text: String) throws(Reason) -> AlterProgram.KeptTable {
    guard let before = source.joinTable(named: lineage.origin) else {
      throw Reason("its pairs come from elsewhere")
    }
    guard TableText.withPlainName(text, of: before.name) == before.createStatement else {
      throw Reason("it has another text than Core Data writes")
    }
    let renamed = zip(before.columns, join.columns).filter { $0 != $1 }.map {
      AlterProgram.NewName(before: $0, after: $1)
    }
    return AlterProgram.KeptTable(
      origin: before.name, name: join.name, renamed: renamed, appended: [], values: [], join: join)
  }

  /// The text must be one that Core Data writes: another could contain a constraint or a conversion of its own.
  private func checkText(_ text: String, of table: EntityTable) throws(Reason) {
    if text == table.createStatement { return }
    guard source.frameworkVersion >= Self.appendsSince, table.uniqueConstraints.isEmpty,
      let found = TableText(text, table: table.name),
      found.definitions.count == table.columns.count,
      Set(found.definitions)
        == Set(table.columns.map { TableText.definition(of: $0.name, type: $0.declaredType) })
    else { throw Reason("it has another text than Core Data writes") }
  }

  // MARK: Indexes

  /// Returns the indexes to drop and those to create. An index over values that change is created again, which costs
  /// less than updating it.
  private func indexes(_ kept: [AlterProgram.KeptTable]) -> (dropped: [String], created: [SchemaIndex]) {
    let tables = Dictionary(kept.map { ($0.origin, $0) }) { first, _ in first }
    let wanted = Dictionary(final.indexes.map { ($0.name, $0) }) { first, _ in first }
    // Indexes of kept history stay in their known form; others are dropped with their tables.
    let history = Dictionary(
      (last.history == nil ? [] : final.history?.statements ?? []).map { ($0.name, $0.createStatement) },
      uniquingKeysWith: { a, _ in a })
    var dropped: [String] = []
    var stays: Set<String> = []
    // Automatic indexes have no text.
    for object in plan.found.objects where object.type == "index" && object.sql != nil {
      if HistoryLayout.isHistory(table: object.table) || history[object.table] != nil {
        if last.history != nil, history[object.name] != object.sql { dropped.append(object.name) }
      } else if let table = tables[object.table] {
        if let index = wanted[object.name], index.createStatement == object.sql, table.keeps(index) {
          stays.insert(object.name)
        } else {
          dropped.append(object.name)
        }
      }
    }
    return (dropped, final.indexes.filter { !stays.contains($0.name) })
  }
}

extension AlterProgram.KeptTable {
  /// Whether an index of the table stays unchanged.
  fileprivate func keeps(_ index: SchemaIndex) -> Bool {
    origin == name && renamed.isEmpty
      && !index.columns.contains { column in values.contains { $0.column == column.name } }
  }
}
