// Reads objects of the source or of the staged store for policies: attributes and to-ones in one row, to-manys on
// demand.

import Diagnostics
import ManagedObjectModel
import MigrationEngine
import MigrationPolicy
import PersistentStore
import SQLite

/// Reads the external files of values that are sent to a policy.
struct PolicyExternalContent {
  let directory: ExternalDataDirectory?
  let limit: Int64

  func callAsFunction(_ name: ExternalFileName) throws -> [UInt8] {
    guard let directory else {
      throw HopdError(
        .externalDataMissing, "the value is in an external file, and the store's directory for them is not at hand",
        hint: "keep the _SUPPORT directory next to the store")
    }
    return try directory.content(of: name, limit: limit)
  }
}

/// The columns and conversions of one entity's objects.
final class PolicyRowForm {
  let shape: PolicyShape
  private let side: PolicySide
  private let targetEntity: PolicyTargetEntity
  private let external: PolicyExternalContent
  /// The names of the columns, without alias, in the order in which `read` expects them.
  let columns: [String]
  /// The properties that are read.
  private let attributes: [PolicyShape.AttributeSlot]
  private let toOnes: [(name: String, link: PolicyLink, hasDiscriminator: Bool)]

  /// Reads all attributes and to-ones, or those that are named.
  init(
    _ shape: PolicyShape, of side: PolicySide, only names: Set<String>? = nil, targets: PolicyTargetEntity,
    external: PolicyExternalContent
  ) {
    self.shape = shape
    self.side = side
    self.external = external
    targetEntity = targets
    attributes = shape.attributes.filter { names?.contains($0.name) ?? true }
    var columns = attributes.map(\.column)
    var toOnes: [(String, PolicyLink, Bool)] = []
    for slot in shape.toOnes where names?.contains(slot.name) ?? true {
      guard let own = slot.link.storage.ownColumns else { continue }
      columns.append(own.key)
      if let discriminator = own.discriminator { columns.append(discriminator) }
      toOnes.append((slot.name, slot.link, own.discriminator != nil))
    }
    self.columns = columns
    self.toOnes = toOnes
  }

  /// Returns the select list, with an alias before each column.
  func selectList(alias: String) -> [String] {
    columns.map { SQLiteIdentifier.quoted(alias) + "." + SQLiteIdentifier.quoted($0) }
  }

  /// Returns the values of the current row, whose columns begin at `offset`, and adds their size to `weight`.
  func read(_ row: Statement, at offset: Int32, key: Int64, weight: inout Int) throws -> [String: PolicyValue] {
    var values = [String: PolicyValue](minimumCapacity: attributes.count + toOnes.count)
    var column = offset
    for slot in attributes {
      let value = try self.value(of: slot.form, in: row, at: column, key: key)
      weight = weight &+ value.weight
      values[slot.name] = value
      column += 1
    }
    for toOne in toOnes {
      values[toOne.name] = try target(toOne.link, toOne.hasDiscriminator, row, &column)
      weight = weight &+ 48
    }
    return values
  }

  private func target(
    _ link: PolicyLink, _ hasDiscriminator: Bool, _ row: Statement, _ column: inout Int32
  ) throws -> PolicyValue {
    let target: Int64? = row.isNull(at: column) ? nil : row.integer(at: column)
    column += 1
    var number: Int64?
    if hasDiscriminator {
      number = row.isNull(at: column) ? nil : row.integer(at: column)
      column += 1
    }
    guard let target else { return .null }
    let entity = try targetEntity.name(of: target, by: link, number: number, hasDiscriminator: hasDiscriminator)
    // A reference to a missing object of the destination is nil for a policy.
    return entity.map { .object(PolicyObjectID(side: side.side, entity: $0, key: target)) } ?? .null
  }

  /// Returns one attribute's value; throws if the column holds another type.
  func value(of form: PolicyAttributeForm, in row: Statement, at column: Int32, key: Int64) throws -> PolicyValue {
    let stored = row.value(at: column)
    let place = Place(entity: shape.name, property: form.attribute.name, row: key)
    do {
      if let value = try form.value(stored, external: { try external($0) }) { return value }
    } catch let error as HopdError {
      throw error.located(place)
    }
    throw HopdError(
      .policyFailed,
      "what is stored is no \(form.attribute.type.name), so it cannot be given to a policy (Core Data "
        + "134170)",
      at: place, hint: "correct the value with the old app, or restore a backup")
  }
}

