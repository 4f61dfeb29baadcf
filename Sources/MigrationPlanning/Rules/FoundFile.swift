// The store's file as it is there, beyond what its version says: how its tables were written down and how full it is.
// The rows of a file may be carried in it as they are, and that depends on both.

import PersistentStore
import SQLite

/// A store's file as it was found.
package struct FoundFile: Sendable, Hashable {
  /// Everything in sqlite_master but SQLite's own tables.
  package let objects: [SchemaObject]
  /// Tables of SQLite's own, as sqlite_stat1.
  package let internalTables: [String]
  /// Pages, and those of them that hold nothing.
  package let pages: Int64
  package let freePages: Int64
  /// Are pages given back that hold nothing any more? (auto_vacuum)
  package let givesPagesBack: Bool

  /// Looks at a store.
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
  /// The property that a column is for, with the entity that declares it; nil for a column of every row.
  package var property: (entity: String, name: String)? {
    switch self {
    case .attribute(let entity, let name), .toOne(let entity, let name), .discriminator(let entity, let name),
      .orderKey(let entity, let name), .owner(let entity, let name):
      (entity, name)
    case .primaryKey, .entityNumber, .saveCount: nil
    }
  }
}
