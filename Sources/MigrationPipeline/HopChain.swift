// The hops of a plan, one after the other over one connection: each reads the staged store of the one before, which is
// deleted as soon as the next is complete. Continues where an interrupted run of the same plan stopped.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import MigrationEngine
import MigrationPlanning
import PersistentStore
import SQLite
import StoreReplacement
import SystemPackage

struct HopChain {
  let plan: MigrationPlan
  let area: StagingArea
  let connection: Connection
  /// Schema name of the source store in the connection.
  let sourceSchema: String
  let identity: Checkpoint.Identity
  let options: EngineOptions
  let files: any DurableFileSystem
  let stop: StopSignal
  let observer: (MigrationEvent) -> Void

  /// What came of the chain.
  struct Outcome {
    let staged: FilePath
    let hops: [HopReport]
    let wasResumed: Bool
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
    for index in first..<plan.hops.count {
      let hop = plan.hops[index]
      observer(
        .hopStarted(index: index, hops: plan.hops.count, from: hop.source.name, to: hop.destination.name))
      let manager = MigrationManager(
        connection: connection, hop: hop, sourceSchema: source, isFinal: index == plan.hops.count - 1,
        identity: identity, options: options, external: external)
      var path = area.path(hop: index)
      if try files.status(path) == nil {
        guard !source.isEmpty else { throw HopdError(.stagingStale, "the store of the hop before is gone") }
        path = try area.create(hop: index)
      } else {
        observer(.resumed(hop: index, hops: plan.hops.count))
      }
      let watch = ProgressWatch(plan: plan, hop: hop, rowsBefore: done, observer: observer)
      let staged = try manager.run(into: path) { progress in
        watch.note(progress)
        return !stop.isStopping
      }
      wasResumed = wasResumed || staged.wasResumed
      done &+= staged.rows
      let report = HopReport(
        source: hop.source.name, destination: hop.destination.name, kind: "inferred",
        rowsRead: hop.entities.reduce(0) { $0 &+ $1.rows }, rowsWritten: staged.rows, chunks: staged.chunks,
        seconds: staged.seconds)
      reports.append(report)
      observer(.hopFinished(report))
      if index > 0 { try removeStore(ofHop: index - 1) }
      source = MigrationManager.schemaName(ofHop: index)
      if index == plan.hops.count - 1 { try manager.seal() }
    }
    return Outcome(staged: area.path(hop: plan.hops.count - 1), hops: reports, wasResumed: wasResumed)
  }

  private func removeStore(ofHop index: Int) throws {
    let path = area.path(hop: index)
    guard try files.status(path) != nil else { return }
    let schema = MigrationManager.schemaName(ofHop: index)
    do {
      try connection.execute("PRAGMA \(SQLiteIdentifier.quoted(schema)).journal_mode = DELETE")
      try connection.detach(schema)
    } catch {
      throw HopdError(.internalError, "the store of a finished hop cannot be closed", cause: error)
    }
    try area.remove(path)
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
