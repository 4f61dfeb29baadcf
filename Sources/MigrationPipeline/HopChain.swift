// The hops of a plan, one after the other over one connection: each reads the staged store of the one before, which is
// deleted as soon as the next is complete. Continues where an interrupted run of the same plan stopped. In a chain with mapping
// models the hops behind them are inspected here, where their rows are, and the store that the last hop reads is kept until
// the result is in place: what the result must hold is counted in it.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPlanning
import MigrationPolicy
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage

struct HopChain {
  let plan: MigrationPlan
  let area: StagingArea
  let connection: Connection
  /// Schema name of the source store in the connection.
  let sourceSchema: String
  let identity: Checkpoint.Identity
  let options: EngineOptions
  let rules: PlanningRules
  let policies: (any PolicyProvider)?
  let policyLines: PolicyLines
  /// Does somebody read statements and decisions?
  let takesNotes: Bool
  let files: any DurableFileSystem
  let stop: StopSignal
  let observer: (MigrationEvent) -> Void
  /// Run no hop from this one on; nil runs all.
  var end: Int? = nil

  /// What came of the chain.
  struct Outcome {
    let staged: FilePath
    let hops: [HopReport]
    let wasResumed: Bool
    /// What the inspection of the hops behind mapping models found.
    var drops: [DroppedColumn] = []
    var warnings: [HopdError] = []
  }

  /// Runs every hop that is not done yet; what cannot be continued is thrown away and starts over.
  func run() throws -> Outcome {
    do {
      return try run(from: try startingPoint())
    } catch let error as HopdError where error.code == .stagingStale {
      return try startOver()
    }
  }

  /// Throws away what is staged and runs every hop.
  func startOver() throws -> Outcome {
    try detachAll()
    try area.removeAll()
    return try run(from: 0)
  }

  /// Where the last hop's store is built.
  var staged: FilePath { area.path(hop: plan.hops.count - 1) }

  /// Is anything there that an earlier run has left?
  func hasStagedStores() throws -> Bool {
    try plan.hops.indices.contains { try files.status(area.path(hop: $0)) != nil }
  }

  /// The hop to begin with: the last one whose staged store is there, if it has what it reads from.
  private func startingPoint() throws -> Int {
    let existing = try plan.hops.indices.filter { try files.status(area.path(hop: $0)) != nil }
    guard let last = existing.last else { return 0 }
    return last
  }

  private func run(from first: Int) throws -> Outcome {
    var outcome = Outcome(staged: staged, hops: [], wasResumed: false)
    var reports: [HopReport] = []
    var wasResumed = false
    var source = sourceSchema
    // References are those of the store wherever a hop meets them: files are never moved (replacement §5).
    let external = ExternalDataDirectory(of: plan.store.location)
    var done = plan.hops.prefix(first).flatMap(\.entities).reduce(Int64(0)) { $0 &+ $1.rows }
    if first > 0 {
      let before = area.path(hop: first - 1)
      if try files.status(before) != nil {
        // The hop before is complete: its store is only deleted after the one at work is.
        source = MigrationManager.schemaName(ofHop: first - 1)
        try connection.attach(before, as: source)
        try MigrationManager.requireComplete(hop: first - 1, identity: identity, connection: connection)
      } else {
        // The hop at `first` must be complete then; if it is not, its source is gone and the chain starts over.
        source = ""
      }
    }
    for index in first..<max(first, end ?? plan.hops.count) {
      let hop = plan.hops[index]
      if !source.isEmpty, MigrationPlanner.beginsSegment(index, of: plan) {
        try inspect(from: index, source: source, into: &outcome)
      }
      observer(
        .hopStarted(index: index, hops: plan.hops.count, from: hop.source.name, to: hop.destination.name))
      let manager = MigrationManager(
        connection: connection, hop: hop, source: .schema(source), isFinal: index == plan.hops.count - 1,
        identity: identity, options: options, external: external, policies: policies,
        note: note)
      var path = area.path(hop: index)
      defer { tellPolicyLines() }
      if try files.status(path) == nil {
        guard !source.isEmpty else { throw HopdError(.stagingStale, "the store of the hop before is gone") }
        path = try area.create(hop: index)
      } else {
        observer(.resumed(hop: index, hops: plan.hops.count))
      }
      let watch = ProgressWatch(plan: plan, hop: hop, rowsBefore: done, observer: observer)
      let staged = try manager.run(into: path) { progress in
        tellPolicyLines()
        watch.note(progress)
        return !stop.isStopping
      }
      wasResumed = wasResumed || staged.wasResumed
      done &+= staged.rows
      let report = HopReport(
        source: hop.source.name, destination: hop.destination.name, kind: hop.isMapped ? "mapping" : "inferred",
        rowsRead: hop.entities.reduce(0) { $0 &+ $1.rows }, rowsWritten: staged.rows, chunks: staged.chunks,
        seconds: staged.seconds, mappings: hop.mapped?.mappings.map(\.name) ?? [], tallies: staged.tallies)
      reports.append(report)
      observer(.hopFinished(report))
      try keepQuarantined(staged, hop: index)
      if !isLast(index), !source.isEmpty { try checkCounts(of: hop, source: source) }
      if index > 0 {
        if plan.isMixed, isLast(index) {
          if !source.isEmpty { try closeStore(ofHop: index - 1) }
        } else {
          try removeStore(ofHop: index - 1)
        }
      }
      source = MigrationManager.schemaName(ofHop: index)
      if isLast(index) { try manager.seal() }
    }
    return Outcome(
      staged: outcome.staged, hops: reports, wasResumed: wasResumed, drops: outcome.drops, warnings: outcome.warnings)
  }

