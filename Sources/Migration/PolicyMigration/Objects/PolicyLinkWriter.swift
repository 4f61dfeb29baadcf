// Sets relationships for policies. Each is a set of pairs stored once (in a column, a join table, or for one-to-ones
// the columns of both ends), so writing it sets both ends. Objects have been checked by the caller.

import ManagedObjectModel
import MigrationEngine
import MigrationPolicy
import PersistentStore
import SQLite

/// Writes the pairs of relationships in the staged store with statements that are prepared once.
final class PolicyLinkWriter {
  /// An object as a row.
  struct Row: Hashable {
    let key: Int64
    let number: Int64
  }

  /// The maximum number of owners whose last order key is cached; beyond that it is queried again.
  private static let rememberedOwners = 10_000

  private struct Place: Hashable {
    let table: String
    let column: String
    let owner: Int64
  }

  private let side: PolicySide
  private let connection: Connection
  private let indexes: PolicyIndexes
  private var statements: [String: Statement] = [:]
  private var lastOrder: [Place: Int64] = [:]

  init(side: PolicySide, connection: Connection, indexes: PolicyIndexes) {
    self.side = side
    self.connection = connection
    self.indexes = indexes
  }

  /// Clears the cached order keys: between two steps the hop's own statements may have written others.
  func forgetOrders() { lastOrder = [:] }

  // MARK: Setting

  /// Sets a to-one, or clears it. The inverse follows.
  func set(_ link: PolicyLink, of owner: Row, to target: Row?) throws(SQLiteError) {
    switch link.storage {
    case .toOne(let own, nil):
      if own.orderKey != nil, let target {
        // An object that stays keeps its position in the order.
        if try value(own, of: owner.key) == target.key { return }
      }
      try point(own, of: owner.key, to: target)
    case .toOne(let own, let other?):
      if let before = try value(own, of: owner.key), before != target?.key {
        try clear(other, of: before, where: owner.key)
      }
      if let target, let holder = try value(other, of: target.key), holder != owner.key {
        try clear(own, of: holder, where: target.key)
      }
      try point(own, of: owner.key, to: target)
      if let target { try point(other, of: target.key, to: owner) }
    case .members, .owned, .join:
      try replace(link, of: owner, with: target.map { [$0] } ?? [])
    }
  }

  /// Sets a to-many to these objects, in this order if it is ordered.
  func replace(_ link: PolicyLink, of owner: Row, with targets: [Row]) throws(SQLiteError) {
    switch link.storage {
    case .toOne:
      try set(link, of: owner, to: targets.first)
    case .members(let columns), .owned(let columns):
      try indexes.ensure(side.schemaName, table: columns.table, columns: [columns.key])
      try clear(columns, where: "\(quoted(columns.key)) = ?1", [.integer(owner.key)])
      if columns.orderKey != nil { remember(table: columns.table, column: columns.key, owner: owner.key) }
    case .join(let join):
      for column in join.join.isOwnInverse ? [join.owner, join.target] : [join.owner] {
        try indexes.ensure(side.schemaName, table: join.table, columns: [column])
        try run("DELETE FROM \(side.qualified(join.table)) WHERE \(quoted(column)) = ?1", [.integer(owner.key)])
      }
      if join.order != nil { remember(table: join.table, column: join.owner, owner: owner.key) }
    }
    if link.isToMany { try add(targets, to: link, of: owner) }
  }

  /// Adds objects to a to-many, after its members; an existing member keeps its position.
  func add(_ targets: [Row], to link: PolicyLink, of owner: Row) throws(SQLiteError) {
    for target in targets {
      switch link.storage {
      case .toOne: try set(link, of: owner, to: target)
      case .members(let columns), .owned(let columns):
        if columns.orderKey != nil, try value(columns, of: target.key) == owner.key { continue }
        try point(columns, of: target.key, to: owner)
      case .join(let join):
        try insert(join, owner: owner.key, target: target.key)
        if join.join.isOwnInverse { try insert(join, owner: target.key, target: owner.key) }
      }
    }
  }

