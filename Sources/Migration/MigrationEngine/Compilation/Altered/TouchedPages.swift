// The one rule between altering a file and writing a new one: how many pages of the store a hop touches.

import MappingModel
import MigrationPlanning
import PersistentStore

/// The pages that a hop touches when it alters the file.
struct TouchedPages {
  let plan: MigrationPlan
  let hop: Hop
  let program: AlterProgram

  /// Throws if the hop touches more than three quarters of the pages: writing a new file is as fast then.
  func check() throws(AlterCompiler.Reason) {
    guard touched > 0.75 * (pages + schemaPages) else { return }
    let all = program.written.count + program.kept.count
    let changed = program.kept.count { !$0.isUnchanged } + program.written.count
    throw AlterCompiler.Reason("\(changed) of \(all) tables change, and most pages of the file")
  }

  private var pages: Double { Double(max(1, plan.found.pages)) }
  /// About 13 tables and indexes are described on a page.
  private var schemaPages: Double {
    let schema = hop.destinationSchema
    return 1 + Double(schema.tables.count + schema.joinTables.count + schema.indexes.count) / 13
  }

  /// A written table is read and written, one with new values changes where it stands; each new name and each new
  /// column makes SQLite write the schema again.
  private var touched: Double {
    let rows = hop.rowsByTable.mapValues { Double(max(0, $0)) }
    let each = pages / max(1, rows.values.reduce(0, +))
    func of(_ table: String) -> Double { (rows[table] ?? 0) * each }
    let (renames, columns) = program.alterations
    return program.written.filter { $0.reason != nil }.reduce(0) { $0 + of($1.name) }
      + program.kept.filter { !$0.values.isEmpty }.reduce(0) { $0 + of($1.name) / 2 }
      + Double(renames + columns) * schemaPages
  }
}

extension Hop {
  /// The rows of an inferred hop's result, by entity table.
  var rowsByTable: [String: Int64] {
    var rows: [String: Int64] = [:]
    for (mapping, cost) in zip(mapping.entityMappings, entities) {
      guard let name = mapping.destinationEntity.flatMap({ destinationSchema.table(of: $0)?.name }) else { continue }
      rows[name] = (rows[name] ?? 0) &+ cost.rows
    }
    return rows
  }
}
