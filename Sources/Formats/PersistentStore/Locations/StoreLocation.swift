// The location of a store: its database file and all files that belong to it. A store is one thing made of several
// files; no part of the program may move, copy or delete one of them without the others.

import DurableFiles
import Glibc
import SystemPackage

/// A store on disk: the database, its side files, and its external data.
package struct StoreLocation: Sendable, Hashable {
  /// The SQLite database file.
  package let database: FilePath

  /// The directory that the path means while this value lives; nil where the path is resolved by each call, as for
  /// files that no other user can move.
  package let folder: CanonicalDirectory?

  /// Creates the location of the store whose database is at `database`.
  package init(database: FilePath, in folder: CanonicalDirectory? = nil) {
    self.database = database.lexicallyNormalized()
    self.folder = folder
  }

  package static func == (a: Self, b: Self) -> Bool { a.database == b.database }

  package func hash(into hasher: inout Hasher) { hasher.combine(database) }

  /// File name of the database, as "Library.sqlite".
  package var fileName: String { database.lastComponent?.string ?? "" }
  /// The directory that contains the store.
  package var directory: FilePath {
    let parent = database.removingLastComponent()
    return parent.isEmpty ? "." : parent
  }
  /// The write-ahead log; it may not exist.
  package var writeAheadLog: FilePath { appending("-wal") }
  /// The log's shared-memory index.
  package var sharedMemory: FilePath { appending("-shm") }
  /// The rollback journal.
  package var rollbackJournal: FilePath { appending("-journal") }
  /// Side files in the order -wal, -shm, -journal. They never count as stores.
  package var sideFiles: [FilePath] { [writeAheadLog, sharedMemory, rollbackJournal] }
  /// `.<name without extension>_SUPPORT` in the store's directory (docs/formats/store-layout.md, "External binary
  /// data").
  package var supportDirectory: FilePath { directory.appending(".\(database.stem ?? fileName)_SUPPORT") }
  /// `_EXTERNAL_DATA` in the support directory, with binary values in external files.
  package var externalDataDirectory: FilePath { supportDirectory.appending("_EXTERNAL_DATA") }

  private func appending(_ suffix: String) -> FilePath {
    guard database.lastComponent != nil else { return database }
    // As SQLite does it: the bytes of the path and those of the suffix.
    return database.withPlatformString { path in
      var bytes = [CChar](UnsafeBufferPointer(start: path, count: strlen(path)))
      for byte in suffix.utf8 { bytes.append(CChar(bitPattern: byte)) }
      bytes.append(0)
      return FilePath(platformString: bytes)
    }
  }

  /// Whether a file of this name belongs to a store but is not one: a side file, a staged store of hopd, or the
  /// temporary store of Apple's own migration (docs/formats/migration-semantics.md, "Temporary stores of Apple's
  /// migration").
  package static func isAuxiliaryFile(fileName: String) -> Bool {
    fileName.hasSuffix("-wal") || fileName.hasSuffix("-shm") || fileName.hasSuffix("-journal")
      || (fileName.hasPrefix(".") && fileName.contains(".hop-")) || fileName.contains(".migrationdestination_")
      || fileName.contains(".hopd-backup")
  }
}
