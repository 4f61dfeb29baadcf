// Join tables of an inferred hop.

import Diagnostics
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

extension HopCompiler {
  /// Returns the copies that fill a join table: one per column or table of the source that holds its pairs.
  mutating func joinSteps(into join: JoinTable) throws(HopdError) -> [HopProgram.CopyStep] {
    guard let table = hop.destinationSchema.table(of: join.entity) else { return [] }
    let declaring = hop.destination.entity(named: join.entity)
    let subtree = Set(declaring.map { hop.destination.subtree(of: $0).map(\.name) } ?? [])
    let entityCopies = entityCopies(into: table).filter { subtree.contains($0.destination.name) }
    var steps: [HopProgram.CopyStep] = []
    for source in declaredPairs(of: join.relationship, entityCopies) {
      guard let found = stored(source) else {
        throw refuse("its pairs are not found in the source", join.entity, join.relationship)
      }
      let pairs = found.pairs
      steps.append(copyStep(into: join, read: pairs, owner: found.owner, target: found.target))
      // The rows of a relationship that stays its own inverse are kept as they are. One that becomes so, or no longer
      // is, needs each pair in both directions.
      guard pairs.isOwnInverse != join.isOwnInverse else { continue }
      let known: SQLExpression =
        "NOT EXISTS (SELECT 1 FROM \(self.source.qualified(pairs.table)) AS x WHERE"
        + " \(SQLExpression.column(pairs.owner, of: "x")) = \(SQLExpression.column(pairs.target)) AND"
        + " \(SQLExpression.column(pairs.target, of: "x")) = \(SQLExpression.column(pairs.owner)))"
      steps.append(
        copyStep(into: join, read: pairs.inverted, owner: found.target, target: found.owner, conditions: [known]))
    }
    return steps
  }

  private mutating func copyStep(
    into join: JoinTable, read: StoredPairs, owner: Entity, target: Entity, conditions further: [SQLExpression] = []
  ) -> HopProgram.CopyStep {
    let column = { (name: String) in SQLExpression.column(name) }
    var columns = [
      Insertion.Column(join.ownerColumn, column(read.owner)),
      Insertion.Column(join.targetColumn, column(read.target)),
    ]
    for (wanted, found, partition, by) in [
      (join.orderColumn, read.order, join.ownerColumn, join.targetColumn),
      (join.inverseOrderColumn, read.inverseOrder, join.targetColumn, join.ownerColumn),
    ] {
      guard let wanted else { continue }
      if let found {
        columns.append(Insertion.Column(wanted, column(found)))
      } else {
        addOrderUpdate(order: wanted, partition: partition, by: by, table: join.name, subject: join.name)
      }
    }
    var conditions: [SQLExpression] = ["\(column(read.owner)) IS NOT NULL", "\(column(read.target)) IS NOT NULL"]
    conditions += survivalConditions(column(read.owner), of: owner, in: join.entity, isRow: read.row == .owner)
    conditions += survivalConditions(
      column(read.target), of: target, in: join.inverseEntity, isRow: read.row == .target)
    conditions += further
    return HopProgram.CopyStep(
      subject: join.name,
      rows: Insertion(
        table: join.name, columns: columns, tables: ["\(self.source.qualified(read.table)) AS s"],
        sourceTable: read.table, conditions: conditions,
        rangeKey: read.row == nil ? "s.rowid" : "s.\"Z_PK\"",
        driver: read.row == nil ? self.source.driver(ofJoin: read.table) : self.source.driver(of: read.table)),
      schema: destinationSchema)
  }

  /// Returns conditions that exclude pairs from a join table if an end is not migrated.
  func survivalConditions(
    _ key: SQLExpression, of source: Entity, in destination: String, isRow: Bool, alias: String = "s"
  ) -> [SQLExpression] {
    let (map, isComplete) = survivors(of: source, in: destination)
    guard let table = hop.sourceSchema.table(of: source.name) else { return [] }
    if isRow {
      // The row itself is the end: its entity number shows whether it has the relationship.
      let all = Set(table.entities.compactMap { hop.sourceSchema.number(of: $0) })
      return Set(map.keys) == all ? [] : ["\(alias).\"Z_ENT\" IN (\(list(map.keys)))"]
    }
    if isComplete { return [] }
    return [
      "(SELECT t.\"Z_ENT\" FROM \(self.source.qualified(table.name)) AS t WHERE t.\"Z_PK\" = \(key))"
        + " IN (\(list(map.keys)))"
    ]
  }
}
