// May a chain be carried out on a copy of the store? Only where every row stays what it is, byte for byte, but for
// columns that are added with one value for all rows: then copying the file and altering the copy gives what copying
// the rows would give, in a fraction of the time. Everything that was never seen in a store of Core Data's own is left
// to the rows' way.

import Diagnostics
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

/// How a chain is carried out as a whole.
package enum AlterDecision: Sendable, Hashable {
  /// On a copy.
  case copyAndAlter(AlterProgram)
  /// By its rows, for a reason.
  case chunks(reason: String)
}

/// Decides, from the plan alone.
package struct AlterCompiler {
  /// From this version on Core Data appends columns; before, it made the table again (docs/formats/store-layout.md,
  /// "Apple's migration in place").
  static let appendsSince: Int64 = 977

  let plan: MigrationPlan

  /// The program for a plan; nil where rows are carried.
  package static func plan(for plan: MigrationPlan, options: EngineOptions = EngineOptions()) -> AlterProgram? {
    guard case .copyAndAlter(let program) = decide(plan, options: options) else { return nil }
    return program
  }

  /// The decision for a plan, with its reason.
  package static func decide(_ plan: MigrationPlan, options: EngineOptions = EngineOptions()) -> AlterDecision {
    guard options.altersCopies else { return .chunks(reason: "altering copies is switched off") }
    guard options.fusesHops || plan.hops.count == 1 else { return .chunks(reason: "fusing is switched off") }
    let compiler = AlterCompiler(plan: plan)
    do throws(Reason) {
      return .copyAndAlter(try compiler.program())
    } catch {
      return .chunks(reason: error.sentence)
    }
  }

  /// Why not.
  struct Reason: Error {
    let sentence: String
    init(_ sentence: String) { self.sentence = sentence }
  }

  private func program() throws(Reason) -> AlterProgram {
    guard let first = plan.hops.first, let last = plan.hops.last else { throw Reason("there is no hop") }
    var added: [AlterProgram.AddedColumn] = []
    for hop in plan.hops {
      do throws(Reason) {
        added += try AlterableHop(hop: hop).addedColumns()
      } catch {
        throw Reason("\(hop.title): \(error.sentence)")
      }
    }
    if !added.isEmpty, first.sourceSchema.frameworkVersion < Self.appendsSince {
      throw Reason(
        "Core Data of framework \(first.sourceSchema.frameworkVersion) rebuilds a table to add a column")
    }
    let final = last.destinationSchema
    try checkHistory(last)
    let dropped = try checkFile(source: first.sourceSchema, keepsHistory: last.history != nil)
    guard final.rTrees.isEmpty, final.triggers.isEmpty else {
      throw Reason("the last version has triggers or R-Tree indexes")
    }
    let kept = Dictionary(
      plan.found.objects.filter { $0.type == "index" }.map { ($0.name, $0.sql) }, uniquingKeysWith: { a, _ in a })
    let wanted = Dictionary(final.indexes.map { ($0.name, $0.createStatement) }, uniquingKeysWith: { a, _ in a })
    // Indexes of history that goes along stay in the form that is known; else they go with their tables.
    let history = Dictionary(
      (last.history == nil ? [] : final.history?.statements ?? []).map { ($0.name, $0.createStatement) },
      uniquingKeysWith: { a, _ in a })
    return AlterProgram(
      added: added,
      // Automatic ones have no text.
      droppedIndexes: plan.found.objects.filter { object in
        guard object.type == "index", object.sql != nil else { return false }
        guard HistoryLayout.isHistory(table: object.table) || history[object.table] != nil else {
          return wanted[object.name] != object.sql
        }
        return last.history != nil && history[object.name] != object.sql
      }.map(\.name),
      createdIndexes: final.indexes.filter { kept[$0.name] != $0.createStatement }, joinTables: final.joinTables,
      droppedTables: dropped, rows: last.entities.reduce(0) { $0 &+ $1.rows })
  }

  /// Can the history stay where it is, but for values of its rows?
  private func checkHistory(_ last: Hop) throws(Reason) {
    if let cleared = plan.clearedHistory.first(where: { $0.rows > 0 }) {
      throw Reason("the rows of \(cleared.table) stay behind, and a copy would carry them")
    }
    guard last.history != nil else { return }
    let found = Dictionary(plan.found.objects.map { ($0.name, $0.sql) }, uniquingKeysWith: { a, _ in a })
    for statement in last.destinationSchema.history?.statements ?? []
    where found[statement.name] != statement.createStatement {
      throw Reason("\(statement.name) of the persistent history changes")
    }
  }

  /// Is the file one whose tables can be altered? Answers Core Data's bookkeeping in it.
  private func checkFile(source: StoreSchema, keepsHistory: Bool) throws(Reason) -> [String] {
    let found = plan.found
    if let table = found.internalTables.first { throw Reason("the store has the table \(table) of SQLite's own") }
    // Pages that hold nothing would be copied too, and what they held once.
    guard found.freePages <= found.pages / 4 else {
      throw Reason("\(found.freePages) of the \(found.pages) pages of the file are free")
    }
    let tables = Dictionary(
      source.tables.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    let joins = Dictionary(source.joinTables.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    var bookkeeping: [String] = []
    var seen: Set<String> = []
    for object in found.objects {
      switch object.type {
      case "index": continue
      case "table": break
      default: throw Reason("the store has the \(object.type) \(object.name)")
      }
      seen.insert(object.name)
      if let table = tables[object.name] {
        try checkText(object.sql ?? "", of: table, version: source.frameworkVersion)
      } else if let join = joins[object.name] {
        let quoted = "CREATE TABLE \(SQLiteIdentifier.quoted(join.name))"
        let plain = "CREATE TABLE \(SQLiteIdentifier.bareIfPossible(join.name))"
        let text = object.sql.map { $0.hasPrefix(quoted) ? plain + $0.dropFirst(quoted.count) : $0 }
        guard text == join.createStatement else { throw Reason(Self.strange(join.name)) }
      } else if HistoryLayout.isHistory(table: object.name) {
        if !keepsHistory { bookkeeping.append(object.name) }
      } else if keepsHistory, MirroringLayout.isMirroring(object.name) {
        continue
      } else if ["Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE"].contains(object.name) {
        bookkeeping.append(object.name)
      } else {
        throw Reason("the store has the table \(object.name), which is not in its version")
      }
    }
    for name in tables.keys.sorted() + joins.keys.sorted() where !seen.contains(name) {
      throw Reason("the store lacks the table \(name)")
    }
    return bookkeeping
  }

  /// The text must be one that Core Data writes: any other could hold a rule or a conversion of its own.
  private func checkText(_ text: String, of table: EntityTable, version: Int64) throws(Reason) {
    if text == table.createStatement { return }
    guard version >= Self.appendsSince, table.uniqueConstraints.isEmpty,
      let found = TableText(text, table: table.name),
      found.definitions.count == table.columns.count,
      Set(found.definitions)
        == Set(table.columns.map { TableText.definition(of: $0.name, type: $0.declaredType) })
    else { throw Reason(Self.strange(table.name)) }
  }

  private static func strange(_ table: String) -> String {
    "the table \(table) has another text than Core Data writes"
  }
}
