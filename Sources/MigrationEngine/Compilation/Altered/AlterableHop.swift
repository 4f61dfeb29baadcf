// Does a hop leave every row as it is, but for columns that are added? Looked at column by column and relationship by
// relationship: whatever `HopCompiler` would write as anything but the column itself is a reason against it.

import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

struct AlterableHop {
  typealias Reason = AlterCompiler.Reason

  let hop: Hop

  private var source: StoreSchema { hop.sourceSchema }
  private var destination: StoreSchema { hop.destinationSchema }

  /// The columns that the hop adds, in the layout's order; throws the first thing that is more than that.
  func addedColumns() throws(Reason) -> [AlterProgram.AddedColumn] {
    guard hop.mapped == nil else {
      throw Reason(hop.hook == nil ? "it follows mapping models" : "a program changes its objects")
    }
    guard hop.computed.isEmpty, source.derivations.isEmpty, destination.derivations.isEmpty else {
      throw Reason("there are derived attributes")
    }
    try checkEntities()
    var added: [AlterProgram.AddedColumn] = []
    for table in destination.tables {
      guard let before = source.tables.first(where: { $0.name == table.name }),
        before.entities.map(source.number) == table.entities.map(destination.number)
      else { throw Reason("the table \(table.name) is new, or has other entities") }
      guard before.uniqueConstraints == table.uniqueConstraints else {
        throw Reason("the constraints in the table \(table.name) change")
      }
      added += try addedColumns(of: table, before: before)
    }
    try checkJoinTables()
    return added
  }

  private func checkEntities() throws(Reason) {
    for entity in hop.destination.entities {
      let mapping = hop.mapping.mapping(toDestination: entity.name)
      guard let before = mapping?.sourceEntity else { throw Reason("the entity \(entity.name) is new") }
      guard isSame(before, entity.name) else { throw Reason("the entity \(entity.name) gets another number") }
    }
    if let gone = hop.mapping.entityMappings.first(where: { $0.destinationEntity == nil }) {
      throw Reason("the entity \(gone.sourceEntity ?? gone.name) is removed")
    }
    guard source.numbers.count == destination.numbers.count, source.tables.count == destination.tables.count else {
      throw Reason("its entities change")
    }
  }

  /// Do an entity of the source and one of the destination have the same number?
  private func isSame(_ before: String, _ after: String) -> Bool {
    guard let number = source.number(of: before) else { return false }
    return number == destination.number(of: after)
  }

  // MARK: Columns

