// Which destination objects came of which source objects, as policies ask and tell it. Mappings of policies keep rows
// in `HOPD_ASSOCIATION`; of all others the hop's layout knows it by arithmetic or by tables of its own.

import Diagnostics
import MappingModel
import MigrationEngine
import MigrationPolicy
import PersistentStore
import SQLite

/// A mapping's associations as something to select from.
struct PolicyRelation {
  /// What follows FROM.
  var tables: String
  /// What follows WHERE, joined with AND.
  var conditions: [String]
  /// Z_ENT and Z_PK of both ends.
  var sourceNumber: String
  var sourceKey: String
  var destinationNumber: String
  var destinationKey: String
  /// Order among the associations of one object.
  var order: String
}

/// The associations of one hop.
final class PolicyAssociations {
  private enum Direction: Hashable { case toDestination, toSource, allDestinations, allSources }
  private struct Query: Hashable {
    let mapping: Int
    let direction: Direction
  }

  private let connection: Connection
  private let source: PolicySide
  private let destination: PolicySide
  private let sourceRows: PolicyTargetEntity
  private let table: String
  /// The relation of a mapping by its name, with its index; nil where there is no such mapping.
  private let relation: (String) throws -> (index: Int, relation: PolicyRelation)?
  private var relations: [String: (index: Int, relation: PolicyRelation)] = [:]
  private var queries: [Query: Statement] = [:]
  private var insert: Statement?
  private var delete: Statement?
  private var ofMapping: Statement?
  /// Source objects of the call at work, which are known to be there.
  private var present: (entity: String, keys: Set<Int64>) = ("", [])
  private var offered: (entity: String, keys: [Int64]) = ("", [])

  init(
    connection: Connection, source: PolicySide, destination: PolicySide, sourceRows: PolicyTargetEntity,
    relation: @escaping (String) throws -> (index: Int, relation: PolicyRelation)?
  ) {
    self.connection = connection
    self.source = source
    self.destination = destination
    self.sourceRows = sourceRows
    self.relation = relation
    table = destination.qualified(AssociationLayout.associationTable)
  }

  /// Notes which source objects are at work, so that they need not be looked up again.
  func offer(_ entity: String, _ keys: some Sequence<Int64>) {
    offered = (entity, Array(keys))
    present = ("", [])
  }

  /// Is it one of them? They are put in order when the first is asked for: default creation never asks.
  private func isOffered(_ id: PolicyObjectID) -> Bool {
    if present.entity != offered.entity { present = (offered.entity, Set(offered.keys)) }
    return id.entity == present.entity && present.keys.contains(id.key)
  }

  // MARK: Writing

  /// Associates two objects for a mapping; the same pair again changes nothing.
  func associate(
    _ from: PolicyObjectID, _ to: PolicyObjectID, mapping: Int, destinationRow: PolicyLinkWriter.Row,
    for speaker: PolicySpeaker
  ) throws {
    guard from.side == .source else {
      throw speaker.failure("it wants to associate an object of the destination as a source", at: from)
    }
    guard let shape = source.shape(of: from.entity) else {
      throw speaker.failure("the source version has no entity \(from.entity)", at: from)
    }
    if !isOffered(from) {
      guard try sourceRows.number(of: from.key, in: shape.table.name) == shape.number else {
        throw speaker.failure("there is no such source object", at: from)
      }
    }
    try associate(PolicyLinkWriter.Row(key: from.key, number: shape.number), destinationRow, mapping: mapping)
  }

  /// Associates two rows that are known to be there.
  func associate(
    _ from: PolicyLinkWriter.Row, _ to: PolicyLinkWriter.Row, mapping: Int
  ) throws(SQLiteError) {
    let statement: Statement
    if let insert {
      statement = insert
    } else {
      statement = try connection.prepare(
        "INSERT OR IGNORE INTO \(table) (mapping, source_entity, source, destination_entity, destination)"
          + " VALUES (?1, ?2, ?3, ?4, ?5)")
      insert = statement
    }
    try statement.bind(.integer(Int64(mapping)), at: 1)
    try statement.bind(.integer(from.number), at: 2)
    try statement.bind(.integer(from.key), at: 3)
    try statement.bind(.integer(to.number), at: 4)
    try statement.bind(.integer(to.key), at: 5)
    try statement.run()
  }

  /// Z_ENT of an entity of the source.
  func sourceNumber(of entity: String) -> Int64? { source.shape(of: entity)?.number }

  /// Forgets what led to an object that is deleted.
  func forget(destination row: PolicyLinkWriter.Row) throws(SQLiteError) {
    let statement: Statement
    if let delete {
      statement = delete
    } else {
      statement = try connection.prepare(
        "DELETE FROM \(table) WHERE destination = ?1 AND destination_entity = ?2")
      delete = statement
    }
    try statement.run([.integer(row.key), .integer(row.number)])
  }

  // MARK: Asking

  /// What a mapping made of these source objects, in their order; of all without a list.
  func destinations(of name: String, sources: [PolicyObjectID]?, limit: Int) throws -> [PolicyObjectID] {
    let (index, relation) = try found(name)
    guard let sources else {
      return try all(
        Query(mapping: index, direction: .allDestinations), relation,
        (relation.destinationNumber, relation.destinationKey),
        on: destination, limit: limit)
    }
    return try each(
      sources, of: source, Query(mapping: index, direction: .toDestination), relation,
      by: (relation.sourceNumber, relation.sourceKey), (relation.destinationNumber, relation.destinationKey),
      on: destination, limit: limit)
  }

