// Checks that the rows of the store allow the hops. Core Data finds out while it writes; here every row that would make
// a hop fail is found before the first byte is written, with the entity, the property and the number of rows
// (docs/formats/migration-semantics.md, "Validation" and "What cannot be inferred").

import Diagnostics
import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite

struct RowInspection {
  let migrationPath: MigrationPath
  let census: StoreCensus
  /// Rows per entity of the store's version, without subentities.
  private(set) var rows: [String: Int64] = [:]
  var findings = Findings()
  /// Remarks for the operator on rows that continue unchanged.
  var remarks: [HopdError] = []
  private var asked: Set<String> = []
  /// The versions after the hops to check.
  private(set) var versions: Range<Int>
  /// The entities after each of these hops that have rows; known once the rows are counted.
  private(set) var liveEntities: [LiveEntity] = []

  var schema: StoreSchema { migrationPath.sourceSchema }
  var reader: StoreReader { census.reader }

  /// Prepares to check the hops of a path, or only those after the first `checked` ones.
  init(migrationPath: MigrationPath, census: StoreCensus, after checked: Int = 0) {
    self.migrationPath = migrationPath
    self.census = census
    versions = (checked + 1)..<max(checked + 1, migrationPath.models.count)
  }

  /// Checks everything that inferred hops demand of the rows that they read.
  mutating func checkInferredHops(_ rules: InvalidRowsRules) throws(SQLiteError) {
    liveEntities = findLiveEntities()
    checkAbstractEntities()
    try checkRequiredValues()
    try checkUniqueness()
    try checkRequiredRelationships()
    try checkNumbers()
    try checkBounds(rules)
    try checkConditions()
    try checkDiscriminators()
  }

  // MARK: Entities

  /// Counts rows, and finds rows that belong to no entity of their table.
  mutating func countRows() throws(SQLiteError) {
    for table in schema.tables {
      let counts = try census.rowCounts(of: table)
      var known: Set<Int64> = []
      for entity in table.entities {
        guard let number = schema.number(of: entity) else { continue }
        known.insert(number)
        rows[entity] = counts[number] ?? 0
        if schema.model.entity(named: entity)?.isAbstract == true, let count = counts[number], count > 0 {
          let first = try reader.connection.integer(
            "SELECT min(Z_PK) FROM \(reader.qualified(table.name)) WHERE Z_ENT = \(number)")
          findings.add(
            .rowsOfUnknownEntity, "\(count.grouped) rows belong to this entity, which is abstract and has none",
            at: Place(entity: entity, row: first),
            hint: "restore a backup, or correct Z_ENT of these rows")
        }
      }
      let stray = counts.filter { !known.contains($0.key) }.values.reduce(0, &+)
      guard stray > 0 else { continue }
      let list = known.sorted().map(String.init).joined(separator: ", ")
      let first = try reader.connection.integer(
        "SELECT min(Z_PK) FROM \(reader.qualified(table.name)) WHERE Z_ENT IS NULL OR Z_ENT NOT IN (\(list))")
      findings.add(
        .rowsOfUnknownEntity,
        "\(stray.counted("row")) of \(table.name) with an entity number that is neither that of \(table.rootEntity) "
          + "nor that of a subentity",
        at: Place(entity: table.rootEntity, row: first),
        hint: "restore a backup, or correct Z_ENT of these rows")
    }
  }

  /// Finds rows whose entity becomes abstract in some hop: no entity is left for them.
  mutating func checkAbstractEntities() {
    for live in liveEntities where live.entity.isAbstract {
      guard migrationPath.models[live.version - 1].entity(named: live.before)?.isAbstract == false else { continue }
      findings.add(
        .rowsOfUnknownEntity, "\(live.rows.grouped) rows belong to this entity, which becomes abstract",
        at: Place(hop: migrationPath.hop(to: live.version), entity: live.entity.name),
        hint: "keep the entity concrete, or move its objects to a subentity with a mapping")
    }
  }

  // MARK: Required values

