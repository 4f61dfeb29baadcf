// Inspects the hops after mapping models. Their rows do not exist while the plan is made, so they are inspected in the
// staged store of the previous hop. A finding stops the migration before the hop, as in a plan.

import Diagnostics
import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite

/// The findings in the rows of hops after mapping models.
package struct SegmentInspection: Sendable {
  /// Columns that the hops drop, with the numbers of values.
  package let drops: [DroppedColumn]
  /// Warnings for the operator.
  package let warnings: [HopdError]

  /// Inspects the hops of a plan from `first` up to the next mapped hop, or that one mapped hop, in the staged store
  /// that they read. Throws a refusal with every reason.
  package init(plan: MigrationPlan, from first: Int, rules: PlanningRules, input: StoreReader) throws {
    guard plan.hops.indices.contains(first) else {
      (drops, warnings) = ([], [])
      return
    }
    let place = Place(store: plan.store.location.database)
    let hops = MigrationPlanner.segment(of: plan, from: first)
    let migrationPath = MigrationPath(
      sourceSchema: hops.first?.sourceSchema ?? plan.hops[first].sourceSchema, hops: hops)
    let census = StoreCensus(schema: migrationPath.sourceSchema, reader: input)
    let isMapped = hops.first?.isMapped == true
    try census.take(
      isMapped ? .rows : [.rows, .discriminators], values: migrationPath.countRequests(expectsValues: false))
    var rows = RowInspection(migrationPath: migrationPath.inferredPart, census: census)
    try rows.countRows()
    var warnings: [HopdError] = []
    if let hop = hops.first, hop.isMapped {
      let mapped = MappedHopInspection(hop: hop, rows: rows.rows, rule: rules.unmappedEntities)
      try mapped.findings.throwIfAny(at: place)
      warnings += try MappedRowCounts(hop: hop, rows: rows.rows, reader: input).warnings
    } else {
      // The chain is chosen by now, so `invalid_rows` settles nothing here: values outside of bounds stay a warning.
      try rows.checkInferredHops(InvalidRowsRules(standard: .fail))
      warnings += rows.remarks
    }
    try rows.findings.throwIfAny(at: place)
    let counted = try DropCounting(migrationPath: migrationPath, census: census, rows: rows.rows)
    warnings += counted.warnings
    warnings += try ClearedReferences(migrationPath: migrationPath.inferredPart, reader: input, rows: rows.rows)
      .warnings()
    let external = try ExternalDataInspection(
      migrationPath: migrationPath.inferredPart, reader: input, location: plan.store.location, rows: rows.rows,
      finalSchema: hops.last?.destinationSchema ?? migrationPath.sourceSchema, memoryLimit: rules.memoryLimit)
    try external.findings.throwIfAny(at: place)
    warnings += external.warnings
    // In the whole chain, earlier hops of the plan precede these.
    drops = counted.drops.map { drop in
      var later = drop
      later.hop += first
      return later
    }
    self.warnings = warnings.map { $0.located(place) }
  }
}

extension MigrationPlanner {
  /// Whether a segment begins at this hop, whose rows the plan could not see. Consecutive inferred hops are one
  /// segment; each mapped hop is a segment.
  package static func beginsSegment(_ index: Int, of plan: MigrationPlan) -> Bool {
    guard index > 0, plan.hops.indices.contains(index) else { return false }
    return plan.hops[index].isMapped || plan.hops[index - 1].isMapped
  }

  static func segment(of plan: MigrationPlan, from first: Int) -> [Hop] {
    if plan.hops[first].isMapped { return [plan.hops[first]] }
    return Array(plan.hops[first...].prefix { !$0.isMapped })
  }

  /// Returns the expected content of the last store of a plan with mapping models, counted in the store that the last
  /// hop reads: the source, or the staged store of the previous hop.
  package static func expectation(
    of plan: MigrationPlan, rules: PlanningRules, input: StoreReader
  ) throws -> StoreExpectation {
    guard let hop = plan.hops.last else { return plan.expectation }
    return try expectation(of: hop, plan: plan, rules: rules, input: input)
  }

