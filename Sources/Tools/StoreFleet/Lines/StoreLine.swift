// A manifest: one line of JSON for each store of a fleet, as `hopctl fleet scan` writes it and `hopctl fleet run` reads
// it. Only the path is required; the other fields save an inspection of the store.

import Diagnostics
import DurableFiles
import FoundationEssentials
import StoreReplacement
import SystemPackage

/// The result of a scan for one store.
package struct StoreLine: Codable, Sendable, Hashable {
  /// Path of the store's database.
  package var store: String
  /// Bytes of database and write-ahead log.
  package var size: Int64?
  /// Last change of the database, nanoseconds since 1970.
  package var modified: Int64?
  /// The store's state: a `StoreState`, or "unreadable" where it could not be inspected.
  package var state: String?
  /// Z_UUID.
  package var storeUUID: String?
  /// The model and the version that made the store.
  package var model: String?
  package var version: String?
  /// The version to reach.
  package var targetVersion: String?
  /// The chain to the target, hop by hop; nil where there is none, empty for a current store.
  package var hops: [Hop]?
  /// What the chain drops, by the models: "Book.shelfMark"; "Customer" where the entity goes with its rows. Nil where
  /// that is nothing.
  package var drops: [String]?
  /// The approximate needs of a migration; nil where there is nothing to do.
  package var need: Need?
  /// Why the store is neither current nor behind, or why there is no chain.
  package var error: LineError?
  private var walkedPlace: FoundPlace?

  /// Where a walk of this process found the store. Not part of a manifest, whose store may be another file by now.
  package var place: FoundPlace? {
    get { walkedPlace }
    set { walkedPlace = newValue }
  }

  private enum CodingKeys: String, CodingKey {
    case store, size, modified, state, storeUUID, model, version, targetVersion, hops, drops, need, error
  }

  /// One hop of the chain.
  package struct Hop: Codable, Sendable, Hashable {
    package var source: String
    package var destination: String
    /// "inferred", "mapping" or "stage".
    package var kind: String
  }

  /// A rough estimate: nothing in the store was counted for it.
  package struct Need: Codable, Sendable, Hashable {
    /// Bytes of free space beside the store.
    package var disk: Int64
    /// Seconds of one job.
    package var seconds: Double
  }

  /// A line with only the path of a store.
  package init(store: String) { self.store = store }

  /// The store's path, absolute.
  package func path() throws -> FilePath {
    let path = FilePath(store)
    guard path.isRelative else { return path.lexicallyNormalized() }
    return try LinuxFileSystem().canonical(".").appending(path.components).lexicallyNormalized()
  }

  /// The store, below its directory, which is opened without following a link. Throws where there is none, or where
  /// another file or directory has taken its place since the walk.
  package func location() throws -> CanonicalStoreLocation {
    let path = try path()
    let location: CanonicalStoreLocation
    do { location = try CanonicalStoreLocation(opening: path) } catch let error as HopdError
      where [.tooManySymbolicLinkLevels, .notDirectory, .improperLink].contains(error.errno)
    {
      throw HopdError(
        .storeReplaced, "the path leads over a symbolic link, which is not followed", at: Place(store: path),
        cause: error.cause, hint: "write the output of `realpath -- \(path.quotedForShell)` into the manifest")
    }
    if let place { try location.requireFound(at: place) }
    return location
  }

  /// The key that decides the store's shard: its UUID, or its path. All shards read the same manifest, so they agree.
  package var shardKey: String { storeUUID ?? store }
}

/// An error as a line keeps it.
package struct LineError: Codable, Sendable, Hashable {
  package var code: String
  package var message: String
  package var hint: String?
  package var hop: String?
  package var entity: String?
  package var property: String?

  /// Notes an error; its reasons stay in the message.
  package init(_ error: HopdError) {
    code = error.code.name
    message = error.reasons.first.map { "\(error.message): \($0.headline)" } ?? error.message
    hint = error.hint ?? error.reasons.lazy.compactMap(\.hint).first
    let place = [error.place] + error.reasons.map(\.place)
    hop = place.lazy.compactMap(\.hop).first
    entity = place.lazy.compactMap(\.entity).first
    property = place.lazy.compactMap(\.property).first
  }
}
