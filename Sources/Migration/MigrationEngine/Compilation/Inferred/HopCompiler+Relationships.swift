// The relationships of a hop. Each is a set of pairs (owner, target). Core Data keeps the pairs in a column on a to-one
// side, in a join table, or in a column with the owner's key. A hop reads the pairs from the source's storage and
// writes them to the destination's.

import Diagnostics
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

extension HopCompiler {
  /// A column of a to-one.
  enum ToOnePart { case key, number, order }

  /// Returns the source's storage of a copy's pairs.
  func pairs(of relationship: String, entityCopy: EntityCopy) -> RelationshipMapping.SourcePairs? {
    entityCopy.mapping.relationships.first { $0.destination == relationship }?.source
  }

  /// Returns the declared destination of a source relationship.
  func destinationEntity(of pairs: RelationshipMapping.SourcePairs) -> Entity? {
    hop.source.entity(named: pairs.entity)
      .flatMap { hop.source.allRelationships(of: $0)[pairs.relationship] }
      .flatMap { hop.source.entity(named: $0.destinationEntityName) }
  }

  // MARK: To-one

  mutating func toOneExpression(
    _ entity: String, _ relationship: String, column: SchemaColumn, table: EntityTable, entityCopies: [EntityCopy],
    part: ToOnePart
  ) throws(HopdError) -> SQLExpression? {
    guard let declaring = hop.destination.entity(named: entity),
      let value = declaring.relationships.first(where: { $0.name == relationship })
    else { return nil }
    let subtree = Set(hop.destination.subtree(of: declaring).map(\.name))
    var cases: [(number: Int64, expression: SQLExpression)] = []
    var columns: Set<String> = []
    for entityCopy in entityCopies where subtree.contains(entityCopy.destination.name) {
      guard let source = pairs(of: relationship, entityCopy: entityCopy) else {
        cases.append((entityCopy.sourceNumber, .null))
        continue
      }
      let storage = hop.sourceSchema.storage(ofRelationship: source.relationship, in: source.entity)
      let target: (columns: ToOneColumns, entity: Entity?)
      switch (storage, source.isInverted) {
      case (.toOne(let own, _), false): target = (own, destinationEntity(of: source))
      case (.members(let columns), true), (.owned(let columns), true):
        // The to-one itself has no source, but its inverse has: the same column under another name.
        target = (columns, hop.source.entity(named: source.entity))
      default:
        try addToOneUpdate(source, column: column, value: value, entity: entity, table: table, part: part)
        continue
      }
      columns.insert(target.columns.key)
      let key = SQLExpression.column(target.columns.key)
      let filtered = filteredKey(key, source: target.entity, destination: value.destinationEntityName)
      switch part {
      case .key: cases.append((entityCopy.sourceNumber, filtered))
      case .order:
        if let order = target.columns.orderKey {
          let kept = SQLExpression.column(order)
          // A reference that is cleared has no position in the order either.
          cases.append(
            (entityCopy.sourceNumber, filtered == key ? kept : "CASE WHEN \(filtered) IS NOT NULL THEN \(kept) END"))
        } else {
          addOrderUpdate(order: column.name, relationship: value, entity: entity, table: table)
        }
      case .number:
        cases.append(
          (
            entityCopy.sourceNumber,
            targetNumber(
              key: key, filteredKey: filtered,
              discriminator: source.isInverted ? nil : target.columns.discriminator, source: target.entity)
          ))
      }
    }
    // Siblings that lose the relationship must clear its key, or the other end would still find them by it.
    let others = entityCopies.filter { !subtree.contains($0.destination.name) && hasToOne(in: columns, $0.source) }
    return choose(cases + others.map { ($0.sourceNumber, .null) }, otherwise: nil)
  }

  /// Fills a to-one from the rows of the other end, or from a join table.
  private mutating func addToOneUpdate(
    _ source: RelationshipMapping.SourcePairs, column: SchemaColumn, value: Relationship, entity: String,
    table: EntityTable, part: ToOnePart
  ) throws(HopdError) {
    let kept = part == .order ? stored(source)?.pairs.inverseOrder : nil
    switch part {
    case .number: addDiscriminatorUpdate(column: column.name, value: value, entity: entity, table: table)
    case .order where kept == nil:
      addOrderUpdate(order: column.name, relationship: value, entity: entity, table: table)
    case .key, .order:
      try addPairUpdate(
        source, column: column.name, of: .owner, table: table, entity: entity, value.name,
        destination: value.destinationEntityName, value: kept)
    }
  }

