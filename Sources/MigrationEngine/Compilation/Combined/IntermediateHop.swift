// A hop's program as tables instead of steps, so that views can show them. Views can only show a hop whose steps all
// insert rows that follow from single source rows; any other hop must be written before the next one reads it.

import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

/// A hop that is not the last of its pass.
struct IntermediateHop: Sendable {
  /// Every table of the destination.
  let tables: [ViewTable]
  /// The names of a table's rows in errors: the entity or mapping whose step would write them.
  let subjects: [String: String]
  let preconditions: [HopProgram.Precondition]
  /// The reason why the hop must be written, in words that follow "because"; nil if views can show it.
  let obstacle: String?

  /// Compiles the hop over `source`. `layout` has its keys if it has mapping models.
  init(
    hop: Hop, source: SourceTables, layout: AssociationLayout?, options: EngineOptions,
    isSound: @escaping (SourceReference) throws(SQLiteError) -> Bool = { _ in false }
  ) throws(HopdError) {
    var found = Self.obstacle(in: hop, options: options)
    let program: HopProgram
    if let layout {
      if found == nil { found = Self.obstacle(in: layout) }
      let compiler = MappedHopCompiler(
        hop: hop, layout: layout, source: source, destinationSchema: Self.destination, moment: 0, withIndexes: false,
        isSound: isSound)
      program = try compiler.compile()
      let fallbacks = compiler.fallbacks
      if found == nil, let reason = fallbacks.reasons.first {
        let name = reason.property.map { "\(reason.entity).\($0)" } ?? reason.entity
        found = "an expression of \(name) is evaluated object by object"
      }
      // The value of `now()` belongs to the written hop, and is the same over all runs.
      if found == nil, fallbacks.asksForMoment { found = "it uses the present time" }
    } else {
      program = try HopCompiler.compile(
        hop: hop, source: source, destinationSchema: Self.destination, withIndexes: false)
    }
    var rows: [Insertion] = []
    var subjects: [String: String] = [:]
    for step in program.steps {
      let (made, reason) = Self.rows(of: step)
      found = found ?? reason
      for insertion in made where subjects[insertion.table] == nil { subjects[insertion.table] = step.subject }
      rows += made
    }
    if found == nil, rows.contains(where: { $0.columns.contains { $0.value.readsFiles } }) {
      found = "values leave external storage, and each file should be read once"
    }
    let tables = ViewTable.all(of: hop.destinationSchema, rows: rows)
    self.tables = tables
    self.subjects = subjects
    preconditions = program.preconditions
    obstacle = found ?? tables.lazy.compactMap(\.obstacle).first
  }

  /// The schema name in statements that are never executed.
  private static let destination = "staged"

  private static func obstacle(in hop: Hop, options: EngineOptions) -> String? {
    if let policy = hop.mapped?.policies.first {
      return "it runs the \(hop.hook == nil ? "policy" : "program") \(policy)"
    }
    if let counted = hop.computed.first {
      return "\(counted.entity).\(counted.attribute) is counted when all rows are there"
    }
    if hop.isMapped {
      let entities = hop.destination.entities.map(\.name)
      if let name = entities.first(where: { options.invalidRows.rule(for: $0) != .fail }) {
        return "objects of \(name) that break a rule get a default or are left out"
      }
    }
    if let table = hop.destinationSchema.tables.first(where: { !$0.uniqueConstraints.isEmpty }) {
      return "the uniqueness constraint of \(table.rootEntity) is enforced while its rows are written"
    }
    return nil
  }

  private static func obstacle(in layout: AssociationLayout) -> String? {
    for lane in layout.lanes {
      let name = lane.mapping.name
      switch lane.kind {
      case .each: break
      case .grouped: return "\(name) makes one object of several"
      case .deduplicated: return "\(name) leaves duplicates out"
      case .expanded: return "\(name) makes an object of each member"
      case .policy: return "\(name) is made by a policy"
      }
      if lane.offset != 0 { return "objects of \(name) get new keys" }
    }
    return nil
  }

  /// Returns the rows that a step inserts, or why it does more than insert rows.
  private static func rows(of step: HopProgram.Step) -> (rows: [Insertion], obstacle: String?) {
    switch step {
    case .copy(let copy): return ([copy.rows], nil)
    case .chunks(let chunks):
      let rows = chunks.actions.compactMap(\.rows)
      return (rows, rows.count == chunks.actions.count ? nil : "\(chunks.subject) is set when the rows are there")
    case .update(let update): return ([], "\(update.subject) is set when the rows are there")
    case .policy(let policy): return ([], "\(policy.subject) is made by a policy")
    case .table(let other), .index(let other), .trigger(let other):
      return ([], "\(other.subject) belongs to the store that is made")
    case .validate: return ([], nil)
    }
  }
}
