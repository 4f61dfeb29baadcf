// The store's existing file, beyond its version: how its tables were declared and how full it is. Both decide whether
// the rows of a file can be carried unchanged in it.

import PersistentStore
import SQLite

/// A store's existing file.
package struct FoundFile: Sendable, Hashable {
  /// Everything in sqlite_master except SQLite's own tables.
  package let objects: [SchemaObject]
  /// SQLite's own tables, such as sqlite_stat1.
  package let internalTables: [String]
  /// All pages, and the free ones among them.
  package let pages: Int64
  package let freePages: Int64
  /// Whether SQLite returns free pages to the file system (auto_vacuum).
  package let givesPagesBack: Bool

  /// Inspects a store.
  init(reader: StoreReader, objects: [SchemaObject]) throws(SQLiteError) {
    self.objects = objects
    let prefix = SQLiteIdentifier.quoted(reader.schema) + "."
    internalTables = try reader.connection.rows(
      "SELECT name FROM \(prefix)sqlite_master WHERE type = 'table' AND name LIKE 'sqlite\\_%' ESCAPE '\\' LIMIT 100"
    ) { $0.text(at: 0) ?? "" }
    pages = try reader.connection.integer("PRAGMA \(prefix)page_count") ?? 0
    freePages = try reader.connection.integer("PRAGMA \(prefix)freelist_count") ?? 0
    givesPagesBack = try reader.connection.integer("PRAGMA \(prefix)auto_vacuum") ?? 0 != 0
  }
}