  /// Removes objects from a to-many; objects that are not in it are ignored.
  func remove(_ targets: [Row], from link: PolicyLink, of owner: Row) throws(SQLiteError) {
    for target in targets {
      switch link.storage {
      case .toOne(let own, _):
        if try value(own, of: owner.key) == target.key { try set(link, of: owner, to: nil) }
      case .members(let columns), .owned(let columns): try clear(columns, of: target.key, where: owner.key)
      case .join(let join):
        let ends = [(owner.key, target.key)] + (join.join.isOwnInverse ? [(target.key, owner.key)] : [])
        for (first, second) in ends {
          try run(
            "DELETE FROM \(side.qualified(join.table)) WHERE \(quoted(join.owner)) = ?1"
              + " AND \(quoted(join.target)) = ?2", [.integer(first), .integer(second)])
        }
      }
    }
  }

  /// Returns the order key of a new member whose to-one is in `columns`; NULL if the to-many at the other end is not
  /// ordered.
  func nextOrder(_ columns: ToOneColumns, owner: Int64) throws(SQLiteError) -> SQLiteValue {
    guard let orderKey = columns.orderKey else { return .null }
    return .integer(
      try nextOrder(table: columns.table, column: columns.key, order: orderKey, owner: owner))
  }

  // MARK: Deleting

  /// Clears every reference to a row of a table.
  func clearReferences(to key: Int64, in target: EntityTable) throws(SQLiteError) {
    for table in side.schema.tables {
      for column in table.columns {
        switch column.role {
        case .toOne(let entity, let relationship):
          guard let columns = side.schema.storage(ofRelationship: relationship, in: entity)?.ownColumns,
            leads(entity, relationship, to: target)
          else { continue }
          try indexes.ensure(side.schemaName, table: table.name, columns: [columns.key])
          try clear(columns, where: "\(quoted(columns.key)) = ?1", [.integer(key)])
        case .owner(let entity, let relationship):
          guard side.schema.table(of: entity)?.name == target.name,
            case .owned(let columns)? = side.schema.storage(ofRelationship: relationship, in: entity)
          else { continue }
          try indexes.ensure(side.schemaName, table: table.name, columns: [column.name])
          try clear(columns, where: "\(quoted(column.name)) = ?1", [.integer(key)])
        case .primaryKey, .entityNumber, .saveCount, .attribute, .discriminator, .orderKey, .ownerOrder: continue
        }
      }
    }
    for join in side.schema.joinTables {
      let ends = [(join.entity, join.ownerColumn), (join.inverseEntity, join.targetColumn)]
      for (entity, column) in ends where side.schema.table(of: entity)?.name == target.name {
        try indexes.ensure(side.schemaName, table: join.name, columns: [column])
        try run("DELETE FROM \(side.qualified(join.name)) WHERE \(quoted(column)) = ?1", [.integer(key)])
      }
    }
  }

  private func leads(_ entity: String, _ relationship: String, to target: EntityTable) -> Bool {
    side.model.entity(named: entity)?.relationships.first { $0.name == relationship }
      .flatMap { side.schema.table(of: $0.destinationEntityName) }?.name == target.name
  }

  // MARK: Columns and pairs

  /// Returns the key in a to-one.
  private func value(_ columns: ToOneColumns, of key: Int64) throws(SQLiteError) -> Int64? {
    let statement = try statement(
      "SELECT \(quoted(columns.key)) FROM \(side.qualified(columns.table)) WHERE \"Z_PK\" = ?1")
    try statement.bind(.integer(key), at: 1)
    defer { statement.reset() }
    return try statement.step() && !statement.isNull(at: 0) ? statement.integer(at: 0) : nil
  }

  /// Sets a to-one's columns to an object, or to none; the object's to-many gets the member at the end of its order.
  private func point(_ columns: ToOneColumns, of key: Int64, to target: Row?) throws(SQLiteError) {
    let order = try target.map { (row) throws(SQLiteError) in try nextOrder(columns, owner: row.key) } ?? .null
    try run(
      "UPDATE \(side.qualified(columns.table)) SET \(assignments(columns, key: "?2", number: "?3", order: "?4"))"
        + " WHERE \"Z_PK\" = ?1",
      [.integer(key), target.map { .integer($0.key) } ?? .null]
        + (columns.discriminator != nil || columns.orderKey != nil
          ? [target.map { .integer($0.number) } ?? .null] : [])
        + (columns.orderKey != nil ? [order] : []))
  }

