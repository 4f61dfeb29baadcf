// The rules of the model, tested when all objects and relationships are in place: required values, bounds, lengths,
// patterns, counts of relationships, uniqueness.

import Diagnostics
import Expressions
import ManagedObjectModel
import PersistentStore
import SQLite

extension StoreLoader {
  /// A row that is left out may have been what another row needs: the rules are tested again, so often.
  private static let mostRounds = 20

  /// Tests every rule, and handles the rows that break one.
  func applyRules() throws {
    try ValidationFunctions.register(on: connection)
    var rules = ValidationRule.all(in: schema, tables: .schema("main"))
    // The index of a uniqueness constraint cannot be made while rows repeat a value.
    if problems.rule == .keep { rules = rules.filter { $0.code == .uniqueness } }
    var hasDefaults = problems.rule == .default
    for _ in 0..<Self.mostRounds {
      let broken = try self.broken(rules)
      if broken.isEmpty { return }
      try connection.transaction {
        for rule in broken { try handle(rule, setsDefault: hasDefaults) }
      }
      try problems.throwIfFailed()
      hasDefaults = false
      if problems.rule == .skip { try connection.transaction { try checkTargets() } }
    }
    throw problems.failure("rows break rules again and again when others are left out")
  }

  /// The rules that rows break, found in one pass over each table for all rules that test only a row.
  private func broken(_ rules: [ValidationRule]) throws -> [ValidationRule] {
    var found: [ValidationRule] = []
    let groups = Dictionary(grouping: rules.filter { $0.existence == nil }) { $0.number }
    for number in groups.keys.sorted() {
      let group = groups[number] ?? []
      guard let table = group.first.flatMap({ schema.table(named: $0.table) }) else { continue }
      for start in stride(from: 0, to: group.count, by: 200) {
        let part = Array(group[start..<min(group.count, start + 200)])
        let tests = part.map { "max(\($0.condition))" }.joined(separator: ", ")
        let results =
          try connection.rows(
            "SELECT \(tests) FROM \(quoted(table.name)) AS d"
              + " WHERE d.\"Z_ENT\" = \(number)\(isNew("d.\"Z_PK\"", in: table))"
          ) { row in part.indices.map { row.integer(at: Int32(clamping: $0)) != 0 } }.first ?? []
        found += zip(part, results).filter(\.1).map(\.0)
      }
    }
    for rule in rules {
      if let existence = rule.existence, try connection.integer("SELECT \(existence)") == 1 { found.append(rule) }
    }
    return found
  }

  private func handle(_ rule: ValidationRule, setsDefault: Bool) throws {
    guard let table = schema.table(named: rule.table) else { return }
    let rows =
      "FROM \(quoted(rule.table)) AS d WHERE d.\"Z_ENT\" = \(rule.number) AND (\(rule.condition))"
      + isNew("d.\"Z_PK\"", in: table)
    if setsDefault {
      guard let column = rule.column, let entity = schema.model.entity(named: rule.entity),
        let value = schema.model.allAttributes(of: entity)[rule.property]?.storedDefault, value != .null
      else { return }
      problems.addUnlisted(corrected: try forEachRow(of: rule, in: table, rows) { problems.correct($0) })
      try connection.run(
        "UPDATE \(quoted(rule.table)) SET \(quoted(column)) = ? WHERE \"Z_PK\" IN (SELECT d.\"Z_PK\" \(rows))", [value])
      return
    }
    problems.addUnlisted(rows: try forEachRow(of: rule, in: table, rows) { try problems.add($0) })
    if problems.rule == .skip {
      try removeFiles(of: rule, rows)
      try connection.run("DELETE FROM \(quoted(rule.table)) WHERE \"Z_PK\" IN (SELECT d.\"Z_PK\" \(rows))")
    }
  }

  /// Removes the external files of rows that are about to be left out. Each file belongs to one object.
  private func removeFiles(of rule: ValidationRule, _ rows: String) throws {
    for column in ExternalDataColumn.all(in: schema)
    where column.table == rule.table && column.numbers.contains(rule.number) {
      let values = try connection.prepare("SELECT d.\(quoted(column.column)) \(rows)")
      while try values.step() {
        guard let bytes = values.blob(at: 0), case .reference(let name) = ExternalDataForm(bytes) else { continue }
        try external(name, nil)
      }
    }
  }

  /// What the model requires, in words.
  private func limit(of rule: ValidationRule) -> String {
    guard let entity = schema.model.entity(named: rule.entity) else { return "" }
    let attribute = schema.model.allAttributes(of: entity)[rule.property]
    let relationship = schema.model.allRelationships(of: entity)[rule.property]
    let text: String? =
      switch rule.code {
      case .uniqueness, .missingValue: nil
      case .tooFew: relationship.map { String($0.minCount) }
      case .tooMany: relationship.map { String($0.maxCount) }
      case .numberTooLarge, .stringTooLong: attribute?.maximum
      case .numberTooSmall, .stringTooShort: attribute?.minimum
      case .dateTooLate: attribute?.maximum.flatMap(Self.date)
      case .dateTooSoon: attribute?.minimum.flatMap(Self.date)
      case .patternMismatch: attribute?.regularExpression?.printableLine
      }
    return text.map { ": \($0)" } ?? ""
  }

  /// A bound of dates, which is in seconds since 2001.
  private static func date(_ bound: String) -> String? {
    Double(bound).map { DateText.rfc3339(secondsSince2001: $0) ?? bound }
  }

  /// Calls `body` with the error of each of the first rows that break a rule, and returns the number of the others.
  private func forEachRow(
    of rule: ValidationRule, in table: EntityTable, _ rows: String, _ body: (HopdError) throws -> Void
  ) throws -> Int64 {
    let keys = try connection.rows("SELECT d.\"Z_PK\" \(rows) LIMIT 1000") { $0.integer(at: 0) }
    for key in keys {
      let error = HopdError(
        .rowInvalid, "the object \(rule.code.words(count: 1))\(limit(of: rule))",
        at: Place(entity: rule.entity, property: rule.property))
      try body(error.located(try place(of: key, in: table)))
    }
    return try connection.integer("SELECT count(*) \(rows)").map { $0 &- Int64(keys.count) } ?? 0
  }
}
