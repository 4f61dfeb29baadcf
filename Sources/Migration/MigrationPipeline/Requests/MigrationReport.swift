// The result of a migration, and what `hopctl migrate --json` prints.

import Diagnostics
import MigrationEngine
import MigrationPlanning
import StoreReplacement
import StoreVerification
import SystemPackage

/// How a run ended without an error.
package enum MigrationResult: String, Sendable, Hashable, Codable {
  /// The store is at the target now.
  case migrated
  /// It was at the target before.
  case current
  /// It was at the target before, because a run that crashed had finished the swap.
  case completedBeforeCrash = "completed-before-crash"
  /// It was at the target, and has the objects now that it lacked.
  case repaired
}

/// One hop of a finished run.
package struct HopReport: Sendable, Hashable {
  package let source: String
  package let destination: String
  /// "inferred", "mapping" or "stage".
  package let kind: String
  package let rowsRead: Int64
  package let rowsWritten: Int64
  package let chunks: Int64
  package let seconds: Double
  /// Names of the mapping models, in the order of execution.
  package var mappings: [String] = []
  /// The outcomes of rows that make no object of their own.
  package var tallies = HopTallies()

  /// "Model 2 → Model 3", or "willMigrate of Model 2 → Model 3".
  package var title: String { (kind == "stage" ? mappings.first : nil) ?? "\(source) → \(destination)" }
}

/// A finished run.
package struct MigrationReport: Sendable {
  /// Name of the job: that of the interrupted run, where one was continued.
  package var job: String
  /// The migrated store, or the copy with `--output`.
  package var store: FilePath
  package var storeUUID: String
  package var result: MigrationResult
  package var from: String
  package var to: String
  package var hops: [HopReport]
  /// The objects that the store lacked and that were made.
  package var repaired: [RepairedObject] = []
  /// Rows of the result by entity.
  package var rows: [String: Int64]
  package var dropped: [DroppedColumn]
  /// Tables of persistent history whose rows were left behind.
  package var clearedHistory: [ClearedTable]
  package var warnings: [HopdError]
  /// Where the old store is kept; nil where none is.
  package var backup: FilePath?
  /// Older backups that the rule removed.
  package var prunedBackups: [BackupRemoval] = []
  /// The pin of a restore that held the store back and was removed with this migration; nil where there was none.
  package var releasedPin: RestorePin?
  /// Where objects are kept that broke a rule and were taken out; nil where none was.
  package var quarantine: FilePath?
  package var seconds: Double
  /// Peak resident set of the process in bytes.
  package var peakMemory: Int64
  package var checks: [VerificationCheck]
  /// Whether this run continued an interrupted one.
  package var wasResumed: Bool
  /// The file that was put in place, at that moment; nil where none was.
  package var fingerprint: SourceFingerprint? = nil
  /// Seconds by stage; stages that the run did not reach are absent.
  package var stages: [MigrationStage: Double] = [:]
}

/// A run that failed: the error, and its stage. The store is the complete old one.
package struct MigrationFailure: Error, Sendable {
  package let stage: MigrationStage
  package let error: HopdError
  /// The version the store is at and the wanted one, as far as known.
  package let from: String?
  package let to: String?
  /// Z_UUID of the store, as far as known.
  package let storeUUID: String?

  /// Describes a failure.
  package init(
    stage: MigrationStage, error: HopdError, from: String? = nil, to: String? = nil, storeUUID: String? = nil
  ) {
    (self.stage, self.error) = (stage, error)
    (self.from, self.to) = (from, to)
    self.storeUUID = storeUUID
  }
}

extension MigrationFailure: CustomStringConvertible {
  package var description: String { error.description }
}
