// Estimates whether altering a copy is faster than writing all rows, from the rows of each table.

import MappingModel
import MigrationPlanning
import PersistentStore

/// Seconds on a machine of 2026. Only the proportions matter.
private enum WorkCost {
  /// A row that is read, made anew, and written; and each byte of it.
  static let row = 0.34e-6
  static let rowByte = 1.7e-9
  /// A row whose value is updated in place.
  static let updated = 0.45e-6
  /// A row in an index.
  static let indexed = 0.38e-6
  /// A table or an index that SQLite parses again when a name changes, or when a table gets a column.
  static let renamedObject = 8.0e-6
  static let extendedObject = 1.5e-6
  /// A byte that is copied from file to file.
  static let byte = 0.6e-9
}

/// The costs of a chain on a copy and by writing all rows.
struct AlterCost {
  let plan: MigrationPlan
  let program: AlterProgram

  /// Throws if writing all rows is as fast.
  func check(_ options: EngineOptions) throws(AlterCompiler.Reason) {
    guard program.needsViews || hasLongRowsToUpdate || alterations > 0 else { return }
    let (altered, written) = seconds
    guard altered < 0.9 * written else {
      let all = program.written.count + program.kept.count
      let changed = program.written.count + program.kept.count { !$0.values.isEmpty }
      throw AlterCompiler.Reason(
        "\(changed) of its \(all) tables would be written or get new values, and a copy would save too little")
    }
  }

  private var bytes: Double { Double(max(0, plan.estimate.bytes)) }

  private func rows(_ hop: Hop) -> [String: Double] { hop.rowsByTable.mapValues { Double(max(0, $0)) } }

  /// The seconds by `WorkCost`.
  private var seconds: (altered: Double, written: Double) {
    guard let last = plan.hops.last else { return (0, 0) }
    let rows = rows(last)
    let rowBytes = bytes / max(1, rows.values.reduce(0, +)) * WorkCost.rowByte
    func indexed(_ table: String, _ indexes: [SchemaIndex]) -> Double {
      (rows[table] ?? 0) * Double(indexes.count { $0.table == table }) * WorkCost.indexed
    }
    func written(_ table: String) -> Double {
      (rows[table] ?? 0) * (WorkCost.row + rowBytes) + indexed(table, last.destinationSchema.indexes)
    }
    let longRows = longRows
    let altered = program.kept.map { table in
      let values = WorkCost.updated + (longRows[table.name] ?? 0) * WorkCost.rowByte
      return (table.values.isEmpty ? 0 : (rows[table.name] ?? 0) * values)
        + indexed(table.name, program.createdIndexes)
    }
    return (
      bytes * WorkCost.byte + alterations + altered.reduce(0, +)
        + program.written.map { written($0.name) }.reduce(0, +),
      (program.kept.map(\.name) + program.written.map(\.name)).map(written).reduce(0, +)
    )
  }

  /// The seconds for new names and columns: for each, SQLite reads the texts of the whole schema again.
  private var alterations: Double {
    let (renames, columns) = program.alterations
    let objects = Double(plan.found.objects.count + program.written.count)
    let seconds = objects * (Double(renames) * WorkCost.renamedObject + Double(columns) * WorkCost.extendedObject)
    return seconds > Self.noticed ? seconds : 0
  }

  /// The seconds from which alterations count: writing all rows also has costs for each table.
  private static let noticed = 0.1

  private var hasLongRowsToUpdate: Bool {
    program.kept.contains { !$0.values.isEmpty && longRows[$0.name] != nil }
  }

  /// The bytes of a row, for tables whose rows do not fit in a page. SQLite writes all of such a row again for one new
  /// value. If the store is large enough for such rows on average, they are assumed to be in the tables with binary
  /// columns.
  private var longRows: [String: Double] {
    guard let last = plan.hops.last else { return [:] }
    let rows = rows(last)
    let tables = last.destinationSchema.tables
    let binary = tables.filter { $0.columns.contains { $0.declaredType == "BLOB" } }.map(\.name)
    let length = bytes / max(1, binary.reduce(0) { $0 + (rows[$1] ?? 0) })
    // In a store of a few pages, rows have the smaller part of the bytes.
    return bytes >= Self.largeStore && length > Self.pageBytes
      ? Dictionary(binary.map { ($0, length) }) { first, _ in first } : [:]
  }

  /// The page size of stores that Core Data makes.
  private static let pageBytes = 4096.0
  /// The bytes from which most of a store is rows.
  private static let largeStore = 1_048_576.0
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
