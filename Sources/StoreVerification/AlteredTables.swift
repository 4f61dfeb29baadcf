// What the tables of a copy that was altered in place must look like: each text follows from the store's own and from
// the columns that every hop's layout has and the one before has not. Worked out again here, not asked of the engine.

import MigrationPlanning
import PersistentStore

/// Expected texts of tables.
enum AlteredTables {
  /// By table name; a table that is not in the store has none and must be the layout's.
  static func texts(of plan: MigrationPlan) -> [String: String] {
    var texts = Dictionary(
      plan.found.objects.filter { $0.type == "table" }.compactMap { object in object.sql.map { (object.name, $0) } },
      uniquingKeysWith: { first, _ in first })
    for hop in plan.hops {
      let before = Dictionary(
        hop.sourceSchema.tables.map { ($0.name, Set($0.columns.map(\.name))) }, uniquingKeysWith: { first, _ in first })
      for table in hop.destinationSchema.tables {
        guard let known = before[table.name], let text = texts[table.name] else { continue }
        let added = table.columns.filter { !known.contains($0.name) }
        texts[table.name] = TableText.appending(
          added.map { TableText.definition(of: $0.name, type: $0.declaredType) }, to: text)
      }
    }
    let wanted = plan.hops.last?.destinationSchema
    let names = Set((wanted?.tables.map(\.name) ?? []) + (wanted?.joinTables.map(\.name) ?? []))
    return texts.filter { names.contains($0.key) }
  }
}
