// The hops of a plan, one after the other over one connection. A hop alters the staged store of the hop before where it
// stands, or reads it and makes the next one; then the one before is deleted. Continues where an interrupted run of the
// same plan stopped. In a chain with mapping models the hops behind them are inspected here, where their rows are.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPlanning
import MigrationPolicy
import PersistentStore
import PolicyMigration
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage

struct HopChain {
  let plan: MigrationPlan
  let execution: ChainExecution
  let area: StagingArea
  let connection: Connection
  /// Schema name of the source store in the connection.
  let sourceSchema: String
  let identity: Checkpoint.Identity
  let options: EngineOptions
  let rules: PlanningRules
  let policies: (any PolicyProvider)?
  let policyLines: PolicyLines
  /// Whether the caller reads statements and decisions.
  let takesNotes: Bool
  let files: any DurableFileSystem
  let control: RunControl
  let observer: (MigrationEvent) -> Void
  /// Run no hop from this one on; nil runs all.
  var end: Int? = nil
  /// The file of the job that the first hop reads in place of the store; nil if it reads the store.
  var base: FilePath? = nil

  /// What is known of the rows of the store and of staged stores, by the names of their schemas.
  let counts: RowCountCache
  let references: ReferenceCache

  /// The result of the chain.
  struct Outcome {
    let staged: FilePath
    var hops: [HopReport] = []
    var wasResumed = false
    /// The findings of the inspection of the hops behind mapping models.
    var drops: [DroppedColumn] = []
    var warnings: [HopdError] = []
  }

  /// Runs every hop that is not done yet; discards work that cannot be continued, and starts over.
  func run() throws -> Outcome {
    do {
      return try givingSpaceBack { try run(from: try startingPoint()) }
    } catch let error as HopdError where error.code == .stagingStale {
      return try startOver()
    }
  }

  /// Releases reserved disk space when a run stops for now: it keeps only what it has written.
  private func givingSpaceBack(_ body: () throws -> Outcome) throws -> Outcome {
    do {
      return try body()
    } catch let error as HopdError where error.code == .interrupted {
      try? area.releaseDiskSpace(for: .nextStore)
      for index in plan.hops.indices { try? area.giveBackReserve(hop: index) }
      throw error
    }
  }

  /// Discards all staged stores and runs every hop.
  func startOver() throws -> Outcome {
    try detachAll()
    try area.removeAll(except: base)
    return try givingSpaceBack { try run(from: 0) }
  }

  /// Where the last hop's store is built.
  var staged: FilePath { area.path(hop: plan.hops.count - 1) }

  /// Whether an earlier run has left staged stores.
  func hasStagedStores() throws -> Bool {
    try plan.hops.indices.contains { try files.status(area.path(hop: $0)) != nil }
  }

  /// The hop to begin with: the last one whose staged store exists.
  private func startingPoint() throws -> Int {
    try plan.hops.indices.last { try files.status(area.path(hop: $0)) != nil } ?? 0
  }

