// The counts that a migration path will need, as far as they are known before any rows are counted, so that one pass
// takes them all. A count that is missing here is taken later in a pass of its own, which only costs time.

import ManagedObjectModel
import MappingModel
import PersistentStore

extension MigrationPath {
  /// Returns the columns whose values will be counted, for those of the store's tables that have rows of one entity
  /// only: columns that some hop drops, and with `expectsValues` all of them, because the result is compared with them.
  ///
  /// In the other tables, the rows to count depend on which entities have any.
  func countRequests(expectsValues: Bool) -> [String: [StoreCensus.CountRequest]] {
    let single = Set(
      sourceSchema.tables.filter { table in
        table.entities.filter { sourceSchema.model.entity(named: $0)?.isAbstract == false }.count == 1
      }.map(\.name))
    var columns: [String: Set<String>] = [:]
    if expectsValues, end > 0 {
      for table in sourceSchema.tables {
        for column in table.columns {
          switch column.role {
          case .attribute, .toOne, .owner: columns[table.name, default: []].insert(column.name)
          case .primaryKey, .entityNumber, .saveCount, .discriminator, .orderKey, .ownerOrder: continue
          }
        }
      }
    } else {
      for column in droppedColumns() { columns[column.table, default: []].insert(column.name) }
    }
    return columns.filter { single.contains($0.key) }.mapValues { names in
      names.sorted().map { StoreCensus.CountRequest(column: $0, entities: nil) }
    }
  }

  private func droppedColumns() -> [StoredColumn] {
    var columns: [StoredColumn] = []
    for (hop, mapping) in mappings.enumerated() {
      for part in mapping.entityMappings where part.destinationEntity != nil {
        guard let entity = part.sourceEntity else { continue }
        for name in part.droppedAttributes {
          if case .column(let table, let column, _) = origin(ofAttribute: name, in: entity, at: hop) {
            columns.append(StoredColumn(table: table, name: column))
          }
        }
        for name in part.droppedRelationships {
          guard let origin = origin(ofRelationship: name, in: entity, at: hop),
            let own = sourceSchema.storage(ofRelationship: origin.relationship, in: origin.entity)?.ownColumns
          else { continue }
          columns.append(StoredColumn(table: own.table, name: own.key))
        }
      }
    }
    return columns
  }
}
