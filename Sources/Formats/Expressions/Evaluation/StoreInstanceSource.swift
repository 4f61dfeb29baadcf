// Reads the objects of a store one value at a time through prepared statements: slower than SQL over many rows, but the
// reference for it. It uses a connection that may be executing another statement, which SQLite allows.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite

/// Reads the objects of one store.
package final class StoreInstanceSource: InstanceSource {
  private let reader: StoreReader
  private let schema: StoreSchema
  private let entityNames: [Int64: String]
  private var statements: [String: Statement] = [:]
  private var attributes: [PropertyKey: (attribute: Attribute, sql: String)] = [:]
  private var relationships: [PropertyKey: String?] = [:]

  /// Reads the store with the layout of `schema`.
  package init(reader: StoreReader, schema: StoreSchema) {
    self.reader = reader
    self.schema = schema
    entityNames = schema.entityNames
  }

  /// Returns the object of a row, by the row's entity number.
  package func object(number: Int64, key: Int64) throws(HopdError) -> InstanceID {
    guard let entity = entityNames[number] else {
      throw HopdError(
        .storeDamaged, "a row has the entity number \(number), which no entity of the model has", at: Place(row: key),
        hint: "restore the store from a backup")
    }
    return InstanceID(entity: entity, key: key)
  }

  package func value(ofAttribute name: String, in object: InstanceID) throws -> ExpressionValue {
    let key = PropertyKey(entity: object.entity, property: name)
    let (attribute, sql) = try attributes[key] ?? attribute(key)
    attributes[key] = (attribute, sql)
    let statement = try statement(sql)
    try statement.bind([.integer(object.key)])
    defer { statement.reset() }
    return try statement.step() ? StorageForm.value(statement.value(at: 0), of: attribute) : .null
  }

  private func attribute(_ key: PropertyKey) throws -> (Attribute, String) {
    guard let entity = schema.model.entity(named: key.entity), let table = schema.table(of: key.entity),
      let attribute = schema.model.allAttributes(of: entity)[key.property],
      let column = schema.column(ofAttribute: key.property, in: key.entity)
    else { throw HopdError.invalid("\(key.entity) has no stored attribute \(key.property)") }
    let text = "SELECT \(SQLiteIdentifier.quoted(column)) FROM \(reader.qualified(table.name)) WHERE Z_PK = ?"
    return (attribute, text)
  }

  package func objects(ofRelationship name: String, in object: InstanceID) throws -> [InstanceID] {
    let key = PropertyKey(entity: object.entity, property: name)
    let sql = try relationships[key] ?? relationship(key)
    relationships[key] = .some(sql)
    guard let sql else { return [] }
    let statement = try statement(sql)
    try statement.bind([.integer(object.key)])
    defer { statement.reset() }
    var found: [InstanceID] = []
    while try statement.step() {
      found.append(try self.object(number: statement.integer(at: 1), key: statement.integer(at: 0)))
    }
    return found
  }

  /// Returns the query for a relationship's objects; nil if it has no storage.
  private func relationship(_ key: PropertyKey) throws -> String? {
    guard let entity = schema.model.entity(named: key.entity), let table = schema.table(of: key.entity),
      let relationship = schema.model.allRelationships(of: entity)[key.property],
      let storage = schema.storage(ofRelationship: key.property, in: key.entity),
      let target = schema.table(of: relationship.destinationEntityName)
    else { throw HopdError.invalid("\(key.entity) has no stored relationship \(key.property)") }
    let quoted = SQLiteIdentifier.quoted
    let start = "SELECT t.Z_PK, t.Z_ENT FROM \(reader.qualified(target.name)) AS t "
    // Members of entities that the destination does not include are left out; a root entity includes its whole table.
    let numbers = schema.numbersOfSubtree(of: relationship.destinationEntityName).map(String.init)
    let membership =
      target.rootEntity == relationship.destinationEntityName
      ? "" : " AND t.Z_ENT IN (\(numbers.joined(separator: ", ")))"
    switch storage {
    case .toOne(let own, _):
      return start + "JOIN \(reader.qualified(table.name)) AS s ON t.Z_PK = s.\(quoted(own.key)) WHERE s.Z_PK = ?"
        + membership
    case .members(let columns), .owned(let columns):
      let order = columns.orderKey.map { "t.\(quoted($0)), " } ?? ""
      return start + "WHERE t.\(quoted(columns.key)) = ?\(membership) ORDER BY \(order)t.Z_PK"
    case .join(let join):
      let order = join.order.map { "j.\(quoted($0)), " } ?? ""
      return start + "JOIN \(join.pairs(in: reader.qualified(join.table))) AS j ON t.Z_PK = j.\(quoted(join.target)) "
        + "WHERE j.\(quoted(join.owner)) = ?\(membership) ORDER BY \(order)t.Z_PK"
    }
  }

  private func statement(_ sql: String) throws(SQLiteError) -> Statement {
    if let known = statements[sql] { return known }
    let made = try reader.connection.prepare(sql)
    statements[sql] = made
    return made
  }
}