  func run(from first: Int) throws -> Outcome {
    var outcome = Outcome(staged: staged)
    var source = SourceTables.schema(sourceSchema)
    if first > 0 {
      // The store of the hop before is complete: it is only deleted after the present one is. If the present one was
      // not begun in it or is not complete either, its source is gone and the chain starts over.
      source = try files.status(area.path(hop: first - 1)) != nil ? try attachComplete(first - 1) : .gone
    }
    // The second staged store exists beside the first; every later one is made when an earlier one is gone.
    if execution.needsTwoStores, first + 1 < plan.hops.count {
      try area.reserveDiskSpace(execution.stagedBytes, for: .nextStore)
    } else {
      try area.releaseDiskSpace(for: .nextStore)
    }
    var done = plan.hops.prefix(first).reduce(Int64(0)) { $0 &+ $1.rowsToRead }
    for index in first..<min(end ?? plan.hops.count, plan.hops.count) {
      let isLast = index == plan.hops.count - 1
      let stays = execution.staysInStore(index)
      let hasStore = try files.status(area.path(hop: index)) != nil
      if !hasStore, source.isGone { throw HopdError(.stagingStale, "the store of the previous hop is missing") }
      try begin(index, reading: source, isResuming: hasStore, into: &outcome)
      let executor = try executor(of: index, reading: stays ? tables(of: index) : source)
      done &+= try make(index, executor: executor, hasStore: hasStore, rowsBefore: done, into: &outcome)
      if !isLast, !source.isGone { _ = try checkRows(of: plan.hops[index], from: source, in: tables(of: index)) }
      if index > 0, !stays {
        // The last hop of a chain with mapping models is verified against its input.
        if plan.isMixed, isLast {
          if !source.isGone { try closeStore(ofHop: index - 1) }
        } else {
          try removeStore(ofHop: index - 1)
        }
      }
      source = tables(of: index)
      if isLast { try seal(executor) }
    }
    return outcome
  }

  /// Gives the last staged store its final form, and releases the disk space that it does not need.
  func seal(_ executor: HopExecutor) throws {
    try executor.seal()
    try area.giveBackReserve(hop: plan.hops.count - 1)
  }

  // MARK: One hop

  /// Inspects a hop where a segment begins, and reports its start.
  func begin(
    _ index: Int, reading source: SourceTables, isResuming: Bool, into outcome: inout Outcome
  ) throws {
    let hop = plan.hops[index]
    if !source.isGone, MigrationPlanner.beginsSegment(index, of: plan) {
      let found = try SegmentInspection(
        plan: plan, from: index, rules: rules, input: reader(of: source))
      outcome.drops += found.drops
      outcome.warnings += found.warnings
    }
    observer(.hopStarted(index: index, hops: plan.hops.count, from: hop.source.name, to: hop.destination.name))
    if isResuming { observer(.resumed(hop: index, hops: plan.hops.count)) }
  }

  /// Creates the staged store of a hop; returns its rows.
  private func make(
    _ index: Int, executor: HopExecutor, hasStore: Bool, rowsBefore: Int64,
    into outcome: inout Outcome
  ) throws -> Int64 {
    defer { reportPolicyLines() }
    let stays = execution.staysInStore(index)
    if index > 0, !stays { try area.releaseDiskSpace(for: .nextStore) }
    if stays, !hasStore { try takeOver(index) }
    let path = try area.create(hop: index, reserving: execution.stagedBytes, resuming: hasStore || stays)
    let watch = ProgressWatch(totalRows: execution.estimate.rows, rowsBefore: rowsBefore, observer: observer)
    let progress = { (progress: HopProgress) in
      reportPolicyLines()
      watch.note(progress)
      return control.continues(after: progress)
    }
    let staged =
      switch execution.hops[index] {
      case .write: try executor.run(into: path, progress)
      case .alter(let program): try executor.alter(into: path, by: program, copies: !stays, progress)
      }
    outcome.wasResumed = outcome.wasResumed || staged.wasResumed
    let report = HopReport(
      plan.hops[index], rowsWritten: staged.rows, chunks: staged.chunks, seconds: staged.seconds,
      tallies: staged.tallies)
    outcome.hops.append(report)
    observer(.hopFinished(report))
    try keepQuarantined(staged, hop: index)
    return staged.rows
  }

  /// Gives the staged store of the hop before the name of this one's. A run that stops before the hop has begun finds
  /// the complete store of the hop before under it.
  private func takeOver(_ index: Int) throws {
    try closeStore(ofHop: index - 1)
    try area.takeOver(hop: index - 1, as: index)
  }

  func executor(of index: Int, reading source: SourceTables) throws(HopdError) -> HopExecutor {
    try HopExecutor(
      connection: connection, hop: plan.hops[index], source: source, isFinal: index == plan.hops.count - 1,
      identity: identity, options: options, external: external,
      policySteps: PolicyHopRunner.maker(policies, of: plan.store),
      note: note, references: references, counts: counts, original: sourceSchema)
  }

