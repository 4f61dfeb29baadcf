// Which stores of a directory have staged stores beside them that no intent record refers to. A directory can hold a
// hundred thousand stores, and listing it for each of them would cost more than their migrations.

import Diagnostics
import DurableFiles
import PersistentStore
import Synchronization
import SystemPackage

/// Remembers for a while what directories held of staged stores, for all jobs of a process.
///
/// What a process leaves itself has an intent record, and is looked for where it lies. Only what others left without
/// one, as a `hopctl` with another state directory that was killed, may be found that much later; it is scratch that
/// nothing reads.
package final class LeftoverIndex: Sendable {
  private struct Listing {
    let time: ContinuousClock.Instant
    let names: [FilePath.Component]
  }

  /// How old a listing may be.
  private let lifetime: Duration
  private let listings = Mutex<[FilePath: Listing]>([:])

  /// Directories that are remembered at most.
  private static let most = 1024

  /// An empty index.
  package init(lifetime: Duration = .seconds(600)) { self.lifetime = lifetime }

  /// Names in a directory that look like those of a staged store, now or some minutes ago.
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
