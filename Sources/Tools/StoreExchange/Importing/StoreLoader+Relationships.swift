// Relationships after all objects are written: pairs of to-manys, the other ends of relationships, order keys. Every
// statement reads staged pairs or one table, and finds objects by their keys.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite

extension StoreLoader {
  /// Puts every relationship in place. With `checksInverses` the two ends of a one-to-one must agree.
  func resolveRelationships(checksInverses: Bool) throws {
    try commit()
    try connection.transaction {
      for staged in pairs.values.sorted(by: { $0.table < $1.table }) {
        switch staged.storage {
        case .toOne: break
        case .members(let columns), .owned(let columns): try place(staged, columns)
        case .join(let columns): try place(staged, columns)
        }
      }
      try fillOtherEnds()
      try numberMembers()
      try numberPairs()
      if checksInverses { try checkOneToOnes() }
      try checkTargets()
    }
  }

  func quoted(_ name: String) -> String { SQLiteIdentifier.quoted(name) }

  /// Notes a problem of each row that a query gives: the key of an object of `table`.
  private func note(_ message: String, _ table: EntityTable, _ sql: String) throws {
    let keys = try connection.rows("\(sql) LIMIT 1000") { $0.integer(at: 0) }
    for key in keys {
      try problems.add(reference: HopdError(.rowInvalid, message).located(try place(of: key, in: table)))
    }
    let count = try connection.integer("SELECT count(*) FROM (\(sql))") ?? 0
    problems.addUnlisted(references: count &- Int64(keys.count))
  }

  // MARK: To-manys

  /// Pairs whose members have the key of their owner.
  private func place(_ staged: StagedPairs, _ columns: ToOneColumns) throws {
    guard let members = schema.table(named: columns.table), let owners = schema.table(of: staged.key.entity) else {
      return
    }
    let (table, key) = (quoted(columns.table), quoted(columns.key))
    let numbers = list(schema.numbersOfSubtree(of: staged.relationship.destinationEntityName))
    let discriminator = columns.discriminator.map { ", \(quoted($0)) = o.\"Z_ENT\"" } ?? ""
    try connection.run(
      "UPDATE \(table) SET \(key) = p.owner\(discriminator) FROM \(staged.table) AS p"
        + " JOIN \(quoted(owners.name)) AS o ON o.\"Z_PK\" = p.owner"
        + " WHERE \(table).\"Z_PK\" = p.target AND \(table).\"Z_ENT\" IN (\(numbers)) AND \(table).\(key) IS NULL")
    let misplaced =
      "FROM \(staged.table) AS p LEFT JOIN \(table) AS m ON m.\"Z_PK\" = p.target AND m.\"Z_ENT\" IN (\(numbers))"
      + " WHERE m.\(key) IS NOT p.owner AND m.\"Z_PK\" IS"
    try note(
      "\(staged.key.text) has an object that is not in the data", owners, "SELECT p.owner \(misplaced) NULL")
    try note(
      "the object is in \(staged.key.text) of two owners, or refers to another one", members,
      "SELECT p.target \(misplaced) NOT NULL")
    guard let order = columns.orderKey else { return }
    try connection.run(
      "UPDATE \(table) SET \(quoted(order)) = n.k"
        + " FROM (\(numbered(staged, above: (columns.table, columns.key, order)))) AS n"
        + " WHERE \(table).\"Z_PK\" = n.target AND \(table).\(key) = n.owner")
  }

  /// Staged pairs with their order keys, above those that their owners' pairs in a table have.
  private func numbered(_ staged: StagedPairs, above known: (table: String, owner: String, order: String)) -> String {
    guard isAdding else {
      return "SELECT owner, target, \(OrderKey.numbering(partition: "owner", order: "place, target").text) AS k"
        + " FROM \(staged.table)"
    }
    let (owner, order) = (quoted(known.owner), quoted(known.order))
    let above: SQLExpression = "coalesce(b.m, \(OrderKey.zero))"
    return "SELECT p.owner, p.target,"
      + " \(OrderKey.numbering(partition: "p.owner", order: "p.place, p.target", above: above).text) AS k"
      + " FROM \(staged.table) AS p LEFT JOIN (SELECT \(owner) AS o, max(\(order)) AS m FROM \(quoted(known.table))"
      + " WHERE \(owner) IS NOT NULL GROUP BY \(owner)) AS b ON b.o = p.owner"
  }

  /// Pairs in a join table.
  private func place(_ staged: StagedPairs, _ columns: JoinColumns) throws {
    let table = quoted(columns.table)
    let ends = "\(quoted(columns.owner)), \(quoted(columns.target))"
    guard let order = columns.order.map(quoted) else {
      try connection.run("INSERT OR IGNORE INTO \(table) (\(ends)) SELECT owner, target FROM \(staged.table)")
      if columns.join.isOwnInverse {
        try connection.run("INSERT OR IGNORE INTO \(table) (\(ends)) SELECT target, owner FROM \(staged.table)")
      }
      return
    }
    // The pair may have come from the other end already, without its place at this one.
    try connection.run(
      "INSERT INTO \(table) (\(ends), \(order)) SELECT owner, target, k"
        + " FROM (\(numbered(staged, above: (columns.table, columns.owner, columns.order ?? "")))) WHERE true"
        + " ON CONFLICT (\(ends)) DO UPDATE SET \(order) = excluded.\(order)")
  }