  /// What a mapping made these destination objects of.
  func sources(of name: String, destinations: [PolicyObjectID]?, limit: Int) throws -> [PolicyObjectID] {
    let (index, relation) = try found(name)
    guard let destinations else {
      return try all(
        Query(mapping: index, direction: .allSources), relation, (relation.sourceNumber, relation.sourceKey),
        on: source,
        limit: limit)
    }
    return try each(
      destinations, of: destination, Query(mapping: index, direction: .toSource), relation,
      by: (relation.destinationNumber, relation.destinationKey), (relation.sourceNumber, relation.sourceKey),
      on: source,
      limit: limit)
  }

  /// Objects that a policy's mapping made, each once, from `row` on; with the source that was associated first.
  func chunk(
    of mapping: Int, after row: Int64, limit: Int64
  ) throws -> [(row: Int64, source: PolicyObjectID, destination: PolicyObjectID)] {
    let statement: Statement
    if let ofMapping {
      statement = ofMapping
    } else {
      // The plus keeps SQLite from sorting: rows are read in their own order.
      statement = try connection.prepare(
        "SELECT a.rowid, a.source_entity, a.source, a.destination_entity, a.destination FROM \(table) AS a"
          + " WHERE a.rowid > ?2 AND +a.mapping = ?1 AND NOT EXISTS (SELECT 1 FROM \(table) AS b"
          + " WHERE b.destination = a.destination AND b.destination_entity = a.destination_entity"
          + " AND b.mapping = a.mapping AND b.rowid < a.rowid) ORDER BY a.rowid LIMIT ?3")
      ofMapping = statement
    }
    try statement.bind([.integer(Int64(mapping)), .integer(row), .integer(limit)])
    defer { statement.reset() }
    var found: [(Int64, PolicyObjectID, PolicyObjectID)] = []
    while try statement.step() {
      guard let from = source.entityName(statement.integer(at: 1)),
        let to = destination.entityName(statement.integer(at: 3))
      else { continue }
      found.append(
        (
          statement.integer(at: 0), PolicyObjectID(side: .source, entity: from, key: statement.integer(at: 2)),
          PolicyObjectID(side: .destination, entity: to, key: statement.integer(at: 4))
        ))
    }
    return found
  }

  // MARK: Queries

  private func found(_ name: String) throws -> (index: Int, relation: PolicyRelation) {
    if let known = relations[name] { return known }
    guard let made = try relation(name) else {
      throw PolicyRefusal(reason: "the hop has no entity mapping \(name) with a source and a destination")
    }
    relations[name] = made
    return made
  }

  private func each(
    _ ids: [PolicyObjectID], of side: PolicySide, _ query: Query, _ relation: PolicyRelation,
    by own: (number: String, key: String), _ other: (number: String, key: String), on otherSide: PolicySide, limit: Int
  ) throws -> [PolicyObjectID] {
    let statement = try statement(query) {
      "SELECT \(other.number), \(other.key) FROM \(relation.tables) WHERE "
        + (relation.conditions + ["\(own.key) = ?1", "\(own.number) = ?2"]).joined(separator: " AND ")
        + " ORDER BY \(relation.order)"
    }
    var seen: Set<PolicyObjectID> = []
    var result: [PolicyObjectID] = []
    for id in ids {
      guard id.side == side.side, let shape = side.shape(of: id.entity) else {
        throw PolicyRefusal(reason: "\(id.entity) \(id.key) is not an object of the \(side.side.rawValue)")
      }
      try statement.bind([.integer(id.key), .integer(shape.number)])
      defer { statement.reset() }
      while try statement.step() {
        guard let entity = otherSide.entityName(statement.integer(at: 0)) else { continue }
        let found = PolicyObjectID(side: otherSide.side, entity: entity, key: statement.integer(at: 1))
        guard seen.insert(found).inserted else { continue }
        guard result.count < limit else { throw tooMany(limit) }
        result.append(found)
      }
    }
    return result
  }

  private func all(
    _ query: Query, _ relation: PolicyRelation, _ wanted: (number: String, key: String), on side: PolicySide, limit: Int
  ) throws -> [PolicyObjectID] {
    let statement = try statement(query) {
      "SELECT DISTINCT \(wanted.number), \(wanted.key) FROM \(relation.tables)"
        + (relation.conditions.isEmpty ? "" : " WHERE " + relation.conditions.joined(separator: " AND "))
        + " ORDER BY 2 LIMIT ?1"
    }
    try statement.bind(.integer(Int64(clamping: limit) &+ 1), at: 1)
    defer { statement.reset() }
    var result: [PolicyObjectID] = []
    while try statement.step() {
      guard let entity = side.entityName(statement.integer(at: 0)) else { continue }
      guard result.count < limit else { throw tooMany(limit) }
      result.append(PolicyObjectID(side: side.side, entity: entity, key: statement.integer(at: 1)))
    }
    return result
  }

  private func statement(_ query: Query, _ sql: () -> String) throws(SQLiteError) -> Statement {
    if let known = queries[query] { return known }
    let made = try connection.prepare(sql())
    queries[query] = made
    return made
  }

  private func tooMany(_ limit: Int) -> PolicyRefusal {
    PolicyRefusal(reason: "the answer has more than \(limit) objects; ask for those of some objects at a time")
  }
}
