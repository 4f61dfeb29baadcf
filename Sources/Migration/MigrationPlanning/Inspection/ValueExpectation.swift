// The number of values that each column of the finished store must hold, counted in the source. Only rows of entities
// that have the property count: a value in a sibling's row is not one of it. If a hop filters, inverts or moves a
// relationship there is no number, never a guess.

import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite

struct ValueExpectation {
  let migrationPath: MigrationPath
  let census: StoreCensus
  /// Rows per entity of the store.
  let rows: [String: Int64]
  /// Layout of the last version.
  let finalSchema: StoreSchema

  private var source: StoreSchema { migrationPath.sourceSchema }

  /// A number of values: some already known, the rest in columns of the source.
  private struct Sum {
    var known: Int64 = 0
    /// Entities of the store by table and column.
    var columns: [StoredColumn: Set<String>] = [:]
  }

  /// The source of a key column's values.
  private enum Trail {
    /// The relationship begins empty in some hop.
    case empty
    /// A column of the store; all of its values are carried.
    case column(StoredColumn)
    /// No exact number is known.
    case unknown
  }

  /// Returns the number of values per destination table and column, where it is certain.
  func valuesByColumn() throws(SQLiteError) -> [String: [String: Int64]] {
    // A store at the target is not written, so nothing will be compared.
    guard migrationPath.end > 0 else { return [:] }
    var sums: [(table: String, column: String, sum: Sum)] = []
    for table in finalSchema.tables {
      for column in table.columns {
        guard let sum = sum(of: column) else { continue }
        sums.append((table.name, column.name, sum))
      }
    }
    let counts = try counts(sums.map(\.sum))
    var values: [String: [String: Int64]] = [:]
    for (table, column, sum) in sums {
      values[table, default: [:]][column] = sum.columns.reduce(sum.known) { total, part in
        let request = request(part.key, entities: part.value)
        return total &+ (counts[part.key.table]?[request] ?? 0)
      }
    }
    return values
  }

  /// Counts in one pass over each table of the source.
  private func counts(_ sums: [Sum]) throws(SQLiteError) -> [String: [StoreCensus.CountRequest: Int64]] {
    var countRequests: [String: [StoreCensus.CountRequest]] = [:]
    for sum in sums {
      for (column, entities) in sum.columns {
        let request = request(column, entities: entities)
        if countRequests[column.table]?.contains(request) != true {
          countRequests[column.table, default: []].append(request)
        }
      }
    }
    var counts: [String: [StoreCensus.CountRequest: Int64]] = [:]
    for (table, requests) in countRequests {
      let answers = try census.values(requests, in: table)
      counts[table] = Dictionary(zip(requests, answers), uniquingKeysWith: { first, _ in first })
    }
    return counts
  }

  private func request(_ column: StoredColumn, entities: Set<String>) -> StoreCensus.CountRequest {
    let inTable = source.table(named: column.table)?.entities ?? []
    // If no other entity has rows in the table, a filter would only cost time.
    if inTable.allSatisfy({ entities.contains($0) || (rows[$0] ?? 0) == 0 }) {
      return StoreCensus.CountRequest(column: column.name, entities: nil)
    }
    return StoreCensus.CountRequest(
      column: column.name, entities: entities.compactMap { source.number(of: $0) }.sorted())
  }

  private func sum(of column: SchemaColumn) -> Sum? {
    switch column.role {
    case .attribute(let entity, let name): attributeSum(name, of: entity)
    case .toOne(let entity, let relationship): toOneSum(relationship, of: entity)
    case .owner(let entity, let relationship): ownerSum(relationship, of: entity)
    case .primaryKey, .entityNumber, .saveCount, .discriminator, .orderKey, .ownerOrder: nil
    }
  }

  /// Returns the entities at and below `entity` that have rows, with the store's entities that they continue.
  private func live(_ entity: String) -> [(final: String, stored: String, rows: Int64)] {
    guard let value = finalSchema.model.entity(named: entity) else { return [] }
    return finalSchema.model.subtree(of: value).compactMap { member in
      guard let stored = migrationPath.sourceEntity(of: member.name, at: migrationPath.end), let count = rows[stored],
        count > 0
      else { return nil }
      return (member.name, stored, count)
    }
  }

  // MARK: Attributes

  private func attributeSum(_ attribute: String, of entity: String) -> Sum? {
    // They are computed, not carried.
    if finalSchema.derivation(ofAttribute: attribute, in: entity)?.isComputed == true { return nil }
    var sum = Sum()
    if finalSchema.filteredCounts.contains(where: { $0.entity == entity && $0.attribute == attribute }) { return nil }
    for member in live(entity) {
      guard isDeclaredOnce(attribute, in: member.final) else { return nil }
      switch migrationPath.origin(ofAttribute: attribute, in: member.final, at: migrationPath.end) {
      case .null: continue
      case .constant(let value):
        guard value.isStored else { return nil }
        sum.known &+= member.rows
      case .column(_, _, .some(let fallback)):
        guard fallback.isStored else { return nil }
        sum.known &+= member.rows
      case .column(let table, let name, nil):
        sum.columns[StoredColumn(table: table, name: name), default: []].insert(member.stored)
      }
    }
    return sum
  }

