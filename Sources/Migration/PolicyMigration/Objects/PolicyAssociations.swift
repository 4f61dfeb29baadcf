// The associations of source and destination objects, as policies request and make them. The mappings of policies have
// rows in `HOPD_ASSOCIATION`; for all others the hop's layout has them as arithmetic or as tables of its own.

import Diagnostics
import MappingModel
import MigrationEngine
import MigrationPolicy
import PersistentStore
import SQLite

/// A mapping's associations, as the parts of a SELECT.
struct PolicyRelation {
  /// The Z_ENT and Z_PK of the objects at one end.
  struct End {
    let number: String
    let key: String
  }

  /// The text after FROM.
  var tables: String
  /// The conditions of WHERE, joined with AND.
  var conditions: [String]
  var source: End
  var destination: End
  /// The order of one object's associations.
  var order: String
}

/// The associations of one hop.
final class PolicyAssociations {
  private struct Query: Hashable {
    let mapping: Int
    /// The end of the requested objects, and whether all are requested or those of single objects.
    let wanted: PolicyObjectID.Side
    let isAll: Bool
  }

  private let connection: Connection
  private let source: PolicySide
  private let destination: PolicySide
  private let sourceRows: PolicyTargetEntity
  private let table: String
  /// Returns the relation of a mapping by its name, with its index; nil if there is no such mapping.
  private let relation: (String) throws -> (index: Int, relation: PolicyRelation)?
  private var relations: [String: (index: Int, relation: PolicyRelation)] = [:]
  private var queries: [Query: Statement] = [:]
  private var insert: Statement?
  private var delete: Statement?
  private var ofMapping: Statement?
  /// The source objects of the current call, which are known to exist.
  private var offered: (entity: String, keys: Set<Int64>) = ("", [])

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

  /// Records the source objects of the current call, so that they need not be looked up again.
  func offer(_ entity: String, _ keys: some Sequence<Int64>) {
    offered = (entity, Set(keys))
  }

  // MARK: Writing

  /// Associates two objects for a mapping; the same pair again has no effect.
  func associate(
    _ from: PolicyObjectID, with destinationRow: PolicyLinkWriter.Row, mapping: Int, for speaker: PolicySpeaker
  ) throws {
    guard from.side == .source else {
      throw speaker.failure("it wants to associate an object of the destination as a source", at: from)
    }
    guard let shape = source.shape(of: from.entity) else {
      throw speaker.failure("the source version has no entity \(from.entity)", at: from)
    }
    if from.entity != offered.entity || !offered.keys.contains(from.key) {
      guard try sourceRows.number(of: from.key, in: shape.table.name) == shape.number else {
        throw speaker.failure("no such source object", at: from)
      }
    }
    try insert.prepared(
      on: connection,
      "INSERT OR IGNORE INTO \(table) (mapping, source_entity, source, destination_entity, destination)"
        + " VALUES (?1, ?2, ?3, ?4, ?5)"
    ).run([
      .integer(Int64(mapping)), .integer(shape.number), .integer(from.key), .integer(destinationRow.number),
      .integer(destinationRow.key),
    ])
  }

  /// Removes the associations of an object that is deleted.
  func forget(destination row: PolicyLinkWriter.Row) throws(SQLiteError) {
    try delete.prepared(on: connection, "DELETE FROM \(table) WHERE destination = ?1 AND destination_entity = ?2")
      .run([.integer(row.key), .integer(row.number)])
  }

  // MARK: Reading

  /// Returns the objects that a mapping made of these source objects, in their order; of all if `sources` is nil.
  func destinations(of name: String, sources: [PolicyObjectID]?, limit: Int) throws -> [PolicyObjectID] {
    let (index, relation) = try found(name)
    return try objects(
      Query(mapping: index, wanted: .destination, isAll: sources == nil), relation, relation.destination,
      on: destination, of: sources, by: relation.source, on: source, limit: limit)
  }

  /// Returns the source objects of these destination objects under a mapping.
  func sources(of name: String, destinations: [PolicyObjectID]?, limit: Int) throws -> [PolicyObjectID] {
    let (index, relation) = try found(name)
    return try objects(
      Query(mapping: index, wanted: .source, isAll: destinations == nil), relation, relation.source, on: source,
      of: destinations, by: relation.destination, on: destination, limit: limit)
  }

  /// Returns objects that a policy's mapping made, each once, from `row` on, with the source that was associated first.
  func chunk(
    of mapping: Int, after row: Int64, limit: Int64
  ) throws -> [(row: Int64, source: PolicyObjectID, destination: PolicyObjectID)] {
    // The plus prevents a sort: rows are read in their own order.
    let statement = try ofMapping.prepared(
      on: connection,
      "SELECT a.rowid, a.source_entity, a.source, a.destination_entity, a.destination FROM \(table) AS a"
        + " WHERE a.rowid > ?2 AND +a.mapping = ?1 AND NOT EXISTS (SELECT 1 FROM \(table) AS b"
        + " WHERE b.destination = a.destination AND b.destination_entity = a.destination_entity"
        + " AND b.mapping = a.mapping AND b.rowid < a.rowid) ORDER BY a.rowid LIMIT ?3")
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

  /// Returns the objects at one end that are associated with `ids` at the other, each once; all of them without `ids`.
  private func objects(
    _ query: Query, _ relation: PolicyRelation, _ wanted: PolicyRelation.End, on side: PolicySide,
    of ids: [PolicyObjectID]?, by own: PolicyRelation.End, on ownSide: PolicySide, limit: Int
  ) throws -> [PolicyObjectID] {
    let conditions = relation.conditions + (ids == nil ? [] : ["\(own.key) = ?1", "\(own.number) = ?2"])
    let statement = try queries[query].prepared(
      on: connection,
      "SELECT \(ids == nil ? "DISTINCT " : "")\(wanted.number), \(wanted.key) FROM \(relation.tables)"
        + (conditions.isEmpty ? "" : " WHERE " + conditions.joined(separator: " AND "))
        + (ids == nil ? " ORDER BY 2 LIMIT ?1" : " ORDER BY \(relation.order)"))
    var seen: Set<PolicyObjectID> = []
    var result: [PolicyObjectID] = []
    func read() throws {
      defer { statement.reset() }
      while try statement.step() {
        guard let entity = side.entityName(statement.integer(at: 0)) else { continue }
        let found = PolicyObjectID(side: side.side, entity: entity, key: statement.integer(at: 1))
        guard seen.insert(found).inserted else { continue }
        guard result.count < limit else {
          throw PolicyRefusal(
            reason: "the answer has more than \(limit) objects; ask for those of some objects at a time")
        }
        result.append(found)
      }
    }
    guard let ids else {
      try statement.bind(.integer(Int64(clamping: limit) &+ 1), at: 1)
      try read()
      return result
    }
    for id in ids {
      guard id.side == ownSide.side, let shape = ownSide.shape(of: id.entity) else {
        throw PolicyRefusal(reason: "\(id.entity) \(id.key) is not an object of the \(ownSide.side.rawValue)")
      }
      try statement.bind([.integer(id.key), .integer(shape.number)])
      try read()
    }
    return result
  }
}
