// What SQLite makes of a table's CREATE statement: its columns and its key. It follows from the text alone, and the
// stores of one app have the same texts, so each text is asked for once in a process.

import SQLite
import Synchronization

/// The columns and the key of a table.
package struct TableShape: Sendable {
  /// A column as SQLite declares it.
  package struct Column: Sendable {
    package let name: String
    /// The declared type, as written.
    package let type: String
    /// Whether it is part of the primary key.
    package let isKey: Bool
  }

  /// The columns in order.
  package let columns: [Column]
  /// Whether an index stands for the primary key, which is not the rowid then.
  package let hasKeyIndex: Bool
  /// Whether the table is WITHOUT ROWID.
  package let isWithoutRowID: Bool

  /// Whether Z_PK is the rowid.
  package var isKeyedByRowID: Bool {
    let keys = columns.filter(\.isKey)
    return keys.count == 1 && keys.first?.name == "Z_PK" && keys.first?.type.uppercased() == "INTEGER" && !hasKeyIndex
  }

  /// The shapes by the text that made the table.
  private static let known = Mutex<[String: TableShape]>([:])
  /// Texts kept, and the bytes of the longest: a fleet has the versions of a few apps, and a stranger's store may have
  /// any text.
  private static let (most, longest) = (1024, 16_384)

  fileprivate static func known(_ text: String) -> TableShape? { known.withLock { $0[text] } }

  fileprivate static func keep(_ shape: TableShape, for text: String) {
    guard text.utf8.count <= longest else { return }
    known.withLock { known in
      if known.count >= most { known = [:] }
      known[text] = shape
    }
  }
}

/// The rows of sqlite_master that a reader has read, and the schema version at which it did.
final class SchemaCatalog {
  var version: Int64?
  var objects: [SchemaObject] = []
}

extension StoreReader {
  /// Returns the shape of a table of the store.
  package func shape(of table: String) throws(SQLiteError) -> TableShape {
    let text = try schemaObjects().first { $0.type == "table" && $0.name == table }?.sql
    if let text, let known = TableShape.known(text) { return known }
    let names = [SQLiteValue.text(table), .text(schema)]
    let columns = try connection.rows("SELECT name, type, pk FROM pragma_table_info(?, ?)", names) { row in
      TableShape.Column(name: row.text(at: 0) ?? "", type: row.text(at: 1) ?? "", isKey: row.integer(at: 2) > 0)
    }
    let indexes = try connection.integer("SELECT count(*) FROM pragma_index_list(?, ?) WHERE origin = 'pk'", names)
    let lacksRowID = try connection.integer(
      "SELECT wr FROM pragma_table_list WHERE name = ? AND schema = ?", names)
    let shape = TableShape(columns: columns, hasKeyIndex: indexes != 0, isWithoutRowID: lacksRowID == 1)
    if let text { TableShape.keep(shape, for: text) }
    return shape
  }
}
