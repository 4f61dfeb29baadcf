// Evidence from a real store for rules that are not certain. A layout without it uses only measured rules, and lists
// the rest as unsupported.

import ManagedObjectModel
import SQLite

/// Facts about a layout from a store that Core Data made, beyond the rules.
package struct ObservedLayout: Sendable, Hashable {
  /// Names outside ASCII whose upper-case form is in the store, or that need no proof.
  package var provenNames: Set<String>
  /// "Entity.attribute" of derived attributes that keep the values and triggers of the store.
  package var carriedDerivations: Set<String>
  /// Their triggers.
  package var carriedTriggers: [SchemaTrigger]
  /// Whether the store shows R-Tree tables of the documented form.
  package var hasRTrees: Bool

  /// Creates an observation, by default an empty one.
  package init(
    provenNames: Set<String> = [], carriedDerivations: Set<String> = [], carriedTriggers: [SchemaTrigger] = [],
    hasRTrees: Bool = false
  ) {
    self.provenNames = provenNames
    self.carriedDerivations = carriedDerivations
    self.carriedTriggers = carriedTriggers
    self.hasRTrees = hasRTrees
  }

  /// The observation for stores that only hopd reads, between the hops of a chain: every name counts as proven.
  package static func internalStore(of model: ManagedObjectModel) -> ObservedLayout {
    ObservedLayout(
      provenNames: Set(
        model.entities.flatMap { entity in
          [entity.name] + entity.attributes.map(\.ownName) + entity.relationships.map(\.name)
        }))
  }
}

/// A table or column whose name is the upper-case form of a name outside ASCII, or longer than any that was seen.
///
/// Core Data's conversion to upper case is unknown outside ASCII (docs/formats/store-layout.md, "Column names"): `ß`
/// may become `SS`, `ı` an `I` that another property has, and a composed letter may be decomposed.
package struct DoubtfulName: Sendable, Hashable {
  /// The name in the model.
  package let name: String
  /// The place where its upper-case form is expected.
  package let table: String
  package let column: String?
}

extension StoreReader {
  /// Returns the layout of the store as a store of the model, with what its own tables show beyond the rules.
  package func layout(of model: ManagedObjectModel, frameworkVersion: Int64) throws(SQLiteError) -> StoreSchema {
    let naming = try joinTableNaming(for: model, frameworkVersion: frameworkVersion)
    let named = StoreSchema(model: model, frameworkVersion: frameworkVersion, naming: naming)
    let proven = try provenNames(in: named)
    return proven.isEmpty
      ? named
      : StoreSchema(
        model: model, frameworkVersion: frameworkVersion, naming: naming, observed: ObservedLayout(provenNames: proven))
  }

  /// Returns the names outside ASCII of a model that the store has in exactly the predicted form.
  package func provenNames(in layout: StoreSchema) throws(SQLiteError) -> Set<String> {
    guard !layout.doubtfulNames.isEmpty else { return [] }
    let tables = Set(try schemaObjects().filter { $0.type == "table" }.map(\.name.utf8Key))
    var columns: [String: Set<[UInt8]>] = [:]
    var proven: Set<String> = []
    var unproven: Set<String> = []
    for doubt in layout.doubtfulNames {
      if columns[doubt.table] == nil {
        columns[doubt.table] = Set(try self.columns(of: doubt.table).map(\.name.utf8Key))
      }
      let isThere =
        tables.contains(doubt.table.utf8Key)
        && doubt.column.map { columns[doubt.table]?.contains($0.utf8Key) == true } ?? true
      if isThere { proven.insert(doubt.name) } else { unproven.insert(doubt.name) }
    }
    return proven.subtracting(unproven)
  }
}

extension String {
  /// The bytes: strings that are equivalent in Unicode are different names in SQLite.
  fileprivate var utf8Key: [UInt8] { Array(utf8) }
}
