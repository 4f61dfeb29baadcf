// A manifest: one line of JSON for each store of a fleet, as `hopctl scan` writes it and `hopctl work` reads it. Only
// the path is required; the other fields save an inspection of the store.

import Diagnostics
import FoundationEssentials

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
  /// The approximate needs of a migration; nil where there is nothing to do.
  package var need: Need?
  /// Why the store is neither current nor behind, or why there is no chain.
  package var error: LineError?

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

  /// The key that decides the store's shard: its UUID, else its path. All shards read the same manifest, so they agree.
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
