// Demands of the destination's model that need no check: they follow from what the hop inserts, or a unique index that
// is built later would fail. A check costs a pass over the rows.

import MigrationPlanning
import PersistentStore
import SQLite

extension HopProgram {
  /// What the staged store shows of the source, as if it were views: of tables into which rows are inserted, and which
  /// no other statement writes. nil where policies write, whatever they like.
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
      case .validate, .index, .trigger: break
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

  /// Notes columns of the staged store that have a value in every row, for the hop that reads it.
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

/// What need not be asked of a staged store.
struct ImpliedConstraints {
  /// What the store shows of its source; nil where that is not known.
  let written: SourceTables?
  /// What was counted in the source.
  let counts: RowCountCache?
  /// The indexes that are built afterwards, if a violation stops the hop anyway.
  let indexes: [SchemaIndex]

  /// Is a demand met, or its violation told by an index?
  func contains(_ rule: ValidationRule) -> Bool {
    switch rule.code {
    case .missingValue:
      guard let written, let column = rule.column else { return false }
      return written.isPresent(column, of: rule.table, by: counts)
    case .uniqueness:
      // NULLs are equal to nothing in both.
      return indexes.contains { index in
        index.isUnique && index.table == rule.table && Set(index.columns.map(\.name)) == Set(rule.uniqueColumns)
      }
    default: return false
    }
  }
}
