// Checks that the store has the indexes of the model. Indexes are compared by effect, not by text: Apple's in-place
// migrations leave them under old names and in old spellings (docs/formats/store-layout.md, "Apple's migration in
// place"). A missing index makes an app slower, and a missing unique index loses its uniqueness.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite

/// Finds the indexes that a model requires.
struct IndexCheck {
  let reader: StoreReader
  let schema: StoreSchema

  /// Checks that the store has an index with the same effect for every index of the model.
  func check() throws(SQLiteError) -> VerificationCheck {
    let found = try reader.indexEffects(in: schema)
    let effects = Set(found.values)
    var problems: [String] = []
    for index in schema.indexes {
      let wanted = index.effect
      guard !effects.contains(wanted) else { continue }
      let name = "the \(index.isUnique ? "unique " : "")index \(index.name)"
      if let other = found[index.name.uppercased()] {
        problems.append(
          "\(name) on \(index.table) \(wanted.text) is \(other.isUnique ? "unique " : "")on \(other.table) "
            + "\(other.text)")
      } else {
        problems.append("\(name) on \(index.table) \(wanted.text) is missing")
      }
    }
    let unique = schema.indexes.count(where: \.isUnique)
    return VerificationCheck(
      name: "indexes", problems: problems,
      fine: "all \(schema.indexes.count) indexes of \(schema.model.name) exist (\(unique) unique)"
        + schema.indexesNotInspected(besides: schema.rTrees.count))
  }
}

extension StoreSchema {
  /// Returns half a sentence on the model's indexes that the check does not cover: those whose form in a store is not
  /// known, and `others`; empty if there are none.
  func indexesNotInspected(besides others: Int = 0) -> String {
    let count = unsupported.filter { $0.code == .indexLeftOut }.count + others
    return count == 0 ? "" : "; \(count) more of the model \(count == 1 ? "was" : "were") not checked"
  }
}
