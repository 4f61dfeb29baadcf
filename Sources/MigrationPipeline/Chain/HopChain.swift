// The passes of a plan, one after the other over one connection: each reads the staged store of the one before, which
// is deleted as soon as the next is complete. In a pass of several hops only the last one writes; those before it are
// views. Continues where an interrupted run of the same plan stopped. In a chain with mapping models the hops behind
// them are inspected here, where their rows are.

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
import SystemPackage

struct HopChain {
  let plan: MigrationPlan
  let passes: Passes
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

  /// The views that this run has made, by hop, and the known counts of the store's rows.
  let views: ChainViews

  /// The result of the chain.
  struct Outcome {
    let staged: FilePath
    var hops: [HopReport] = []
    var wasResumed = false
    /// The findings of the inspection of the hops behind mapping models.
    var drops: [DroppedColumn] = []
    var warnings: [HopdError] = []
  }

  /// Runs every pass that is not done yet; discards work that cannot be continued, and starts over.
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
      try? area.releaseSpace(for: .nextStore)
      for index in plan.hops.indices { try? area.giveBackReserve(hop: index) }
      throw error
    }
  }

  /// Discards all staged stores and runs every pass.
  func startOver() throws -> Outcome {
    try detachAll()
    try area.removeAll()
    return try givingSpaceBack { try run(from: 0) }
  }

  /// Where the last hop's store is built.
  var staged: FilePath { area.path(hop: plan.hops.count - 1) }

  /// Whether an earlier run has left staged stores.
  func hasStagedStores() throws -> Bool {
    try plan.hops.indices.contains { try files.status(area.path(hop: $0)) != nil }
  }

  /// The pass to begin with: the last one whose staged store exists, if its source exists too.
  private func startingPoint() throws -> Int {
    let existing = try plan.hops.indices.filter { try files.status(area.path(hop: $0)) != nil }
    guard let last = existing.last else { return 0 }
    let ends = passes.groups.indices.map(passes.last)
    guard existing.allSatisfy(ends.contains), let position = ends.firstIndex(of: last) else {
      throw HopdError(
        .stagingStale, "the hops were fused in another way before", hint: "the chain starts over automatically"
      )
    }
    return position
  }

  func run(from first: Int) throws -> Outcome {
    if let program = passes.alterProgram { return try alter(by: program) }
    var outcome = Outcome(staged: staged)
    var source = SourceTables.schema(sourceSchema)
    var done = passes.groups.prefix(first).reduce(Int64(0)) { $0 &+ Passes.rows(of: $1, in: plan) }
    if first > 0 {
      let before = passes.last(of: first - 1)
      if try files.status(area.path(hop: before)) != nil {
        // The pass before is complete: its store is only deleted after the present pass is.
        source = try attachComplete(before)
      } else {
        // The store at `first` must be complete then; if it is not, its source is gone and the chain starts over.
        source = .gone
      }
    }
    let reserved = passes.stagedBytes
    // The store of the second pass exists beside that of the first; every later one is made when an earlier one is
    // gone.
    if first + 1 < passes.groups.count {
      try area.holdSpace(reserved, for: .nextStore)
    } else {
      try area.releaseSpace(for: .nextStore)
    }
    for position in passes.groups.indices.dropFirst(first) {
      let hops = passes.groups[position].hops.clamped(to: 0..<(end ?? plan.hops.count))
      guard let last = hops.last else { break }
      let isLast = last == plan.hops.count - 1
      let hasStore = try files.status(area.path(hop: last)) != nil
      if !hasStore, source.isGone { throw HopdError(.stagingStale, "the store of the previous hop is missing") }
      let input = try makeViews(of: hops.dropLast(), over: source, isResuming: hasStore, into: &outcome)
      try begin(last, reading: input, isResuming: hasStore && hops.count == 1, into: &outcome)
      let manager = try manager(of: last, reading: input)
      done &+= try materialise(
        last, manager: manager, hasStore: hasStore, reserving: reserved, rowsBefore: done, into: &outcome)
      if !isLast, !input.isGone { _ = try checkRows(of: plan.hops[last], from: input, in: space(of: last)) }
      // The last pass of a chain with mapping models is verified against its input.
      if !(isLast && plan.isMixed) { try dropViews(hops) }
      if position > 0 {
        let before = passes.last(of: position - 1)
        if plan.isMixed, isLast {
          if !source.isGone { try closeStore(ofHop: before) }
        } else {
          try removeStore(ofHop: before)
        }
      }
      source = space(of: last)
      if isLast { try seal(manager) }
    }
    return outcome
  }

  /// Gives the last staged store its final form, and releases the disk space that it does not need.
  func seal(_ manager: MigrationEngine.MigrationManager) throws {
    try manager.seal()
    try area.giveBackReserve(hop: plan.hops.count - 1)
  }

  // MARK: One pass

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

  /// Makes the views of the hops of a pass before its last one, and returns the source of the last hop.
  func makeViews(
    of hops: Range<Int>, over source: SourceTables, isResuming: Bool, into outcome: inout Outcome
  ) throws -> SourceTables {
    var source = source
    for index in hops {
      let hop = plan.hops[index]
      let start = ContinuousClock.now
      try begin(index, reading: source, isResuming: isResuming && index == hops.lowerBound, into: &outcome)
      var rows = hop.rowsToRead
      if !source.isGone {
        let space = try view(of: index, over: source)
        if plan.isMixed { rows = try checkRows(of: hop, from: source, in: space) }
        source = space
      }
      tellEnd(
        HopReport(
          hop, rowsWritten: rows, chunks: 0, seconds: (ContinuousClock.now - start).seconds, isFused: true),
        into: &outcome)
    }
    return source
  }

  /// Reports that a hop is complete.
  func tellEnd(_ report: HopReport, into outcome: inout Outcome) {
    outcome.hops.append(report)
    observer(.hopFinished(report))
  }

  /// Writes the store of a pass's last hop; returns its rows.
  private func materialise(
    _ index: Int, manager: MigrationEngine.MigrationManager, hasStore: Bool, reserving bytes: Int64, rowsBefore: Int64,
    into outcome: inout Outcome
  ) throws -> Int64 {
    defer { tellPolicyLines() }
    if index != passes.last(of: 0) { try area.releaseSpace(for: .nextStore) }
    let path = try area.create(hop: index, reserving: bytes, resuming: hasStore)
    let watch = ProgressWatch(
      totalRows: passes.estimate.rows, rowsBefore: rowsBefore, observer: observer)
    let staged = try manager.run(into: path) { progress in
      tellPolicyLines()
      watch.note(progress)
      return control.goesOn(after: progress)
    }
    outcome.wasResumed = outcome.wasResumed || staged.wasResumed
    let report = HopReport(
      plan.hops[index], rowsWritten: staged.rows, chunks: staged.chunks, seconds: staged.seconds,
      tallies: staged.tallies)
    tellEnd(report, into: &outcome)
    try keepQuarantined(staged, hop: index)
    return staged.rows
  }

  func manager(of index: Int, reading source: SourceTables) throws(HopdError)
    -> MigrationEngine.MigrationManager
  {
    try MigrationManager(
      connection: connection, hop: plan.hops[index], source: source, isFinal: index == plan.hops.count - 1,
      identity: identity, options: options, external: external,
      policySteps: PolicyHopRunner.maker(policies, of: plan.store),
      note: note, references: views.references, counts: views.counts, original: sourceSchema)
  }

  /// References are those of the store wherever a hop meets them: files are never moved (docs/formats/replacement.md,
  /// "External data").
  private var external: ExternalDataDirectory {
    get throws(HopdError) { try ExternalDataDirectory(of: plan.store.location) }
  }

  /// The tables of a hop that writes.
  func space(of index: Int) -> SourceTables { .schema(StagedStore.schemaName(ofHop: index)) }

  private func tellPolicyLines() {
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
        at: Place(file: file.staged), cause: error, hint: "the store is untouched; free space and try again")
    }
  }

  // MARK: Views and stores

  /// The views of an inner hop, made once in a run: they are temporary, and a later run makes them again.
  func view(of index: Int, over source: SourceTables) throws -> SourceTables {
    if let made = views.spaces[index] { return made }
    let space = try HopViews.create(
      plan.hops[index], over: source, connection: connection, options: options, references: views.references,
      counts: views.counts)
    views.spaces[index] = space
    return space
  }

  /// Removes the views of hops, the last one first.
  func dropViews(_ hops: Range<Int>) throws {
    for index in hops.reversed() where views.spaces[index] != nil {
      try HopViews.drop(hop: index, connection: connection)
      views.spaces[index] = nil
    }
  }

  /// Attaches the store of a finished pass; throws `staging-stale` unless it is complete and of this run.
  func attachComplete(_ index: Int) throws -> SourceTables {
    try connection.attach(area.path(hop: index), as: StagedStore.schemaName(ofHop: index))
    try MigrationManager.requireComplete(hop: index, identity: identity, connection: connection)
    return space(of: index)
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
    try dropViews(plan.hops.indices)
    // A schema of the same name may be another store from here on.
    views.counts.forget()
    views.references.forget()
    for index in plan.hops.indices {
      let schema = StagedStore.schemaName(ofHop: index)
      let isAttached = try connection.integer(
        "SELECT count(*) FROM pragma_database_list WHERE name = ?", [.text(schema)])
      if isAttached == 1 { try connection.detach(schema) }
    }
  }
}

/// The views of a run by hop, and the known counts of their rows; one value for all copies of a chain.
final class ChainViews {
  fileprivate(set) var spaces: [Int: SourceTables] = [:]
  let counts: RowCountCache
  let references: ReferenceMemory

  /// No views yet; `counts` has what the plan has counted in the store, whose tables do not change until the run ends.
  init(counts: RowCountCache) {
    self.counts = counts
    references = ReferenceMemory(counts: counts)
  }
}

extension HopReport {
  /// The report of a hop as the plan has it.
  init(
    _ hop: Hop, rowsWritten: Int64, chunks: Int64, seconds: Double, tallies: HopTallies = HopTallies(),
    isFused: Bool = false
  ) {
    self.init(
      source: hop.source.name, destination: hop.destination.name, kind: hop.kind,
      rowsRead: hop.entities.reduce(0) { $0 &+ $1.rows }, rowsWritten: rowsWritten, chunks: chunks, seconds: seconds,
      mappings: hop.mapped?.mappings.map(\.name) ?? [], tallies: tallies, isFused: isFused)
  }
}
