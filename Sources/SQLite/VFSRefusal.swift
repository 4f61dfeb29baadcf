// Why the VFS under a connection refused a file: SQLite itself says only "disk I/O error" or "unable to open database
// file".

import CLinux

/// What the VFS of connections refused (CLinux/storevfs.c).
package enum VFSRefusal: Int32, Sendable, Hashable {
  /// A rollback journal names a super-journal: a file that SQLite would look for, read and delete, wherever it is.
  case superJournal = 1
  /// A file that is none of the database's own, or a side file that is not a plain file.
  case foreignName = 2
  /// A directory of the path became a symbolic link.
  case exchangedDirectory = 3
  /// The schema has more objects, is larger, or takes longer to read than any that Core Data makes.
  case largeSchema = 4

  /// The most objects that a schema may have.
  package static let schemaObjects = CLINUX_SCHEMA_OBJECTS

  /// What was refused on this thread since the last call, told once.
  static func taken() -> VFSRefusal? { VFSRefusal(rawValue: clinux_store_vfs_take_refusal()) }
}
