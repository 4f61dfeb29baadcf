// Checks the rows against the conditions that the models of a hop leave open (`RowCondition`): whether a relationship
// can hold one object only, whether all targets are still possible, whether two readings of a name give the same
// values.

import Diagnostics
import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite

extension HopdError.Code {
  /// Rows break a condition under which a hop can be inferred.
  package static let rowsForbidInference = HopdError.Code("rows-forbid-inference", exit: .dataError)
}

extension RowInspection {
  /// Finds rows that break the conditions of inferred hops.
  mutating func checkConditions() throws(SQLiteError) {
    for version in versions where !migrationPath.isMapped(to: version) {
      for condition in migrationPath.mappings[version - 1].conditions {
        let broken = try rows(breaking: condition.demand, at: version)
        guard broken.count > 0 else { continue }
        let examples = broken.examples.map { "\(broken.entity)/p\($0)" }.joined(separator: ", ")
        findings.add(
          .rowsForbidInference,
          "\(condition.message). \(broken.count.counted("object")) of \(broken.entity) "
            + "\(broken.count == 1 ? "is" : "are") at stake"
            + (examples.isEmpty ? "" : ": \(examples)" + (broken.count > Int64(broken.examples.count) ? ", …" : "")),
          at: Place(hop: migrationPath.hop(to: version), entity: condition.entity, property: condition.property),
          hint: condition.hint)
      }
    }
  }

  /// Objects of the store that break a condition, with the store's name of their entity.
  private struct Broken {
    var count: Int64 = 0
    var entity = ""
    /// The first keys.
    var examples: [Int64] = []
  }

  private func rows(breaking demand: RowCondition.Demand, at version: Int) throws(SQLiteError) -> Broken {
    switch demand {
    case .oneOwnerPerTarget(let source):
      guard let (pairs, _, target) = pairs(source, at: version) else { return Broken() }
      return try repeated(pairs.target, of: target, in: pairs)
    case .oneTargetPerOwner(let source):
      guard let (pairs, owner, _) = pairs(source, at: version) else { return Broken() }
      return try repeated(pairs.owner, of: owner, in: pairs)
    case .noTarget(let source, let entity):
      guard let (pairs, _, _) = pairs(source, at: version),
        let stored = migrationPath.sourceEntity(of: entity, at: version - 1),
        let number = schema.number(of: stored)
      else { return Broken() }
      return try broken(
        of: stored,
        keys: "SELECT DISTINCT t.Z_PK AS k FROM \(table(pairs)) JOIN \(reader.qualified(pairs.targetTable)) AS t"
          + " ON t.Z_PK = \(column(pairs.target)) WHERE \(isPair(pairs)) AND t.Z_ENT = \(number)")
    case .noPairs(let source):
      guard let (pairs, owner, _) = pairs(source, at: version) else { return Broken() }
      return try broken(
        of: owner,
        keys: "SELECT DISTINCT \(column(pairs.owner)) AS k FROM \(table(pairs)) WHERE \(isPair(pairs))")
    case .samePairs(let first, let second): return try unequal(first, second, at: version)
    case .sameValues(let entity, let first, let second): return try differing(entity, first, second, at: version)
    case .noObjects(let entity): return try rows(of: entity, where: "", at: version)
    }
  }

  // MARK: Pairs

  /// Returns the store's pairs of a relationship of a hop's source version, with the store's entities at both ends; nil
  /// if the relationship begins empty in some hop.
  private func pairs(
    _ source: RelationshipMapping.SourcePairs, at version: Int
  ) -> (pairs: StoredPairs, owner: String, target: String)? {
    guard
      let origin = migrationPath.origin(ofRelationship: source.relationship, in: source.entity, at: version - 1),
      let stored = schema.pairs(ofRelationship: origin.relationship, in: origin.entity),
      let target = schema.model.relationship(origin.relationship, of: origin.entity)?.destinationEntityName
    else { return nil }
    return origin.isInverted != source.isInverted
      ? (stored.inverted, target, origin.entity) : (stored, origin.entity, target)
  }