  /// Whether the entity has a to-one with its key in one of the columns.
  private func hasToOne(in columns: Set<String>, _ entity: Entity) -> Bool {
    hop.source.allRelationships(of: entity).keys.contains { name in
      switch hop.sourceSchema.storage(ofRelationship: name, in: entity.name) {
      case .toOne(let own, _), .owned(let own): columns.contains(own.key)
      default: false
      }
    }
  }

  /// The source numbers of the entities below `source` that are migrated into the tree of `destination`, with their new
  /// numbers.
  func survivors(of source: Entity, in destination: String) -> (map: [Int64: Int64], isComplete: Bool) {
    let wanted = Set(
      hop.destination.entity(named: destination).map { hop.destination.subtree(of: $0).map(\.name) } ?? [])
    var map: [Int64: Int64] = [:]
    var isComplete = true
    for entity in hop.source.subtree(of: source) {
      guard let number = hop.sourceSchema.number(of: entity.name) else { continue }
      if let name = hop.mapping.mapping(fromSource: entity.name)?.destinationEntity, wanted.contains(name),
        let new = hop.destinationSchema.number(of: name)
      {
        map[number] = new
      } else if !entity.isAbstract {
        // An abstract entity has no rows, so no target is lost if it is removed.
        isComplete = false
      }
    }
    return (map, isComplete)
  }

  /// The key of a target; NULL if the target's entity is not migrated.
  private func filteredKey(_ key: SQLExpression, source: Entity?, destination: String) -> SQLExpression {
    guard let source, let table = hop.sourceSchema.table(of: source.name) else { return key }
    let (map, isComplete) = survivors(of: source, in: destination)
    if isComplete { return key }
    return "CASE WHEN \(entityNumber(of: key, in: table)) IN (\(list(map.keys))) THEN \(key) END"
  }

  /// The entity number of the row with that key.
  private func entityNumber(of key: SQLExpression, in table: EntityTable) -> SQLExpression {
    .query("SELECT t.\"Z_ENT\" FROM \(source.qualified(table.name)) AS t WHERE t.\"Z_PK\" = \(key)")
  }

  /// The new entity number of a to-one's target.
  private func targetNumber(
    key: SQLExpression, filteredKey: SQLExpression, discriminator: String?, source: Entity?
  ) -> SQLExpression {
    guard let source else { return .null }
    var map: [Int64: Int64] = [:]
    for entity in hop.source.subtree(of: source) {
      guard let number = hop.sourceSchema.number(of: entity.name),
        let name = hop.mapping.mapping(fromSource: entity.name)?.destinationEntity,
        let new = hop.destinationSchema.number(of: name)
      else { continue }
      map[number] = new
    }
    let guardedBy = filteredKey == key ? key : filteredKey
    if let discriminator {
      let renumbered = renumbering(of: .column(discriminator), map)
      return filteredKey == key ? renumbered : "CASE WHEN \(guardedBy) IS NOT NULL THEN \(renumbered) END"
    }
    if map.count == 1, let number = map.values.first {
      return "CASE WHEN \(guardedBy) IS NOT NULL THEN \(number) END"
    }
    guard let table = hop.sourceSchema.table(of: source.name) else { return .null }
    return .query(
      "SELECT \(renumbering(of: .column("Z_ENT", of: "t"), map)) FROM \(self.source.qualified(table.name)) AS t"
        + " WHERE t.\"Z_PK\" = \(guardedBy)")
  }

  // MARK: To-many without inverse

