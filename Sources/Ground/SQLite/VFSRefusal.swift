// The reason for which a connection's VFS refused a file: SQLite itself reports only "disk I/O error" or "unable to
// open database file".

import CLinux

/// The object that a connection's VFS refused (CLinux/storevfs.c).
package enum VFSRefusal: Int32, Sendable, Hashable {
  /// A rollback journal that names a super-journal: a file that SQLite would open and delete, wherever it is.
  case superJournal = 1
  /// A file that does not belong to the database, or a side file that is not a plain file.
  case foreignName = 2
  /// A directory of the path that became a symbolic link.
  case exchangedDirectory = 3
  /// A schema that has more objects, is larger, or takes longer to read than any that Core Data makes.
  case largeSchema = 4

  /// The largest number of objects in a schema.
  package static let schemaObjects = CLINUX_SCHEMA_OBJECTS

  /// Returns, once, what was refused on this thread since the last call.
  static func taken() -> VFSRefusal? { VFSRefusal(rawValue: clinux_store_vfs_take_refusal()) }
}
