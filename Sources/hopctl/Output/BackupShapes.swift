// What `--json` prints of backups and pins. Keys are a contract: they are added to, never renamed.

import Diagnostics
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import StoreReplacement
import SystemPackage

/// The pin of a restored store.
struct PinShape: JSONValue {
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

/// The backups of a store, in `backups`.
struct StoreBackups: JSONValue {
  let store: String
  /// Is there a file under the store's name?
  let present: Bool
  @OrNull var pin: PinShape?
  /// Newest first.
  let backups: [Backup]
  /// Folders that are half made or half removed.
  let unfinished: [String]
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
