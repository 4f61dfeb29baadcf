// Rules of the destination's model that need no check: they follow from the hop's inserts, or a unique index that is
// built later would fail. A check costs a pass over the rows.

import MigrationPlanning
import PersistentStore
import SQLite

extension HopProgram {
  /// Records the columns of the staged store that have a value in every row, for the hop that reads it.
  func notePresent(_ hop: Hop, in counts: RowCountCache) {
    guard let written = WrittenTables(self, of: hop) else { return }
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
  /// What is known of the store's tables; nil if nothing is.
  let written: WrittenTables?
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