  private func addedColumns(of table: EntityTable, before: EntityTable) throws(Reason) -> [AlterProgram.AddedColumn] {
    let after = Dictionary(table.columns.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    for column in before.columns {
      guard let same = after[column.name] else { throw Reason("the column \(table.name).\(column.name) is removed") }
      guard same.declaredType == column.declaredType, isCarried(column, as: same, table: table) else {
        throw Reason("the column \(table.name).\(column.name) changes")
      }
    }
    let known = Set(before.columns.map(\.name))
    var added: [AlterProgram.AddedColumn] = []
    for column in table.columns where !known.contains(column.name) {
      guard case .attribute(let entity, let name) = column.role else {
        throw Reason("the column \(table.name).\(column.name) of a relationship is new")
      }
      added.append(try addedColumn(column, of: table, entity: entity, attribute: name))
    }
    return added
  }

  private func addedColumn(
    _ column: SchemaColumn, of table: EntityTable, entity: String, attribute: String
  ) throws(Reason) -> AlterProgram.AddedColumn {
    let members = mappings(below: entity)
    guard let value = hop.destination.entity(named: entity)?.attributes.first(where: { $0.name == attribute }),
      !members.isEmpty, members.allSatisfy({ source(of: attribute, in: $0) == nil })
    else { throw Reason("\(entity).\(attribute) gets values from elsewhere") }
    let literal = SQLExpression.defaultValue(of: value)
    if value.defaultValue != nil, literal == nil {
      throw Reason("the default of \(entity).\(attribute) is an object of the app")
    }
    // The rows' way leaves out siblings, where one value for all rows would break the constraint.
    if literal != nil, isUnique(column.name, in: table) {
      throw Reason("\(entity).\(attribute) has a default and must be unique")
    }
    return AlterProgram.AddedColumn(
      table: table.name, column: column.name, declaredType: column.declaredType, literal: literal)
  }

  private func isUnique(_ column: String, in table: EntityTable) -> Bool {
    table.uniqueConstraints.contains { $0.contains(column) }
      || destination.indexes.contains { index in
        index.isUnique && index.table == table.name && index.columns.contains { $0.name == column }
      }
  }

  private func isCarried(_ before: SchemaColumn, as after: SchemaColumn, table: EntityTable) -> Bool {
    switch (before.role, after.role) {
    case (.primaryKey, .primaryKey), (.entityNumber, .entityNumber), (.saveCount, .saveCount): true
    case (.attribute(let old, _), .attribute(let new, let name)):
      isSame(old, new) && isCarried(attribute: name, of: new, column: before.name)
        // The rows' way clears siblings there, which may have kept values of an attribute that they no longer have.
        && !(isUnique(after.name, in: table) && table.entities.count > mappings(below: new).count)
    case (.toOne(let old, _), .toOne(let new, let name)):
      isSame(old, new)
        && isCarried(relationship: name, of: new) { storage in
          storage.ownColumns.map { $0.table == table.name && $0.key == before.name } ?? false
        }
    case (.discriminator(let old, _), .discriminator(let new, let name)):
      isSame(old, new)
        && isCarried(relationship: name, of: new) { storage in
          storage.ownColumns.map { $0.table == table.name && $0.discriminator == before.name } ?? false
        }
    case (.orderKey(let old, _), .orderKey(let new, let name)):
      isSame(old, new)
        && isCarried(relationship: name, of: new) { storage in
          storage.ownColumns.map { $0.table == table.name && $0.orderKey == before.name } ?? false
        }
    case (.owner(let old, _), .owner(let new, let name)):
      isSame(old, new)
        && isCarried(relationship: name, of: new) { storage in
          guard case .owned(let columns) = storage else { return false }
          return columns.table == table.name && columns.key == before.name
        }
    default: false
    }
  }

  private func isCarried(attribute: String, of entity: String, column: String) -> Bool {
    guard let value = hop.destination.entity(named: entity)?.attributes.first(where: { $0.name == attribute }) else {
      return false
    }
    let members = mappings(below: entity)
    return !members.isEmpty
      && members.allSatisfy { mapping in
        guard let old = mapping.sourceEntity, let name = source(of: attribute, in: mapping),
          source.column(ofAttribute: name, in: old) == column,
          let before = hop.source.entity(named: old).flatMap({ hop.source.allAttributes(of: $0)[name] })
        else { return false }
        // Nils would take the default.
        let fillsNils = before.isOptional && !value.isOptional && value.defaultValue != nil
        return before.type == value.type && before.hasExternalForm == value.hasExternalForm && !fillsNils
      }
  }

  /// The attribute mapping's source.
  private func source(of attribute: String, in mapping: EntityMapping) -> String? {
    mapping.attributes.first { $0.destination == attribute }?.source
  }

  /// The mappings of an entity and of everything below it.
  private func mappings(below entity: String) -> [EntityMapping] {
    guard let value = hop.destination.entity(named: entity) else { return [] }
    return hop.destination.subtree(of: value).compactMap { hop.mapping.mapping(toDestination: $0.name) }
  }

  // MARK: Relationships

  /// Do all owners of the relationship have it from one that is stored in the same place and points to the same entity?
  private func isCarried(
    relationship: String, of entity: String, _ isSameStorage: (RelationshipStorage) -> Bool
  ) -> Bool {
    guard
      let value = hop.destination.entity(named: entity)?.relationships.first(where: { $0.name == relationship })
    else { return false }
    let members = mappings(below: entity)
    return !members.isEmpty
      && members.allSatisfy { mapping in
        guard let pairs = mapping.relationships.first(where: { $0.destination == relationship })?.source,
          !pairs.isInverted, let storage = source.storage(ofRelationship: pairs.relationship, in: pairs.entity),
          let before = hop.source.entity(named: pairs.entity)
            .flatMap({ hop.source.allRelationships(of: $0)[pairs.relationship] })
        else { return false }
        return isSameStorage(storage) && isSame(before.destinationEntityName, value.destinationEntityName)
      }
  }

  private func checkJoinTables() throws(Reason) {
    guard source.joinTables.count == destination.joinTables.count else {
      throw Reason("its join tables change")
    }
    for join in destination.joinTables {
      guard let before = source.joinTables.first(where: { $0.name == join.name }),
        before.createStatement == join.createStatement, isSame(before.entity, join.entity),
        isSame(before.inverseEntity, join.inverseEntity),
        isCarried(
          relationship: join.relationship, of: join.entity,
          { storage in
            guard case .join(let found) = storage else { return false }
            return found.isOwner && found.join == before
          })
      else { throw Reason("the join table \(join.name) changes") }
    }
  }
}
