// A chain that is carried out on a copy of the store: one pass and one staged store, no matter how many hops.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import MigrationEngine
import MigrationPlanning
import PersistentStore
import StoreReplacement

extension HopChain {
  /// Copies and alters the store, or continues with that; throws `staging-stale` where the staged store cannot be used.
  func alter(by program: AlterProgram) throws -> Outcome {
    guard let hop = plan.hops.last else {
      throw HopdError(.internalError, "a chain without hops has nothing to alter")
    }
    let hasStore = try files.status(staged) != nil
    _ = try area.create(hop: hop.index, reserving: passes.stagedBytes, resuming: hasStore)
    var outcome = Outcome(staged: staged)
    let input = try source(for: program, isResuming: hasStore, into: &outcome)
    try begin(hop.index, reading: input, isResuming: hasStore && plan.hops.count == 1, into: &outcome)
    let manager = try manager(of: hop.index, reading: input)
    let watch = ProgressWatch(totalRows: passes.estimate.rows, rowsBefore: 0, observer: observer)
    let done = try manager.alter(into: staged, by: program) { progress in
      watch.note(progress)
      return control.goesOn(after: progress)
    }
    tellEnd(HopReport(hop, rowsWritten: done.rows, chunks: done.chunks, seconds: done.seconds), into: &outcome)
    try dropViews(plan.hops.indices)
    try seal(manager)
    outcome.wasResumed = done.wasResumed
    return outcome
  }

  /// The source of the last hop: views of the hops before it, or the store where nothing is read but the copy.
  private func source(
    for program: AlterProgram, isResuming: Bool, into outcome: inout Outcome
  ) throws -> SourceTables {
    let (store, inner) = (SourceTables.schema(sourceSchema), plan.hops.indices.dropLast())
    if program.needsViews { return try makeViews(of: inner, over: store, isResuming: isResuming, into: &outcome) }
    for index in inner {
      try begin(index, reading: store, isResuming: isResuming && index == 0, into: &outcome)
      let hop = plan.hops[index]
      tellEnd(HopReport(hop, rowsWritten: hop.rowsToRead, chunks: 0, seconds: 0, isFused: true), into: &outcome)
    }
    return store
  }
}
