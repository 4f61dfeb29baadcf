// The R-Tree tables of a store, and whether they prove the documented form (docs/decisions/0013).

import ManagedObjectModel
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
    // Those of locations have names of their own (docs/formats/store-layout.md, "R-Tree indexes").
    let starts = ["Z_RT_"] + schema.model.entities.map { "Z_\($0.name)_" }
    let found = objects.filter { object in object.isRTree && starts.contains { object.name.hasPrefix($0) } }
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
  /// Whether one of the names is a word of its text.
  fileprivate func mentions(_ names: Set<String>) -> Bool {
    (sql ?? "").split { !($0.isLetter || $0.isNumber || $0 == "_" || $0 == "$") }.contains {
      names.contains(String($0))
    }
  }
}