  /// Whether no version of the chain declares the attribute a second time in a subentity. The default and the
  /// optionality of a column with two declarations are not known.
  private func isDeclaredOnce(_ attribute: String, in entity: String) -> Bool {
    var (entity, attribute) = (entity, attribute)
    for version in stride(from: migrationPath.end, through: 0, by: -1) {
      let model = migrationPath.models[version]
      guard let value = model.entity(named: entity) else { return false }
      let declarations = model.lineage(of: value).filter { ancestor in
        ancestor.attributes.contains { $0.name == attribute }
      }
      guard declarations.count == 1 else { return false }
      // A version between may compute a value that a later one carries on.
      if version > 0, version < migrationPath.end,
        declarations.first?.attributes.first(where: { $0.name == attribute })?.isDerived == true
      {
        return false
      }
      guard version > 0 else { return true }
      let mapping = migrationPath.mappings[version - 1].mapping(toDestination: entity)
      guard let before = mapping?.sourceEntity,
        let name = mapping?.attributes.first(where: { $0.destination == attribute })?.source
      else { return true }
      (entity, attribute) = (before, name)
    }
    return true
  }

  // MARK: Relationships

  private func toOneSum(_ relationship: String, of entity: String) -> Sum? {
    var sum = Sum()
    for member in live(entity) {
      switch trail(of: relationship, in: member.final, isOwnerColumn: false) {
      case .unknown: return nil
      case .empty: continue
      case .column(let column): sum.columns[column, default: []].insert(member.stored)
      }
    }
    return sum
  }

  /// Sums the rows that hold an owner's key: those of the relationship's destination.
  private func ownerSum(_ relationship: String, of owner: String) -> Sum? {
    guard let value = finalSchema.model.entity(named: owner),
      let destination = finalSchema.model.relationship(relationship, of: owner)?.destinationEntityName
    else { return nil }
    var origin: StoredColumn?
    var isEmpty = false
    for member in finalSchema.model.subtree(of: value) {
      guard migrationPath.sourceEntity(of: member.name, at: migrationPath.end) != nil else { continue }
      switch trail(of: relationship, in: member.name, isOwnerColumn: true) {
      case .unknown: return nil
      case .empty: isEmpty = true
      case .column(let column):
        if let origin, origin != column { return nil }
        origin = column
      }
    }
    var sum = Sum()
    guard let origin else { return sum }
    guard !isEmpty else { return nil }
    for member in live(destination) {
      guard source.table(of: member.stored)?.name == origin.table else { return nil }
      sum.columns[origin, default: []].insert(member.stored)
    }
    return sum
  }

  /// Follows a key column back while every hop carries all of its values on the same side.
  private func trail(of relationship: String, in entity: String, isOwnerColumn: Bool) -> Trail {
    var (entity, relationship) = (entity, relationship)
    for version in stride(from: migrationPath.end, to: 0, by: -1) {
      let mapping = migrationPath.mappings[version - 1]
      // A separate statement writes inverted pairs; it may reach rows of other entities too.
      let isTurned = mapping.entityMappings.contains { other in
        other.relationships.contains { $0.destination == relationship && $0.source?.isInverted == true }
      }
      if isTurned { return .unknown }
      guard
        let pairs = mapping.mapping(toDestination: entity)?.relationships
          .first(where: { $0.destination == relationship })?.source
      else { return .empty }
      guard let after = migrationPath.models[version].relationship(relationship, of: entity),
        let before = migrationPath.models[version - 1].relationship(pairs.relationship, of: pairs.entity),
        before.isToMany == after.isToMany, (before.inverseName == nil) == (after.inverseName == nil) || !isOwnerColumn
      else { return .unknown }
      if isOwnerColumn {
        guard allOwnersKeep(pairs, as: relationship, mapping: mapping, version: version) else { return .unknown }
      } else {
        guard allTargetsSurvive(before, after, mapping: mapping, version: version) else { return .unknown }
      }
      (entity, relationship) = (pairs.entity, pairs.relationship)
    }
    switch source.storage(ofRelationship: relationship, in: entity) {
    case .toOne(let columns, _) where !isOwnerColumn:
      return .column(StoredColumn(table: columns.table, name: columns.key))
    case .owned(let columns) where isOwnerColumn: return .column(StoredColumn(table: columns.table, name: columns.key))
    default: return .unknown
    }
  }

  private func allTargetsSurvive(
    _ before: Relationship, _ after: Relationship, mapping: InferredMapping, version: Int
  ) -> Bool {
    let (old, new) = (migrationPath.models[version - 1], migrationPath.models[version])
    guard let target = old.entity(named: before.destinationEntityName) else { return false }
    return old.subtree(of: target).filter { !$0.isAbstract }.allSatisfy { member in
      mapping.mapping(fromSource: member.name)?.destinationEntity.map {
        new.isEntity($0, within: after.destinationEntityName)
      } ?? false
    }
  }

  /// Whether all entities that could own a target still have the relationship.
  private func allOwnersKeep(
    _ pairs: RelationshipMapping.SourcePairs, as relationship: String, mapping: InferredMapping, version: Int
  ) -> Bool {
    let old = migrationPath.models[version - 1]
    guard let reached = old.entity(named: pairs.entity),
      let declaring = old.declaringEntity(of: pairs.relationship, in: reached)
    else { return false }
    return old.subtree(of: declaring).filter { !$0.isAbstract }.allSatisfy { owner in
      mapping.mapping(fromSource: owner.name)?.relationships.contains {
        $0.destination == relationship && $0.source?.relationship == pairs.relationship
      } ?? false
    }
  }
}

extension AttributeDefault {
  /// Whether a column stores it as a value. SQLite has no NaN and stores NULL in its place.
  fileprivate var isStored: Bool {
    switch self {
    case .double(let value), .date(let value): value.isFinite
    case .integer, .boolean, .decimal, .string, .uuid, .binary: true
    case .archived: false
    }
  }
}
