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
    let found = objects.filter { object in
      object.type == "table" && object.name.hasPrefix("Z_RT_")
        && object.sql?.uppercased().contains(" USING RTREE") == true
    }
    tables = Set(found.map(\.name))
    shadowTables = Set(found.flatMap { SchemaRTree.shadowTables(of: $0.name) })
    expected = Set(schema.rTreeIndexes.map(\.name))
    let names = tables
    var isShown = !schema.rTreeIndexes.isEmpty && !objects.contains { $0.type == "trigger" && $0.speaks(of: names) }
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
  /// Is one of the names a word of its text?
  fileprivate func speaks(of names: Set<String>) -> Bool {
    (sql ?? "").split { !($0.isLetter || $0.isNumber || $0 == "_" || $0 == "$") }.contains {
      names.contains(String($0))
    }
  }
}
