// What is known of the tables that a hop writes, from its inserts alone: where their rows come from, and which columns
// are carried unchanged. Checks that follow from that cost no pass over the rows.

import MigrationPlanning
import PersistentStore
import SQLite

/// The tables of a staged store that only insertions write.
struct WrittenTables: Sendable {
  /// Where the rows of a table come from: each from one row of one table of the source.
  struct Origin: Sendable {
    /// The table of the source.
    let table: String
    /// Columns that are carried unchanged, and their columns in the source.
    let carried: [String: String]
    /// Columns that have a value in every row, whatever the source contains.
    let present: Set<String>
    /// Entity numbers of the source's rows.
    let numbers: Set<Int64>
    /// Entity numbers of the table whose rows are all rows of a number of the source, each once, with that number.
    let whole: [Int64: Int64]
  }

  /// The tables of the source.
  let source: SourceTables
  private let origins: [String: Origin]

  /// Reads a hop's program; nil if policies write, because they may write anything.
  init?(_ program: HopProgram, of hop: Hop) {
    var rows: [String: [Insertion]] = [:]
    var touched: Set<String> = []
    for step in program.steps {
      switch step {
      case .copy(let copy): rows[copy.rows.table, default: []].append(copy.rows)
      case .chunks(let chunks):
        for action in chunks.actions {
          if let found = action.rows {
            rows[found.table, default: []].append(found)
          } else if case .rows(let table) = action.effect {
            touched.insert(table)
          }
        }
      case .update(let statement): if case .rows(let table) = statement.effect { touched.insert(table) }
      case .validate, .table, .index, .trigger: break
      case .policy: return nil
      }
    }
    source = program.source
    var origins: [String: Origin] = [:]
    let (entities, joins) = (hop.destinationSchema.tables, hop.destinationSchema.joinTables)
    for (table, columns, isJoin) in entities.map({ ($0.name, $0.columns.map(\.name), false) })
      + joins.map({ ($0.name, $0.columns, true) })
    where !touched.contains(table) {
      origins[table] = Origin(of: rows[table] ?? [], columns: columns, isJoin: isJoin)
    }
    self.origins = origins
  }

  /// The origin of a table's rows; nil where it is not known.
  func origin(of table: String) -> Origin? { origins[table] }

  /// Whether a column has a value in every row, by the inserts or by what is known of the source.
  func isPresent(_ column: String, of table: String, by counts: RowCountCache?) -> Bool {
    guard let origin = origins[table] else { return false }
    if origin.present.contains(column) { return true }
    guard let carried = origin.carried[column] else { return false }
    return counts?.isPresent(carried, of: source.qualified(origin.table)) ?? false
  }
}

extension WrittenTables.Origin {
  /// Returns nil unless all rows come from one table of the source, each insertion from rows of other entities.
  fileprivate init?(of rows: [Insertion], columns: [String], isJoin: Bool) {
    guard let first = rows.first, !rows.contains(where: \.mayRepeat),
      rows.allSatisfy({ $0.driver == first.driver && $0.sourceTable == first.sourceTable }),
      isJoin || rows.count == 1 || rows.allSatisfy({ $0.tables.count == 1 && $0.numbers.count == 1 })
    else { return nil }
    var carried: [String: String] = [:]
    var present: Set<String> = []
    for column in columns {
      let values = Set(rows.map { row in row.columns.first { $0.name == column }?.value })
      if values.count == 1, let value = values.first, let value, let name = value.column(of: "s") {
        carried[column] = name
      } else if values.allSatisfy({ $0?.isConstant ?? false }) {
        present.insert(column)
      }
    }
    let whole = rows.map(\.whole).reduce(into: [:]) { all, one in all.merge(one) { first, _ in first } }
    let numbers: Set<Int64> = rows.reduce(into: []) { $0.formUnion($1.numbers) }
    // Rows of a number that two insertions read would occur twice.
    let isTakenOnce = rows.reduce(0) { $0 + $1.numbers.count } == numbers.count
    self.init(
      table: first.sourceTable, carried: carried, present: present, numbers: numbers, whole: isTakenOnce ? whole : [:])
  }
}
