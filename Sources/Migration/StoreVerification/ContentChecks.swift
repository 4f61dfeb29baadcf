import Diagnostics
import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SQLite

/// Checks the content of a store: keys, entities of rows, counts, values, references, order.
struct ContentChecks {
  let census: StoreCensus
  let expectation: StoreExpectation?

  private var reader: StoreReader { census.reader }
  private var schema: StoreSchema { census.schema }

  /// Reads the facts that all checks need, in one pass over each table.
  func askRows() throws(SQLiteError) {
    var values: [String: [StoreCensus.CountRequest]] = [:]
    for table in schema.tables { values[table.name] = countRequests(of: table).map(\.request) }
    try census.take(.all, values: values)
  }

  /// Checks that Z_MAX is at least the largest key, and at least the source's mark.
  func primaryKeys() throws(SQLiteError) -> VerificationCheck {
    var problems: [String] = []
    let marks = Dictionary(
      try reader.primaryKeys().map { ($0.number, $0.highWaterMark) }, uniquingKeysWith: { first, _ in first })
    for table in schema.tables {
      let largest = try reader.connection.integer("SELECT max(Z_PK) FROM \(reader.qualified(table.name))") ?? 0
      let mark = schema.number(of: table.rootEntity).flatMap { marks[$0] } ?? 0
      if mark < largest { problems.append("Z_MAX of \(table.rootEntity) is \(mark), but a row has Z_PK \(largest)") }
      if let wanted = expectation?.highWaterMarks[table.rootEntity], mark < wanted {
        problems.append("Z_MAX of \(table.rootEntity) fell from \(wanted) to \(mark)")
      }
    }
    return result("primary-keys", problems, "Z_MAX is not less than any key of \(schema.tables.count) tables")
  }

  /// Checks that every row's Z_ENT is a concrete entity of its table.
  func rowEntities() throws(SQLiteError) -> VerificationCheck {
    var problems: [String] = []
    var rows: Int64 = 0
    for table in schema.tables {
      let allowed = Set(
        table.entities.filter { schema.model.entity(named: $0)?.isAbstract == false }.compactMap {
          schema.number(of: $0)
        })
      for (number, count) in try census.rowCounts(of: table) {
        rows &+= count
        if !allowed.contains(number) {
          problems.append(
            "\(count.grouped) rows of \(table.name) have the unexpected entity number \(number)")
        }
      }
    }
    return result("row-entities", problems, "\(rows.grouped) rows have a valid entity number")
  }

  /// Returns the rows per entity of the model.
  func rowsByEntity() throws(SQLiteError) -> [String: Int64] {
    var rows: [String: Int64] = [:]
    for table in schema.tables {
      let counts = try census.rowCounts(of: table)
      for entity in table.entities { rows[entity] = schema.number(of: entity).flatMap { counts[$0] } ?? 0 }
    }
    return rows
  }

  /// Checks the rows per entity and per join table against the counts in the source.
  func counts() throws(SQLiteError) -> VerificationCheck {
    guard let expectation else { return result("counts", [], "nothing to compare") }
    var problems: [String] = []
    var unknown: [String] = []
    var total: Int64 = 0
    for table in schema.tables {
      let counts = try census.rowCounts(of: table)
      for entity in table.entities {
        let found = schema.number(of: entity).flatMap { counts[$0] } ?? 0
        guard let wanted = expectation.rowsByEntity[entity] else {
          unknown.append("\(entity) (\(found.grouped) rows)")
          continue
        }
        total &+= found
        if found != wanted { problems.append("\(entity) has \(found.grouped) rows instead of \(wanted.grouped)") }
      }
    }
    for (table, wanted) in expectation.rowsByJoinTable.sorted(by: { $0.key < $1.key }) {
      guard schema.joinTable(named: table) != nil else { continue }
      let found = try census.pairs(in: table)
      if found != wanted { problems.append("\(table) has \(found.grouped) pairs instead of \(wanted.grouped)") }
    }
    let exceptions =
      unknown.isEmpty
      ? "" : "; not compared, because the number is not predictable: \(unknown.sorted().joined(separator: ", "))"
    return result("counts", problems, "\(total.grouped) rows, as many as the source has for them\(exceptions)")
  }

