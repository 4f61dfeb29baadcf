// The third pass of a hop with mapping models: it checks every destination object against the rules of its model. Core
// Data stops at the save; here all violations are counted first, and the operator's rule per entity decides what
// happens to the objects. It runs in one transaction, before indexes are built, so that a constraint fails here and not
// at an index.

import Diagnostics
import Expressions
import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SQLite

extension HopdError.Code {
  /// Destination objects break the rules of their model (Core Data 1550–1699).
  package static let invalidRows = HopdError.Code("invalid-rows", exit: .dataError)
}

/// Validates the staged store of a hop.
struct MappedHopValidation {
  let connection: Connection
  let layout: StoreSchema
  /// The tables with the rows; objects are only removed from a staged store.
  let tables: SourceTables
  let rules: InvalidRowsRules
  /// "Model 2 → Model 3".
  let hop: String
  /// The model's rules, if they are known.
  var demands: [ValidationRule]?

  /// The keys that an error or a report names, per rule; more are only counted.
  static let namedKeys = 20

  private struct Violation {
    let rule: ValidationRule
    let count: Int64
    let keys: [Int64]
  }

  /// Checks every object, and applies the operator's rules to the invalid ones.
  ///
  /// Throws `invalid-rows` with every violation that no rule settles. Removing objects may make others invalid, so the
  /// check is repeated until none is left.
  func run() throws -> [InvalidRows] {
    try ValidationFunctions.register(on: connection)
    let all = demands ?? ValidationRule.all(in: layout, tables: tables)
    var settled: [InvalidRows] = []
    var mended: Set<ValidationRule> = []
    while true {
      let found = try violations(of: all)
      guard !found.isEmpty else { return settled }
      let unsettled = found.filter { violation in
        switch rules.rule(for: violation.rule.entity) {
        case .fail: true
        case .skip, .quarantine: false
        case .default: mended.contains(violation.rule) || defaultValue(for: violation.rule) == nil
        }
      }
      if !unsettled.isEmpty { throw error(unsettled) }
      for violation in found where rules.rule(for: violation.rule.entity) == .default {
        guard let value = defaultValue(for: violation.rule), let column = violation.rule.column else { continue }
        mended.insert(violation.rule)
        try connection.run(
          "UPDATE \(qualified(violation.rule.table)) AS d SET \(SQLiteIdentifier.quoted(column)) = \(value)"
            + " WHERE d.\"Z_ENT\" = \(violation.rule.number) AND (\(violation.rule.condition))")
        settled.append(invalid(violation))
      }
      let leaving = found.filter { [.skip, .quarantine].contains(rules.rule(for: $0.rule.entity)) }
      if !leaving.isEmpty {
        let cleared = try remove(leaving.map(\.rule))
        var removed = leaving.map(invalid)
        removed[0].clearedReferences = cleared
        settled += removed
      }
    }
  }

  private var schema: String { tables.schemaName }

  private func qualified(_ name: String) -> String { tables.qualified(name) }

  private func invalid(_ violation: Violation) -> InvalidRows {
    InvalidRows(
      entity: violation.rule.entity, property: violation.rule.property, code: violation.rule.code,
      rule: rules.rule(for: violation.rule.entity), count: violation.count, keys: violation.keys)
  }

  // MARK: Finding

  private func violations(of rules: [ValidationRule]) throws -> [Violation] {
    // One scan of a table finds which of its entities' rules are violated at all; usually none is.
    var broken: [ValidationRule] = []
    for (table, all) in Dictionary(grouping: rules, by: \.table).sorted(by: { $0.key < $1.key }) {
      var ofTable: [ValidationRule] = []
      for rule in all {
        if let existence = rule.existence, try connection.integer("SELECT \(existence)") == 0 { continue }
        ofTable.append(rule)
      }
      for part in stride(from: 0, to: ofTable.count, by: 500).map({ ofTable[$0..<min($0 + 500, ofTable.count)] }) {
        // A valid row is finished when no condition is true: a third of the work of counting each separately.
        let any = Dictionary(grouping: part, by: \.number).sorted { $0.key < $1.key }.map { number, rules in
          "(d.\"Z_ENT\" = \(number) AND (\(rules.map { "(\($0.condition))" }.joined(separator: " OR "))))"
        }
        let isBroken = try connection.integer(
          "SELECT EXISTS (SELECT 1 FROM \(qualified(table)) AS d WHERE \(any.joined(separator: " OR ")))")
        guard isBroken != 0 else { continue }
        let columns = part.map { "total(d.\"Z_ENT\" = \($0.number) AND (\($0.condition)))" }
        let counts = try connection.rows("SELECT \(columns.joined(separator: ", ")) FROM \(qualified(table)) AS d") {
          row in part.indices.map { row.integer(at: Int32(clamping: $0 - part.startIndex)) }
        }
        broken += zip(part, counts.first ?? []).filter { $0.1 > 0 }.map(\.0)
      }
    }
    var found: [Violation] = []
    for rule in broken.sorted(by: {
      ($0.number, $0.property, $0.code.rawValue) < ($1.number, $1.property, $1.code.rawValue)
    }) {
      let rows = "FROM \(qualified(rule.table)) AS d WHERE d.\"Z_ENT\" = \(rule.number) AND (\(rule.condition))"
      let count = try connection.integer("SELECT count(*) \(rows)") ?? 0
      let keys = try connection.rows("SELECT d.\"Z_PK\" \(rows) ORDER BY d.\"Z_PK\" LIMIT \(Self.namedKeys)") {
        $0.integer(at: 0)
      }
      if count > 0 { found.append(Violation(rule: rule, count: count, keys: keys)) }
    }
    return found
  }