/// Finds the concrete entities of to-one targets.
final class PolicyTargetEntity {
  private let side: PolicySide
  private let connection: Connection
  private var lookups: [String: Statement] = [:]

  init(side: PolicySide, connection: Connection) {
    self.side = side
    self.connection = connection
  }

  /// Returns the entity's name; nil if there is no such object.
  func name(of key: Int64, by link: PolicyLink, number: Int64?, hasDiscriminator: Bool) throws(SQLiteError) -> String? {
    if hasDiscriminator {
      if let number, link.targetNumbers.contains(number) { return side.entityName(number) }
    } else if link.targetNumbers.count == 1 {
      // The declared destination has no subentities.
      return link.target
    }
    guard let found = try self.number(of: key, in: link.targetTable), link.targetNumbers.contains(found) else {
      return nil
    }
    return side.entityName(found)
  }

  /// Returns the Z_ENT of a row; nil if there is none.
  func number(of key: Int64, in table: String) throws(SQLiteError) -> Int64? {
    let statement = try lookups[table].prepared(
      on: connection, "SELECT \"Z_ENT\" FROM \(side.qualified(table)) WHERE \"Z_PK\" = ?1")
    try statement.bind(.integer(key), at: 1)
    defer { statement.reset() }
    return try statement.step() ? statement.integer(at: 0) : nil
  }
}

/// Reads the members of to-manys, in order.
final class PolicyMembers {
  private let side: PolicySide
  private let connection: Connection
  private let indexes: PolicyIndexes
  private var statements: [RelationshipStorage: Statement] = [:]

  init(side: PolicySide, connection: Connection, indexes: PolicyIndexes) {
    self.side = side
    self.connection = connection
    self.indexes = indexes
  }

  /// Returns the objects of a to-many; throws `PolicyRefusal` for more than `limit`.
  func members(of key: Int64, by link: PolicyLink, limit: Int) throws -> [PolicyObjectID] {
    let statement = try statement(for: link)
    try statement.bind(.integer(key), at: 1)
    defer { statement.reset() }
    var found: [PolicyObjectID] = []
    while try statement.step() {
      guard let entity = side.entityName(statement.integer(at: 0)) else { continue }
      guard found.count < limit else {
        throw PolicyRefusal(reason: "\(link.name) holds more than \(limit) objects; fetch them in parts")
      }
      found.append(PolicyObjectID(side: side.side, entity: entity, key: statement.integer(at: 1)))
    }
    return found
  }

  private func statement(for link: PolicyLink) throws(SQLiteError) -> Statement {
    if let known = statements[link.storage] { return known }
    let key = "\"Z_PK\""
    let query: String
    switch link.storage {
    case .members(let columns), .owned(let columns):
      try indexes.ensure(side.schemaName, table: columns.table, columns: [columns.key])
      let order = columns.orderKey.map { SQLiteIdentifier.quoted($0) + ", " } ?? ""
      query =
        "SELECT \"Z_ENT\", \(key) FROM \(side.qualified(columns.table))"
        + " WHERE \(SQLiteIdentifier.quoted(columns.key)) = ?1 ORDER BY \(order)\(key)"
    case .join(let join):
      for column in join.join.isOwnInverse ? [join.owner, join.target] : [join.owner] {
        try indexes.ensure(side.schemaName, table: join.table, columns: [column])
      }
      let order = join.order.map { "j.\(SQLiteIdentifier.quoted($0)), " } ?? ""
      query =
        "SELECT t.\"Z_ENT\", t.\(key) FROM \(join.pairs(in: side.qualified(join.table))) AS j"
        + " CROSS JOIN \(side.qualified(link.targetTable)) AS t ON t.\(key) = j.\(SQLiteIdentifier.quoted(join.target))"
        + " WHERE j.\(SQLiteIdentifier.quoted(join.owner)) = ?1 ORDER BY \(order)t.\(key)"
    case .toOne(let columns, _):
      // A to-one requested as a list: its one object.
      query =
        "SELECT t.\"Z_ENT\", t.\(key) FROM \(side.qualified(columns.table)) AS s"
        + " CROSS JOIN \(side.qualified(link.targetTable)) AS t ON t.\(key) = "
        + "s.\(SQLiteIdentifier.quoted(columns.key))"
        + " WHERE s.\(key) = ?1"
    }
    let statement = try connection.prepare(query)
    statements[link.storage] = statement
    return statement
  }
}
