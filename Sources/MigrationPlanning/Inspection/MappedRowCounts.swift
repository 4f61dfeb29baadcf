// How many rows the entity mappings of a hop take through their source filters, if SQL can count them: for costs, for
// rows that no filter takes, and for the expected result. If a filter needs the time of the hop, or more than SQL, the
// number is not known.

import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite

struct MappedRowCounts {
  /// Rows by index of the entity mapping; nil if not known.
  private(set) var taken: [Int64?] = []
  /// A warning for each source entity with rows that fulfil no mapping's filter.
  private(set) var warnings: [HopdError] = []

  /// `rows` are the rows of the hop's source version by entity; `reader` reads the hop's source, nil if it does not
  /// exist yet.
  init(hop: Hop, rows: [String: Int64], reader: StoreReader?) throws {
    guard let mapped = hop.mapped else { return }
    let mappings = mapped.entityMappings
    if let reader, mappings.contains(where: { $0.filter != nil }) {
      try ExpressionFunctions.register(on: reader.connection)
    }
    var conditions: [String: [String?]] = [:]
    var asked: [String: [(mapping: Int, condition: String)]] = [:]
    for (index, mapping) in mappings.enumerated() {
      guard let source = mapping.source else {
        taken.append(0)
        continue
      }
      guard let filter = mapping.filter else {
        taken.append(rows[source] ?? 0)
        conditions[source, default: []].append(nil)
        continue
      }
      let condition = reader.flatMap { MappedRowCounts.condition(filter.predicate, of: mapping, hop: hop, reader: $0) }
      taken.append(nil)
      conditions[source, default: []].append(condition)
      if let condition { asked[source, default: []].append((index, condition)) }
    }
    guard let reader else { return }
    for (source, parts) in asked.sorted(by: { $0.key < $1.key }) {
      // If all filters of an entity are known, so are the rows that none takes.
      let isWhole = conditions[source]?.count == parts.count
      let none = parts.map { "NOT \($0.condition)" }.joined(separator: " AND ")
      let counts = try MappedRowCounts.count(
        source, parts.map(\.condition) + (isWhole ? [none] : []), hop: hop, reader: reader)
      for (part, count) in zip(parts, counts) { taken[part.mapping] = count }
      guard isWhole, let left = counts.last, left > 0 else { continue }
      warnings.add(
        .dataDropped,
        "\(left) row\(left == 1 ? " fulfils" : "s fulfil") the filter of no entity mapping and "
          + "\(left == 1 ? "is" : "are") dropped", at: Place(hop: hop.title, entity: source),
        hint: "widen a filter, or add an entity mapping for the rest, if they are to stay")
    }
  }

  /// Returns the filter as a condition that is 1 or 0; nil if SQL cannot express it, or not yet.
  private static func condition(
    _ predicate: PredicateNode, of mapping: ExplicitEntityMapping, hop: Hop, reader: StoreReader
  ) -> String? {
    guard let source = mapping.source, !predicate.asksForTheMoment else { return nil }
    let compiler = SQLExpressionCompiler(
      scope: ExpressionScope(model: hop.source, sourceEntity: source, place: .sourceFilter), schema: hop.sourceSchema,
      space: reader.space, moment: 0)
    return (try? compiler.condition(predicate, row: SQLRow(alias: "s", entity: source))).map { "(\($0.text))" }
  }

  /// Returns the numbers of an entity's rows that fulfil each condition, counted in one pass; empty if it has no table.
  private static func count(_ source: String, _ conditions: [String], hop: Hop, reader: StoreReader) throws -> [Int64] {
    guard let table = hop.sourceSchema.table(of: source), let number = hop.sourceSchema.number(of: source) else {
      return []
    }
    // Each key begins with the entity, so that equal conditions on different entities have different keys.
    let name = reader.qualified(table.name)
    let keys = conditions.map { "entity \(number): \($0)" }
    let known = keys.compactMap { reader.memory?.count($0, in: name) }
    if known.count == keys.count { return known }
    let terms = conditions.map { "count(*) FILTER (WHERE \($0))" }.joined(separator: ", ")
    do {
      let counts =
        try reader.connection.rows("SELECT \(terms) FROM \(name) AS s WHERE s.\"Z_ENT\" = \(number)") { row in
          (0..<Int32(clamping: conditions.count)).map { row.integer(at: $0) }
        }.first ?? []
      for (key, count) in zip(keys, counts) { reader.memory?.keep(count, for: key, in: name) }
      return counts
    } catch {
      // The filter has no value for some row, which would stop the migration; it is reported now.
      if let failure = reader.connection.takeFunctionFailure() as? HopdError {
        throw failure.located(Place(hop: hop.title, entity: source))
      }
      throw error
    }
  }
}

extension PredicateNode {
  /// Whether it contains `now()`. Its text has the name of every function.
  fileprivate var asksForTheMoment: Bool { description.contains("now(") }
}