  private func table(_ pairs: StoredPairs) -> String { "\(pairs.source(reader.qualified(pairs.table))) AS p" }

  private func column(_ name: String) -> String { "p.\(SQLiteIdentifier.quoted(name))" }

  private func isPair(_ pairs: StoredPairs) -> String {
    "\(column(pairs.owner)) IS NOT NULL AND \(column(pairs.target)) IS NOT NULL"
  }

  /// Returns the objects that are in several pairs at the same end.
  private func repeated(_ end: String, of entity: String, in pairs: StoredPairs) throws(SQLiteError) -> Broken {
    try broken(
      of: entity,
      keys: "SELECT \(column(end)) AS k FROM \(table(pairs)) WHERE \(isPair(pairs)) GROUP BY 1 HAVING count(*) > 1")
  }

  /// Returns the owners whose targets in `first` do not have them as targets in `second`, or the reverse.
  private func unequal(
    _ first: RelationshipMapping.SourcePairs, _ second: RelationshipMapping.SourcePairs, at version: Int
  ) throws(SQLiteError) -> Broken {
    let (left, right) = (pairs(first, at: version), pairs(second, at: version))
    func query(_ pairs: StoredPairs, _ owner: String, _ target: String) -> String {
      "SELECT \(column(owner)) AS k, \(column(target)) AS t FROM \(table(pairs)) WHERE \(isPair(pairs))"
    }
    let there = left.map { query($0.pairs, $0.pairs.owner, $0.pairs.target) }
    let back = right.map { query($0.pairs, $0.pairs.target, $0.pairs.owner) }
    guard there != back, let entity = left?.owner ?? right?.target else { return Broken() }
    let (one, other) = (there ?? "SELECT NULL AS k, NULL AS t WHERE 0", back ?? "SELECT NULL AS k, NULL AS t WHERE 0")
    return try broken(
      of: entity,
      keys: "SELECT DISTINCT k FROM (SELECT * FROM (\(one) EXCEPT \(other)) UNION ALL"
        + " SELECT * FROM (\(other) EXCEPT \(one)))")
  }

  // MARK: Values

  private func differing(
    _ entity: String, _ first: AttributeReading, _ second: AttributeReading, at version: Int
  ) throws(SQLiteError) -> Broken {
    let condition = " AND \(value(first, of: entity, at: version)) IS NOT \(value(second, of: entity, at: version))"
    return try rows(of: entity, where: condition, at: version)
  }

  /// Returns the rows of an entity of a hop's source version that fulfil a condition, which begins with AND or is
  /// empty.
  private func rows(of entity: String, where condition: String, at version: Int) throws(SQLiteError) -> Broken {
    guard let stored = migrationPath.sourceEntity(of: entity, at: version - 1), let number = schema.number(of: stored),
      let table = schema.table(of: stored)
    else { return Broken() }
    return try broken(
      of: stored, keys: "SELECT Z_PK AS k FROM \(reader.qualified(table.name)) WHERE Z_ENT = \(number)\(condition)")
  }

  private func value(_ reading: AttributeReading, of entity: String, at version: Int) -> String {
    switch reading {
    case .standard(let owner, let attribute):
      migrationPath.definition(of: attribute, in: owner, at: version)?.defaultValue?.sqlValue.literal ?? "NULL"
    case .source(let attribute): migrationPath.origin(ofAttribute: attribute, in: entity, at: version - 1).sql
    }
  }

  /// Counts the keys that a query returns as `k`, and takes the first of them as examples.
  private func broken(of entity: String, keys: String) throws(SQLiteError) -> Broken {
    var broken = Broken(entity: entity)
    broken.count = try reader.connection.integer("SELECT count(*) FROM (\(keys))") ?? 0
    guard broken.count > 0 else { return broken }
    broken.examples = try reader.connection.rows("SELECT k FROM (\(keys)) ORDER BY k LIMIT 3") { $0.integer(at: 0) }
    return broken
  }
}