  /// Finds rows without a value for attributes that a hop adds without a default or makes required.
  mutating func checkRequiredValues() throws(SQLiteError) {
    for live in liveEntities {
      let model = migrationPath.models[live.version]
      for (name, attribute) in model.allAttributes(of: live.entity).sorted(by: { $0.key < $1.key })
      where !attribute.isOptional && !attribute.isTransient && !attribute.isDerived {
        let before = live.mapping.attributes.first { $0.destination == name }?.source.flatMap {
          migrationPath.definition(of: $0, in: live.before, at: live.version - 1)
        }
        // A value that was already required is carried unchanged, even if the app tolerated gaps.
        if let before, !before.isOptional { continue }
        let verb = before == nil ? "is new and required" : "becomes required"
        switch migrationPath.origin(ofAttribute: name, in: live.entity.name, at: live.version) {
        case .constant: continue
        case .null: missing(name, live, verb, rows: live.rows, first: nil)
        case .column(let table, let column, let fallback):
          guard fallback == nil, let number = schema.number(of: live.stored) else { continue }
          let request = StoreCensus.CountRequest(column: column, entities: [number])
          let values = try census.values([request], in: table).first ?? 0
          let count = live.rows &- values
          guard count > 0 else { continue }
          let first = try reader.connection.integer(
            "SELECT min(Z_PK) FROM \(reader.qualified(table)) WHERE Z_ENT = \(number)"
              + " AND \(SQLiteIdentifier.quoted(column)) IS NULL")
          missing(name, live, verb, rows: count, first: first)
        }
      }
    }
  }

  private mutating func missing(_ attribute: String, _ live: LiveEntity, _ verb: String, rows: Int64, first: Int64?) {
    findings.add(
      .missingRequiredValue,
      "the attribute \(verb), has no default, and \(rows.grouped) row\(rows == 1 ? " has" : "s have") no value for it "
        + "(Core Data would fail with 134110, 1570)",
      at: Place(hop: migrationPath.hop(to: live.version), entity: live.entity.name, property: attribute, row: first),
      hint: "set a default in the model, or make the attribute optional; or pass a mapping model that sets it "
        + "(--mappings), or choose how to handle these rows: --invalid-rows skip or quarantine (`invalid_rows` in the "
        + "configuration)")
  }

  // MARK: Uniqueness

  /// Finds existing rows that break constraints of later versions; values are counted and never shown.
  mutating func checkUniqueness() throws(SQLiteError) {
    for version in versions {
      let model = migrationPath.models[version]
      for entity in model.entities {
        for constraint in entity.uniquenessConstraints {
          try check(constraint, of: entity, in: model, version: version)
        }
      }
    }
  }

  private mutating func check(
    _ constraint: [String], of entity: Entity, in model: ManagedObjectModel, version: Int
  ) throws(SQLiteError) {
    var compared = ConstrainedRows(count: constraint.count)
    var columnSets: Set<[String]> = []
    for member in entities(boundBy: constraint, of: entity, in: model) {
      guard let source = migrationPath.sourceEntity(of: member.name, at: version), (rows[source] ?? 0) > 0,
        let number = schema.number(of: source), let table = schema.table(of: source)?.name
      else { continue }
      var keys: [String] = []
      var columns: [String] = []
      for attribute in constraint {
        guard migrationPath.definition(of: attribute, in: member.name, at: version) != nil else {
          guard let key = toOneKey(attribute, of: member, in: model, version: version, table: table) else { return }
          keys.append(key.column.map(SQLiteIdentifier.quoted) ?? "NULL")
          if let column = key.column { columns.append(column) }
          continue
        }
        let origin = migrationPath.origin(ofAttribute: attribute, in: member.name, at: version)
        keys.append(origin.sql)
        if case .column(_, let name, nil) = origin { columns.append(name) }
      }
      compared.add(member.name, number: number, table: table, qualified: reader.qualified(table), keys: keys)
      columnSets.insert(columns)
    }
    guard !compared.isEmpty, !constraint.isEmpty else { return }
    if columnSets.count == 1, let columns = columnSets.first, columns.count == constraint.count,
      let table = compared.onlyTable, try isUniqueAlready(columns, in: table)
    {
      return
    }
    let sql = compared.repeatedValues
    guard asked.insert(sql).inserted, try reader.connection.integer(sql) ?? 0 > 0 else { return }
    // One finding per entity with a row too many: the operator's rule for that entity decides about it.
    let found = try reader.connection.rows(compared.repeatingRows) { row in
      (number: row.integer(at: 0), values: row.integer(at: 1), first: row.integer(at: 2))
    }
    let below = Set(model.subtree(of: entity).map(\.name))
    for (number, values, first) in found {
      guard let name = compared.names[number] else { continue }
      let origin = below.contains(name) ? "" : " of \(entity.name), which is one for the whole table,"
      findings.add(
        .uniquenessViolation,
        "\(values.counted("value")) of the uniqueness constraint \(constraint.joined(separator: ", "))\(origin) "
          + "\(values == 1 ? "occurs" : "occur") in several rows (Core Data would fail with 134111)",
        at: Place(
          hop: migrationPath.hop(to: version), entity: name, property: constraint.count == 1 ? constraint.first : nil,
          row: first),
        hint: "remove the duplicates with the app, or add the constraint in a later version")
    }
  }

