// Counts missing references and wrong discriminators in two steps. The first checks, in the one pass over a table,
// whether any row's reference may be missing or its discriminator wrong; if no row's may, the store has none. Otherwise
// SQLite looks up every key and counts. The first step can only report too many, so the numbers come from the second.

import ManagedObjectModel
import SQLite

/// The counting of a store's references.
struct ReferenceCount {
  let asksForMissing: Bool
  let asksForEntities: Bool
  /// Rows by Z_ENT of the tables whose keys were read.
  private(set) var rows: [String: [Int64: Int64]] = [:]
  private let reader: StoreReader
  private let counter: RowCounter
  private var missingPlaces: [DanglingReferences.Place] = []
  private var entityPlaces: [DiscriminatorAgreement.Place] = []
  private var keys: [String: RowKeys] = [:]

  /// Reads the keys of every referenced table.
  init(
    schema: StoreSchema, reader: StoreReader, counter: RowCounter, asksForMissing: Bool, asksForEntities: Bool
  ) throws(SQLiteError) {
    self.asksForMissing = asksForMissing
    self.asksForEntities = asksForEntities
    self.reader = reader
    self.counter = counter
    if asksForMissing { missingPlaces = DanglingReferences.places(in: schema) }
    if asksForEntities { entityPlaces = DiscriminatorAgreement.places(in: schema) }
    let named = Set(entityPlaces.map(\.target))
    let referred = named.union(missingPlaces.flatMap { $0.ends.map(\.target) })
    var budget = RowKeys.budget
    for (index, table) in referred.sorted().enumerated() where try reader.isKeyed(table) {
      var counts: [Int64: Int64]?
      keys[table] = try RowKeys(
        of: table, index: index, byEntity: named.contains(table), reader: reader, counter: counter, budget: &budget,
        counts: &counts)
      rows[table] = counts
    }
    for known in keys.values { try known.register(on: reader.connection) }
  }

  /// Releases the keys.
  func unregister() {
    for known in keys.values { known.unregister(from: reader.connection) }
  }

  /// Adds the conditions to check for the rows of each table.
  func addConditions(to conditions: inout [String: [String]]) {
    for place in missingPlaces {
      if let condition = condition(of: place) { conditions[place.table, default: []].append(condition) }
    }
    for place in entityPlaces {
      if let condition = condition(of: place) { conditions[place.table, default: []].append(condition) }
    }
  }

  private func condition(of place: DanglingReferences.Place) -> String? {
    var terms: [String] = []
    for end in place.ends {
      let column = RowCounter.column(end.column)
      guard let term = keys[end.target]?.mayBeMissing(column) else { return nil }
      // No term is true for NULL.
      terms.append(place.isJoin ? "\(column) IS NULL OR \(term)" : term)
    }
    return terms.joined(separator: " OR ")
  }

  private func condition(of place: DiscriminatorAgreement.Place) -> String? {
    keys[place.target]?.mayBeWrong(RowCounter.column(place.key), entity: RowCounter.column(place.column))
  }

  /// Returns the relationships with missing targets.
  func missing() throws(SQLiteError) -> [DanglingReferences] {
    var found: [DanglingReferences] = []
    for place in missingPlaces {
      if try isRefuted(condition(of: place), in: place.table) {
        keepRefuted(place)
        continue
      }
      guard let count = try reader.connection.integer(place.query(reader)), count > 0 else { continue }
      found.append(DanglingReferences(entity: place.entity, relationship: place.relationship, count: count))
    }
    return found
  }

  /// A condition that no row fulfils for both ends of a pair, none fulfils for one of them.
  private func keepRefuted(_ place: DanglingReferences.Place) {
    for end in place.ends {
      guard let term = keys[end.target]?.mayBeMissing(RowCounter.column(end.column)) else { continue }
      reader.rowCountCache?.keep(0, for: term, in: reader.qualified(place.table))
    }
  }

  /// Returns all discriminators.
  func agreements() throws(SQLiteError) -> [DiscriminatorAgreement] {
    var found: [DiscriminatorAgreement] = []
    for place in entityPlaces {
      let isRight = try isRefuted(condition(of: place), in: place.table)
      let wrong = isRight ? 0 : try reader.connection.integer(place.query(reader)) ?? 0
      found.append(
        DiscriminatorAgreement(
          entity: place.entity, relationship: place.relationship, column: place.column, wrong: wrong))
    }
    return found
  }

  /// Whether a condition is true for no row.
  private func isRefuted(_ condition: String?, in table: String) throws(SQLiteError) -> Bool {
    guard let condition else { return false }
    return try counter.counts([condition], in: table) == [0]
  }
}
