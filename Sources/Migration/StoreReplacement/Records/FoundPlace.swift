// Which file a scan found. Between a scan and the job that follows from it the folder may have been exchanged for
// another one; the job works on what was found, or not at all.

import Diagnostics
import DurableFiles
import PersistentStore
import SystemPackage

/// The place of a store that a scan found.
package struct FoundPlace: Sendable, Hashable {
  /// Device and inode of the store's directory.
  package let folder: FileIdentity
  /// Device and inode of its database.
  package let file: FileIdentity

  /// Notes a place.
  package init(folder: FileIdentity, file: FileIdentity) {
    self.folder = folder
    self.file = file
  }
}

extension CanonicalStoreLocation {
  /// The place of the store in its present state; nil where there is none, or on a disk without descriptors.
  package func place(files: any DurableFileSystem = LinuxFileSystem()) throws -> FoundPlace? {
    guard let folderIdentity, let file = try files.status(store.database)?.identity else { return nil }
    return FoundPlace(folder: folderIdentity, file: file)
  }

  /// Throws `.storeReplaced` unless the store is the one that was found there, and `.notFound` where there is none.
  package func requireFound(at found: FoundPlace, files: any DurableFileSystem = LinuxFileSystem()) throws {
    guard let status = try files.status(store.database) else {
      throw HopdError(.notFound, "the store no longer exists", at: Place(store: store.database))
    }
    guard folderIdentity == found.folder, status.identity == found.file else {
      let what = folderIdentity == found.folder ? "the store" : "the store's directory"
      throw HopdError(
        .storeReplaced, "\(what) was replaced by another one since it was found", at: Place(store: store.database),
        hint: "retry; nothing was changed")
    }
  }
}
