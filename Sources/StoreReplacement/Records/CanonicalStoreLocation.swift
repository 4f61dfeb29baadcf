// Where a store is, for everything that changes files: the path is made canonical once, when a job begins, and the type
// says so from there on.

import Diagnostics
import DurableFiles
import PersistentStore
import SystemPackage

/// A store whose path has no links, except perhaps its own name: a link in the place of a store is refused, never
/// followed.
@dynamicMemberLookup
package struct CanonicalStoreLocation: Hashable, Sendable {
  /// The location, for whatever only reads the store.
  package let store: StoreLocation

  /// Asks the file system where the store at `database` is.
  ///
  /// Throws `.notFound` where the folder is missing or the path names no file.
  package init(_ database: FilePath, files: any DurableFileSystem = LinuxFileSystem()) throws {
    guard let name = database.lastComponent else {
      throw HopdError(.notFound, "no store is named", at: Place(store: database))
    }
    let directory = database.removingLastComponent()
    self.init(name, in: try CanonicalDirectory(directory.isEmpty ? "." : directory, files: files))
  }

  /// The same for a store whose folder may be gone while records of it are still there: its path is then the given one.
  package init(evenIfGone database: FilePath, files: any DurableFileSystem = LinuxFileSystem()) {
    self = (try? CanonicalStoreLocation(database, files: files)) ?? CanonicalStoreLocation(recorded: database)
  }

  /// The store of that name.
  init(_ name: FilePath.Component, in directory: CanonicalDirectory) {
    store = StoreLocation(database: directory.path.appending(name))
  }

  /// The store at the path in a record or label of hopd's, which was canonical when it was written. If there is a link
  /// on the way by now, the calls of `DurableFileSystem` fail.
  init(recorded database: FilePath) { store = StoreLocation(database: database) }

  /// What `StoreLocation` knows.
  package subscript<Value>(dynamicMember part: KeyPath<StoreLocation, Value>) -> Value { store[keyPath: part] }
}
