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

extension SchemaColumn.Role {
  /// The property that a column stores, with the entity that declares it; nil for a column of every row.
  package var property: (entity: String, name: String)? {
    switch self {
    case .attribute(let entity, let name), .toOne(let entity, let name), .discriminator(let entity, let name),
      .orderKey(let entity, let name), .owner(let entity, let name), .ownerOrder(let entity, let name):
      (entity, name)
    case .primaryKey, .entityNumber, .saveCount: nil
    }
  }
}