  /// Returns the concrete entities whose rows a constraint compares: all of the table that have its columns, because
  /// the index has no Z_ENT (docs/formats/store-layout.md, "Indexes").
  private func entities(boundBy constraint: [String], of entity: Entity, in model: ManagedObjectModel) -> [Entity] {
    if entity.parentName == nil, model.subentities(of: entity).isEmpty { return entity.isAbstract ? [] : [entity] }
    // The layout that the plan makes for a version between the first and the last; column names are those of every
    // other.
    let layout = StoreSchema(
      model: model, frameworkVersion: schema.frameworkVersion, observed: .internalStore(of: model))
    let columns = layout.columns(ofConstraint: constraint, in: entity.name)
    // Without a column for each there is no index; the declaring entity's own rows are compared all the same.
    let isIndexed = columns.count == constraint.count
    return model.subtree(of: isIndexed ? model.root(of: entity) : entity).filter { member in
      !member.isAbstract && (!isIndexed || layout.columns(ofConstraint: constraint, in: member.name) == columns)
    }
  }

  /// Whether a unique index of the store covers exactly these columns, so that there are no duplicates.
  private func isUniqueAlready(_ columns: [String], in table: String) throws(SQLiteError) -> Bool {
    let indexes = try reader.connection.rows(
      "SELECT name FROM pragma_index_list(?, ?) WHERE \"unique\" = 1 AND partial = 0",
      [.text(table), .text(reader.schema)]
    ) { $0.text(at: 0) ?? "" }
    for index in indexes {
      let covered = try reader.connection.rows(
        "SELECT name FROM pragma_index_info(?, ?)", [.text(index), .text(reader.schema)]
      ) { $0.text(at: 0) ?? "" }
      if Set(covered) == Set(columns) { return true }
    }
    return false
  }

  private struct ToOneKey {
    /// nil if the to-one begins empty.
    let column: String?
  }

  /// Returns the column that holds the keys of a later version's to-one; nil if it cannot be determined: keys that move
  /// to the other end, or are cleared with a dropped entity.
  private func toOneKey(
    _ name: String, of entity: Entity, in model: ManagedObjectModel, version: Int, table: String
  ) -> ToOneKey? {
    guard let relationship = model.allRelationships(of: entity)[name], !relationship.isToMany else { return nil }
    guard let origin = migrationPath.origin(ofRelationship: name, in: entity.name, at: version) else {
      return ToOneKey(column: nil)
    }
    guard !origin.isInverted,
      let own = schema.storage(ofRelationship: origin.relationship, in: origin.entity)?.ownColumns, own.table == table,
      let before = schema.model.relationship(origin.relationship, of: origin.entity),
      let target = schema.model.entity(named: before.destinationEntityName),
      migrationPath.entity(continuing: target.name, at: version) == relationship.destinationEntityName,
      schema.model.subtree(of: target).allSatisfy({
        $0.isAbstract || migrationPath.entity(continuing: $0.name, at: version) != nil
      })
    else { return nil }
    return ToOneKey(column: own.key)
  }

  // MARK: References

  /// Finds to-ones of the last version that name another entity than their target has: their meaning is not certain.
  mutating func checkDiscriminators() throws(SQLiteError) {
    let disagreeing = try census.discriminators().filter { $0.wrong > 0 }
    guard !disagreeing.isEmpty, let last = migrationPath.models.last else { return }
    var carried: Set<PairsOrigin> = []
    for entity in last.entities {
      for relationship in entity.relationships {
        let origin = migrationPath.declaredOrigin(
          ofRelationship: relationship.name, in: entity.name, at: migrationPath.end)
        if let origin { carried.insert(origin) }
      }
    }
    for column in disagreeing
    where carried.contains(PairsOrigin(entity: column.entity, relationship: column.relationship, isInverted: false)) {
      findings.add(
        .wrongDiscriminators,
        "\(column.wrong.grouped) row\(column.wrong == 1 ? " names" : "s name") another entity than the target has "
          + "(column \(column.column))", at: Place(entity: column.entity, property: column.relationship),
        hint: "restore a backup, or set \(column.column) to the target's Z_ENT")
    }
  }

