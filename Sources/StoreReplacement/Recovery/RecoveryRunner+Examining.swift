// An inspection of a store as recovery would make it, without changes: neither to hopd's files nor by the repairs that
// SQLite itself makes when it opens the store.

import Diagnostics
import DurableFiles
import PersistentStore
import SQLite
import SystemPackage

extension RecoveryRunner {
  /// Returns what `recover` would find and decide, and changes nothing. Throws `.storeBusy` where only a writer could
  /// find out.
  package func examine(
    _ location: CanonicalStoreLocation, planFingerprint: String? = nil, rule: BackupRule = BackupRule()
  ) throws -> RecoveryOutcome {
    try recover(location, planFingerprint: planFingerprint, rule: rule, acts: false)
  }

  func lookUnchanged(
    _ location: CanonicalStoreLocation, _ intent: ReplacementIntent?, _ findings: inout RecoveryFindings
  ) throws {
    guard let status = try files.status(location.database) else { return }
    guard status.kind == .regular, status.size > 0 else {
      findings.store = .damaged
      return
    }
    do {
      let found = try StoreReader.withUnchangedStore(at: location.store) { reader in
        let connection = reader.connection
        connection.setProgressHandler(every: 200_000, keepAlive)
        defer { connection.setProgressHandler(nil) }
        let store = try content(of: connection, status.identity, intent)
        return (store, try StoreReader.keepsWriteAheadLog(location.store) ? JournalMode.wal : .delete)
      }
      findings.store = found.0
      findings.lostWriteAheadLogMode = intent?.journalMode == .wal && found.1 == .delete
      findings.lacksJournalMode = intent?.wantedJournalMode.map { $0 != found.1 } ?? false
    } catch let error as HopdError
      where [HopdError.Code.storeDamaged, .notAStore].contains(error.code) || error.code.exit == .dataError
    {
      findings.store = .damaged
    } catch let error as HopdError where error.code == .notFound {
      // A file that exists and cannot be opened for now, as with too many open files, is not missing.
      guard try files.status(location.database) == nil else { throw error }
      findings.store = .missing
    }
  }
}