  private func error(_ violations: [Violation]) -> HopdError {
    let reasons = violations.map { violation in
      let rule = violation.rule
      let keys = violation.keys.map(String.init).joined(separator: ", ")
      return HopdError(
        .invalidRows,
        "\(violation.count.grouped) object\(violation.count == 1 ? "" : "s") "
          + "\(rule.code.words(count: violation.count)) "
          + "(Core Data \(rule.code.rawValue)):"
          + " Z_PK \(keys)\(violation.count > violation.keys.count ? ", …" : "")"
          + (rules.rule(for: rule.entity) == .default && defaultValue(for: rule) == nil
            ? "; \(rule.property) has no default, so “default” cannot help" : ""),
        at: Place(hop: hop, entity: rule.entity, property: rule.property, row: violation.keys.first))
    }
    return HopdError(
      .invalidRows, "objects break the rules of the version they are migrated to (Core Data 1560)",
      at: Place(hop: hop),
      hint:
        "correct them with the app, or choose how to handle them: `invalid_rows = \"skip\"`, "
        + (violations.contains { defaultValue(for: $0.rule) != nil } ? "\"default\" or " : "or ")
        + "\"quarantine\", for all or by entity (hopctl: --invalid-rows)", reasons: reasons)
  }

  // MARK: Settling

  /// Returns the model's default of the rule's attribute as SQL; nil if no default could settle the violation.
  private func defaultValue(for rule: ValidationRule) -> String? {
    guard rule.column != nil, let entity = layout.model.entity(named: rule.entity),
      let attribute = layout.model.allAttributes(of: entity)[rule.property]
    else { return nil }
    return SQLExpression.defaultValue(of: attribute)?.text
  }

  /// Removes the objects that break these rules, and returns how many references of others that clears.
  private func remove(_ broken: [ValidationRule]) throws -> [String: Int64] {
    let quarantine = QuarantineTables(connection: connection, schema: schema)
    // The keys first: removing one object changes the conditions for the next.
    let keys = qualified(QuarantineTables.keysTable)
    try connection.run(
      "CREATE TABLE \(keys) (\"table\" TEXT, \"key\" INTEGER, PRIMARY KEY (\"table\", \"key\")) WITHOUT ROWID")
    for rule in broken {
      let table = SQLiteValue.text(rule.table).literal
      let rows = "FROM \(qualified(rule.table)) AS d WHERE d.\"Z_ENT\" = \(rule.number) AND (\(rule.condition))"
      if rules.rule(for: rule.entity) == .quarantine { try quarantine.note(rule, rows: rows) }
      try connection.run("INSERT OR IGNORE INTO \(keys) SELECT \(table), d.\"Z_PK\" \(rows)")
    }
    var cleared: [String: Int64] = [:]
    for table in layout.tables where broken.contains(where: { $0.table == table.name }) {
      let query = "SELECT \"key\" FROM \(keys) WHERE \"table\" = \(SQLiteValue.text(table.name).literal)"
      try quarantine.keep(table, keys: query)
      for (name, count) in try references(to: table, keys: keys) { cleared[name, default: 0] += count }
      for statement in RowRemoval(table: table, layout: layout, schema: schema, keys: query).statements {
        try connection.run(statement)
      }
    }
    try connection.run("DROP TABLE \(keys)")
    return cleared
  }

  /// Counts the optional references to objects of a table that go, of objects that stay. An object whose reference is
  /// required breaks a rule itself once the reference is cleared.
  private func references(to table: EntityTable, keys: String) throws -> [String: Int64] {
    var counts: [String: Int64] = [:]
    for other in layout.tables {
      for column in other.columns {
        guard case .toOne(let entity, let name) = column.role, let owner = layout.model.entity(named: entity),
          let relationship = layout.model.allRelationships(of: owner)[name], relationship.isOptional,
          table.entities.contains(relationship.destinationEntityName),
          let columns = layout.storage(ofRelationship: name, in: entity)?.ownColumns
        else { continue }
        let (target, place) = (SQLiteValue.text(table.name).literal, SQLiteValue.text(other.name).literal)
        let count =
          try connection.integer(
            "SELECT count(*) FROM \(qualified(other.name)) AS o JOIN \(keys) AS k ON k.\"table\" = \(target)"
              + " AND k.\"key\" = o.\(SQLiteIdentifier.quoted(columns.key))"
              + " WHERE NOT EXISTS (SELECT 1 FROM \(keys) AS g"
              + " WHERE g.\"table\" = \(place) AND g.\"key\" = o.\"Z_PK\")") ?? 0
        if count > 0 { counts["\(entity).\(name)"] = count }
      }
    }
    return counts
  }
}
