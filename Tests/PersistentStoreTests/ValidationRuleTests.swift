// The rules that a model sets for rows: which entities of a table a uniqueness constraint binds, and bounds of values
// that are stored less exactly than the model's text.

import ManagedObjectModel
import SQLite
import SystemPackage
import Testing

@testable import PersistentStore

@Suite struct ValidationRuleTests {
  private func schema(_ entities: [Entity]) -> StoreSchema {
    StoreSchema(model: ManagedObjectModel(name: "Rules", entities: entities), frameworkVersion: 1344)
  }

  private func text(_ name: String) -> Attribute { Attribute(name: name, type: .string, isOptional: true) }

  /// The index of a constraint is over the whole table (docs/formats/store-layout.md, "Indexes").
  @Test func aConstraintBindsEveryEntityWithItsColumns() throws {
    let schema = schema([
      Entity(name: "P", isAbstract: true, attributes: [text("n")]),
      Entity(name: "A", parentName: "P", attributes: [text("k")], uniquenessConstraints: [["n"], ["k"], ["n", "k"]]),
      // Its own k has a column of its own.
      Entity(name: "B", parentName: "P", attributes: [text("k")], uniquenessConstraints: [["n"]]),
      Entity(name: "C", parentName: "A"),
    ])
    let rules = ValidationRule.all(in: schema, tables: .schema("main")).filter { $0.code == .uniqueness }
    #expect(
      rules.map { "\($0.entity) \($0.property)" }.sorted() == [
        "A k", "A n", "A n, k", "B n", "C k", "C n", "C n, k",
      ])
    let connection = try Connection(path: "", access: .memory)
    try StoreWriter(connection: connection, schema: "main").createTables(schema)
    for (key, entity, value) in [(1, "A", "'x'"), (2, "B", "'x'"), (3, "C", "'x'"), (4, "B", "'y'"), (5, "B", "NULL")] {
      let number = try #require(schema.number(of: entity))
      try connection.run("INSERT INTO ZP (Z_PK, Z_ENT, Z_OPT, ZN) VALUES (\(key), \(number), 1, \(value))")
    }
    // All but the first of equal rows break the rule, each that of its own entity.
    for (entity, broken) in [("A", []), ("B", [2]), ("C", [3])] as [(String, [Int64])] {
      let rule = try #require(rules.first { $0.entity == entity && $0.property == "n" })
      let found = try connection.rows(
        "SELECT Z_PK FROM ZP AS d WHERE Z_ENT = \(rule.number) AND (\(rule.condition)) ORDER BY Z_PK"
      ) { $0.integer(at: 0) }
      #expect(found == broken)
    }
  }

  /// A Float's own bound is within its bounds, although the value is stored rounded; the next number is not.
  @Test func boundsOfAFloatAreRoundedAsItsValues() throws {
    let value = Attribute(name: "x", type: .float, isOptional: true, minimum: "0.7", maximum: "1.1")
    let schema = schema([Entity(name: "A", attributes: [value])])
    let connection = try Connection(path: "", access: .memory)
    try StoreWriter(connection: connection, schema: "main").createTables(schema)
    let rules = ValidationRule.all(in: schema, tables: .schema("main"))
    let cases: [(Double, ValidationErrorCode?)] = [
      (Double(Float(0.7)), nil), (Double(Float(0.7).nextDown), .numberTooSmall), (Double(Float(1.1)), nil),
      (Double(Float(1.1).nextUp), .numberTooLarge), (0.7, nil), (1.1, nil),
    ]
    for (number, code) in cases {
      try connection.run("DELETE FROM ZA")
      try connection.run("INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZX) VALUES (1, 1, 1, ?)", [.real(number)])
      let broken = try rules.filter {
        try connection.integer("SELECT count(*) FROM ZA AS d WHERE \($0.condition)") == 1
      }
      #expect(broken.map(\.code) == (code.map { [$0] } ?? []), "\(number)")
    }
  }

  @Test func limitsThatNoFloatHasAreKept() {
    #expect(AttributeType.float.limit("1e39", isMaximum: true) == 1e39)
    #expect(AttributeType.float.limit("-1e39", isMaximum: false) == -1e39)
    #expect(AttributeType.float.limit("16777217", isMaximum: false) == 16_777_216)
    #expect(AttributeType.double.limit("0.1", isMaximum: true) == 0.1)
    #expect(AttributeType.float.limit("inf", isMaximum: true) == nil)
    #expect(AttributeType.float.limit("much", isMaximum: true) == nil)
  }
}
