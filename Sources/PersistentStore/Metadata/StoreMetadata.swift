// The metadata of a store: what Z_METADATA says. Keys that hopd does not know are the app's own and go through a
// migration unchanged.

import Diagnostics
import ManagedObjectModel
import PropertyLists

/// Z_UUID and Z_PLIST of a store.
package struct StoreMetadata: Sendable, Hashable {
  /// Z_UUID: upper-case UUID text. It stays through a migration (docs/formats/store-layout.md, "Store metadata").
  package var uuid: String
  /// Every entry of Z_PLIST, also those that hopd does not know.
  package var entries: [String: PropertyListValue]

  /// The largest property list that is read: apps keep small values of their own in it beside Core Data's few
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
    /// Set while a deferred lightweight migration is not finished (docs/formats/migration-semantics.md, "Options and
    /// metadata").
    package static let deferredMigration = "NSPersistentStoreDeferredLightweightMigrationOptionKey"
    package static let ancillaryHashes = "_NSStoreAncillaryModelVersionHashesMetadataKey"
    /// Seen at fw 1526, as an integer; its meaning is not known, so it is kept and never made
    /// (docs/formats/store-layout.md, "Store metadata").
    package static let maximumFrameworkVersion = "NSPersistenceMaximumFrameworkVersion"
  }

  /// NSPersistenceFrameworkVersion, or 0 where it is missing.
  package var frameworkVersion: Int64 { entries[Key.frameworkVersion]?.integer ?? 0 }

  /// NSStoreModelVersionHashesVersion: how the hashes were made; 3 in every store seen.
  package var versionHashesVersion: Int64? { entries[Key.versionHashesVersion]?.integer }

  /// Entity name to version hash; entries that are not 32 bytes are left out.
  package var versionHashes: [String: VersionHash] {
    (entries[Key.versionHashes]?.dictionary ?? [:]).compactMapValues { $0.data.flatMap(VersionHash.init(bytes:)) }
  }

  /// NSStoreModelVersionIdentifiers.
  package var versionIdentifiers: [String] { (entries[Key.versionIdentifiers]?.array ?? []).compactMap(\.string) }

  /// Was a deferred lightweight migration left unfinished?
  package var hasDeferredMigration: Bool {
    switch entries[Key.deferredMigration] {
    case .boolean(let value): value
    case .integer(let value): value != 0
    default: false
    }
  }

  /// Keys that are not Core Data's own.
  package var appKeys: [String] {
    let known: Set<String> = [
      Key.frameworkVersion, Key.versionHashes, Key.versionHashesVersion, Key.versionIdentifiers,
      Key.versionHashesDigest, Key.versionChecksum, Key.storeType, Key.autoVacuumLevel, Key.deferredMigration,
      Key.ancillaryHashes, Key.maximumFrameworkVersion,
    ]
    return entries.keys.filter { !known.contains($0) }.sorted()
  }
}
