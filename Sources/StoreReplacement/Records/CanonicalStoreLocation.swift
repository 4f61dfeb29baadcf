// The location of a store for everything that changes files: the path is made canonical once, when a job begins, and
// from there on the type shows it.

import Diagnostics
import DurableFiles
import PersistentStore
import SystemPackage

/// A store whose path has no links, except perhaps its own name: a link in the place of a store is refused, never
/// followed.
@dynamicMemberLookup
package struct CanonicalStoreLocation: Hashable, Sendable {
  /// The location, for code that only reads the store.
  package let store: StoreLocation

  /// Resolves the location of the store at `database`.
  ///
  /// Throws `.notFound` where the folder is missing or the path names no file.
  package init(_ database: FilePath, files: any DurableFileSystem = LinuxFileSystem()) throws {
    guard let name = database.lastComponent else {
      throw HopdError(.notFound, "no store is named", at: Place(store: database))
    }
    let directory = database.removingLastComponent()
    self.init(name, in: try CanonicalDirectory(directory.isEmpty ? "." : directory, files: files))
  }

  /// The same for a store whose folder may be gone while records of it still exist: its path is then the given one.
  package init(evenIfGone database: FilePath, files: any DurableFileSystem = LinuxFileSystem()) {
    self = (try? CanonicalStoreLocation(database, files: files)) ?? CanonicalStoreLocation(recorded: database)
  }

  /// The store of that name.
  init(_ name: FilePath.Component, in directory: CanonicalDirectory) {
    store = StoreLocation(database: directory.path.appending(name))
  }

  /// The store at the path in a record or label of hopd's, which was canonical when it was written. If the path
  /// contains a link by now, the calls of `DurableFileSystem` fail.
  init(recorded database: FilePath) { store = StoreLocation(database: database) }

  /// The members of `StoreLocation`.
  package subscript<Value>(dynamicMember part: KeyPath<StoreLocation, Value>) -> Value { store[keyPath: part] }
}
