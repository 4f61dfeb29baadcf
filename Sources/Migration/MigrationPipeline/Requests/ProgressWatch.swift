// Turns the engine's progress of a hop into progress of the migration: adds the rows of the hops done so far.

import MigrationEngine

/// Watches one hop.
struct ProgressWatch {
  /// Rows to write over all hops, and those that the hops before have written.
  let totalRows: Int64
  let rowsBefore: Int64
  let observer: (MigrationEvent) -> Void

  /// Reports the progress of a hop.
  func note(_ progress: HopProgress) {
    observer(
      .progress(
        ChunkProgress(
          hop: progress.hop, subject: progress.subject, rows: rowsBefore &+ progress.rows,
          chunkRows: progress.chunkRows, totalRows: totalRows, changed: progress.changed, stage: progress.stage,
          share: progress.share)))
  }
}
