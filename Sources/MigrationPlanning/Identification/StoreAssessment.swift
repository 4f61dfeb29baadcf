// What a look at a file says: is it a store, of which version, and where does it stand against the wanted one. A value
// for `identify`, for scans, and for the daemon's decision what to do with a file that has settled.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SystemPackage

/// Where a file stands.
package enum StoreState: String, Sendable, Hashable, CaseIterable {
  /// A store of the wanted version.
  case current
  /// A store of an earlier version, or of a later one from which mapping models lead back.
  case behind
  /// A store of a version after the wanted one, without a way back.
  case newer
  /// A store of no version given.
  case unknown
  /// Not a SQLite database, or one that no Core Data made.
  case notAStore = "not-a-store"
  /// A damaged database.
  case damaged
  /// Shaped like an encrypted database.
  case encrypted
}

/// The answer to "what is this file?".
package struct StoreAssessment: Sendable {
  /// The file.
  package let location: StoreLocation
  /// Where it stands.
  package let state: StoreState
  /// Its metadata, where it is a store.
  package internal(set) var metadata: StoreMetadata?
  /// Its version, where that is known.
  package internal(set) var version: CatalogedVersion?
  /// The version it is to reach, where its model is known.
  package internal(set) var target: CatalogedVersion?
  /// Rows per entity. Without a known version the names are those the store itself gives.
  package internal(set) var entities: [EntityRows] = []
  /// Side files and the external data directory, as far as they exist.
  package let sideFiles: [FilePath]
  /// Why it is neither current nor behind.
  package let explanation: HopdError?
  /// The versions among which it moves, where its version is known.
  package var line: VersionLine?

  /// Rows of one entity, its subentities not counted.
  package struct EntityRows: Sendable, Hashable {
    package let name: String
    /// Z_ENT.
    package let number: Int64
    package let rows: Int64
  }

  /// The store for a plan, where its version is known.
  package var identified: IdentifiedStore? {
    guard let metadata, let version, let line else { return nil }
    return IdentifiedStore(location: location, metadata: metadata, version: version, line: line)
  }
}
