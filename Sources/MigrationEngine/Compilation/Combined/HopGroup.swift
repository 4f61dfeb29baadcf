// Decides which hops of a plan are one pass over the rows. It uses the plan alone, so that `plan` can show the result
// before anything runs: it considers the effects of each hop, and probes in memory whether SQLite would still look rows
// up by key.

import Diagnostics
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

/// Consecutive hops that are one pass over the rows: all but the last are views.
package struct HopGroup: Sendable, Hashable {
  /// The execution of the pass.
  package enum Execution: Sendable, Hashable {
    /// Statements over ranges of keys.
    case chunks
    /// A copy of the file, with changes of its schema.
    case copyAndAlter
  }

  /// The positions of the hops in the plan.
  package let hops: Range<Int>
  /// The execution of the pass.
  package let execution: Execution
  /// The reason why the next hop is not in the pass, in a sentence; nil for the last group.
  package let boundary: String?

  /// Makes a group.
  package init(hops: Range<Int>, execution: Execution = .chunks, boundary: String?) {
    self.hops = hops
    self.execution = execution
    self.boundary = boundary
  }
}

/// Decides which hops are fused.
package enum HopFusion {
  private struct GroupsKey: Hashable {
    let options: EngineOptions
  }

  /// Returns the groups of a plan, in order; if `options.fusesHops` is false, each hop is a group. Decided once for all
  /// stores on the same migration path.
  package static func groups(of plan: MigrationPlan, options: EngineOptions) throws(HopdError) -> [HopGroup] {
    try plan.memo.fact(GroupsKey(options: options)) { () throws(HopdError) in
      try groups(of: plan.hops, options: options)
    }
  }

  /// Returns the groups of consecutive hops.
  package static func groups(of hops: [Hop], options: EngineOptions) throws(HopdError) -> [HopGroup] {
    var groups: [HopGroup] = []
    var first = 0
    while first < hops.count {
      var pass = FusedPass(hops: hops, first: first, options: options)
      var boundary: String?
      while pass.end < hops.count {
        boundary = options.fusesHops ? try pass.extend() : "hops are not fused (fuse_hops)"
        if boundary != nil { break }
      }
      groups.append(HopGroup(hops: first..<pass.end, boundary: boundary))
      first = pass.end
    }
    return groups
  }
}

/// A pass that is tried hop by hop.
private struct FusedPass {
  let hops: [Hop]
  let first: Int
  let options: EngineOptions
  private(set) var end: Int
  private var trial: QueryPlanProbe?
  /// The tables that the last hop reads.
  private var space = SourceTables.schema("main")
  /// The columns of the last hop's source, with the number of store columns in the expression of each.
  private var weights = ColumnWeights()
  /// The views without any rows: those of entities that a hop of the pass adds.
  private var empty: Set<String> = []

  init(hops: [Hop], first: Int, options: EngineOptions) {
    self.hops = hops
    self.first = first
    self.options = options
    end = first + 1
  }

  /// Adds the next hop to the pass, or returns why it cannot.
  mutating func extend() throws(HopdError) -> String? {
    let (inner, next) = (hops[end - 1], hops[end])
    // A stage's program reads only written rows.
    if next.hook == nil, let policy = next.mapped?.policies.first {
      return "\(next.title) runs the policy \(policy), which fetches single objects of the previous version"
    }
    let layout = try Self.layout(of: inner)
    let program = try IntermediateHop(hop: inner, source: space, layout: layout, options: options)
    if let obstacle = program.obstacle { return "\(inner.title) is made because \(obstacle)" }
    let weights = weights.after(program)
    if let heavy = weights.heaviest {
      return "\(inner.title) is made because \(heavy) would be computed many times over"
    }
    do {
      let trial = try self.trial ?? started()
      self.trial = trial
      let definitions = ViewDefinitions(program, hop: inner, source: space)
      try definitions.create(on: trial.connection)
      let views = definitions.space
      let empty = empty.union(program.tables.filter(\.rows.isEmpty).map { views.qualified($0.table) })
      if let reason = try Self.lostLookup(next, over: views, empty: empty, trial: trial) {
        return "\(inner.title) is made because \(reason)"
      }
      (space, self.weights, self.empty) = (views, weights, empty)
    } catch let error as HopdError {
      throw error
    } catch {
      // A statement over views can be longer or deeper than SQLite allows.
      return "\(inner.title) is made because SQLite does not take the statements of both at once: \(error)"
    }
    end += 1
    return nil
  }

  private func started() throws(SQLiteError) -> QueryPlanProbe {
    let trial = try QueryPlanProbe()
    try trial.create(hops[first].sourceSchema, in: "main", withIndexes: true)
    return trial
  }

