// The restore of a store, as `hopctl restore` makes it for one store and for a set.

import Diagnostics
import DurableFiles
import Glibc
import ManagedObjectModel
import MigrationPipeline
import PersistentStore
import StoreReplacement
import SystemPackage

/// Restores stores, one at a time.
struct StoreRestorer {
  /// The directory of intent records and locks.
  let stateDirectory: FilePath
  /// Where backups are kept. Its numbers do not matter: a restore removes none.
  let rule: BackupRule
  let mode: ReplacementMode?
  let options: RestoreOptions
  private let files = LinuxFileSystem()

  init(stateDirectory: FilePath, rule: BackupRule, mode: ReplacementMode?, options: RestoreOptions) {
    self.stateDirectory = stateDirectory
    self.rule = rule
    self.mode = mode
    self.options = options
  }

  /// Recovers what a crash left: its intent record refers to the store that is about to be replaced, and the recovery
  /// may remove its backup. Returns the outcome if an interrupted restore turned out to be complete.
  func recover(_ location: CanonicalStoreLocation) throws -> RecoveryOutcome? {
    let outcome = try MigrationPipeline().recover(location, stateDirectory: stateDirectory, backup: rule)
    guard let outcome, case .completed = outcome.decision, outcome.intent?.planFingerprint == Restore.planFingerprint
    else { return nil }
    try IntentStore(stateDirectory: stateDirectory, files: files).remove(location)
    return outcome
  }

  /// Puts a backup in the place of a recovered store. A store of another version than `expected` is refused.
  func restore(
    _ database: FilePath, to location: CanonicalStoreLocation, expected: StoreVersionMark? = nil
  ) throws -> RestoredStore {
    let lockDirectory = stateDirectory.appending("locks")
    try files.ensureDirectory(lockDirectory)
    let swap = StoreSwap(
      files: files, intents: try IntentStore(stateDirectory: stateDirectory, files: files),
      identify: { connection in
        VersionHash.digest(of: try StoreReader(connection: connection).metadata().versionHashes)
      }, mode: mode)
    var options = options
    options.expected = expected
    return try Restore(swap: swap, lockDirectory: lockDirectory).restore(
      database, to: location, job: RequestOptions.jobName(), backup: rule, now: Int64(time(nil)), options: options)
  }
}
