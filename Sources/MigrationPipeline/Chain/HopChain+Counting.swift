// The counting of rows during a chain: in a plan with mapping models the rows of a later hop cannot be known
// beforehand, so each hop is compared with its input, and the last store is verified against the input of its hop,
// which stays until the result is in place.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import MigrationEngine
import MigrationPlanning
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification

extension HopChain {
  /// Later hops and the verifier only see a hop's result, so a loss in the middle is checked at once. Returns the rows
  /// of the hop.
  func checkRows(of hop: Hop, from source: SourceTables, in space: SourceTables) throws -> Int64 {
    guard plan.isMixed else { return hop.rowsToRead }
    let expected = try MigrationPlanner.expectedRows(
      of: hop, rules: rules, input: reader(of: source))
    try keepWhereAsMany(expected, of: hop.destinationSchema, in: space)
    let found = try rows(of: reader(of: space), schema: hop.destinationSchema)
    let wrong = expected.filter { found[$0.key, default: 0] != $0.value }.sorted { $0.key < $1.key }
    guard wrong.isEmpty else {
      throw HopdError(
        .verificationFailed, "the store of a hop does not have the rows that it must have",
        at: Place(store: plan.store.location.database, hop: hop.title),
        hint: "the store is untouched; please report this with the output of `hopctl plan`",
        reasons: wrong.map {
          HopdError(
            .verificationFailed, "\($0.key) has \(found[$0.key, default: 0]) rows in place of \($0.value)",
            at: Place(entity: $0.key))
        })
    }
    return found.values.reduce(0) { $0.addingReportingOverflow($1).partialValue }
  }

  /// If a table has as many rows as its one entity must have, all of them are of that entity: the hop writes no other
  /// number, and readers accept no other. Counting rows counts entries on pages; counting by entity would read the
  /// rows.
  private func keepWhereAsMany(_ expected: [String: Int64], of schema: StoreSchema, in space: SourceTables) throws {
    for table in schema.tables {
      let concrete = table.entities.filter { schema.model.entity(named: $0)?.isAbstract == false }
      guard concrete.count == 1, let entity = concrete.first, let count = expected[entity],
        let number = schema.number(of: entity),
        try connection.integer("SELECT count(*) FROM \(space.qualified(table.name))") == count
      else { continue }
      counts.keep(rows: count > 0 ? [number: count] : [:], of: space.qualified(table.name))
    }
  }

  /// Reads a version of the store, whose rows do not change, so each count is made once.
  func reader(of space: SourceTables) -> StoreReader {
    StoreReader(connection: connection, space: space, memory: counts)
  }

  /// Rows per entity.
  func rows(of reader: StoreReader, schema: StoreSchema) throws -> [String: Int64] {
    var rows: [String: Int64] = [:]
    let census = StoreCensus(schema: schema, reader: reader)
    for table in schema.tables {
      let counts = try census.rowCounts(of: table)
      for entity in table.entities { rows[entity] = schema.number(of: entity).flatMap { counts[$0] } ?? 0 }
    }
    return rows
  }

  /// The expected content of the last store: in a chain with mapping models counted in the input of the last hop.
  /// Throws `staging-stale` where that is gone.
  func expectation() throws -> StoreExpectation {
    guard plan.isMixed else { return plan.expectation }
    var input = SourceTables.schema(sourceSchema)
    if let kept = inputStore {
      guard try files.status(area.path(hop: kept)) != nil else {
        throw HopdError(
          .stagingStale, "the store of the previous hop is missing", hint: "the chain starts over automatically")
      }
      input = try attachComplete(kept)
    }
    let expectation = try MigrationPlanner.expectation(of: plan, rules: rules, input: reader(of: input))
    if let kept = inputStore { try closeStore(ofHop: kept) }
    return expectation
  }

  /// Removes the store that the last hop read; the result is in place.
  func removeInput() throws {
    guard plan.isMixed, let kept = inputStore else { return }
    try area.remove(area.path(hop: kept))
    try files.syncDirectory(area.location.directory)
  }

  /// The hop whose staged store the last one reads; nil where that is the source itself.
  private var inputStore: Int? { plan.hops.count > 1 ? plan.hops.count - 2 : nil }
}