  private func isLast(_ index: Int) -> Bool { index == plan.hops.count - 1 }

  private func tellPolicyLines() {
    for line in policyLines.take() { observer(.note(line)) }
  }

  /// Where the hops' notes go; statements and decisions only where somebody reads them.
  private var note: HopNote.Taker {
    let (observer, takesNotes) = (observer, takesNotes)
    return { note in
      if case .policyOutput = note { observer(.note(note)) } else if takesNotes { observer(.note(note)) }
    }
  }

  // MARK: Chains with mapping models

  private func inspect(from index: Int, source: String, into outcome: inout Outcome) throws {
    let found = try SegmentInspection(
      plan: plan, from: index, rules: rules, input: StoreReader(connection: connection, schema: source))
    outcome.drops += found.drops
    outcome.warnings += found.warnings
  }

  /// Objects that a rule set aside leave with the hop's store, so they are copied to the side file at once.
  private func keepQuarantined(_ staged: StagedStore, hop: Int) throws {
    guard staged.tallies.invalidRows.contains(where: { $0.rule == .quarantine }) else { return }
    let file = QuarantineFile(area: area, files: files)
    try file.prepare()
    do {
      _ = try QuarantineTables(connection: connection, schema: MigrationManager.schemaName(ofHop: hop))
        .export(hop: hop, to: file.staged)
    } catch let error as SQLiteError {
      throw HopdError(
        error.isFull ? .noSpace : .inputOutput, "the objects that were set aside cannot be kept",
        at: Place(file: file.staged), cause: error, hint: "the store is untouched; free space and try again")
    }
  }

  /// Later hops and the verifier only see what a hop has made, so a loss in the middle is looked for at once.
  private func checkCounts(of hop: Hop, source: String) throws {
    guard plan.isMixed else { return }
    let expectation = try MigrationPlanner.expectation(
      of: hop, plan: plan, rules: rules, input: StoreReader(connection: connection, schema: source))
    let found = try rows(
      of: StoreReader(connection: connection, schema: MigrationManager.schemaName(ofHop: hop.index)),
      schema: hop.destinationSchema)
    let wrong = expectation.rowsByEntity.filter { found[$0.key, default: 0] != $0.value }.sorted { $0.key < $1.key }
    guard wrong.isEmpty else {
      throw HopdError(
        .verificationFailed, "the store of a hop does not have the rows that it must have",
        at: Place(store: plan.store.location.database, hop: hop.title),
        hint: "the store is untouched; please report this with the output of `hopctl plan`",
        reasons: wrong.map {
          HopdError(
            .verificationFailed, "\($0.key) has \(found[$0.key, default: 0]) rows in place of \($0.value)",
            at: Place(entity: $0.key))
        })
    }
  }

