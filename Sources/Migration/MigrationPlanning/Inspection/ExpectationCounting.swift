// The expected content of the finished store, counted in the source; the verifier compares. If the source gives no
// exact number (for pairs that a hop filters), there is none, never a guess.

import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite

struct ExpectationCounting {
  let migrationPath: MigrationPath
  let census: StoreCensus
  /// Rows per entity of the store.
  let rows: [String: Int64]
  /// Layout of the last version.
  let finalSchema: StoreSchema
  let dangling: [DanglingReferences]
  let externalData: [String: [String: ExternalDataExpectation]]

  private var source: StoreSchema { migrationPath.sourceSchema }
  private var reader: StoreReader { census.reader }

  func expectation(droppedRows: [String: Int64], storeUUID: String) throws(SQLiteError) -> StoreExpectation {
    StoreExpectation(
      rowsByEntity: migrationPath.rows(rows, at: migrationPath.end), droppedRowsByEntity: droppedRows,
      rowsByJoinTable: try rowsByJoinTable(),
      highWaterMarks: try highWaterMarks(), danglingReferences: dangling.reduce(0) { $0 &+ $1.count },
      valuesByColumn: try ValueExpectation(
        migrationPath: migrationPath, census: census, rows: rows, finalSchema: finalSchema
      ).valuesByColumn(),
      nullOrderKeys: try census.missingOrderKeys(),
      externalData: externalData, storeUUID: storeUUID)
  }

  /// Returns, for each final root, the highest Z_MAX of the source roots whose rows it takes. The verifier checks
  /// separately that it is never less than the highest key in use: a row with a key above its store's Z_MAX may not be
  /// among those that a root takes.
  func highWaterMarks() throws(SQLiteError) -> [String: Int64] {
    let maxima = Dictionary(try reader.primaryKeys().map { ($0.number, $0.highWaterMark) }) { first, _ in first }
    var marks: [String: Int64] = [:]
    for root in finalSchema.model.rootEntities {
      marks[root.name] = 0
      for entity in finalSchema.model.subtree(of: root) {
        guard let stored = migrationPath.sourceEntity(of: entity.name, at: migrationPath.end),
          let table = source.table(of: stored), let number = source.number(of: table.rootEntity)
        else { continue }
        marks[root.name] = max(marks[root.name] ?? 0, maxima[number] ?? 0)
      }
    }
    return marks
  }

  private func rowsByJoinTable() throws(SQLiteError) -> [String: Int64] {
    var counts: [String: Int64] = [:]
    for join in finalSchema.joinTables {
      guard !join.isOwnInverse || staysOwnInverse(join), let origin = commonOrigin(of: join),
        isUnfiltered(origin, join: join),
        let storage = source.storage(ofRelationship: origin.relationship, in: origin.entity)
      else { continue }
      switch storage {
      case .join(let columns):
        guard !columns.join.isOwnInverse || staysOwnInverse(join) else { continue }
        counts[join.name] = try census.pairs(in: columns.table)
      case .toOne(let columns, _), .members(let columns), .owned(let columns):
        let request = StoreCensus.CountRequest(column: columns.key, entities: nil)
        counts[join.name] = try census.values([request], in: columns.table).first
      }
    }
    return counts
  }

  /// Whether the relationship is its own inverse in every version: otherwise a hop adds the pairs of the other
  /// direction.
  private func staysOwnInverse(_ join: JoinTable) -> Bool {
    var (entity, name) = (join.entity, join.relationship)
    for version in stride(from: migrationPath.end, through: 0, by: -1) {
      let model = migrationPath.models[version]
      guard let value = model.relationship(name, of: entity), model.inverse(of: value)?.relationship == value else {
        return false
      }
      guard version > 0 else { break }
      guard
        let pairs = migrationPath.mappings[version - 1].mapping(toDestination: entity)?.relationships
          .first(where: { $0.destination == name })?.source
      else { return false }
      (entity, name) = (pairs.entity, pairs.relationship)
    }
    return true
  }

  /// Returns the only relationship of the store whose pairs all owners of the join table's relationship carry; nil if
  /// they differ.
  private func commonOrigin(of join: JoinTable) -> PairsOrigin? {
    guard let owner = finalSchema.model.entity(named: join.entity) else { return nil }
    var result: PairsOrigin?
    for entity in finalSchema.model.subtree(of: owner) {
      guard migrationPath.sourceEntity(of: entity.name, at: migrationPath.end) != nil else { continue }
      guard
        let origin = migrationPath.declaredOrigin(
          ofRelationship: join.relationship, in: entity.name, at: migrationPath.end), result ?? origin == origin
      else { return nil }
      result = origin
    }
    return result
  }

  /// Whether all possible owners and targets of the store's relationship are carried to the sides of the join table,
  /// and every pair names two rows that exist.
  private func isUnfiltered(_ origin: PairsOrigin, join: JoinTable) -> Bool {
    guard let entity = source.model.entity(named: origin.entity),
      let relationship = entity.relationships.first(where: { $0.name == origin.relationship }),
      let target = source.model.entity(named: relationship.destinationEntityName),
      let finalOwner = finalSchema.model.entity(named: join.entity),
      let finalTarget = finalSchema.model.entity(named: join.inverseEntity)
    else { return false }
    let inverse = source.model.inverse(of: relationship)
    let isBroken = dangling.contains { found in
      (found.entity == origin.entity && found.relationship == origin.relationship)
        || (found.entity == inverse?.entity.name && found.relationship == inverse?.relationship.name)
    }
    if isBroken { return false }
    let (owners, targets) = origin.isInverted ? (target, entity) : (entity, target)
    return arrive(owners, below: finalOwner) && arrive(targets, below: finalTarget)
  }

  private func arrive(_ stored: Entity, below final: Entity) -> Bool {
    source.model.subtree(of: stored).allSatisfy { member in
      guard let name = migrationPath.entity(continuing: member.name, at: migrationPath.end),
        finalSchema.model.entity(named: name) != nil
      else { return (rows[member.name] ?? 0) == 0 }
      return finalSchema.model.isEntity(name, within: final.name)
    }
  }
}