  private func list(_ numbers: [Int64]) -> String { numbers.map(String.init).joined(separator: ", ") }

  // MARK: Other ends

  /// Fills one-to-ones that were given at the other end only.
  private func fillOtherEnds() throws {
    for key in open.sorted(by: { $0.text < $1.text }) {
      guard let number = schema.number(of: key.entity),
        case .toOne(let own, let other?)? = schema.storage(ofRelationship: key.property, in: key.entity)
      else { continue }
      let table = quoted(own.table)
      let discriminator = own.discriminator.map { ", \(quoted($0)) = a.\"Z_ENT\"" } ?? ""
      try connection.run(
        "UPDATE \(table) SET \(quoted(own.key)) = a.\"Z_PK\"\(discriminator) FROM \(quoted(other.table)) AS a"
          + " WHERE a.\(quoted(other.key)) = \(table).\"Z_PK\" AND \(table).\"Z_ENT\" = \(number)"
          + " AND \(table).\(quoted(own.key)) IS NULL")
    }
    guard isAdding else { return }
    // An object that was there before has no line that could have named its new target.
    for (_, number, _, storage) in references() {
      guard case .toOne(let own, let other?) = storage, let others = schema.table(named: other.table) else { continue }
      let table = quoted(own.table)
      let discriminator = own.discriminator.map { ", \(quoted($0)) = a.\"Z_ENT\"" } ?? ""
      try connection.run(
        "UPDATE \(table) SET \(quoted(own.key)) = a.\"Z_PK\"\(discriminator) FROM \(quoted(other.table)) AS a"
          + " WHERE a.\(quoted(other.key)) = \(table).\"Z_PK\" AND \(table).\"Z_ENT\" = \(number)"
          + " AND \(table).\(quoted(own.key)) IS NULL\(isNew("a.\"Z_PK\"", in: others))")
    }
  }

  /// The to-one columns of all concrete entities.
  private func references() -> [(entity: Entity, number: Int64, name: String, storage: RelationshipStorage)] {
    schema.model.entities.filter { !$0.isAbstract }.flatMap { entity in
      schema.model.allRelationships(of: entity).keys.sorted().compactMap { name in
        guard let number = schema.number(of: entity.name),
          let storage = schema.storage(ofRelationship: name, in: entity.name), storage.ownColumns != nil
        else { return nil }
        return (entity, number, name, storage)
      }
    }
  }

  private func checkOneToOnes() throws {
    for (entity, number, name, storage) in references() {
      guard case .toOne(let own, let other?) = storage, let table = schema.table(named: own.table) else { continue }
      let broken =
        "FROM \(quoted(own.table)) AS d JOIN \(quoted(other.table)) AS o ON o.\"Z_PK\" = d.\(quoted(own.key))"
        + " WHERE d.\"Z_ENT\" = \(number) AND o.\(quoted(other.key)) IS NOT d.\"Z_PK\""
        + isNew("d.\"Z_PK\"", in: table)
      try note(
        "\(entity.name).\(name) refers to an object that refers to another one", table, "SELECT d.\"Z_PK\" \(broken)")
      // Objects that stay as they are may have such ends: apps left them.
      guard problems.clearsReferences, problems.rule != .keep else { continue }
      try clear(own, of: table, where: "\"Z_PK\" IN (SELECT d.\"Z_PK\" \(broken))")
    }
  }

  /// Sets a to-one to nil.
  private func clear(_ columns: ToOneColumns, of table: EntityTable, where condition: String) throws {
    let values = columns.names.map { "\(quoted($0)) = NULL" }.joined(separator: ", ")
    try connection.run("UPDATE \(quoted(table.name)) SET \(values) WHERE \(condition)")
  }

  // MARK: Order keys

  /// Numbers the members of ordered to-manys that have no place, after those that have one.
  private func numberMembers() throws {
    for table in schema.tables {
      for column in table.columns {
        let storage: RelationshipStorage?
        switch column.role {
        case .orderKey, .ownerOrder: storage = schema.storage(of: column.role)
        default: storage = nil
        }
        let key: String
        switch storage {
        case .toOne(let columns, _)? where columns.orderKey == column.name: key = quoted(columns.key)
        case .owned(let columns)? where columns.orderKey == column.name: key = quoted(columns.key)
        default: continue
        }
        let (name, order) = (quoted(table.name), quoted(column.name))
        let step = OrderKey.step
        guard
          try connection.integer(
            "SELECT EXISTS (SELECT 1 FROM \(name) WHERE \(key) IS NOT NULL AND \(order) IS NULL)") == 1
        else { continue }
        try connection.run(
          "UPDATE \(name) SET \(order) = n.k FROM (SELECT \"Z_PK\" AS p, coalesce(m, \(OrderKey.zero)) + \(step) *"
            + " row_number() OVER (PARTITION BY \(key) ORDER BY \"Z_PK\") AS k FROM (SELECT \"Z_PK\", \(key), \(order),"
            + " max(\(order)) OVER (PARTITION BY \(key)) AS m FROM \(name) WHERE \(key) IS NOT NULL)"
            + " WHERE \(order) IS NULL) AS n WHERE \(name).\"Z_PK\" = n.p")
      }
    }
  }

  private func numberPairs() throws {
    for join in schema.joinTables {
      for (column, owner, target) in [
        (join.orderColumn, join.ownerColumn, join.targetColumn),
        (join.inverseOrderColumn, join.targetColumn, join.ownerColumn),
      ] {
        guard let order = column.map(quoted) else { continue }
        let (name, first, second) = (quoted(join.name), quoted(owner), quoted(target))
        guard try connection.integer("SELECT EXISTS (SELECT 1 FROM \(name) WHERE \(order) IS NULL)") == 1 else {
          continue
        }
        try connection.run(
          "UPDATE \(name) SET \(order) = n.k FROM (SELECT a, b, coalesce(m, \(OrderKey.zero)) + \(OrderKey.step) *"
            + " row_number() OVER (PARTITION BY a ORDER BY b) AS k FROM (SELECT \(first) AS a, \(second) AS b,"
            + " \(order) AS o, max(\(order)) OVER (PARTITION BY \(first)) AS m FROM \(name)) WHERE o IS NULL) AS n"
            + " WHERE \(name).\(first) = n.a AND \(name).\(second) = n.b")
      }
    }
  }

  // MARK: Targets

  /// Notes references to objects that are not there, or are none of the relationship's entity; unless the rule is to
  /// fail they become nil.
  func checkTargets() throws {
    for (entity, number, name, storage) in references() {
      guard let own = storage.ownColumns, let table = schema.table(named: own.table),
        let relationship = schema.model.allRelationships(of: entity)[name],
        let target = schema.table(of: relationship.destinationEntityName)
      else { continue }
      let key = "d.\(quoted(own.key))"
      let numbers = list(schema.numbersOfSubtree(of: relationship.destinationEntityName))
      let other = own.discriminator.map { " OR d.\(quoted($0)) IS NOT x.\"Z_ENT\"" } ?? ""
      let broken =
        "FROM \(quoted(own.table)) AS d LEFT JOIN \(quoted(target.name)) AS x ON x.\"Z_PK\" = \(key)"
        + " WHERE d.\"Z_ENT\" = \(number) AND \(key) IS NOT NULL"
        + " AND (x.\"Z_PK\" IS NULL OR x.\"Z_ENT\" NOT IN (\(numbers))\(other))" + isNew("d.\"Z_PK\"", in: table)
      try note(
        "\(entity.name).\(name) refers to an object that is not in the data", table, "SELECT d.\"Z_PK\" \(broken)")
      guard problems.clearsReferences else { continue }
      try clear(own, of: table, where: "\"Z_PK\" IN (SELECT d.\"Z_PK\" \(broken))")
    }
    for join in schema.joinTables {
      guard let forward = schema.model.ownRelationship(join.relationship, of: join.entity),
        let owners = schema.table(of: join.entity), let targets = schema.table(of: join.inverseEntity)
      else { continue }
      let (first, second) = ("j.\(quoted(join.ownerColumn))", "j.\(quoted(join.targetColumn))")
      let broken =
        "FROM \(quoted(join.name)) AS j LEFT JOIN \(quoted(owners.name)) AS o ON o.\"Z_PK\" = \(first)"
        + " LEFT JOIN \(quoted(targets.name)) AS t ON t.\"Z_PK\" = \(second)"
        + " WHERE (coalesce(o.\"Z_ENT\", 0) NOT IN (\(list(schema.numbersOfSubtree(of: join.entity))))"
        + " OR coalesce(t.\"Z_ENT\", 0) NOT IN (\(list(schema.numbersOfSubtree(of: forward.destinationEntityName)))))"
        + (isAdding
          ? " AND (\(first) IN (SELECT key FROM \(origins(of: owners)))"
            + " OR \(second) IN (SELECT key FROM \(origins(of: targets))))" : "")
      // A relationship that is its own inverse has each pair twice; the row of the missing object names nothing.
      let counted = broken + (join.isOwnInverse ? " AND o.\"Z_PK\" IS NOT NULL" : "")
      try note(
        "\(join.entity).\(join.relationship) has a pair with an object that is not in the data", owners,
        "SELECT \(first) \(counted)")
      guard problems.clearsReferences else { continue }
      try connection.run("DELETE FROM \(quoted(join.name)) WHERE rowid IN (SELECT j.rowid \(broken))")
    }
  }
}