  /// Checks the values per column, in the rows of the entities that have the property, against the counts in the
  /// source.
  func values() throws(SQLiteError) -> VerificationCheck {
    guard expectation != nil else { return result("values", [], "nothing to compare") }
    var problems: [String] = []
    var inspected = 0
    var total: Int64 = 0
    for table in schema.tables {
      let countRequests = countRequests(of: table)
      let counts = try census.values(countRequests.map(\.request), in: table.name)
      for (part, found) in zip(countRequests, counts) {
        inspected += 1
        total &+= found
        if found != part.wanted {
          problems.append(
            "\(table.name).\(part.request.column) has \(found.grouped) values instead of \(part.wanted.grouped)")
        }
      }
    }
    return result(
      "values", problems, "\(total.grouped) values in \(inspected) columns, as many as the source has for them")
  }

  /// The columns of a table with expected counts of values, in the rows of the entities that have the property.
  private func countRequests(of table: EntityTable) -> [(request: StoreCensus.CountRequest, wanted: Int64)] {
    table.columns.compactMap { column in
      guard let wanted = expectation?.valuesByColumn[table.name]?[column.name] else { return nil }
      let having = Set(entitiesHaving(column).compactMap { schema.number(of: $0) })
      let isWholeTable = table.entities.allSatisfy { schema.number(of: $0).map(having.contains) ?? false }
      return (
        StoreCensus.CountRequest(column: column.name, entities: isWholeTable ? nil : having.sorted()), wanted
      )
    }
  }

  /// Returns the entities that use a column of their table.
  private func entitiesHaving(_ column: SchemaColumn) -> [String] {
    let top: Entity?
    switch column.role {
    case .primaryKey, .entityNumber, .saveCount: return schema.model.entities.map(\.name)
    case .attribute(let entity, _), .toOne(let entity, _), .discriminator(let entity, _), .orderKey(let entity, _):
      top = schema.model.entity(named: entity)
    case .owner(let entity, let relationship), .ownerOrder(let entity, let relationship):
      top = schema.model.entity(named: entity).flatMap { owner in
        schema.model.allRelationships(of: owner)[relationship].flatMap {
          schema.model.entity(named: $0.destinationEntityName)
        }
      }
    }
    return top.map { schema.model.subtree(of: $0).map(\.name) } ?? []
  }

  /// Checks that no more references of ordered relationships lack an order key than in the source.
  func orderKeys() throws(SQLiteError) -> VerificationCheck {
    let missing = try census.missingOrderKeys()
    // Core Data numbers such objects when it changes them; a migration must not lose an order that existed.
    let isFine = expectation.map { missing <= $0.nullOrderKeys } ?? true
    return VerificationCheck(
      name: "order-keys", passed: isFine,
      detail: missing == 0
        ? "every object of an ordered relationship has an order key"
        : "\(missing.grouped) objects of ordered relationships have no order key"
          + (expectation.map { ", the source has \($0.nullOrderKeys)" } ?? ""), isNoted: missing > 0)
  }

  /// Checks that every discriminator is the Z_ENT of the row it points to.
  func discriminators() throws(SQLiteError) -> VerificationCheck {
    let found = try census.discriminators()
    let problems = found.filter { $0.wrong > 0 }.map {
      "\($0.wrong) rows of \($0.entity).\($0.relationship) have the wrong target entity"
    }
    return result("discriminators", problems, "\(found.count) discriminator columns match their targets")
  }

  /// Checks that no more references lead to missing rows than in the source.
  func references() throws -> VerificationCheck {
    let dangling = try census.danglingReferences()
    let found = dangling.reduce(Int64(0)) { $0 &+ $1.count }
    // Core Data deletes an object's pairs in one direction only where the relationship is its own inverse
    // (docs/formats/store-layout.md, "To-many that is its own inverse").
    let own = schema.joinTables.filter(\.isOwnInverse)
    let usual = dangling.filter { one in
      own.contains { $0.entity == one.entity && $0.relationship == one.relationship }
    }.reduce(Int64(0)) { $0 &+ $1.count }
    // A migration must not add any. A store checked alone should have no others: the app would find a missing object.
    let allowed = expectation?.danglingReferences ?? usual
    return VerificationCheck(
      name: "relationships", passed: found <= allowed,
      detail: found == 0
        ? "every reference has a target"
        : "\(found.counted("reference")) to rows that do not exist"
          + (usual == 0 ? "" : ", \(usual) of them as Core Data leaves them in a to-many that is its own inverse")
          + (expectation == nil ? "" : ", the source has \(allowed)"), isNoted: found > 0)
  }