  // MARK: Traversal

  /// An entity after a hop that has rows in the store.
  struct LiveEntity {
    let version: Int
    let entity: Entity
    /// The entity that it continues, in the store and in the previous version.
    let stored: String
    let before: String
    /// The entity mapping that makes it.
    let mapping: EntityMapping
    let rows: Int64
  }

  /// Returns the entities after each hop that have rows.
  private func findLiveEntities() -> [LiveEntity] {
    versions.flatMap { version in
      migrationPath.models[version].entities.compactMap { entity in
        guard let stored = migrationPath.sourceEntity(of: entity.name, at: version), let count = rows[stored],
          count > 0, let mapping = migrationPath.mappings[version - 1].mapping(toDestination: entity.name),
          let before = mapping.sourceEntity
        else { return nil }
        return LiveEntity(
          version: version, entity: entity, stored: stored, before: before, mapping: mapping, rows: count)
      }
    }
  }

  /// Returns the two columns of a query: a number of rows, and the first of them.
  func countAndFirst(_ sql: String) throws(SQLiteError) -> (count: Int64, first: Int64?) {
    try reader.connection.rows(sql) { row in
      (row.integer(at: 0), row.isNull(at: 1) ? nil : row.integer(at: 1))
    }.first ?? (0, nil)
  }
}

/// The rows that a uniqueness constraint compares, as queries.
private struct ConstrainedRows {
  /// The entities after the hop, by their numbers in the store.
  private(set) var names: [Int64: String] = [:]
  private let keys: [String]
  private var parts: [(number: Int64, table: Int, from: String, keys: String)] = []
  private var tables: [String] = []

  /// Prepares for a constraint of so many properties.
  init(count: Int) { keys = (0..<count).map { "k\($0)" } }

  var isEmpty: Bool { parts.isEmpty }
  var onlyTable: String? { tables.count == 1 ? tables.first : nil }

  /// Adds the rows of an entity; `expressions` are the values of the constraint's properties.
  mutating func add(_ name: String, number: Int64, table: String, qualified: String, keys expressions: [String]) {
    if !tables.contains(table) { tables.append(table) }
    let list = zip(expressions, keys).map { "\($0) AS \($1)" }.joined(separator: ", ")
    parts.append((number, tables.firstIndex(of: table) ?? 0, qualified, list))
    names[number] = name
  }

  /// Counts the values that several rows have.
  var repeatedValues: String {
    let rows = parts.map { "SELECT \($0.keys) FROM \($0.from) WHERE Z_ENT = \($0.number)" }
    return "SELECT count(*) FROM (SELECT 1 FROM (\(rows.joined(separator: " UNION ALL "))) WHERE \(present)"
      + " GROUP BY \(list) HAVING count(*) > 1)"
  }

  /// Finds the entities with rows that repeat the value of an earlier row, which are the rows that validation of a hop
  /// objects to: entity number, number of values, first key.
  var repeatingRows: String {
    let rows = parts.map {
      "SELECT Z_ENT AS e, \($0.table) AS t, Z_PK AS p, \($0.keys) FROM \($0.from) WHERE Z_ENT = \($0.number)"
    }
    return "SELECT e, count(*), min(p) FROM (SELECT e, min(p) AS p FROM ("
      + "SELECT e, p, \(list), row_number() OVER (PARTITION BY \(list) ORDER BY t, p) AS n FROM ("
      + rows.joined(separator: " UNION ALL ") + ") WHERE \(present)"
      + ") WHERE n > 1 GROUP BY e, \(list)) GROUP BY e ORDER BY e"
  }

  private var list: String { keys.joined(separator: ", ") }
  private var present: String { keys.map { "\($0) IS NOT NULL" }.joined(separator: " AND ") }
}

extension AttributeDefault {
  /// The default as a column stores it (docs/formats/store-layout.md, "Values in columns").
  var sqlValue: SQLiteValue {
    switch self {
    case .integer(let value): .integer(value)
    case .boolean(let value): .integer(value ? 1 : 0)
    case .double(let value), .date(let value): .real(value)
    // Decimals are numbers under NUMERIC affinity; they are compared as numbers, whatever their scale.
    case .decimal(let text): Int64(text).map { .integer($0) } ?? .real(Double(text) ?? 0)
    case .string(let text): .text(text)
    case .uuid(let bytes), .binary(let bytes): .blob(bytes)
    // Never written: the mapping refuses it.
    case .archived: .null
    }
  }
}
