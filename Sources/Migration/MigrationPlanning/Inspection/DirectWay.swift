// If one version drops a property or entity and a later one has it again, the chain through all versions loses its
// values, while one direct hop keeps them, as Core Data does in an app without a migrator. The plan says how many.

import Diagnostics
import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite

extension HopdError.Code {
  /// The chain through the versions drops values that one direct hop keeps.
  package static let directWayKeeps = HopdError.Code("direct-way-keeps", severity: .note)
}

/// The values that the chain drops and one direct hop would keep.
struct DirectWay {
  /// One warning per property and entity.
  let warnings: [HopdError]

  /// Compares the drops of a chain with those of the direct hop; `direct` is nil if there is none.
  init(
    drops: DropCounting, direct: MigrationGraph.Edge?, sourceSchema: StoreSchema, census: StoreCensus,
    rows: [String: Int64]
  ) throws(SQLiteError) {
    guard let direct, direct.mapped == nil else {
      warnings = []
      return
    }
    let other = try DropCounting(
      migrationPath: MigrationPath(sourceSchema: sourceSchema, edges: [direct]), census: census, rows: rows)
    let lost = Set(other.drops.map { [$0.table, $0.column] })
    let title = "\(direct.source.model.name) → \(direct.destination.model.name)"
    func warning(_ count: Int64, _ noun: String, _ entity: String, _ property: String?) -> HopdError {
      HopdError(
        .directWayKeeps,
        "\(count) \(noun)\(count == 1 ? " is" : "s are") dropped in the chain through the versions; the direct hop "
          + "\(title) keeps \(count == 1 ? "it" : "them")",
        at: Place(entity: entity, property: property),
        hint: "pass --route direct (for the daemon: route = \"direct\") if the app migrates directly")
    }
    let columns = drops.drops.filter { $0.property != nil && $0.nonNull > 0 && !lost.contains([$0.table, $0.column]) }
      .map { warning($0.nonNull, "value", $0.entity, $0.property) }
    let entities = drops.droppedRows.sorted { $0.key < $1.key }
      .filter { $0.value > 0 && other.droppedRows[$0.key] == nil }
      .map { warning($0.value, "object", $0.key, nil) }
    warnings = columns + entities
  }
}
