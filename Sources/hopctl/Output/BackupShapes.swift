// What `--json` prints of backups and pins. Keys are a contract: they are added to, never renamed.

import Diagnostics
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import StoreReplacement
import SystemPackage

/// The pin of a restored store.
struct PinShape: Encodable {
  /// The version it is pinned to.
  let restored: String
  /// The versions that hopd does not migrate it to; empty for all.
  let replaced: [String]
  let restoredAt: String
  /// Does it hold the store back from the target that was asked about? Left out where none was.
  var holdsBack: Bool?

  init(_ pin: RestorePin, holdsBack: Bool? = nil) {
    restored = pin.restored.name
    replaced = pin.replaced.map(\.name)
    restoredAt = pin.time
    self.holdsBack = holdsBack
  }

  /// The pin of a store that was inspected, also told in a line; nil where it has none. A pin that cannot be read is a
  /// warning.
  static func of(_ location: CanonicalStoreLocation, _ found: StoreAssessment, _ output: OutputOptions) throws
    -> PinShape?
  {
    let pipeline = MigrationPipeline()
    do {
      guard let pin = try pipeline.pin(location, found) else { return nil }
      let holdsBack = try pipeline.heldBack(location, found) != nil
      try output.line("pinned: \(pin.sentence)")
      if holdsBack { try output.line("  \(RestorePin.release(location.database))") }
      return PinShape(pin, holdsBack: holdsBack)
    } catch let error as HopdError {
      output.warn([error])
      return nil
    }
  }
}

/// `restore`.
struct RestoreShape: Encodable {
  let store: String
  /// The backup that was put back; null where an interrupted restore had done that.
  @OrNull var restored: String?
  let version: String
  /// Where the store that was there is kept now.
  @OrNull var backup: String?
  /// What holds hopd back from migrating it again; null with --no-pin.
  @OrNull var pin: PinShape?
  /// Names of external files that differ from the backup's, and were left as they are.
  let differingExternalFiles: [String]
  let warnings: [ErrorShape]
}

/// `release`.
struct ReleaseShape: Encodable {
  let store: String
  let released: Bool
  /// The pin that is gone; null where there was none, or none that could be read.
  @OrNull var pin: PinShape?
}

/// `backups`.
struct BackupsShape: Encodable {
  let path: String
  let stores: [Store]
  /// Bytes of all backups; data that living stores share by hard links is counted too.
  let bytes: Int64
  /// What could not be inspected.
  let problems: [ErrorShape]

  struct Store: Encodable {
    let store: String
    /// Is there a file under the store's name?
    let present: Bool
    @OrNull var pin: PinShape?
    /// Newest first.
    let backups: [Backup]
    /// Folders that are half made or half removed.
    let unfinished: [String]
  }
}

/// One backup.
struct Backup: Encodable {
  /// The database in it.
  let backup: String
  @OrNull var number: Int64?
  @OrNull var createdAt: String?
  /// The version it has, and the one that replaced it.
  @OrNull var from: String?
  @OrNull var to: String?
  let bytes: Int64
  /// "migration" or "restore"; null where its label cannot be read.
  @OrNull var madeBy: String?
  @OrNull var storeUUID: String?
  /// Is its store gone, or another one under its name?
  let orphaned: Bool
  /// What removes it: "keep", "keep_for", or "by-hand".
  let goesBy: String
  /// When it is too old; null where its age does not matter.
  @OrNull var goesAt: String?
}

/// `prune`.
struct PruneShape: Encodable {
  let dryRun: Bool
  /// What is removed, or would be.
  let removed: [Removal]
  let bytes: Int64
  let problems: [ErrorShape]

  struct Removal: Encodable {
    let store: String
    /// Its folder.
    let backup: String
    @OrNull var from: String?
    @OrNull var madeBy: String?
    let bytes: Int64
    /// "keep", "keep_for", "orphaned", "named".
    let reason: String
  }
}
