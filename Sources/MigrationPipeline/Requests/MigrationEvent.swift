// What the pipeline tells while it works. Libraries do not log: the programs turn these into journal entries, status
// lines, progress bars and watchdog beats.

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
  /// A crash had left something of this store, and it was put in order.
  case recovered(sentence: String)
  /// The plan stands; nothing has been written yet.
  case planned(PlanSummary)
  /// An interrupted run is continued.
  case resumed(hop: Int, hops: Int)
  /// A hop begins.
  case hopStarted(index: Int, hops: Int, from: String, to: String)
  /// A chunk was committed, or a long statement is alive (with no rows).
  case progress(MigrationProgress)
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
  /// A long look at the store goes on; nothing else has happened. It only feeds a watchdog.
  case alive(MigrationStage)
}

/// What is known of a store once it is identified.
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

/// How far a migration is.
package struct MigrationProgress: Sendable, Hashable {
  /// Hop at work, from 0, and how many there are.
  package let hop: Int
  package let hops: Int
  package let from: String
  package let to: String
  /// Entity, join table or index at work.
  package let subject: String
  /// Rows written over all hops so far, and rows to write over all hops (an estimate for join tables).
  package let rows: Int64
  package let totalRows: Int64
  /// Seconds since the first chunk of this run, and seconds to go by the pace so far; nil while there is no pace.
  package let elapsed: Double
  package let remaining: Double?

  /// Share of the rows done, 0…1.
  package var fraction: Double { totalRows > 0 ? min(1, Double(rows) / Double(totalRows)) : 0 }
}
