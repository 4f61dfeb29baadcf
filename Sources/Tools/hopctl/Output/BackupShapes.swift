// The `--json` output for backups and pins. Keys are a contract: new ones may be added, none is renamed.

import Diagnostics
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import StoreReplacement
import SystemPackage

/// The pin of a restored store.
struct PinShape: JSONValue {
  /// The version of the backup that was restored.
  let restored: String
  /// The versions that hopd does not migrate the store to; empty for all.
  let replaced: [String]
  let restoredAt: String
  /// The restore of a set that it belongs to; omitted if there is none.
  let group: String?
  /// Whether the pin holds the store back from the target; omitted if there is no target.
  var isInEffect: Bool?

  init(_ pin: RestorePin, isInEffect: Bool? = nil) {
    restored = pin.restored.name
    replaced = pin.replaced.map(\.name)
    restoredAt = pin.time
    group = pin.group
    self.isInEffect = isInEffect
  }

  /// Returns the pin of an inspected store and prints a line about it; nil if the store has none. An unreadable pin is
  /// a warning. `rule` is that of the store's watch.
  static func of(
    _ location: CanonicalStoreLocation, _ found: StoreAssessment, _ output: OutputOptions, rule: PinRule?
  ) throws -> PinShape? {
    let pipeline = MigrationPipeline()
    do {
      guard let pin = try pipeline.pin(location, found) else { return nil }
      let isInEffect = try pipeline.pinInEffect(location, found, rule: rule ?? .byHand) != nil
      try output.line("pinned: \(pin.sentence)")
      if isInEffect { try output.line("  \(pin.release(location.database))") }
      return PinShape(pin, isInEffect: isInEffect)
    } catch let error as HopdError {
      output.warn([error])
      return nil
    }
  }
}

/// The backups of a store, in `backups`.
struct StoreBackups: JSONValue {
  let store: String
  /// Whether a file with the store's name exists.
  let present: Bool
  @OrNull var pin: PinShape?
  /// Newest first.
  let backups: [Backup]
  /// Folders of incomplete backups, partly made or partly removed.
  let unfinished: [String]
}

/// One backup.
struct Backup: Encodable {
  /// Path of the backup's database.
  let backup: String
  @OrNull var number: Int64?
  @OrNull var createdAt: String?
  /// The backup's version, and the version that replaced it.
  @OrNull var from: String?
  @OrNull var to: String?
  let bytes: Int64
  /// "migration", "import" or "restore"; null if its label cannot be read.
  @OrNull var createdBy: String?
  @OrNull var storeUUID: String?
  /// Whether its store is missing, or another store has its name.
  let orphaned: Bool
  /// The rule that deletes the backup: "keep", "keep_for", or "by-hand".
  let removal: String
  /// The time at which `keep_for` ends; null if its age does not matter.
  @OrNull var expiresAt: String?
}