  /// The key layout for tables that are not empty.
  fileprivate static func layout(of hop: Hop) throws(HopdError) -> AssociationLayout? {
    guard hop.isMapped else { return nil }
    let span = AssociationLayout.KeySpan(low: 1, high: 1000)
    let spans = Dictionary(hop.sourceSchema.tables.map { ($0.name, span) }) { first, _ in first }
    return try AssociationLayout(hop: hop, spans: spans)
  }

  /// Returns the look-up of the next hop that would scan the views, although it uses an index on tables.
  private static func lostLookup(
    _ hop: Hop, over views: SourceTables, empty: Set<String>, trial: QueryPlanProbe
  ) throws -> String? {
    let staged = "staged\(hop.index)"
    try trial.attach(staged)
    defer { try? trial.connection.detach(staged) }
    try trial.create(hop.destinationSchema, in: staged, withIndexes: false)
    let program = try Self.program(of: hop, source: views, destination: staged)
    let reference = TableReference(hop: hop, staged: staged, trial: trial)
    for statement in program.scratch { try trial.connection.run(statement) }
    if program.usesPairs { try MappedScratch.prepareRun(trial.connection) }
    for (position, step) in program.steps.enumerated() {
      try trial.prepare(step)
      // A statement that is driven by an empty view does nothing, whatever its plan.
      if let driven = step.statements.first, empty.contains(where: driven.contains) { continue }
      for (place, sql) in step.statements.enumerated() {
        let found = try trial.lookups(of: sql).scans.count
        if found > 0, let expected = try reference.scans(step: position, statement: place), found > expected {
          return "\(hop.title) could not look up rows for \(step.subject) by key"
        }
      }
    }
    return nil
  }

  /// Returns the program of a hop, compiled as if no reference were known to be sound, so with every look-up.
  fileprivate static func program(
    of hop: Hop, source: SourceTables, destination: String
  ) throws(HopdError) -> HopProgram {
    guard let layout = try layout(of: hop) else {
      return try HopCompiler.compile(hop: hop, source: source, destinationSchema: destination, withIndexes: false)
    }
    return try MappedHopCompiler(
      hop: hop, layout: layout, source: source, destinationSchema: destination, moment: 0, withIndexes: false
    ).compile()
  }
}

/// A hop's program over tables, to compare its query plans with those over views. Most look-ups scan nothing over views
/// either, so the tables and the program are made when the first one does.
private final class TableReference {
  private let hop: Hop
  private let staged: String
  private let tables: String
  private let trial: QueryPlanProbe
  private var steps: [HopProgram.Step]?
  private var isAttached = false

  init(hop: Hop, staged: String, trial: QueryPlanProbe) {
    (self.hop, self.staged, self.trial) = (hop, staged, trial)
    tables = "tables\(hop.index)"
  }

  /// Returns the number of tables that a statement scans; nil where the program has no such statement.
  func scans(step: Int, statement: Int) throws -> Int? {
    let steps = try self.steps ?? made()
    self.steps = steps
    guard steps.indices.contains(step), steps[step].statements.indices.contains(statement) else { return nil }
    return try trial.lookups(of: steps[step].statements[statement]).scans.count
  }

  private func made() throws -> [HopProgram.Step] {
    try trial.attach(tables)
    isAttached = true
    try trial.create(hop.sourceSchema, in: tables, withIndexes: true)
    return try FusedPass.program(of: hop, source: .schema(tables), destination: staged).steps
  }

  deinit { if isAttached { try? trial.connection.detach(tables) } }
}

/// The number of store columns in the expressions of views, counted at each use: a view's values are computed again
/// wherever a later hop writes them.
private struct ColumnWeights {
  /// The weights by table and column; 1 for columns that are not in it.
  private var weights: [String: [String: Int]] = [:]
  /// The qualified name of a column that is too heavy.
  private(set) var heaviest: String?

  /// Above this, a pass would repeat the same work again and again.
  private static let most = 200

  /// Returns the weights of a program's views.
  func after(_ program: IntermediateHop) -> ColumnWeights {
    var result = ColumnWeights()
    for table in program.tables {
      for row in table.rows {
        let below = weights[row.sourceTable] ?? [:]
        for column in row.columns {
          let weight = column.value.reads.lazy.filter { $0.alias == "s" }
            .reduce(0) { min($0 + (below[$1.column] ?? 1), Self.most + 1) }
          if weight > Self.most { result.heaviest = "\(table.table).\(column.name)" }
          if weight > 1 {
            result.weights[table.table, default: [:]][column.name, default: 0] += weight
          }
        }
      }
    }
    return result
  }
}