  /// References are those of the store wherever a hop meets them: files are never moved (docs/formats/replacement.md,
  /// "External data").
  private var external: ExternalDataDirectory {
    get throws(HopdError) { try ExternalDataDirectory(of: plan.store.location) }
  }

  /// The tables of a hop that writes.
  func tables(of index: Int) -> SourceTables { .schema(StagedStore.schemaName(ofHop: index)) }

  private func reportPolicyLines() {
    for line in policyLines.take() { observer(.note(line)) }
  }

  /// The receiver of the hops' notes; statements and decisions only where the caller reads them.
  var note: HopNote.Taker {
    let (observer, takesNotes) = (observer, takesNotes)
    return { note in
      if case .policyOutput = note { observer(.note(note)) } else if takesNotes { observer(.note(note)) }
    }
  }

  /// Objects that a rule set aside are removed with the hop's store, so they are copied to the side file at once.
  private func keepQuarantined(_ staged: StagedStore, hop: Int) throws {
    guard staged.tallies.invalidRows.contains(where: { $0.rule == .quarantine }) else { return }
    let file = QuarantineFile(area: area, files: files)
    try file.prepare()
    do {
      _ = try QuarantineTables(connection: connection, schema: StagedStore.schemaName(ofHop: hop))
        .export(hop: hop, to: file.staged)
    } catch let error as SQLiteError {
      throw HopdError(
        error.isFull ? .noSpace : .inputOutput, "the objects that were set aside cannot be kept",
        at: Place(file: file.staged), cause: error, hint: "free space and retry; the store is unchanged")
    }
  }

  // MARK: Stores

  /// Attaches the store of a finished hop; throws `staging-stale` unless it is complete and of this run.
  func attachComplete(_ index: Int) throws -> SourceTables {
    try connection.attach(area.path(hop: index), as: StagedStore.schemaName(ofHop: index))
    try HopExecutor.requireComplete(hop: index, identity: identity, connection: connection)
    return tables(of: index)
  }

  private func removeStore(ofHop index: Int) throws {
    let path = area.path(hop: index)
    guard try files.status(path) != nil else { return }
    try closeStore(ofHop: index)
    try area.remove(path)
  }

  func closeStore(ofHop index: Int) throws(HopdError) {
    let schema = StagedStore.schemaName(ofHop: index)
    do {
      try connection.execute("PRAGMA \(SQLiteIdentifier.quoted(schema)).journal_mode = DELETE")
      try connection.detach(schema)
    } catch {
      throw HopdError(.internalError, "the store of a finished hop cannot be closed", cause: error)
    }
  }

  /// Detaches all staged stores.
  func detachAll() throws {
    // A schema of the same name may be another store from here on.
    counts.forget()
    references.forget()
    for index in plan.hops.indices {
      let schema = StagedStore.schemaName(ofHop: index)
      let isAttached = try connection.integer(
        "SELECT count(*) FROM pragma_database_list WHERE name = ?", [.text(schema)])
      if isAttached == 1 { try connection.detach(schema) }
    }
  }
}

extension HopReport {
  /// The report of a hop as the plan has it.
  init(
    _ hop: Hop, rowsWritten: Int64, chunks: Int64, seconds: Double, tallies: HopTallies = HopTallies()
  ) {
    self.init(
      source: hop.source.name, destination: hop.destination.name, kind: hop.kind,
      rowsRead: hop.entities.reduce(0) { $0 &+ $1.rows }, rowsWritten: rowsWritten, chunks: chunks, seconds: seconds,
      mappings: hop.mapped?.mappings.map(\.name) ?? [], tallies: tallies)
  }
}

// The counting of rows during a chain: in a plan with mapping models the rows of a later hop cannot be known
// beforehand, so each hop is compared with its input, and the last store is verified against the input of its hop,
// which stays until the result is in place.

