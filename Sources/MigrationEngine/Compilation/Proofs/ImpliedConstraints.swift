// Rules of the destination's model that need no check: they follow from the hop's inserts, or a unique index that is
// built later would fail. A check costs a pass over the rows.

import MigrationPlanning
import PersistentStore
import SQLite

extension HopProgram {
  /// Returns the staged store's tables described as views over the source: those that only insertions write. nil if
  /// policies write, because they may write anything.
  func written(_ hop: Hop) -> SourceTables? {
    var rows: [Insertion] = []
    var touched: Set<String> = []
    for step in steps {
      switch step {
      case .copy(let copy): rows.append(copy.rows)
      case .chunks(let chunks):
        rows += chunks.actions.compactMap(\.rows)
        for case .rows(let table) in chunks.actions.filter({ $0.rows == nil }).map(\.effect) { touched.insert(table) }
      case .update(let statement): if case .rows(let table) = statement.effect { touched.insert(table) }
      case .validate, .table, .index, .trigger: break
      case .policy: return nil
      }
    }
    let tables = ViewTable.all(of: hop.destinationSchema, rows: rows).filter {
      $0.obstacle == nil && !touched.contains($0.table)
    }
    var origins: [String: SourceTables.Origin] = [:]
    for table in tables { origins[table.table] = table.origin }
    return SourceTables.views(ofHop: hop.index, over: source, origins: origins)
  }

  /// Records the columns of the staged store that have a value in every row, for the hop that reads it.
  func notePresent(_ hop: Hop, in counts: RowCountCache) {
    guard let written = written(hop) else { return }
    let staged = SourceTables.schema(destination)
    for table in hop.destinationSchema.tables {
      for column in table.columns where written.isPresent(column.name, of: table.name, by: counts) {
        counts.keepPresent(column.name, of: staged.qualified(table.name))
      }
    }
  }
}

/// The rules that need no check in a staged store.
struct ImpliedConstraints {
  /// The store's tables described as views over its source; nil if that is not known.
  let written: SourceTables?
  /// The counts made in the source.
  let counts: RowCountCache?
  /// The indexes that are built afterwards, if a violation stops the hop in any case.
  let indexes: [SchemaIndex]

  /// Whether a rule is met, or an index would report its violation.
  func contains(_ rule: ValidationRule) -> Bool {
    switch rule.code {
    case .missingValue:
      guard let written, let column = rule.column else { return false }
      return written.isPresent(column, of: rule.table, by: counts)
    case .uniqueness:
      // NULL equals nothing in both.
      return indexes.contains { index in
        index.isUnique && index.table == rule.table && Set(index.columns.map(\.name)) == Set(rule.uniqueColumns)
      }
    default: return false
    }
  }
}