  /// Checks that every derived count is the number of rows that point to the object.
  func derivedCounts() throws(SQLiteError) -> VerificationCheck {
    var problems: [String] = []
    var counted: Int64 = 0
    for derivation in schema.derivations {
      guard case .count(let childTable, let childColumn) = derivation.kind else { continue }
      let key = SQLiteIdentifier.quoted(childColumn)
      let column = SQLiteIdentifier.quoted(derivation.column)
      let numbers = derivation.numbers.map(String.init).joined(separator: ", ")
      let rows =
        "\(reader.qualified(derivation.table)) AS p LEFT JOIN (SELECT \(key) AS owner, count(*) AS children FROM"
        + " \(reader.qualified(childTable)) GROUP BY \(key)) AS c ON c.owner = p.Z_PK"
        + " WHERE p.Z_ENT IN (\(numbers))"
      let answers = try reader.connection.rows(
        "SELECT count(*), total(p.\(column) IS NOT ifnull(c.children, 0)) FROM \(rows)"
      ) { ($0.integer(at: 0), $0.integer(at: 1)) }
      let (all, wrong) = answers.first ?? (0, 0)
      counted &+= all
      if wrong > 0 {
        problems.append(
          "\(wrong.grouped) of \(all.grouped) values of \(derivation.entity).\(derivation.attribute) are not the count")
      }
      // Stores that Apple's software migrated in place may have a value there; hopd's own may not
      // (docs/decisions/0013).
      guard expectation != nil else { continue }
      let strays =
        try reader.connection.integer(
          "SELECT count(\(column)) FROM \(reader.qualified(derivation.table)) WHERE Z_ENT NOT IN (\(numbers))") ?? 0
      if strays > 0 {
        problems.append(
          "\(strays.grouped) rows without \(derivation.entity).\(derivation.attribute) have a value for it")
      }
    }
    return result("derived-counts", problems, "\(counted) derived counts are the numbers of rows that they count")
  }

  /// Checks that every attribute derived from a to-one's target has the target's value. A target that is missing is no
  /// matter of this check.
  func derivedValues() throws(SQLiteError) -> VerificationCheck {
    var problems: [String] = []
    var compared: Int64 = 0
    for derivation in schema.derivations {
      guard case .value(let targetTable, let targetColumn, let keyColumn) = derivation.kind else { continue }
      let key = SQLiteIdentifier.quoted(keyColumn)
      let answers = try reader.connection.rows(
        "SELECT count(*), total(s.\(SQLiteIdentifier.quoted(derivation.column)) IS NOT"
          + " t.\(SQLiteIdentifier.quoted(targetColumn))) FROM \(reader.qualified(derivation.table)) AS s LEFT JOIN"
          + " \(reader.qualified(targetTable)) AS t ON t.Z_PK = s.\(key) WHERE s.\(key) IS NULL OR t.Z_PK IS NOT NULL"
      ) { ($0.integer(at: 0), $0.integer(at: 1)) }
      let (all, wrong) = answers.first ?? (0, 0)
      compared &+= all
      if wrong > 0 {
        problems.append(
          "\(wrong.grouped) of \(all.grouped) values of \(derivation.entity).\(derivation.attribute) are not those "
            + "of their targets"
        )
      }
    }
    return result("derived-values", problems, "\(compared) derived values are those of their targets")
  }

  /// Checks that every R-Tree has as many rows as its table has with all its values.
  func rTrees() throws(SQLiteError) -> VerificationCheck {
    var problems: [String] = []
    for rTree in schema.rTrees {
      let wanted = try reader.connection.integer(
        "SELECT count(*) FROM \(reader.qualified(rTree.table)) WHERE \(rTree.rowCondition)")
      let found = try reader.connection.integer("SELECT count(*) FROM \(reader.qualified(rTree.name))")
      if wanted != found { problems.append("\(rTree.name) has \(found ?? 0) rows instead of \(wanted ?? 0)") }
    }
    return result("r-trees", problems, "\(schema.rTrees.count) R-Trees have the expected number of rows")
  }

  private func result(_ name: String, _ problems: [String], _ fine: String) -> VerificationCheck {
    VerificationCheck(name: name, problems: problems, fine: fine)
  }
}