  /// Clears a to-one of a row if it still points to `target`.
  private func clear(_ columns: ToOneColumns, of key: Int64, where target: Int64) throws(SQLiteError) {
    try clear(columns, where: "\"Z_PK\" = ?1 AND \(quoted(columns.key)) = ?2", [.integer(key), .integer(target)])
  }

  private func clear(_ columns: ToOneColumns, where condition: String, _ values: [SQLiteValue]) throws(SQLiteError) {
    try run(
      "UPDATE \(side.qualified(columns.table)) SET \(assignments(columns, key: "NULL", number: "NULL", order: "NULL"))"
        + " WHERE \(condition)", values)
  }

  private func assignments(_ columns: ToOneColumns, key: String, number: String, order: String) -> String {
    var parts = ["\(quoted(columns.key)) = \(key)"]
    if let discriminator = columns.discriminator { parts.append("\(quoted(discriminator)) = \(number)") }
    if let orderKey = columns.orderKey { parts.append("\(quoted(orderKey)) = \(order)") }
    return parts.joined(separator: ", ")
  }

  private func insert(_ join: JoinColumns, owner: Int64, target: Int64) throws(SQLiteError) {
    var names = [join.owner, join.target]
    var values: [SQLiteValue] = [.integer(owner), .integer(target)]
    if join.order != nil || join.inverseOrder != nil {
      let known = try statement(
        "SELECT 1 FROM \(side.qualified(join.table)) WHERE \(quoted(join.owner)) = ?1 AND \(quoted(join.target)) = ?2")
      try known.bind(values)
      defer { known.reset() }
      if try known.step() { return }
    }
    if let order = join.order {
      names.append(order)
      values.append(.integer(try nextOrder(table: join.table, column: join.owner, order: order, owner: owner)))
    }
    if let order = join.inverseOrder {
      names.append(order)
      values.append(.integer(try nextOrder(table: join.table, column: join.target, order: order, owner: target)))
    }
    let list = names.map(quoted).joined(separator: ", ")
    let marks = names.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
    try run("INSERT OR IGNORE INTO \(side.qualified(join.table)) (\(list)) VALUES (\(marks))", values)
  }

  // MARK: Order

  /// Returns the order key after an owner's last one.
  private func nextOrder(table: String, column: String, order: String, owner: Int64) throws(SQLiteError) -> Int64 {
    let place = Place(table: table, column: column, owner: owner)
    let last: Int64
    if let known = lastOrder[place] {
      last = known
    } else {
      try indexes.ensure(side.schemaName, table: table, columns: [column, order])
      let statement = try statement(
        "SELECT max(\(quoted(order))) FROM \(side.qualified(table)) WHERE \(quoted(column)) = ?1")
      try statement.bind(.integer(owner), at: 1)
      defer { statement.reset() }
      last =
        try statement.step() && !statement.isNull(at: 0) ? max(OrderKey.zero, statement.integer(at: 0)) : OrderKey.zero
    }
    let next = OrderKey.next(after: last)
    if lastOrder.count >= Self.rememberedOwners { lastOrder = [:] }
    lastOrder[place] = next
    return next
  }

  /// Records that the owner's list is empty now.
  private func remember(table: String, column: String, owner: Int64) {
    lastOrder[Place(table: table, column: column, owner: owner)] = OrderKey.zero
  }

  // MARK: Statements

  private func quoted(_ name: String) -> String { SQLiteIdentifier.quoted(name) }

  private func statement(_ sql: String) throws(SQLiteError) -> Statement {
    try statements[sql].prepared(on: connection, sql)
  }

  private func run(_ sql: String, _ values: [SQLiteValue]) throws(SQLiteError) {
    try statement(sql).run(values)
  }
}
