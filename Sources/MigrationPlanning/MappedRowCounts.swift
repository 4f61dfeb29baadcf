// How many rows the entity mappings of a hop take, through their source filters, where SQL can say it: for costs, for rows that no
// filter lets through, and for what the result must hold. Where a filter needs the moment of the hop, or more than SQL, nothing
// is known.

import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite

struct MappedRowCounts {
  /// Rows by index of the entity mapping; nil where they are not known.
  private(set) var taken: [Int64?] = []
  /// A warning for each source entity of which rows fulfil the filter of no mapping.
  private(set) var warnings: [HopdError] = []

  /// `rows` are those of the hop's source version by entity; `reader` reads the hop's source, nil where it does not exist yet.
  init(hop: Hop, rows: [String: Int64], reader: StoreReader?) throws {
    guard let mapped = hop.mapped else { return }
    let mappings = mapped.entityMappings
    if let reader, mappings.contains(where: { $0.filter != nil }) {
      try ExpressionFunctions.register(on: reader.connection)
    }
    var conditions: [String: [String?]] = [:]
    for mapping in mappings {
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
      guard let reader, let condition else {
        taken.append(nil)
        conditions[source, default: []].append(nil)
        continue
      }
      conditions[source, default: []].append(condition)
      taken.append(try MappedRowCounts.count(source, condition, hop: hop, reader: reader))
    }
    guard let reader else { return }
    for (source, all) in conditions.sorted(by: { $0.key < $1.key }) {
      let known = all.compactMap(\.self)
      guard known.count == all.count else { continue }
      let none = known.map { "NOT \($0)" }.joined(separator: " AND ")
      let left = try MappedRowCounts.count(source, none, hop: hop, reader: reader) ?? 0
      guard left > 0 else { continue }
      warnings.append(
        HopdError(
          .dataDropped,
          "\(left) row\(left == 1 ? " fulfils" : "s fulfil") the filter of no entity mapping and "
            + "\(left == 1 ? "is" : "are") dropped", at: Place(hop: hop.title, entity: source),
          hint: "widen a filter, or add an entity mapping for the rest, if they are to stay"))
    }
  }

  /// The filter as a condition that is 1 or 0; nil where SQL cannot say it, or not now.
  private static func condition(
    _ predicate: PredicateNode, of mapping: ExplicitEntityMapping, hop: Hop, reader: StoreReader
  ) -> String? {
    guard let source = mapping.source, !predicate.asksForTheMoment else { return nil }
    let compiler = SQLExpressionCompiler(
      scope: ExpressionScope(model: hop.source, sourceEntity: source, place: .sourceFilter), schema: hop.sourceSchema,
      space: reader.space, moment: 0)
    return (try? compiler.condition(predicate, row: SQLRow(alias: "s", entity: source))).map { "(\($0))" }
  }

  private static func count(
    _ source: String, _ condition: String, hop: Hop, reader: StoreReader
  ) throws -> Int64? {
    guard let table = hop.sourceSchema.table(of: source), let number = hop.sourceSchema.number(of: source) else {
      return nil
    }
    do {
      return try reader.connection.integer(
        "SELECT count(*) FROM \(reader.qualified(table.name)) AS s WHERE s.\"Z_ENT\" = \(number) AND \(condition)")
    } catch {
      // A row for which the filter has no value: what would stop the migration is told now.
      if let failure = reader.connection.takeFunctionFailure() as? HopdError {
        throw failure.located(Place(hop: hop.title, entity: source))
      }
      throw error
    }
  }
}

extension PredicateNode {
  /// Is `now()` anywhere in it? Its text has the name of every function.
  fileprivate var asksForTheMoment: Bool { description.contains("now(") }
}
