// The parts of a replacement in one state directory.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import MigrationEngine
import MigrationPlanning
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage

/// The parts of StoreReplacement, set up for one state directory.
struct ReplacementEnvironment {
  let intents: IntentStore
  let recovery: RecoveryRunner
  let lockDirectory: FilePath

  init(
    files: any DurableFileSystem, stateDirectory: FilePath, keepAlive: @escaping () -> Bool = { true },
    index: LeftoverIndex? = nil
  ) throws {
    lockDirectory = stateDirectory.appending("locks")
    try files.ensureDirectory(lockDirectory)
    intents = try IntentStore(stateDirectory: stateDirectory, files: files)
    recovery = RecoveryRunner(
      files: files, intents: intents, lockDirectory: lockDirectory, identify: ReplacementEnvironment.identify,
      keepAlive: keepAlive, index: index)
  }

  /// A store's version as the replacement compares it: the digest of its version hashes.
  static func identify(_ connection: Connection) throws -> String {
    VersionHash.digest(of: try StoreReader(connection: connection).metadata().versionHashes)
  }
}
