// A store of a set: the backup of the migration that the restore undoes, and what the restore of the store came to.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import PersistentStore
import StoreReplacement
import SystemPackage

/// A store whose migration the restore of a set undoes.
struct SetStore {
  enum State {
    /// Its migration is to be undone.
    case migrated
    /// It has the version of the backup already.
    case restored
    /// Nothing has its name: its owner removed it, so it stays away.
    case gone
    /// A person must decide.
    case unclear(HopdError)
  }

  let database: FilePath
  /// The backup of the migration, with its label; nil if it is unclear which one is meant.
  var backup: (generation: BackupGeneration, record: BackupRecord)?
  var state: State
  /// The pin of a restored store.
  var pin: RestorePin?

  /// A store about which an error was found.
  init(unclear error: HopdError) {
    database = error.place.store ?? error.place.file ?? ""
    state = .unclear(error)
  }

  /// Finds the newest backup of a store that is meant, and whether it was restored already; nil if none is meant.
  init?(_ backups: BackupSet, _ selection: RestoreSelection) throws {
    guard let backup = try Self.newest(of: backups, selection) else { return nil }
    self.backup = backup
    let location = backups.location
    database = location.database
    state = .migrated
    guard try backups.isStoreThere() else {
      state = .gone
      return
    }
    // A store in use cannot be read now; its restore decides under the lock.
    let digest = try? StoreReader.withUnchangedStore(at: location.store) { reader in
      VersionHash.digest(of: try reader.metadata().versionHashes)
    }
    guard let digest, digest != backup.record.to.digest else { return }
    if digest == backup.record.from.digest {
      state = .restored
      pin = (try? PinStore(location: location, files: LinuxFileSystem()).read())?.matching(
        storeUUID: nil, digest: digest)
    } else {
      let file = backup.generation.database.quotedForShell
      state = .unclear(
        HopdError(
          .otherVersion,
          "the store does not have the version \(backup.record.to.name) any more, to which the migration from "
            + "\(backup.record.from.name) led",
          at: Place(store: database),
          hint: "run `hopctl restore \(database.quotedForShell) --backup \(file)` to restore it anyway"))
    }
  }

  /// The newest backup that is meant. Throws if a newer one may be meant, and its label cannot be read.
  private static func newest(
    of backups: BackupSet, _ selection: RestoreSelection
  ) throws -> (generation: BackupGeneration, record: BackupRecord)? {
    for generation in try backups.generations() {
      if let record = generation.record {
        if selection.takes(record) { return (generation, record) }
      } else if selection.mayTake(generation) {
        throw try backups.unreadableLabels().first { $0.place.file == generation.label }
          ?? HopdError(
            .recordUnreadable, "cannot read the label of a backup",
            at: Place(store: backups.location.database, file: generation.label))
      }
    }
    return nil
  }
}

/// What the restore of a set did with a store.
struct SetResult {
  enum Outcome: String {
    case restored, failed
    /// It has the backup's version already.
    case already = "already-restored"
    /// The store was deleted.
    case gone = "missing"
    /// The same command restores it later, e.g. because a program has it open.
    case waiting
    /// The command was stopped before it.
    case untried
    /// With `--dry-run`.
    case toRestore = "to-restore"
  }

  let store: SetStore
  let outcome: Outcome
  /// The new backup: the store that was replaced.
  var kept: FilePath?
  var pin: RestorePin?
  var warnings: [HopdError] = []
  var error: HopdError?

  var json: JSONObject {
    [
      "store": store.database.string, "result": outcome.rawValue,
      "restored": store.backup?.generation.database.string, "from": store.backup?.record.to.name,
      "to": store.backup?.record.from.name, "backup": kept?.string, "pin": pin.map { PinShape($0) },
      "warnings": warnings.map(\.json), "error": error?.json,
    ]
  }
}
