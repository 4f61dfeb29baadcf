// Decides how each hop of a chain is carried out. The tables of the store before stay in their file where that touches
// fewer pages than writing all rows, and where the result is a form that was seen in Core Data's own stores. A table
// that stays is kept or altered; the rows of others are written as in any other hop.

import Diagnostics
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

/// How a hop is carried out.
package enum HopDecision: Sendable, Hashable {
  /// The file of the store before, altered.
  case alter(AlterProgram)
  /// All rows are written into a new file, for a reason.
  case write(reason: String)

  /// The program that alters; nil where rows are written.
  package var program: AlterProgram? { if case .alter(let program) = self { program } else { nil } }
}

/// Decides from the plan alone.
package struct AlterCompiler {
  /// From this version on Core Data appends columns; earlier versions made the table again
  /// (docs/formats/store-layout.md, "Apple's migration in place").
  private static let appendsSince: Int64 = 977

  private let plan: MigrationPlan
  private let hop: Hop
  private let file: HopFile
  private let actions: [String: TableAction]
  private var source: StoreSchema { hop.sourceSchema }
  private var final: StoreSchema { hop.destinationSchema }
  private var isLast: Bool { hop.index == plan.hops.count - 1 }
  /// Whether the chain's result has rows of persistent history.
  private var carriesHistory: Bool { plan.hops.last?.history != nil }

  private struct ActionsKey: Hashable, Sendable {}

  /// Returns the actions of the tables in each hop; empty for a hop with mapping models. Throws for a hop whose rows no
  /// statement can carry. The same for all stores on the same migration path.
  private static func actions(of plan: MigrationPlan) throws(HopdError) -> [[String: TableAction]] {
    try plan.cache.value(for: ActionsKey()) { () throws(HopdError) in
      var actions: [[String: TableAction]] = []
      for hop in plan.hops {
        if hop.isMapped { _ = try MappedHopCompiler.executions(hop: hop) }
        actions.append(hop.isMapped ? [:] : try HopLineage(hop).actions)
      }
      return actions
    }
  }

  /// Returns the decision for each hop of a plan, with its reason.
  package static func decide(
    _ plan: MigrationPlan, options: EngineOptions = EngineOptions()
  ) throws(HopdError) -> [HopDecision] {
    let actions = try actions(of: plan)
    let decisions = decide(plan, actions, options, history: nil)
    // History is in the store: it stays there if every hop does, and else the last hop copies it.
    guard plan.hops.count > 1, plan.hops.last?.history != nil, decisions.contains(where: { $0.program == nil }) else {
      return decisions
    }
    return decide(plan, actions, options, history: "the last hop copies the persistent history")
  }

  /// `history` is the reason why the first hop and the last one are written.
  private static func decide(
    _ plan: MigrationPlan, _ actions: [[String: TableAction]], _ options: EngineOptions, history: String?
  ) -> [HopDecision] {
    var decisions: [HopDecision] = []
    var file = HopFile(of: plan.found)
    for hop in plan.hops {
      let compiler = AlterCompiler(plan: plan, hop: hop, file: file, actions: actions[hop.index])
      let decision = compiler.decision(options, history: history)
      file = file.after(decision)
      decisions.append(decision)
    }
    return decisions
  }

  private func decision(_ options: EngineOptions, history: String?) -> HopDecision {
    do throws(Reason) {
      guard options.altering != .never else { throw Reason("altering is disabled") }
      if let history, isLast || hop.index == 0 { throw Reason(history) }
      try checkHop()
      if file.isStore { try checkFile() }
      let program = program()
      guard plan.found.givesPagesBack || program.droppedTables.isEmpty else {
        throw Reason("tables are removed, and the file does not release their pages")
      }
      if options.altering == .whereFaster { try TouchedPages(plan: plan, hop: hop, program: program).check() }
      return .alter(program)
    } catch {
      return .write(reason: error.sentence)
    }
  }

  /// The reason for writing all rows.
  struct Reason: Error {
    let sentence: String
    init(_ sentence: String) { self.sentence = sentence }
  }

  // MARK: The hop

  private func checkHop() throws(Reason) {
    if hop.mapped != nil {
      throw Reason("\(hop.title) \(hop.hook == nil ? "follows mapping models" : "runs a program over its objects")")
    }
    guard hop.computed.isEmpty, source.derivations.isEmpty, final.derivations.isEmpty else {
      throw Reason("\(hop.title) has derived attributes")
    }
    guard source.filteredCounts.isEmpty else {
      throw Reason("the store has triggers that count")
    }
    guard !isLast || (final.rTrees.isEmpty && final.triggers.isEmpty) else {
      throw Reason("the last version has triggers or R-Tree indexes")
    }
  }

  /// Checks that the history of the store can stay in its tables, with at most some values changed.
  private func checkHistory() throws(Reason) {
    if let cleared = plan.clearedHistory.first(where: { $0.rows > 0 }) {
      throw Reason("the rows of \(cleared.table) are dropped, and a copy would contain them")
    }
    guard let last = plan.hops.last, let carry = last.history else { return }
    if let mirroring = carry.mirroring, !(mirroring.numbers.isEmpty && mirroring.removed.isEmpty) {
      throw Reason("the entity numbers in the tables of CloudKit mirroring change")
    }
    let found = Dictionary(plan.found.objects.map { ($0.name, $0.sql) }, uniquingKeysWith: { a, _ in a })
    for statement in last.destinationSchema.history?.statements ?? []
    where found[statement.name] != statement.createStatement {
      throw Reason("\(statement.name) of the persistent history changes")
    }
  }

  // MARK: The file

  /// Checks that the tables of the store can be altered.
  private func checkFile() throws(Reason) {
    try checkHistory()
    let found = plan.found
    if let table = found.internalTables.first { throw Reason("the store has the internal SQLite table \(table)") }
    // Free pages would be copied too, with the deleted data in them.
    guard found.freePages <= found.pages / 4 else {
      throw Reason("\(found.freePages) of the \(found.pages) pages of the file are free")
    }
    let known = Set(source.tables.map(\.name) + source.joinTables.map(\.name))
    var seen: Set<String> = []
    for object in found.objects {
      switch object.type {
      case "index": continue
      case "table": break
      default: throw Reason("the store has the \(object.type) \(object.name)")
      }
      seen.insert(object.name)
      let isKnown =
        known.contains(object.name) || HistoryLayout.isHistory(table: object.name)
        || carriesHistory && MirroringLayout.isMirroring(object.name)
        || StoreSchema.bookkeepingTables.contains(object.name)
      if !isKnown { throw Reason("the store has the table \(object.name), which is not in its version") }
    }
    for name in known.sorted() where !seen.contains(name) { throw Reason("the store lacks the table \(name)") }
  }

  // MARK: The tables

  private func program() -> AlterProgram {
    var kept: [AlterProgram.KeptTable] = []
    var written: [AlterProgram.WrittenTable] = []
    var taken: Set<String> = []
    func sort(
      _ name: String, _ definition: AlterProgram.WrittenTable.Definition,
      _ keep: (TableLineage) throws(Reason) -> AlterProgram.KeptTable
    ) {
      do throws(Reason) {
        switch actions[name] {
        case .keep(let lineage):
          let table = try keep(lineage)
          guard taken.insert(lineage.origin).inserted else { throw Reason("rows are shared with another table") }
          kept.append(table)
        case .rewrite(let reason): throw Reason(reason)
        case .create, nil: written.append(.init(name: name, definition: definition, reason: nil))
        }
      } catch {
        written.append(.init(name: name, definition: definition, reason: error.sentence))
      }
    }
    for table in final.tables {
      sort(table.name, .entities(table)) { lineage throws(Reason) in
        try keep(table, lineage)
      }
    }
    for join in final.joinTables {
      sort(join.name, .pairs(join)) { lineage throws(Reason) in
        try keep(join, lineage)
      }
    }
    let dropped = (source.tables.map(\.name) + source.joinTables.map(\.name)).filter { !taken.contains($0) }
    let indexes = indexes(kept)
    let history = file.tables.keys.filter { HistoryLayout.isHistory(table: $0) }.sorted()
    return AlterProgram(
      kept: kept, written: written, droppedTables: dropped, droppedHistory: carriesHistory ? [] : history,
      droppedIndexes: indexes.dropped, createdIndexes: indexes.created,
      rows: kept.reduce(0) { [rows = hop.rowsByTable] in $0 &+ (rows[$1.name] ?? 0) })
  }

  private func keep(
    _ table: EntityTable, _ lineage: TableLineage
  ) throws(Reason) -> AlterProgram.KeptTable {
    guard let before = source.table(named: lineage.origin) else {
      throw Reason("rows come from another source")
    }
    if file.isStore { try checkText(file.tables[lineage.origin] ?? "", of: before) }
    guard lineage.appended.isEmpty || source.frameworkVersion >= Self.appendsSince else {
      throw Reason("Core Data of framework \(source.frameworkVersion) recreates a table to add a column")
    }
    let appended = Set(lineage.appended.map(\.name))
    var values: [AlterProgram.ColumnValue] = []
    for column in table.columns {
      guard let value = lineage.values[column.name] else { continue }
      guard appended.contains(column.name) ? !value.isNull : value.column(of: "s") != column.name else { continue }
      // While rows are updated one by one, two could briefly have the same value.
      if final.isUnique(column.name, in: table) { throw Reason("column \(column.name) changes and must be unique") }
      values.append(AlterProgram.ColumnValue(column: column.name, value: value))
    }
    return AlterProgram.KeptTable(
      origin: lineage.origin, name: table.name, renamed: [],
      appended: lineage.appended, values: values, join: nil)
  }

  private func keep(_ join: JoinTable, _ lineage: TableLineage) throws(Reason) -> AlterProgram.KeptTable {
    guard let before = source.joinTable(named: lineage.origin) else {
      throw Reason("pairs come from another source")
    }
    let text = file.tables[before.name] ?? ""
    guard !file.isStore || TableText.withPlainName(text, of: before.name) == before.createStatement else {
      throw Reason("its SQL differs from Core Data's")
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
    else { throw Reason("its SQL differs from Core Data's") }
  }

  // MARK: Indexes

  /// Returns the indexes to drop and those to create. An index over values that change is created again, which costs
  /// less than updating it. Those of the last version are created in the last hop.
  private func indexes(_ kept: [AlterProgram.KeptTable]) -> (dropped: [String], created: [SchemaIndex]) {
    let tables = Dictionary(kept.map { ($0.origin, $0) }) { first, _ in first }
    let wanted = Dictionary(final.indexes.map { ($0.name, $0) }) { first, _ in first }
    // Indexes of kept history stay in their known form; others are dropped with their tables.
    let history = Dictionary(
      (carriesHistory ? plan.hops.last?.destinationSchema.history?.statements ?? [] : []).map {
        ($0.name, $0.createStatement)
      }, uniquingKeysWith: { a, _ in a })
    var dropped: [String] = []
    var stays: Set<String> = []
    for found in file.indexes {
      if HistoryLayout.isHistory(table: found.table) || history[found.table] != nil {
        if carriesHistory, history[found.name] != found.text { dropped.append(found.name) }
      } else if let table = tables[found.table] {
        if let index = wanted[found.name], index.createStatement == found.text, table.keeps(index) {
          stays.insert(found.name)
        } else {
          dropped.append(found.name)
        }
      }
    }
    return (dropped, isLast ? final.indexes.filter { !stays.contains($0.name) } : [])
  }
}

extension AlterProgram.KeptTable {
  /// Whether an index of the table stays unchanged.
  fileprivate func keeps(_ index: SchemaIndex) -> Bool {
    origin == name && renamed.isEmpty
      && !index.columns.contains { column in values.contains { $0.column == column.name } }
  }
}
