// Is altering a copy faster than writing all rows? Told by the rows of each table, with the proportions by which the
// time to go is told too.

import MappingModel
import MigrationPlanning
import PersistentStore

/// What a chain costs on a copy and by its rows.
struct AlterCost {
  let plan: MigrationPlan
  let program: AlterProgram

  /// Throws where the rows' way is as fast.
  func check(_ options: EngineOptions) throws(AlterCompiler.Reason) {
    guard program.needsViews else { return }
    guard plan.estimate.bytes > options.smallStoreMax else {
      throw AlterCompiler.Reason("the store is small enough to be built in memory")
    }
    let (altered, written) = seconds
    guard altered < 0.9 * written else {
      let tables = program.written.count
      throw AlterCompiler.Reason(
        "\(tables) of its \(tables + program.kept.count) tables have to be written, and a copy would save too little")
    }
  }

  /// Seconds on the imagined machine of `WorkCost`.
  private var seconds: (altered: Double, written: Double) {
    guard let last = plan.hops.last else { return (0, 0) }
    let bytes = Double(max(0, plan.estimate.bytes))
    let rows = last.rowsByTable.mapValues { Double(max(0, $0)) }
    let rowBytes = bytes / max(1, rows.values.reduce(0, +)) * WorkCost.rowByte
    func indexed(_ table: String, _ indexes: [SchemaIndex]) -> Double {
      (rows[table] ?? 0) * Double(indexes.count { $0.table == table }) * WorkCost.indexed
    }
    func written(_ table: String) -> Double {
      (rows[table] ?? 0) * (WorkCost.row + rowBytes) + indexed(table, last.destinationSchema.indexes)
    }
    let altered = program.kept.map { table in
      (table.values.isEmpty ? 0 : (rows[table.name] ?? 0) * WorkCost.updated)
        + indexed(table.name, program.createdIndexes)
    }
    return (
      bytes * WorkCost.byte + altered.reduce(0, +) + program.written.map { written($0.name) }.reduce(0, +),
      (program.kept.map(\.name) + program.written.map(\.name)).map(written).reduce(0, +)
    )
  }
}

extension Hop {
  /// Rows of an inferred hop's result, by table of entities.
  var rowsByTable: [String: Int64] {
    var rows: [String: Int64] = [:]
    for (mapping, cost) in zip(mapping.entityMappings, entities) {
      guard let name = mapping.destinationEntity.flatMap({ destinationSchema.table(of: $0)?.name }) else { continue }
      rows[name] = (rows[name] ?? 0) &+ cost.rows
    }
    return rows
  }
}
