// The result of identifying a file: whether it is a store, of which version, and its state relative to the target. Used
// by `identify`, by scans, and by the daemon to decide about a file that has settled.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SystemPackage

/// The state of a file.
package enum StoreState: String, Sendable, Hashable, CaseIterable {
  /// A store at the target version.
  case current
  /// A store of an earlier version, or of a later one from which mapping models lead back.
  case behind
  /// A store of a version after the target, without hops back.
  case newer
  /// A store of a version that no given model has.
  case unknown
  /// Not a SQLite database, or not one made by Core Data.
  case notAStore = "not-a-store"
  /// A damaged database.
  case damaged
  /// A file that looks like an encrypted database.
  case encrypted
  /// A Core Data XML store, which can be made a SQLite store.
  case xmlStore = "xml-store"
  /// A Core Data binary store.
  case binaryStore = "binary-store"
}

/// The result of identifying a file.
package struct StoreAssessment: Sendable {
  /// The file.
  package let location: StoreLocation
  /// Its state.
  package let state: StoreState
  /// Its metadata, if it is a store.
  package internal(set) var metadata: StoreMetadata?
  /// Its version, if known.
  package internal(set) var version: CatalogedVersion?
  /// The target version, if its model is known.
  package internal(set) var target: CatalogedVersion?
  /// Rows per entity. Without a known version, the names are those in the store itself.
  package internal(set) var entities: [EntityRows] = []
  /// Side files and the external data directory, as far as they exist.
  package let sideFiles: [FilePath]
  /// The reason why it is neither current nor behind.
  package let explanation: HopdError?
  /// The versions among which it can be migrated, if its version is known.
  package var line: VersionLine?

  /// Rows of one entity without its subentities.
  package struct EntityRows: Sendable, Hashable {
    package let name: String
    /// Z_ENT.
    package let number: Int64
    package let rows: Int64
  }

  /// The store as the input of a plan; nil if its version is not known.
  package var identified: IdentifiedStore? {
    guard let metadata, let version, let line else { return nil }
    return IdentifiedStore(location: location, metadata: metadata, version: version, line: line)
  }
}