extension HopChain {
  /// Later hops and the verifier only see a hop's result, so a loss in the middle is checked at once. Returns the rows
  /// of the hop.
  func checkRows(of hop: Hop, from source: SourceTables, in tables: SourceTables) throws -> Int64 {
    guard plan.isMixed else { return hop.rowsToRead }
    let expected = try MigrationPlanner.expectedRows(
      of: hop, rules: rules, input: reader(of: source))
    try keepWhereAsMany(expected, of: hop.destinationSchema, in: tables)
    let found = try rows(of: reader(of: tables), schema: hop.destinationSchema)
    let wrong = expected.filter { found[$0.key, default: 0] != $0.value }.sorted { $0.key < $1.key }
    guard wrong.isEmpty else {
      throw HopdError(
        .verificationFailed, "the store of a hop does not have the rows that it must have",
        at: Place(store: plan.store.location.database, hop: hop.title),
        hint: "report this bug with the output of `hopctl plan`; the store is unchanged",
        reasons: wrong.map {
          HopdError(
            .verificationFailed, "\($0.key) has \(found[$0.key, default: 0]) rows instead of \($0.value)",
            at: Place(entity: $0.key))
        })
    }
    return found.values.reduce(0) { $0.addingReportingOverflow($1).partialValue }
  }

  /// If a table has as many rows as its one entity must have, all of them are of that entity: the hop writes no other
  /// number, and readers accept no other. Counting rows counts entries on pages; counting by entity would read the
  /// rows.
  private func keepWhereAsMany(_ expected: [String: Int64], of schema: StoreSchema, in tables: SourceTables) throws {
    for table in schema.tables {
      let concrete = table.entities.filter { schema.model.entity(named: $0)?.isAbstract == false }
      guard concrete.count == 1, let entity = concrete.first, let count = expected[entity],
        let number = schema.number(of: entity),
        try connection.integer("SELECT count(*) FROM \(tables.qualified(table.name))") == count
      else { continue }
      counts.keep(rows: count > 0 ? [number: count] : [:], of: tables.qualified(table.name))
    }
  }

  /// Reads a version of the store, whose rows do not change, so each count is made once.
  func reader(of tables: SourceTables) -> StoreReader {
    StoreReader(connection: connection, tables: tables, rowCountCache: counts)
  }

  /// Rows per entity.
  func rows(of reader: StoreReader, schema: StoreSchema) throws -> [String: Int64] {
    var rows: [String: Int64] = [:]
    let census = StoreCensus(schema: schema, reader: reader)
    for table in schema.tables {
      let counts = try census.rowCounts(of: table)
      for entity in table.entities { rows[entity] = schema.number(of: entity).flatMap { counts[$0] } ?? 0 }
    }
    return rows
  }

  /// The expected content of the last store: in a chain with mapping models counted in the input of the last hop.
  /// Throws `staging-stale` if that no longer exists.
  func expectation() throws -> StoreExpectation {
    guard plan.isMixed else { return plan.expectation }
    var input = SourceTables.schema(sourceSchema)
    if let kept = inputStore {
      guard try files.status(area.path(hop: kept)) != nil else {
        throw HopdError(
          .stagingStale, "the store of the previous hop is missing", hint: "retry; the migration starts over")
      }
      input = try attachComplete(kept)
    }
    let expectation = try MigrationPlanner.expectation(of: plan, rules: rules, input: reader(of: input))
    if let kept = inputStore { try closeStore(ofHop: kept) }
    return expectation
  }

  /// Removes the store that the last hop read; the result is in place.
  func removeInput() throws {
    guard plan.isMixed, let kept = inputStore else { return }
    try area.remove(area.path(hop: kept))
    try files.syncDirectory(area.location.directory)
  }

  /// The hop whose staged store the last one reads; nil where that is the source itself.
  private var inputStore: Int? { plan.hops.count > 1 ? plan.hops.count - 2 : nil }
}
