// Which metadata a migrated and a fresh store get. The rule (docs/decisions/0015): a migrated store stays a store of
// the framework version that made its source; whatever describes the model is computed again, all of it or none;
// everything else stays as it is.

import Diagnostics
import ManagedObjectModel
import PropertyLists

extension HopdError.Code {
  /// A value of Core Data's own metadata is wrong in the source and right in the result.
  package static let metadataCorrected = HopdError.Code("metadata-corrected", severity: .note)
}

extension StoreMetadata {
  /// The metadata after a migration to `model`, in a file with that auto_vacuum (nil: not known, the key stays).
  ///
  /// Store UUID, framework version, the app's keys and everything unknown stay; hashes and identifiers are the
  /// destination's. A source with neither digest nor checksum gets none; one with either gets what its framework
  /// version has, besides what it had, as the formulas give them.
  package func migrated(to model: ManagedObjectModel, autoVacuum: Int64? = nil) -> StoreMetadata {
    var copy = self
    let hadDigest = entries[Key.versionHashesDigest] != nil
    let hadChecksum = entries[Key.versionChecksum] != nil
    let hadEither = hadDigest || hadChecksum
    copy.describe(
      model, withDigest: hadDigest || hadEither && FrameworkVersion.hasDigest(frameworkVersion),
      withChecksum: hadChecksum || hadEither && FrameworkVersion.hasChecksum(frameworkVersion))
    if let autoVacuum, entries[Key.autoVacuumLevel] != nil {
      copy.entries[Key.autoVacuumLevel] = .string(String(autoVacuum))
    }
    return copy
  }

  /// The metadata of a store made from nothing by Core Data of that framework version (docs/formats/store-layout.md,
  /// "Store metadata").
  ///
  /// NSPersistenceMaximumFrameworkVersion, seen at 1526, is left out: what value a new store has was never seen.
  package static func fresh(uuid: String, model: ManagedObjectModel, frameworkVersion: Int64) -> StoreMetadata {
    var metadata = StoreMetadata(
      uuid: uuid,
      entries: [
        Key.frameworkVersion: .integer(frameworkVersion), Key.storeType: .string("SQLite"),
        Key.autoVacuumLevel: .string("2"),
      ])
    metadata.describe(
      model, withDigest: FrameworkVersion.hasDigest(frameworkVersion),
      withChecksum: FrameworkVersion.hasChecksum(frameworkVersion))
    return metadata
  }

  /// Hashes and identifiers of a model, which are in every store, and the two values over all hashes.
  private mutating func describe(_ model: ManagedObjectModel, withDigest: Bool, withChecksum: Bool) {
    entries[Key.versionHashes] = .dictionary(model.versionHashes.mapValues { .data($0.bytes) })
    entries[Key.versionHashesVersion] = .integer(3)
    entries[Key.versionIdentifiers] = .array(model.versionIdentifiers.map { .string($0) })
    if withDigest { entries[Key.versionHashesDigest] = .string(model.versionHashesDigest) }
    if withChecksum { entries[Key.versionChecksum] = .string(model.versionChecksum) }
  }

  /// Values of this store's metadata that contradict its own hashes or its file; a migration puts them right.
  package func contradictions(autoVacuum: Int64) -> [HopdError] {
    var found: [HopdError] = []
    func note(_ key: String, _ what: String) {
      found.append(
        HopdError(
          .metadataCorrected, "the metadata key \(key) \(what); the migrated store gets the right value",
          hint: "Core Data did not write it: check the other metadata, too"))
    }
    let hashes = versionHashes
    let computed = [
      (Key.versionHashesDigest, VersionHash.digest(of: hashes)),
      (Key.versionChecksum, VersionHash.checksum(of: hashes)),
    ]
    for (key, right) in computed {
      guard let value = entries[key] else { continue }
      if value.string == nil {
        note(key, "is not a text")
      } else if value.string != right {
        note(key, "does not fit the store's version hashes")
      }
    }
    if let level = entries[Key.autoVacuumLevel], level.string != String(autoVacuum) {
      note(Key.autoVacuumLevel, "does not fit the file, whose auto_vacuum is \(autoVacuum)")
    }
    return found
  }
}
