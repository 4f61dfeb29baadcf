// The events that the pipeline emits while it works. Libraries do not log: the programs turn these into journal
// entries, status lines, progress bars and watchdog beats.

import Diagnostics
import MigrationEngine
import MigrationPlanning
import StoreVerification
import SystemPackage

/// A stage of the migration path, for failures and status.
package enum MigrationStage: String, Sendable, Hashable, CaseIterable, Codable {
  case identify, lock, recover, plan, migrate, verify, replace, report
}

/// Something that happened to one store.
package enum MigrationEvent: Sendable {
  /// The store's version is known.
  case identified(StoreFacts)
  /// Recovery cleaned up the store after a crash.
  case recovered(sentence: String)
  /// The plan is complete; nothing has been written yet.
  case planned(PlanSummary)
  /// An interrupted run is continued.
  case resumed(hop: Int, hops: Int)
  /// A hop begins.
  case hopStarted(index: Int, hops: Int, from: String, to: String)
  /// A chunk was committed, or a long statement is still running (with no rows).
  case progress(ChunkProgress)
  /// The progress of the whole run: after the other events, and while long statements run.
  case advanced(MigrationProgress)
  /// A line for a debug journal, or a line that a policy wrote.
  case note(HopNote)
  /// A hop is complete.
  case hopFinished(HopReport)
  /// The result is being checked.
  case verifying
  /// Every check passed.
  case verified(checks: Int)
  /// The swap begins.
  case replacing
  /// A long inspection of the store continues. Only a watchdog uses it.
  case alive(MigrationStage)
}

/// The facts about an identified store.
package struct StoreFacts: Sendable, Hashable {
  /// Z_UUID.
  package let uuid: String
  package let model: String
  package let version: String
  package let frameworkVersion: Int64

  /// Notes what is known.
  package init(uuid: String, model: String, version: String, frameworkVersion: Int64) {
    self.uuid = uuid
    self.model = model
    self.version = version
    self.frameworkVersion = frameworkVersion
  }
}

/// A plan in short.
package struct PlanSummary: Sendable {
  /// Name of the job: that of the interrupted run, where one is continued.
  package let job: String
  package let from: String
  package let to: String
  package let hops: Int
  /// Rows over all hops.
  package let rows: Int64
  /// Bytes of the store.
  package let bytes: Int64
  package let warnings: [HopdError]
  package let dropped: [DroppedColumn]
}

/// The progress of a chunk.
package struct ChunkProgress: Sendable, Hashable {
  /// Hop at work, from 0.
  package let hop: Int
  /// Entity, relationship or index at work, by the model's names.
  package let subject: String
  /// Rows written over all hops so far, those of the last chunk, and rows to write over all hops (an estimate).
  package let rows: Int64
  package let chunkRows: Int64
  package let totalRows: Int64
  /// Rows that this run has inserted or changed in the hop beyond `rows`.
  package let changed: Int64
  /// The stage of the hop, and the share of it that is done.
  let stage: HopStage
  let share: Double
}

/// The progress of a migration over all its work: rows, indexes, verification, replacement.
package struct MigrationProgress: Sendable, Hashable {
  /// The current part of the work.
  package let part: WorkPart
  /// Current hop, from 0, and how many there are.
  package let hop: Int
  package let hops: Int
  package let from: String
  package let to: String
  /// Current entity, relationship or index, by the model's names; empty outside of the hops.
  package let subject: String
  /// Rows written over all hops so far, and rows to write over all hops (an estimate).
  package let rows: Int64
  package let totalRows: Int64
  /// Rows that this run writes or changes a second; nil while it has written none.
  package let rowsPerSecond: Double?
  /// Seconds that the run has worked, and seconds to go; nil where unknown.
  package let elapsed: Double
  package let remaining: Double?
  /// Share of the work, 0 to 1: it never falls, and is 1 only at the end.
  package let fraction: Double

  /// Creates a progress value; without a fraction it is that of the rows.
  package init(
    part: WorkPart = .copying, hop: Int, hops: Int, from: String, to: String, subject: String, rows: Int64,
    totalRows: Int64, rowsPerSecond: Double? = nil, elapsed: Double, fraction: Double? = nil, remaining: Double?
  ) {
    self.part = part
    (self.hop, self.hops) = (hop, hops)
    (self.from, self.to) = (from, to)
    self.subject = subject
    (self.rows, self.totalRows) = (rows, totalRows)
    self.rowsPerSecond = rowsPerSecond
    (self.elapsed, self.remaining) = (elapsed, remaining)
    self.fraction = fraction ?? (totalRows > 0 ? min(1, Double(rows) / Double(totalRows)) : 0)
  }
}