  /// Returns the column with the owner's key, or with the place in the owner's order, in the table of the
  /// relationship's destination.
  ///
  /// The declaring entity may differ between the versions: the relationship may come from a subentity, or from a
  /// parent. So the entities that own it now decide: which of them have pairs, and where these are stored.
  mutating func ownerExpression(
    _ entity: String, _ relationship: String, column: SchemaColumn, table: EntityTable, part: ToOnePart
  ) throws(HopdError) -> SQLExpression? {
    guard let declaring = hop.destination.entity(named: entity),
      let ownerTable = hop.destinationSchema.table(of: entity)
    else { return nil }
    let subtree = Set(hop.destination.subtree(of: declaring).map(\.name))
    let having = entityCopies(into: ownerTable).filter {
      subtree.contains($0.destination.name) && pairs(of: relationship, entityCopy: $0) != nil
    }
    let owners = Set(having.map(\.sourceNumber))
    let sources = declaredPairs(of: relationship, having)
    guard let source = sources.first else { return nil }
    guard sources.count == 1 else {
      throw refuse(
        "it continues several relationships of the source, and the column for the owner has room for one", entity,
        relationship)
    }
    let (columns, declared): (ToOneColumns, Entity?)
    switch (hop.sourceSchema.storage(ofRelationship: source.relationship, in: source.entity), source.isInverted) {
    case (.owned(let found), false), (.members(let found), false):
      (columns, declared) = (found, hop.source.entity(named: source.entity))
    case (.toOne(let own, _), true): (columns, declared) = (own, destinationEntity(of: source))
    default:
      guard let destination = declaring.relationships.first(where: { $0.name == relationship })?.destinationEntityName
      else { return nil }
      let kept = part == .order ? stored(source)?.pairs.order : nil
      if part == .order, kept == nil {
        addOwnerOrderUpdate(column.name, relationship, of: entity)
      } else {
        try addPairUpdate(
          source, column: column.name, of: .target, table: table, entity: entity, relationship,
          destination: destination, value: kept)
      }
      return nil
    }
    let key = ownerKey(.column(columns.key), declared: declared, owners)
    guard part == .order else { return key }
    guard let order = columns.orderKey else {
      addOwnerOrderUpdate(column.name, relationship, of: entity)
      return nil
    }
    // A target that loses its owner has no place in an order either.
    return key == .column(columns.key)
      ? .column(order) : "CASE WHEN \(key) IS NOT NULL THEN \(SQLExpression.column(order)) END"
  }

  /// Adds an update for a to-many without inverse that becomes ordered.
  private mutating func addOwnerOrderUpdate(_ order: String, _ relationship: String, of entity: String) {
    guard case .owned(let columns)? = hop.destinationSchema.storage(ofRelationship: relationship, in: entity) else {
      return
    }
    addOrderUpdate(
      order: order, partition: columns.key, by: "Z_PK", table: columns.table, subject: "\(entity).\(relationship)")
  }

  /// The key of an owner; NULL if the owner's entity no longer has the relationship.
  private func ownerKey(_ key: SQLExpression, declared: Entity?, _ owners: Set<Int64>) -> SQLExpression {
    guard let declared, let table = hop.sourceSchema.table(of: declared.name) else { return key }
    let possible = hop.source.subtree(of: declared).filter { !$0.isAbstract }
      .compactMap { hop.sourceSchema.number(of: $0.name) }
    if owners.isSuperset(of: possible) { return key }
    return "CASE WHEN \(entityNumber(of: key, in: table)) IN (\(list(owners))) THEN \(key) END"
  }

  /// Names the relationship by the topmost entity that declares it, because subentities inherit its storage.
  private func declared(_ pairs: RelationshipMapping.SourcePairs) -> RelationshipMapping.SourcePairs {
    let owner =
      hop.sourceSchema.storingEntity(ofRelationship: pairs.relationship, in: pairs.entity)
      ?? hop.source.declarer(of: pairs.relationship, in: pairs.entity)
    return RelationshipMapping.SourcePairs(
      entity: owner, relationship: pairs.relationship, isInverted: pairs.isInverted)
  }

  /// Returns the sources of the copies' pairs, each once.
  func declaredPairs(of relationship: String, _ entityCopies: [EntityCopy]) -> [RelationshipMapping.SourcePairs] {
    var sources: [RelationshipMapping.SourcePairs] = []
    for entityCopy in entityCopies {
      guard let source = pairs(of: relationship, entityCopy: entityCopy).map(declared), !sources.contains(source) else {
        continue
      }
      sources.append(source)
    }
    return sources
  }

  /// Returns the storage of pairs in a hop's source, with the declared entities at both ends.
  func stored(
    _ pairs: RelationshipMapping.SourcePairs
  ) -> (pairs: StoredPairs, owner: Entity, target: Entity)? {
    guard let stored = hop.sourceSchema.pairs(ofRelationship: pairs.relationship, in: pairs.entity),
      let owner = hop.source.entity(named: pairs.entity), let target = destinationEntity(of: pairs)
    else { return nil }
    return pairs.isInverted ? (stored.inverted, target, owner) : (stored, owner, target)
  }

