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
