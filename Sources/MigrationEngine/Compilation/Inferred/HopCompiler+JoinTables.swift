// Join tables of an inferred hop.

import Diagnostics
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

extension HopCompiler {
  /// The copies that fill a join table: one per place where the source keeps pairs of it.
  mutating func joinSteps(into join: JoinTable) throws(HopdError) -> [HopProgram.CopyStep] {
    guard let table = hop.destinationSchema.table(of: join.entity) else { return [] }
    let declaring = hop.destination.entity(named: join.entity)
    let subtree = Set(declaring.map { hop.destination.subtree(of: $0).map(\.name) } ?? [])
    var sources: [RelationshipMapping.SourcePairs] = []
    for lane in lanes(into: table) where subtree.contains(lane.destination.name) {
      guard let pairs = pairs(of: join.relationship, lane: lane) else { continue }
      let canonical = canonical(pairs)
      if !sources.contains(canonical) { sources.append(canonical) }
    }
    var steps: [HopProgram.CopyStep] = []
    for source in sources { steps.append(try joinStep(into: join, from: source)) }
    return steps
  }

  private mutating func joinStep(
    into join: JoinTable, from pairs: RelationshipMapping.SourcePairs
  ) throws(HopdError) -> HopProgram.CopyStep {
    guard let storage = hop.sourceSchema.storage(ofRelationship: pairs.relationship, in: pairs.entity),
      let sourceOwner = hop.source.entity(named: pairs.entity), let sourceTarget = destinationEntity(of: pairs)
    else { throw refuse("its pairs are not found in the source", join.entity, join.relationship) }
    var read: PairSource
    switch storage {
    case .join(let table, let isOwner):
      read = PairSource(
        table: table.name, key: nil, owner: isOwner ? table.ownerColumn : table.targetColumn,
        target: isOwner ? table.targetColumn : table.ownerColumn,
        order: isOwner ? table.orderColumn : table.inverseOrderColumn,
        inverseOrder: isOwner ? table.inverseOrderColumn : table.orderColumn, ownerIsRow: nil)
    case .toOne(let table, let column, _, let order):
      read = PairSource(
        table: table, key: "Z_PK", owner: "Z_PK", target: column, order: nil, inverseOrder: order, ownerIsRow: true)
    case .inverseOfToOne(let table, let column, let order):
      read = PairSource(
        table: table, key: "Z_PK", owner: column, target: "Z_PK", order: order, inverseOrder: nil, ownerIsRow: false)
    case .ownerColumn(let table, let column):
      read = PairSource(
        table: table, key: "Z_PK", owner: column, target: "Z_PK", order: nil, inverseOrder: nil, ownerIsRow: false)
    }
    var ends = (owner: sourceOwner, target: sourceTarget)
    if pairs.isInverted {
      read = read.inverted
      ends = (sourceTarget, sourceOwner)
    }
    return copyStep(into: join, read: read, owner: ends.owner, target: ends.target)
  }

  private mutating func copyStep(
    into join: JoinTable, read: PairSource, owner: Entity, target: Entity
  ) -> HopProgram.CopyStep {
    let column = { (name: String) in "s." + SQLiteIdentifier.quoted(name) }
    var columns = [
      Insertion.Column(join.ownerColumn, column(read.owner), isExact: true),
      Insertion.Column(join.targetColumn, column(read.target), isExact: true),
    ]
    for (wanted, found, partition, by) in [
      (join.orderColumn, read.order, join.ownerColumn, join.targetColumn),
      (join.inverseOrderColumn, read.inverseOrder, join.targetColumn, join.ownerColumn),
    ] {
      guard let wanted else { continue }
      if let found {
        columns.append(Insertion.Column(wanted, column(found), isExact: true))
      } else {
        addOrderUpdate(order: wanted, partition: partition, by: by, table: join.name, subject: join.name)
      }
    }
    var conditions: [String] = ["\(column(read.owner)) IS NOT NULL", "\(column(read.target)) IS NOT NULL"]
    conditions += survivalConditions(column(read.owner), of: owner, in: join.entity, isRow: read.ownerIsRow == true)
    conditions += survivalConditions(
      column(read.target), of: target, in: join.inverseEntity, isRow: read.ownerIsRow == false)
    return HopProgram.CopyStep(
      subject: join.name,
      rows: Insertion(
        into: join.name, columns: columns, from: ["\(self.source.qualified(read.table)) AS s"],
        sourceTable: read.table, where: conditions,
        rangeKey: read.key.map(column) ?? "s.\(self.source.joinRangeColumn)",
        driver: read.key == nil ? self.source.driver(ofJoin: read.table) : self.source.driver(of: read.table)),
      schema: destinationSchema)
  }

  /// Conditions that keep pairs whose end does not survive out of a join table.
  private func survivalConditions(_ key: String, of source: Entity, in destination: String, isRow: Bool) -> [String] {
    let (map, isComplete) = survivors(of: source, in: destination)
    guard let table = hop.sourceSchema.table(of: source.name) else { return [] }
    if isRow {
      // The row itself is the end: its own entity number says whether it belongs to the relationship.
      let all = Set(table.entities.compactMap { hop.sourceSchema.number(of: $0) })
      return Set(map.keys) == all ? [] : ["s.\"Z_ENT\" IN (\(list(map.keys)))"]
    }
    if isComplete { return [] }
    return [
      "(SELECT t.\"Z_ENT\" FROM \(self.source.qualified(table.name)) AS t WHERE t.\"Z_PK\" = \(key))"
        + " IN (\(list(map.keys)))"
    ]
  }
}