  /// Returns the expected rows by entity of a hop's result, as far as they follow from its source: only rows are
  /// counted.
  package static func expectedRows(of hop: Hop, rules: PlanningRules, input: StoreReader) throws -> [String: Int64] {
    let migrationPath = MigrationPath(sourceSchema: hop.sourceSchema, hops: [hop])
    var rows = RowInspection(migrationPath: migrationPath, census: StoreCensus(schema: hop.sourceSchema, reader: input))
    try rows.countRows()
    guard let mapped = hop.mapped else { return migrationPath.rows(rows.rows, at: migrationPath.end) }
    return mapped.exactRows(
      try MappedRowCounts(hop: hop, rows: rows.rows, reader: input).taken, destination: hop.destination, rules: rules)
  }

  /// Returns the expected content of the staged store of one hop, counted in the store that the hop reads.
  package static func expectation(
    of hop: Hop, plan: MigrationPlan, rules: PlanningRules, input: StoreReader
  ) throws -> StoreExpectation {
    let migrationPath = MigrationPath(sourceSchema: hop.sourceSchema, hops: [hop])
    let census = StoreCensus(schema: hop.sourceSchema, reader: input)
    // Nothing is known about the pairs and values after a mapping model: they are not counted.
    if !hop.isMapped {
      try census.take([.rows, .references, .orderKeys], values: migrationPath.countRequests(expectsValues: true))
    }
    var rows = RowInspection(migrationPath: migrationPath, census: census)
    try rows.countRows()
    let dangling = hop.isMapped ? [] : try census.danglingReferences()
    let dropped = plan.expectation.droppedRowsByEntity
    let external = try ExternalDataInspection(
      migrationPath: migrationPath.inferredPart, reader: input, location: plan.store.location, rows: rows.rows,
      finalSchema: hop.destinationSchema, memoryLimit: rules.memoryLimit)
    let counting = ExpectationCounting(
      migrationPath: migrationPath, census: census, rows: rows.rows, finalSchema: hop.destinationSchema,
      dangling: dangling, externalData: external.expectations)
    guard let mapped = hop.mapped else {
      return try counting.expectation(droppedRows: dropped, storeUUID: plan.store.metadata.uuid)
    }
    return StoreExpectation(
      rowsByEntity: mapped.exactRows(
        try MappedRowCounts(hop: hop, rows: rows.rows, reader: input).taken, destination: hop.destination,
        rules: rules),
      droppedRowsByEntity: dropped, rowsByJoinTable: [:], highWaterMarks: try counting.highWaterMarks(),
      danglingReferences: 0,
      // If a mapping model gives an object no order key, Core Data numbers it when it first uses it.
      nullOrderKeys: .max, externalData: nil, storeUUID: plan.store.metadata.uuid)
  }
}

extension MappedHop {
  /// Returns the rows of the destination by entity, as far as they follow from the rows that each mapping takes: for
  /// entities whose mappings make one object of each. A policy may make any objects, and a rule for invalid rows may
  /// leave any out.
  func exactRows(_ taken: [Int64?], destination: ManagedObjectModel, rules: PlanningRules) -> [String: Int64] {
    guard policies.isEmpty else { return [:] }
    var exact: [String: Int64] = [:]
    for entity in destination.entities where [.fail, .default].contains(rules.invalidRows.rule(for: entity.name)) {
      let mappings = zip(entityMappings, taken).filter { $0.0.destination == entity.name }
      let known = mappings.compactMap { $0.0.grouping == .each ? $0.1 : nil }
      if known.count == mappings.count { exact[entity.name] = known.reduce(0, &+) }
    }
    return exact
  }
}

extension MigrationPath {
  /// The migration path up to its first mapped hop.
  var inferredPart: MigrationPath { prefix(mappingModels.prefix { $0.isEmpty }.count) }
}