  /// Rows per entity.
  func rows(of reader: StoreReader, schema: StoreSchema) throws -> [String: Int64] {
    var rows: [String: Int64] = [:]
    for table in schema.tables {
      let counts = try reader.rowCounts(of: table.name)
      for entity in table.entities { rows[entity] = schema.number(of: entity).flatMap { counts[$0] } ?? 0 }
    }
    return rows
  }

  /// What the last store must hold: in a chain with mapping models counted in the store that the last hop has read. Throws
  /// `staging-stale` where that is gone.
  func expectation() throws -> StoreExpectation {
    guard plan.isMixed else { return plan.expectation }
    let input = plan.hops.count - 2
    guard input >= 0 else {
      return try MigrationPlanner.expectation(
        of: plan, rules: rules, input: StoreReader(connection: connection, schema: sourceSchema))
    }
    let path = area.path(hop: input)
    guard try files.status(path) != nil else {
      throw HopdError(
        .stagingStale, "the store of the hop before is gone", hint: "the chain starts over by itself")
    }
    let schema = MigrationManager.schemaName(ofHop: input)
    try connection.attach(path, as: schema)
    try MigrationManager.requireComplete(hop: input, identity: identity, connection: connection)
    let expectation = try MigrationPlanner.expectation(
      of: plan, rules: rules, input: StoreReader(connection: connection, schema: schema))
    try closeStore(ofHop: input)
    return expectation
  }

  /// Removes the store that the last hop has read; the result is in place.
  func removeInput() throws {
    if plan.isMixed, plan.hops.count > 1 { try area.remove(area.path(hop: plan.hops.count - 2)) }
  }

  private func removeStore(ofHop index: Int) throws {
    let path = area.path(hop: index)
    guard try files.status(path) != nil else { return }
    try closeStore(ofHop: index)
    try area.remove(path)
  }

  private func closeStore(ofHop index: Int) throws(HopdError) {
    let schema = MigrationManager.schemaName(ofHop: index)
    do {
      try connection.execute("PRAGMA \(SQLiteIdentifier.quoted(schema)).journal_mode = DELETE")
      try connection.detach(schema)
    } catch {
      throw HopdError(.internalError, "the store of a finished hop cannot be closed", cause: error)
    }
  }

  private func detachAll() throws {
    for index in plan.hops.indices {
      let schema = MigrationManager.schemaName(ofHop: index)
      let isAttached = try connection.integer(
        "SELECT count(*) FROM pragma_database_list WHERE name = ?", [.text(schema)])
      if isAttached == 1 { try connection.detach(schema) }
    }
  }
}

/// Turns the engine's progress of a hop into progress of the journey.
private final class ProgressWatch {
  private let plan: MigrationPlan
  private let hop: Hop
  private let rowsBefore: Int64
  private let observer: (MigrationEvent) -> Void
  private let start = ContinuousClock.now
  private var pace: Pace?

  init(plan: MigrationPlan, hop: Hop, rowsBefore: Int64, observer: @escaping (MigrationEvent) -> Void) {
    self.plan = plan
    self.hop = hop
    self.rowsBefore = rowsBefore
    self.observer = observer
  }

  func note(_ progress: HopProgress) {
    let elapsed = Pace.seconds(ContinuousClock.now - start)
    var pace = self.pace ?? Pace(rows: progress.rows - progress.chunkRows)
    pace.record(rows: progress.rows, seconds: elapsed)
    self.pace = pace
    let done = rowsBefore &+ progress.rows
    observer(
      .progress(
        MigrationProgress(
          hop: hop.index, hops: plan.hops.count, from: plan.store.version.model.name, to: plan.target.model.name,
          subject: progress.subject, rows: done, totalRows: plan.estimate.rows, elapsed: elapsed,
          remaining: pace.remaining(rows: plan.estimate.rows - done))))
  }
}
