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
    for mapping in mappings {
      guard let source = mapping.source else {
        taken.append(0)
        continue
      }
      taken.append(mapping.filter == nil ? rows[source] ?? 0 : nil)
    }
    guard let reader else { return }
    for entity in SourceFilters(mapped, model: hop.source, schema: hop.sourceSchema, tables: reader.tables).entities {
      let counts = try MappedRowCounts.count(entity, hop: hop, reader: reader)
      for (mapping, count) in zip(entity.mappings, counts) { taken[mapping] = count }
      guard entity.isWhole, let left = counts.last, left > 0 else { continue }
      warnings.add(
        .dataDropped,
        "\(left.grouped) row\(left == 1 ? " fulfils" : "s fulfil") the filter of no entity mapping and "
          + "\(left == 1 ? "is" : "are") dropped", at: Place(hop: hop.title, entity: entity.name),
        hint: "widen a filter, or add an entity mapping for the others, to preserve them")
    }
  }

  /// Returns the numbers of an entity's rows that fulfil each condition, counted in one pass; empty if it has no table.
  private static func count(_ entity: SourceFilters.Filtered, hop: Hop, reader: StoreReader) throws -> [Int64] {
    guard let table = hop.sourceSchema.table(of: entity.name), let keys = entity.keys else { return [] }
    let name = reader.qualified(table.name)
    let known = keys.compactMap { reader.rowCountCache?.count($0, in: name) }
    if known.count == keys.count { return known }
    let terms = entity.conditions.map { "count(*) FILTER (WHERE \($0))" }.joined(separator: ", ")
    do {
      let counts =
        try reader.connection.rows("SELECT \(terms) FROM \(name) AS s WHERE \(entity.membership ?? "0")") { row in
          (0..<Int32(clamping: entity.conditions.count)).map { row.integer(at: $0) }
        }.first ?? []
      for (key, count) in zip(keys, counts) { reader.rowCountCache?.keep(count, for: key, in: name) }
      return counts
    } catch {
      // The filter has no value for some row, which would stop the migration; it is reported now.
      if let failure = reader.connection.takeFunctionFailure() as? HopdError {
        throw failure.located(Place(hop: hop.title, entity: entity.name))
      }
      throw error
    }
  }
}

/// The source filters of a hop by entity, as far as SQL can count them.
struct SourceFilters {
  /// The filters of one source entity.
  struct Filtered {
    let name: String
    /// The entity mappings whose filters are known, by index.
    fileprivate(set) var mappings: [Int] = []
    /// The filters as conditions that are 1 or 0; if all are known, then one for the rows that none takes.
    fileprivate(set) var conditions: [String] = []
    /// Whether all filters of the entity are known, and so are the rows that none takes.
    fileprivate(set) var isWhole = true
    /// Whether a condition may fail, or reads more than its row.
    fileprivate var isPlain = true
    /// The condition that a row is of the entity; nil if it has no number.
    let membership: String?

    /// Names of the counts. Each begins with the entity, so that equal conditions on different entities have different
    /// names; it is itself the condition on all rows of the table.
    var keys: [String]? { membership.map { membership in conditions.map { "\(membership) AND \($0)" } } }
  }

  /// The entities with filters, by name.
  private(set) var entities: [Filtered] = []
  private let schema: StoreSchema

  /// Compiles the filters of a hop from a version of `model` with the tables of `schema` in `tables`.
  init(_ mapped: MappedHop, model: ManagedObjectModel, schema: StoreSchema, tables: SourceTables) {
    self.schema = schema
    var found: [String: Filtered] = [:]
    for (index, mapping) in mapped.entityMappings.enumerated() {
      guard let source = mapping.source else { continue }
      let membership = schema.number(of: source).map { "s.\"Z_ENT\" = \($0)" }
      var entity = found[source] ?? Filtered(name: source, membership: membership)
      if let filter = mapping.filter,
        let condition = Self.condition(filter.predicate, of: source, model: model, schema: schema, tables: tables)
      {
        entity.mappings.append(index)
        entity.conditions.append("(\(condition.text))")
        if condition.mayFail || condition.readsFiles || condition.readsTables { entity.isPlain = false }
      } else {
        entity.isWhole = false
      }
      found[source] = entity
    }
    entities = found.values.filter { !$0.conditions.isEmpty }.sorted { $0.name < $1.name }.map { entity in
      guard entity.isWhole else { return entity }
      var whole = entity
      whole.conditions.append(entity.conditions.map { "NOT \($0)" }.joined(separator: " AND "))
      return whole
    }
  }

  /// Conditions by table that can be counted together with others: none can fail, and each reads only its row.
  var plain: [String: [String]] {
    var conditions: [String: [String]] = [:]
    for entity in entities where entity.isPlain {
      guard let table = schema.table(of: entity.name)?.name, let keys = entity.keys else { continue }
      conditions[table, default: []] += keys
    }
    return conditions
  }

  /// Returns a filter as a condition; nil if SQL cannot express it, or not yet.
  private static func condition(
    _ predicate: PredicateNode, of source: String, model: ManagedObjectModel, schema: StoreSchema, tables: SourceTables
  ) -> SQLExpression? {
    guard !predicate.asksForTheMoment else { return nil }
    let compiler = SQLExpressionCompiler(
      scope: ExpressionScope(model: model, sourceEntity: source, place: .sourceFilter), schema: schema, tables: tables,
      moment: 0)
    return try? compiler.condition(predicate, row: SQLRow(alias: "s", entity: source))
  }
}

extension PredicateNode {
  /// Whether it contains `now()`. Its text has the name of every function.
  fileprivate var asksForTheMoment: Bool { description.contains("now(") }
}
