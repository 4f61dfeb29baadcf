// The rules of the model that objects of the store break: an export and its code are without them.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite

/// The broken rules of a clean schema.
struct BrokenRules {
  private var broken: Set<String> = []
  /// A warning for each.
  private(set) var warnings: [HopdError] = []

  /// Tests the objects of an open store, with whose connection the functions of `ExportedValue` are registered.
  init(of schema: CleanSchema, in reader: StoreReader, options: ExportOptions) throws {
    for table in schema.tables {
      let rules = CleanRule.all(of: table, options: options)
      guard !rules.isEmpty else { continue }
      let tests = rules.map { "max(NOT (\($0.condition({ $0.source }, table.entityExpression))))" }
      // A statement of SQLite has at most 2,000 columns.
      for start in stride(from: 0, to: rules.count, by: 500) {
        let range = start..<min(rules.count, start + 500)
        let found =
          try reader.connection.rows(
            "SELECT \(tests[range].joined(separator: ", ")) FROM \(table.rows(in: reader))"
          ) { row in range.map { row.integer(at: Int32(clamping: $0 - start)) == 1 } }.first ?? []
        for (place, isBroken) in zip(range, found) where isBroken { add(rules[place], of: table) }
      }
    }
  }

  private mutating func add(_ rule: CleanRule, of table: CleanTable) {
    guard broken.insert(Self.text(rule, table)).inserted else { return }
    warnings.append(
      Self.leftOut(
        rule.isNotNull ? "NOT NULL of \(rule.column)" : "CHECK of \(rule.column)", table,
        "objects of the store break it"))
  }

  /// Whether every object keeps a rule.
  func keeps(_ table: CleanTable, _ rule: CleanRule) -> Bool { !broken.contains(Self.text(rule, table)) }

  private static func text(_ rule: CleanRule, _ table: CleanTable) -> String {
    "\(table.name)\u{0}\(rule.condition({ $0.name }, ""))"
  }

  /// The warning that a table is without a rule.
  static func leftOut(_ rule: String, _ table: CleanTable, _ why: String) -> HopdError {
    HopdError(
      .constraintLeftOut, "the table \(table.name) has no \(rule), because \(why)",
      at: Place(entity: table.stored.rootEntity))
  }
}

extension CleanTable {
  /// SQL of the name of an object's entity, on a row `s` of the stored table.
  var entityExpression: String {
    let cases = entities.map { "WHEN \($0.number) THEN \(SQLiteIdentifier.literal($0.entity.name))" }
    return "CASE s.\"Z_ENT\" \(cases.joined(separator: " ")) END"
  }

  /// The stored rows that are exported, after FROM.
  func rows(in reader: StoreReader) -> String {
    let numbers = entities.map { String($0.number) }.joined(separator: ", ")
    let selected = condition.map { " AND \($0)" } ?? ""
    return "\(reader.qualified(stored.name)) AS s WHERE s.\"Z_ENT\" IN (\(numbers))\(selected)"
  }
}