  /// Adds an update that sets the other end of pairs in the rows of `table`, from another table of the source or, with
  /// `value`, from another column of the pairs. `end` is the end of a pair that the rows are.
  private mutating func addPairUpdate(
    _ source: RelationshipMapping.SourcePairs, column: String, of end: StoredPairs.End, table: EntityTable,
    entity: String, _ relationship: String, destination: String, value: String? = nil
  ) throws(HopdError) {
    guard let found = stored(source) else {
      throw refuse("its pairs are not found in the source", entity, relationship)
    }
    let pairs = found.pairs
    let from = pairs.source(self.source.qualified(pairs.table))
    let (here, there) = end == .owner ? (pairs.owner, pairs.target) : (pairs.target, pairs.owner)
    let (hereKey, thereKey) = (SQLExpression.column(here, of: "o"), SQLExpression.column(there, of: "o"))
    var conditions: [SQLExpression] = ["\(hereKey) IS NOT NULL", "\(thereKey) IS NOT NULL"]
    conditions += survivalConditions(
      .column(pairs.owner, of: "o"), of: found.owner, in: entity, isRow: pairs.row == .owner, alias: "o")
    conditions += survivalConditions(
      .column(pairs.target, of: "o"), of: found.target, in: destination, isRow: pairs.row == .target,
      alias: "o")
    let taken = conditions.joined(separator: " AND ")
    let precondition = HopProgram.Precondition(
      sql: "SELECT \(hereKey.text) FROM \(from) AS o WHERE \(taken.text) GROUP BY 1 HAVING count(*) > 1 LIMIT 1",
      message: "several objects belong to the same one, and only one of them could be kept", entity: entity,
      property: relationship)
    if value == nil { preconditions.append(precondition) }
    let written = value.map { SQLExpression.column($0, of: "o") } ?? thereKey
    let update = HopProgram.StatementStep(
      subject: "\(entity).\(relationship)", .rows(of: table.name),
      "UPDATE \(qualified(table.name, in: destinationSchema)) SET \(SQLiteIdentifier.quoted(column)) = \(written)"
        + " FROM \(from) AS o WHERE \(hereKey) = \(SQLiteIdentifier.quoted(table.name)).\"Z_PK\" AND \(taken)")
    if !updates.contains(update) { updates.append(update) }
  }

  /// Adds an update of the discriminator of a column that an update fills.
  private mutating func addDiscriminatorUpdate(
    column: String, value: Relationship, entity: String, table: EntityTable
  ) {
    guard let key = hop.destinationSchema.storage(ofRelationship: value.name, in: entity)?.ownColumns?.key,
      let target = hop.destinationSchema.table(of: value.destinationEntityName)
    else { return }
    let update = HopProgram.StatementStep(
      subject: "\(entity).\(value.name)", .rows(of: table.name),
      "UPDATE \(qualified(table.name, in: destinationSchema)) SET \(SQLiteIdentifier.quoted(column)) ="
        + " (SELECT t.\"Z_ENT\" FROM \(qualified(target.name, in: destinationSchema)) AS t WHERE t.\"Z_PK\" ="
        + " \(SQLiteIdentifier.quoted(table.name)).\(SQLiteIdentifier.quoted(key)))"
        + " WHERE \(SQLiteIdentifier.quoted(key)) IS NOT NULL")
    if !updates.contains(update) { updates.append(update) }
  }

  // MARK: Order keys

  /// Adds an update for a to-many that becomes ordered: its targets are numbered by Z_PK. The order that Core Data
  /// would choose is not known.
  mutating func addOrderUpdate(order: String, relationship: Relationship, entity: String, table: EntityTable) {
    guard let key = hop.destinationSchema.storage(ofRelationship: relationship.name, in: entity)?.ownColumns?.key
    else { return }
    addOrderUpdate(
      order: order, partition: key, by: "Z_PK", table: table.name, subject: "\(entity).\(relationship.name)")
  }

  mutating func addOrderUpdate(order: String, partition: String, by: String, table: String, subject: String) {
    let name = qualified(table, in: destinationSchema)
    let (order, partition) = (SQLiteIdentifier.quoted(order), SQLiteIdentifier.quoted(partition))
    let keys = OrderKey.numbering(
      partition: "\(partition)", order: "\(SQLiteIdentifier.quoted(by)), rowid")
    let update = HopProgram.StatementStep(
      subject: subject, .rows(of: table),
      "UPDATE \(name) SET \(order) = n.k FROM (SELECT rowid AS r, \(keys) AS k FROM \(name)"
        + " WHERE \(partition) IS NOT NULL) AS n WHERE n.r = \(SQLiteIdentifier.quoted(table)).rowid")
    if !updates.contains(update) { updates.append(update) }
  }
}
