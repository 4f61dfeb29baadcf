// Whether the store is still exactly the one that a staged store was made from, by file status alone, before anything
// is opened.

import DurableFiles
import PersistentStore
import SystemPackage

/// Identity, size and time of a store's database and of a write-ahead log with content.
package struct SourceFingerprint: Hashable, Sendable, Codable {
  /// One file at one moment.
  package struct Stamp: Hashable, Sendable, Codable {
    /// Device and inode.
    package let file: FileIdentity
    /// Bytes.
    package let size: Int64
    /// Last change, nanoseconds since 1970.
    package let modified: Int64

    /// Takes identity, size and time from a status.
    package init(_ status: FileStatus) {
      file = status.identity
      size = status.size
      modified = status.modified
    }
  }

  /// The database.
  package let database: Stamp
  /// Its log, if that has content.
  package let log: Stamp?

  /// Notes a fingerprint.
  package init(database: Stamp, log: Stamp?) {
    self.database = database
    self.log = log
  }

  /// Takes the fingerprint of the store in its present state; nil where there is none.
  package init?(of location: CanonicalStoreLocation, files: any DurableFileSystem) throws {
    try self.init(of: location.store, files: files)
  }

  /// The same by a path that may contain links; a missing store is an error.
  package init?(of location: StoreLocation, files: any DurableFileSystem) throws {
    guard let database = try files.status(location.database) else { return nil }
    let log = try files.status(location.writeAheadLog)
    self.init(database: Stamp(database), log: log.flatMap { $0.size > 0 ? Stamp($0) : nil })
  }
}
