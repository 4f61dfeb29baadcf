// The stores of a directory that have staged stores beside them without an intent record. A directory can hold a
// hundred thousand stores, and listing it for each of them would cost more than their migrations.

import Diagnostics
import DurableFiles
import PersistentStore
import Synchronization
import SystemPackage

/// Caches the names of staged stores in directories for a while, for all jobs of a process.
///
/// A process's own leftovers have an intent record, which names their place. Only leftovers of others without a record,
/// as of a `hopctl` with another state directory that was killed, may be found that much later; they are scratch that
/// nothing reads.
package final class LeftoverIndex: Sendable {
  private struct Listing {
    let time: ContinuousClock.Instant
    let names: [FilePath.Component]
  }

  /// The maximum age of a listing.
  private let lifetime: Duration
  private let listings = Mutex<[FilePath: Listing]>([:])

  /// The maximum number of cached directories.
  private static let most = 1024

  /// An empty index.
  package init(lifetime: Duration = .seconds(600)) { self.lifetime = lifetime }

  /// Names in a directory that look like those of a staged store, at present or some minutes ago.
  func names(in directory: FilePath, files: any DurableFileSystem) throws -> [FilePath.Component] {
    let now = ContinuousClock.now
    let known = listings.withLock { $0[directory] }
    if let known, now < known.time.advanced(by: lifetime) { return known.names }
    let names = try files.names(in: directory).filter { StagingArea.mayBeStaged($0) }
    listings.withLock { listings in
      if listings.count >= LeftoverIndex.most { listings.removeAll() }
      listings[directory] = Listing(time: now, names: names)
    }
    return names
  }
}
