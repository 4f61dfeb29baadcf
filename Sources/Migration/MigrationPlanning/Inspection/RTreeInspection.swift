// The R-Tree tables of a store, and whether they prove the documented form (docs/decisions/0013).

import PersistentStore
import SQLite

struct RTreeInspection {
  /// R-Tree tables with a name such as Core Data gives, including those of dropped indexes.
  let tables: Set<String>
  /// The tables in which SQLite stores them.
  let shadowTables: Set<String>
  /// Whether a new store may have R-Trees by the same rule.
  ///
  /// Every R-Tree index of the model has a table here, each has the documented columns, and no trigger maintains one:
  /// the form of such triggers is not known.
  let showsForm: Bool

  private let expected: Set<String>

  init(schema: StoreSchema, objects: [SchemaObject], reader: StoreReader) throws(SQLiteError) {
    let found = objects.filter { $0.name.hasPrefix("Z_RT_") && $0.isRTree }
    tables = Set(found.map(\.name))
    shadowTables = Set(found.flatMap { SchemaRTree.shadowTables(of: $0.name) })
    expected = Set(schema.rTreeIndexes.map(\.name))
    let names = tables
    var isShown = !schema.rTreeIndexes.isEmpty && !objects.contains { $0.type == "trigger" && $0.mentions(names) }
    for rTree in schema.rTreeIndexes where isShown {
      let columns = try reader.columns(of: rTree.name).map(\.name)
      isShown = tables.contains(rTree.name) && columns == rTree.columns
    }
    showsForm = isShown
  }

  /// Whether the table belongs to no index of the model.
  func isStale(_ name: String) -> Bool { tables.contains(name) && !expected.contains(name) }

  /// Whether the trigger maintains an R-Tree of the store.
  func owns(trigger name: String) -> Bool {
    tables.contains { name.hasPrefix($0 + "_") }
  }
}

extension SchemaObject {
  /// Whether it is a virtual table of SQLite's R-Tree module, and of no other.
  ///
  /// SQLite keeps the text after the words CREATE VIRTUAL TABLE as it was typed. The words of the module alone prove
  /// nothing: they may be in a default value of a plain table, and all data in that table would be lost.
  fileprivate var isRTree: Bool {
    let start = "CREATE VIRTUAL TABLE "
    guard type == "table", let sql, sql.hasPrefix(start) else { return false }
    let text = sql.dropFirst(start.count)
    guard let written = [name, SQLiteIdentifier.quoted(name)].first(where: { text.hasPrefix($0) }) else { return false }
    let words = text.dropFirst(written.count).split(maxSplits: 2) { $0.isWhitespace || $0 == "(" }
    return words.count == 3 && text.dropFirst(written.count).first?.isWhitespace == true
      && words[0].uppercased() == "USING" && words[1].uppercased() == "RTREE"
  }

  /// Whether one of the names is a word of its text.
  fileprivate func mentions(_ names: Set<String>) -> Bool {
    (sql ?? "").split { !($0.isLetter || $0.isNumber || $0 == "_" || $0 == "$") }.contains {
      names.contains(String($0))
    }
  }
}
