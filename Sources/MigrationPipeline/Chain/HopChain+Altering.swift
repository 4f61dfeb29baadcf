// A chain that is carried out on a copy of the store: one pass and one staged store, no matter how many hops.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import MigrationEngine
import MigrationPlanning
import PersistentStore
import StoreReplacement

extension HopChain {
  /// Copies and alters the store, or continues with that; throws `staging-stale` where what is staged is of no use.
  func alter(by program: AlterProgram) throws -> Outcome {
    guard let hop = plan.hops.last else {
      throw HopdError(.internalError, "a chain without hops has nothing to alter")
    }
    let hasStore = try files.status(staged) != nil
    _ = try area.create(hop: hop.index, reserving: passes.stagedBytes, resuming: hasStore)
    let manager = MigrationManager(
      connection: connection, hop: hop, source: .schema(sourceSchema), isFinal: true, identity: identity,
      options: options, note: note)
    for inner in plan.hops.dropLast() {
      begin(inner, isResuming: hasStore && inner.index == 0)
      report(HopReport(inner, rowsWritten: inner.rowsToRead, chunks: 0, seconds: 0, isFused: true))
    }
    begin(hop, isResuming: hasStore && plan.hops.count == 1)
    let watch = ProgressWatch(totalRows: passes.estimate.rows, rowsBefore: 0, observer: observer)
    let done = try manager.alter(into: staged, by: program) { progress in
      watch.note(progress)
      return !stop.isStopping
    }
    report(HopReport(hop, rowsWritten: done.rows, chunks: done.chunks, seconds: done.seconds))
    try seal(manager)
    return Outcome(
      staged: staged,
      hops: plan.hops.map { each in
        each.index == hop.index
          ? HopReport(each, rowsWritten: done.rows, chunks: done.chunks, seconds: done.seconds)
          : HopReport(each, rowsWritten: each.rowsToRead, chunks: 0, seconds: 0, isFused: true)
      }, wasResumed: done.wasResumed)
  }

  private func begin(_ hop: Hop, isResuming: Bool) {
    observer(
      .hopStarted(index: hop.index, hops: plan.hops.count, from: hop.source.name, to: hop.destination.name))
    if isResuming { observer(.resumed(hop: hop.index, hops: plan.hops.count)) }
  }

  private func report(_ report: HopReport) { observer(.hopFinished(report)) }
}
