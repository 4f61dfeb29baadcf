// Counts the rows of a store: rows by entity, values by column, references whose target is missing or of the wrong
// entity, positions in an order. The planner counts the source and the verifier the result with this one reader, so
// that the two numbers mean the same. Every table is read as few times as possible: counts requested together are taken
// in one pass, and each is taken once.

import ManagedObjectModel
import SQLite

/// Counts of one store, which must have the tables of its schema and must not change during the census.
package final class StoreCensus {
  /// The layout of the store.
  package let schema: StoreSchema
  /// The reader of the store.
  package let reader: StoreReader
  private let counter: RowCounter
  private var rows: [String: [Int64: Int64]] = [:]
  private var dangling: [DanglingReferences]?
  private var agreements: [DiscriminatorAgreement]?

  /// A column, and the entity numbers of the rows in which its values are counted; nil for all rows of the table.
  package struct CountRequest: Sendable, Hashable {
    /// Column name.
    package let column: String
    /// Z_ENT of the rows, in order.
    package let entities: [Int64]?

    /// Creates a request about a column.
    package init(column: String, entities: [Int64]?) {
      self.column = column
      self.entities = entities
    }
  }

  /// Other counts of a pass over the tables.
  package struct Subjects: OptionSet, Sendable {
    package let rawValue: Int

    /// Creates a set.
    package init(rawValue: Int) { self.rawValue = rawValue }

    /// Rows by entity.
    package static let rows = Subjects(rawValue: 1)
    /// References to missing rows.
    package static let references = Subjects(rawValue: 2)
    /// Discriminators.
    package static let discriminators = Subjects(rawValue: 4)
    /// Order keys.
    package static let orderKeys = Subjects(rawValue: 8)
    /// All of them.
    package static let all: Subjects = [.rows, .references, .discriminators, .orderKeys]
  }

  /// Creates a census; it counts nothing before the first call.
  package init(schema: StoreSchema, reader: StoreReader) {
    self.schema = schema
    self.reader = reader
    counter = RowCounter(reader: reader)
  }

  // MARK: Combination

  /// Takes several counts in one pass over each table; later calls for them cost nothing. `filters` are further
  /// conditions on rows `s`, by table. They must not fail, and the caller has registered the functions that they call.
  package func take(
    _ subjects: Subjects, values: [String: [CountRequest]] = [:], filters: [String: [String]] = [:]
  ) throws(SQLiteError) {
    var conditions = filters
    if subjects.contains(.rows) {
      for table in schema.tables where rows[table.name] == nil { rows[table.name] = known(table) }
    }
    // References come first: reading the keys of a table also counts its rows by entity.
    let references = try referencesToTake(subjects)
    defer { references?.unregister() }
    references?.addConditions(to: &conditions)
    for table in schema.tables {
      if subjects.contains(.rows), rows[table.name] == nil {
        conditions[table.name, default: []] += rowConditions(of: table) ?? []
      }
      for request in values[table.name] ?? [] {
        conditions[table.name, default: []] += [nullCondition(request)] + (request.entities.map { [isOf($0)] } ?? [])
      }
    }
    if subjects.contains(.orderKeys) {
      for (table, condition) in orderKeyConditions() { conditions[table, default: []].append(condition) }
    }
    for (table, list) in conditions.sorted(by: { $0.key < $1.key }) { _ = try counter.counts(list, in: table) }
    if subjects.contains(.rows) { for table in schema.tables { _ = try rowCounts(of: table) } }
    guard let references else { return }
    if references.asksForMissing { dangling = try references.missing() }
    if references.asksForEntities { agreements = try references.agreements() }
  }

  private func referencesToTake(_ subjects: Subjects) throws(SQLiteError) -> ReferenceCount? {
    let missing = subjects.contains(.references) && dangling == nil
    let entities = subjects.contains(.discriminators) && agreements == nil
    guard missing || entities else { return nil }
    let count = try ReferenceCount(
      schema: schema, reader: reader, counter: counter, asksForMissing: missing, asksForEntities: entities)
    rows.merge(count.rows) { _, new in new }
    for (table, counts) in count.rows { reader.rowCountCache?.keep(rows: counts, of: reader.qualified(table)) }
    return count
  }

  // MARK: Rows

  /// Returns the rows of a table by Z_ENT; a Z_ENT that is not an integer counts as 0, the number of no entity.
  package func rowCounts(of table: EntityTable) throws(SQLiteError) -> [Int64: Int64] {
    if let counts = rows[table.name] { return counts }
    let counts = if let known = known(table) { known } else { try count(table) }
    rows[table.name] = counts
    reader.rowCountCache?.keep(rows: counts, of: reader.qualified(table.name))
    return counts
  }

  /// Returns an earlier count.
  private func known(_ table: EntityTable) -> [Int64: Int64]? {
    reader.rowCountCache?.rows(of: reader.qualified(table.name))
  }

  private func count(_ table: EntityTable) throws(SQLiteError) -> [Int64: Int64] {
    if let conditions = rowConditions(of: table) {
      let numbers = concreteNumbers(of: table)
      var counts = try counter.counts(conditions, in: table.name)
      let total = try counter.total(of: table.name)
      if numbers.count == 1 { counts = [total &- (counts.first ?? 0)] }
      // The sum is the total only if Z_ENT has no other values; otherwise the rows are grouped.
      if counts.reduce(0, &+) == total {
        return Dictionary(zip(numbers, counts).filter { $0.1 > 0 }) { first, _ in first }
      }
    }
    return try reader.rowCounts(of: table.name)
  }

  /// One condition for each entity that may have rows, or, for a table with one such entity, the condition that a row
  /// is of no entity; nil where sorting is cheaper than that many conditions per row.
  private func rowConditions(of table: EntityTable) -> [String]? {
    let numbers = concreteNumbers(of: table)
    guard (1...12).contains(numbers.count) else { return nil }
    let entity = RowCounter.column("Z_ENT")
    if numbers.count == 1, let number = numbers.first { return ["\(entity) IS NOT \(number)"] }
    return numbers.map { "\(entity) = \($0)" }
  }

  private func concreteNumbers(of table: EntityTable) -> [Int64] {
    table.entities.filter { schema.model.entity(named: $0)?.isAbstract == false }.compactMap { schema.number(of: $0) }
  }

  /// Returns the number of rows of a join table.
  package func pairs(in join: String) throws(SQLiteError) -> Int64 { try counter.total(of: join) }

  // MARK: Values

  /// Returns the numbers of values that are not NULL, in the order of the requests.
  package func values(_ countRequests: [CountRequest], in table: String) throws(SQLiteError) -> [Int64] {
    // NULLs are counted: SQLite does not load a long value to see that it is not NULL, and most values are present.
    let countRequests = countRequests.map { simplified($0, in: table) }
    let filters = countRequests.compactMap { $0.entities.map(isOf) }
    _ = try counter.counts(countRequests.map(nullCondition) + filters, in: table)
    var counts: [Int64] = []
    for request in countRequests {
      let nulls = try counter.counts([nullCondition(request)], in: table).first ?? 0
      let all =
        if let entities = request.entities {
          try counter.counts([isOf(entities)], in: table).first ?? 0
        } else {
          try counter.total(of: table)
        }
      counts.append(all &- nulls)
    }
    return counts
  }

  /// The request without its entities if no other entity has rows: then no filter is needed, and none is evaluated.
  private func simplified(_ request: CountRequest, in table: String) -> CountRequest {
    guard let entities = request.entities, let counts = rows[table], counts.keys.allSatisfy(entities.contains),
      !counter.knows(nullCondition(request), in: table)
    else { return request }
    return CountRequest(column: request.column, entities: nil)
  }

  private func nullCondition(_ request: CountRequest) -> String {
    let isNull = "\(RowCounter.column(request.column)) IS NULL"
    return request.entities.map { "\(isNull) AND \(isOf($0))" } ?? isNull
  }

  private func isOf(_ entities: [Int64]) -> String {
    let column = RowCounter.column("Z_ENT")
    if entities.count == 1, let number = entities.first { return "\(column) = \(number)" }
    // For a short list comparisons are faster in SQLite than a set.
    if (2...6).contains(entities.count) {
      return "(" + entities.map { "\(column) = \($0)" }.joined(separator: " OR ") + ")"
    }
    return "\(column) IN (\(entities.map(String.init).joined(separator: ", ")))"
  }

  // MARK: Order

  /// Returns the number of references and pairs of ordered relationships without a position: the key is set, the order
  /// key is NULL.
  package func missingOrderKeys() throws(SQLiteError) -> Int64 {
    var total: Int64 = 0
    for (table, conditions) in Dictionary(grouping: orderKeyConditions(), by: \.table) {
      total &+= try counter.counts(conditions.map(\.condition), in: table).reduce(0, &+)
    }
    return total
  }

  private func orderKeyConditions() -> [(table: String, condition: String)] {
    let entities = schema.tables.flatMap { table in
      table.columns.compactMap { column -> (String, String)? in
        let key: String?
        switch (column.role, schema.storage(of: column.role)) {
        case (.orderKey, let storage?): key = storage.ownColumns?.key
        case (.ownerOrder, .owned(let columns)?): key = columns.key
        default: key = nil
        }
        guard let key else { return nil }
        return (table.name, "\(RowCounter.column(key)) IS NOT NULL AND \(RowCounter.column(column.name)) IS NULL")
      }
    }
    let joins = schema.joinTables.flatMap { join in
      [join.orderColumn, join.inverseOrderColumn].compactMap { column in
        column.map { (join.name, "\(RowCounter.column($0)) IS NULL") }
      }
    }
    return (entities + joins).map { (table: $0.0, condition: $0.1) }
  }

  // MARK: References

  /// Returns every relationship with references to missing rows.
  package func danglingReferences() throws(SQLiteError) -> [DanglingReferences] {
    try take(.references)
    return dangling ?? []
  }

  /// Returns every discriminator column with its agreement with its targets.
  package func discriminators() throws(SQLiteError) -> [DiscriminatorAgreement] {
    try take(.discriminators)
    return agreements ?? []
  }
}
