// The metadata of a store: the content of Z_METADATA. Unknown keys are the app's own, and a migration keeps them
// unchanged.

import Diagnostics
import ManagedObjectModel
import PropertyLists

/// Z_UUID and Z_PLIST of a store.
package struct StoreMetadata: Sendable, Hashable {
  /// Z_UUID: upper-case UUID text. A migration keeps it (docs/formats/store-layout.md, "Store metadata").
  package var uuid: String
  /// Every entry of Z_PLIST, including unknown ones.
  package var entries: [String: PropertyListValue]

  /// The largest property list that is read: apps keep small values of their own in it, in addition to Core Data's few
  /// kilobytes.
  package static let maximumBytes: Int64 = 16 << 20
  /// Keys of Z_PLIST that Core Data itself writes (docs/formats/store-layout.md, "Store metadata").
  package enum Key {
    package static let frameworkVersion = "NSPersistenceFrameworkVersion"
    package static let versionHashes = "NSStoreModelVersionHashes"
    package static let versionHashesVersion = "NSStoreModelVersionHashesVersion"
    package static let versionIdentifiers = "NSStoreModelVersionIdentifiers"
    package static let versionHashesDigest = "NSStoreModelVersionHashesDigest"
    package static let versionChecksum = "NSStoreModelVersionChecksumKey"
    package static let storeType = "NSStoreType"
    package static let autoVacuumLevel = "_NSAutoVacuumLevel"
    /// Set until a deferred lightweight migration is finished (docs/formats/migration-semantics.md, "Options and
    /// metadata").
    package static let deferredMigration = "NSPersistentStoreDeferredLightweightMigrationOptionKey"
    package static let ancillaryHashes = "_NSStoreAncillaryModelVersionHashesMetadataKey"
    /// An integer, from fw 1518 on; a new store has its own version there, and a migration keeps what is there
    /// (docs/formats/store-layout.md, "Store metadata").
    package static let maximumFrameworkVersion = "NSPersistenceMaximumFrameworkVersion"
  }

  /// NSPersistenceFrameworkVersion, or 0 if it is missing.
  package var frameworkVersion: Int64 { entries[Key.frameworkVersion]?.integer ?? 0 }

  /// NSStoreModelVersionHashesVersion: the version of the hash algorithm; 3 in every store seen.
  package var versionHashesVersion: Int64? { entries[Key.versionHashesVersion]?.integer }

  /// Entity name to version hash; entries that are not 32 bytes are left out.
  package var versionHashes: [String: VersionHash] {
    (entries[Key.versionHashes]?.dictionary ?? [:]).compactMapValues { $0.data.flatMap(VersionHash.init(bytes:)) }
  }

  /// NSStoreModelVersionIdentifiers.
  package var versionIdentifiers: [String] { (entries[Key.versionIdentifiers]?.array ?? []).compactMap(\.string) }

  /// Whether a deferred lightweight migration is unfinished.
  package var hasDeferredMigration: Bool {
    switch entries[Key.deferredMigration] {
    case .boolean(let value): value
    case .integer(let value): value != 0
    default: false
    }
  }
}

// The metadata of a migrated and of a fresh store. The rule (docs/decisions/0012): a migrated store remains a store of
// the framework version that made its source; everything that describes the model is computed again, all of it or none;
// everything else stays unchanged.

extension HopdError.Code {
  /// A value of Core Data's own metadata is wrong in the source and correct in the result.
  package static let metadataCorrected = HopdError.Code("metadata-corrected", severity: .note)
}

extension StoreMetadata {
  /// Returns the metadata after a migration to `model`, in a file with that auto_vacuum (nil: unknown, the key stays).
  ///
  /// Store UUID, framework version, the app's keys and everything unknown stay; hashes and identifiers are the
  /// destination's. A source with neither digest nor checksum gets none; one with either keeps those it had, and gets
  /// those of its framework version, computed by the formulas.
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

  /// The metadata of a new store made by Core Data of that framework version (docs/formats/store-layout.md, "Store
  /// metadata").
  ///
  /// NSPersistenceMaximumFrameworkVersion is the framework version itself, as no newer system has opened the store.
  package static func fresh(uuid: String, model: ManagedObjectModel, frameworkVersion: Int64) -> StoreMetadata {
    var metadata = StoreMetadata(
      uuid: uuid,
      entries: [
        Key.frameworkVersion: .integer(frameworkVersion), Key.storeType: .string("SQLite"),
        Key.autoVacuumLevel: .string("2"),
      ])
    if FrameworkVersion.hasMaximum(frameworkVersion) {
      metadata.entries[Key.maximumFrameworkVersion] = .integer(frameworkVersion)
    }
    metadata.describe(
      model, withDigest: FrameworkVersion.hasDigest(frameworkVersion),
      withChecksum: FrameworkVersion.hasChecksum(frameworkVersion))
    return metadata
  }

  /// Sets hashes and identifiers of a model, which are in every store, and the two values over all hashes.
  private mutating func describe(_ model: ManagedObjectModel, withDigest: Bool, withChecksum: Bool) {
    entries[Key.versionHashes] = .dictionary(model.versionHashes.mapValues { .data($0.bytes) })
    entries[Key.versionHashesVersion] = .integer(3)
    entries[Key.versionIdentifiers] = .array(model.versionIdentifiers.map { .string($0) })
    if withDigest { entries[Key.versionHashesDigest] = .string(model.versionHashesDigest) }
    if withChecksum { entries[Key.versionChecksum] = .string(model.versionChecksum) }
  }

  /// Returns the values of this store's metadata that contradict its own hashes or its file; a migration corrects them.
  package func contradictions(autoVacuum: Int64) -> [HopdError] {
    var found: [HopdError] = []
    func note(_ key: String, _ what: String) {
      found.append(
        HopdError(
          .metadataCorrected, "the metadata key \(key) \(what); the migrated store gets the right value",
          hint: "check the other metadata too; Core Data did not write this"))
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
