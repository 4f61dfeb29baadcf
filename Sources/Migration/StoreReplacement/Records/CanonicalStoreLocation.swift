// The location of a store for everything that changes files: a directory that is open, and a name in it. The path is
// resolved once, when a job begins, and means that directory until the last copy of this value is gone.

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

  /// Resolves the location of the store at `database`, as typed.
  ///
  /// Throws `.notFound` where the folder is missing or the path names no file.
  package init(resolving database: FilePath, files: any DurableFileSystem = LinuxFileSystem()) throws {
    guard let name = database.lastComponent else {
      throw HopdError(.notFound, "no store is named", at: Place(store: database))
    }
    let directory = database.removingLastComponent()
    self.init(name, in: try CanonicalDirectory(resolving: directory.isEmpty ? "." : directory, files: files))
  }

  /// The store of that name.
  package init(_ name: FilePath.Component, in directory: CanonicalDirectory) {
    store = StoreLocation(database: directory.path.appending(name), in: directory)
  }

  /// The store at a path that was canonical when it was noted, as in a record or a label of hopd's. Nothing is
  /// resolved: if the directory was removed or the path now contains a link, the calls of `DurableFileSystem` fail.
  package init(unresolved database: FilePath, files: any DurableFileSystem = LinuxFileSystem()) {
    let store = StoreLocation(database: database)
    self.store = StoreLocation(
      database: database, in: try? CanonicalDirectory(unresolved: store.directory, files: files))
  }

  /// The same; throws where the directory cannot be opened.
  package init(opening database: FilePath, files: any DurableFileSystem = LinuxFileSystem()) throws {
    let store = StoreLocation(database: database)
    self.store = StoreLocation(
      database: database, in: try CanonicalDirectory(unresolved: store.directory, files: files))
  }

  /// Device and inode of the directory; nil if it was removed, or on a disk without descriptors.
  package var folderIdentity: FileIdentity? { store.folder?.identity }

  /// The members of `StoreLocation`.
  package subscript<Value>(dynamicMember part: KeyPath<StoreLocation, Value>) -> Value { store[keyPath: part] }
}
