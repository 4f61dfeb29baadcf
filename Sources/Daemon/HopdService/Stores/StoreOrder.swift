// The work on one store, as ordered by the scheduler. The store is located when the work begins, on its thread: below
// the root of its watch, without following a link, and it must be the file that the scan found.

import Diagnostics
import DurableFiles
import MigrationPipeline
import StoreReplacement
import StoreWatching
import SystemPackage

/// An order for work on a store.
package struct StoreOrder: Sendable {
  private let store: FoundStore
  private let root: WatchRoot
  /// Creates the request for the store at a location.
  let make: @Sendable (CanonicalStoreLocation) -> MigrationRequest?

  init(
    store: FoundStore, root: WatchRoot, make: @escaping @Sendable (CanonicalStoreLocation) -> MigrationRequest?
  ) {
    self.store = store
    self.root = root
    self.make = make
  }

  /// Locates the store and returns the request. Throws `.notFound` if it no longer exists, `.storeReplaced` where
  /// another file or another directory is in its place.
  package func request() throws(HopdError) -> MigrationRequest {
    do {
      guard let request = make(try location()) else {
        throw HopdError(.internalError, "an order for a store without models")
      }
      return request
    } catch let failure as WatchRoot.Failure {
      throw HopdError(
        .storeReplaced, "the directory of the watch \(store.watch) cannot be opened", at: Place(store: store.path),
        cause: failure, hint: "run `systemctl status hopd` for the reason")
    } catch {
      var failure = HopdError.of(error, at: Place(store: store.path))
      // A missing folder is a missing store.
      if failure.code == .notFound { failure.place = Place(store: store.path) }
      throw failure
    }
  }

  private func location() throws -> CanonicalStoreLocation {
    let root = try root.open()
    guard let name = store.key.lastComponent, store.key.starts(with: root.path) else {
      throw HopdError(.storeReplaced, "the store is not below the directory of its watch", at: Place(store: store.path))
    }
    let components = store.key.components.dropFirst(root.path.components.count).dropLast()
    let folder: OpenDirectory
    do { folder = try root.directory(FilePath(root: nil, components)) } catch let error as HopdError
      where [.tooManySymbolicLinkLevels, .notDirectory, .improperLink].contains(error.errno)
    {
      throw HopdError(
        .storeReplaced, "a parent directory of the store was replaced by a link or a file since the scan",
        at: Place(store: store.path), cause: error.cause,
        hint: "pass the file itself; links in a watched directory are never followed")
    }
    let location = CanonicalStoreLocation(name, in: try CanonicalDirectory(folder))
    if let place = store.mark.place { try location.requireFound(at: place) }
    return location
  }
}
