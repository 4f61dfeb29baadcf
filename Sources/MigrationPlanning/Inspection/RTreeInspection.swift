// The R-Tree tables of a store, and whether they show that the documented form holds (docs/decisions/0013).

import PersistentStore
import SQLite

struct RTreeInspection {
  /// R-Tree tables with the name that Core Data's would have, those of dropped indexes among them.
  let tables: Set<String>
  /// The tables in which SQLite keeps them.
  let shadowTables: Set<String>
  /// May a new store have R-Trees by the same rule?
  ///
  /// Every R-Tree index of the model has a table here, each has the documented columns, and none is kept by triggers,
  /// whose form would not be known.
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

  /// Does the table belong to no index of the model?
  func isStale(_ name: String) -> Bool { tables.contains(name) && !expected.contains(name) }

  /// Does a trigger keep an R-Tree of the store?
  func owns(trigger name: String) -> Bool {
    tables.contains { name.hasPrefix($0 + "_") }
  }
}

extension SchemaObject {
  /// Is it a virtual table of SQLite's R-Tree module, and of no other?
  ///
  /// SQLite keeps the text from the name on as it was typed. The words alone prove nothing: they may be in a default
  /// value of a plain table, and everything in that table would be lost.
  fileprivate var isRTree: Bool {
    let start = "CREATE VIRTUAL TABLE "
    guard type == "table", let sql, sql.hasPrefix(start) else { return false }
    let text = sql.dropFirst(start.count)
    guard let written = [name, SQLiteIdentifier.quoted(name)].first(where: { text.hasPrefix($0) }) else { return false }
    let words = text.dropFirst(written.count).split(maxSplits: 2) { $0.isWhitespace || $0 == "(" }
    return words.count == 3 && text.dropFirst(written.count).first?.isWhitespace == true
      && words[0].uppercased() == "USING" && words[1].uppercased() == "RTREE"
  }

  /// Is one of the names a word of its text?
  fileprivate func mentions(_ names: Set<String>) -> Bool {
    (sql ?? "").split { !($0.isLetter || $0.isNumber || $0 == "_" || $0 == "$") }.contains {
      names.contains(String($0))
    }
  }
}
