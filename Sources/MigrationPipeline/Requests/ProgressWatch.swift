// Turns the engine's progress of a hop into progress of the migration path: rows of the passes done so far, pace, time
// to go.

import ManagedObjectModel
import MigrationEngine
import MigrationPlanning

/// Watches one pass.
final class ProgressWatch {
  private let plan: MigrationPlan
  private let totalRows: Int64
  private let rowsBefore: Int64
  private let observer: (MigrationEvent) -> Void
  private let start = ContinuousClock.now
  private var pace: Pace?

  /// `rowsBefore` were written by the passes before, of `totalRows` in all.
  init(plan: MigrationPlan, totalRows: Int64, rowsBefore: Int64, observer: @escaping (MigrationEvent) -> Void) {
    self.plan = plan
    self.totalRows = totalRows
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
          hop: progress.hop, hops: plan.hops.count, from: plan.store.version.model.name, to: plan.target.model.name,
          subject: progress.subject, rows: done, totalRows: totalRows, elapsed: elapsed,
          remaining: pace.remaining(rows: totalRows - done))))
  }
}
