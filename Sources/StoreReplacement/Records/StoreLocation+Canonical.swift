// The one place where a store's path is made canonical: calls of `DurableFileSystem` follow no link, and records, locks
// and backups of a store are found by its path, so two spellings of it must become one.

import Diagnostics
import DurableFiles
import PersistentStore
import SystemPackage

extension StoreLocation {
  /// The store with the links of its folder resolved. Its own name is kept: a link in the place of a store is refused,
  /// never followed.
  ///
  /// Throws `.notFound` where the folder is missing or the path names no file.
  package func canonical(_ files: any DurableFileSystem) throws -> StoreLocation {
    guard let name = database.lastComponent else {
      throw HopdError(.notFound, "no store is named", at: Place(store: database))
    }
    return StoreLocation(database: try files.canonical(directory).appending(name))
  }
}
