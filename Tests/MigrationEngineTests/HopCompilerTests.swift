// The SQL of a hop, as text, for each form of the hop: inferred, by a mapping model, as views under the next hop, and
// as changes of a copy. A change of the SQL shows here first.

import BlockingTests
import Expressions
import ManagedObjectModel
import PersistentStore
import SQLite
import SystemPackage
import Testing

@testable import MappingModel
@testable import MigrationEngine
@testable import MigrationPlanning

@Suite(.blocking) struct HopCompilerTests {
  /// Recipes with pictures and a cook. The next version renames the recipe's title, requires its servings, adds a
  /// rating, and changes the type of the cook's age.
  private let before = [
    Entity(
      name: "Cook", attributes: [Attribute(name: "age", type: .integer16, isOptional: true)],
      relationships: [
        Relationship(name: "recipes", destinationEntityName: "Recipe", inverseName: "cook", isToMany: true)
      ]),
    Entity(
      name: "Recipe",
      attributes: [
        Attribute(name: "picture", type: .binary, isOptional: true, allowsExternalStorage: true),
        Attribute(name: "servings", type: .integer16, isOptional: true),
        Attribute(name: "title", type: .string, isOptional: true),
      ],
      relationships: [Relationship(name: "cook", destinationEntityName: "Cook", inverseName: "recipes")]),
  ]

  private let after = [
    Entity(
      name: "Cook", attributes: [Attribute(name: "age", type: .double, isOptional: true)],
      relationships: [
        Relationship(name: "recipes", destinationEntityName: "Recipe", inverseName: "cook", isToMany: true)
      ]),
    Entity(
      name: "Recipe",
      attributes: [
        Attribute(name: "name", type: .string, isOptional: true, renamingIdentifier: "title"),
        Attribute(name: "picture", type: .binary, isOptional: true),
        Attribute(name: "rating", type: .double, isOptional: true, defaultValue: .double(2.5)),
        Attribute(name: "servings", type: .integer16, isOptional: false, defaultValue: .integer(4)),
      ],
      relationships: [Relationship(name: "cook", destinationEntityName: "Cook", inverseName: "recipes")]),
  ]

  private func inferred() throws -> Hop { try inferred(before, after) }

  private func inferred(_ before: [Entity], _ after: [Entity]) throws -> Hop {
    let (source, destination) = (SmallHop.model("V1", before), SmallHop.model("V2", after))
    return Hop(
      index: 0, source: source, destination: destination,
      sourceSchema: StoreSchema(model: source, frameworkVersion: 1344),
      destinationSchema: StoreSchema(model: destination, frameworkVersion: 1344),
      mapping: try MappingInference.infer(from: source, to: destination), mapped: nil, entities: [])
  }

  /// Returns every statement of a program, one per line.
  private func text(_ program: HopProgram) -> String {
    program.steps.flatMap { step -> [String] in
      switch step {
      case .copy(let copy): [copy.insert]
      case .update(let statement), .table(let statement), .index(let statement), .trigger(let statement):
        [statement.sql]
      case .chunks(let chunks): chunks.actions.map(\.sql)
      case .policy, .validate: ["-- \(step.subject)"]
      }
    }.joined(separator: "\n")
  }

  @Test func inferredHop() throws {
    let program = try HopCompiler.compile(
      hop: try inferred(), source: .schema("old"), destinationSchema: "new", withIndexes: true)
    #expect(
      text(program)
        == """
        INSERT INTO "new"."ZCOOK" ("Z_PK", "Z_ENT", "Z_OPT", "ZAGE") SELECT s."Z_PK", s."Z_ENT", s."Z_OPT", \
        s."ZAGE" FROM "old"."ZCOOK" AS s WHERE s."Z_PK" BETWEEN ?1 AND ?2
        INSERT INTO "new"."ZRECIPE" ("Z_PK", "Z_ENT", "Z_OPT", "ZSERVINGS", "ZCOOK", "ZRATING", "ZNAME", \
        "ZPICTURE") SELECT s."Z_PK", s."Z_ENT", s."Z_OPT", coalesce(s."ZSERVINGS", 4), s."ZCOOK", 2.5, \
        s."ZTITLE", CASE WHEN s."ZPICTURE" IS NULL THEN NULL WHEN substr(s."ZPICTURE", 1, 1) = X'01' THEN \
        substr(s."ZPICTURE", 2) ELSE hopd_external_content(s."ZPICTURE") END FROM "old"."ZRECIPE" AS s WHERE \
        s."Z_PK" BETWEEN ?1 AND ?2
        CREATE INDEX "new".ZRECIPE_ZCOOK_INDEX ON ZRECIPE (ZCOOK)
        """)
  }

  /// A subentity that declares an attribute again has its own default, and may require a value.
  @Test func attributesThatASubentityDeclaresAgain() throws {
    let optional = Attribute(name: "z", type: .integer16, isOptional: true)
    let hop = try inferred(
      [Entity(name: "P", attributes: [optional]), Entity(name: "B", parentName: "P")],
      [
        Entity(
          name: "P",
          attributes: [Attribute(name: "n", type: .integer16, isOptional: true, defaultValue: .integer(1)), optional]),
        Entity(
          name: "B", parentName: "P",
          attributes: [
            Attribute(name: "n", type: .integer16, isOptional: true, defaultValue: .integer(2)),
            Attribute(name: "z", type: .integer16, defaultValue: .integer(9)),
          ]),
      ])
    let sql = text(
      try HopCompiler.compile(hop: hop, source: .schema("old"), destinationSchema: "new", withIndexes: false))
    #expect(sql.contains(#"CASE s."Z_ENT" WHEN 1 THEN 1 WHEN 2 THEN 2 ELSE 1 END"#), "\(sql)")
    #expect(
      sql.contains(#"CASE s."Z_ENT" WHEN 1 THEN s."ZZ" WHEN 2 THEN coalesce(s."ZZ", 9) ELSE NULL END"#), "\(sql)")
  }

  /// The pairs had no place in the store, so the table begins empty.
  @Test func aJoinTableBehindATransientInverseBeginsEmpty() throws {
    let bs = Relationship(name: "bs", destinationEntityName: "B", inverseName: "as", isToMany: true)
    var end = Relationship(name: "as", destinationEntityName: "A", inverseName: "bs", isToMany: true)
    let owner = Entity(name: "A", relationships: [bs])
    let after = [owner, Entity(name: "B", relationships: [end])]
    end.isTransient = true
    let hop = try inferred([owner, Entity(name: "B", relationships: [end])], after)
    let sql = text(
      try HopCompiler.compile(hop: hop, source: .schema("old"), destinationSchema: "new", withIndexes: false))
    #expect(!hop.destinationSchema.joinTables.isEmpty && !sql.contains("Z_1BS"), "\(sql)")
  }

  @Test func mappedHop() throws {
    func source(_ name: String) -> ExpressionNode { .keyPath(.variable("source"), [.key(name)]) }
    let hop = SmallHop.hop(
      before, after,
      [
        ExplicitEntityMapping(
          name: "CookToCook", type: .transform, source: "Cook", destination: "Cook",
          attributes: [
            ExplicitPropertyMapping(
              name: "age", value: .expression(.arithmetic(.divide, source("age"), .constant(.double(2)))))
          ], relationships: []),
        ExplicitEntityMapping(
          name: "RecipeToRecipe", type: .transform, source: "Recipe", destination: "Recipe",
          attributes: [
            ExplicitPropertyMapping(name: "name", value: .expression(source("title"))),
            ExplicitPropertyMapping(name: "picture", value: .expression(source("picture"))),
            ExplicitPropertyMapping(name: "servings", value: .expression(.constant(.integer(2)))),
          ],
          relationships: [
            ExplicitPropertyMapping(
              name: "cook",
              value: .expression(.destinationInstances(.entityMapping("CookToCook"), source("cook"))))
          ]),
      ])
    let program = try MappedHopCompiler(
      hop: hop, layout: try AssociationLayout(hop: hop, spans: [:]), source: .schema("old"), destinationSchema: "new",
      moment: 0, withIndexes: false
    ).compile()
    #expect(
      text(program)
        == """
        INSERT INTO "new"."ZCOOK" ("Z_PK", "Z_ENT", "Z_OPT", "ZAGE") SELECT s."Z_PK", 1, 1, \
        hopd_checked_arithmetic('/', s."ZAGE", 2.0, 'Cook.age', s.Z_PK) FROM "old"."ZCOOK" AS s WHERE \
        s."Z_PK" BETWEEN ?1 AND ?2 AND s."Z_ENT" = 1
        INSERT INTO "new"."ZRECIPE" ("Z_PK", "Z_ENT", "Z_OPT", "ZSERVINGS", "ZCOOK", "ZRATING", "ZNAME", \
        "ZPICTURE") SELECT s."Z_PK", 2, 1, 2, (SELECT "p0_00"."Z_PK" FROM "old"."ZCOOK" AS "p0_00" WHERE \
        "p0_00"."Z_PK" = s."ZCOOK" AND "p0_00"."Z_ENT" = 1), 2.5, s."ZTITLE", CASE WHEN s."ZPICTURE" IS NULL \
        THEN NULL WHEN substr(s."ZPICTURE", 1, 1) = X'01' THEN substr(s."ZPICTURE", 2) ELSE \
        hopd_external_content(s."ZPICTURE") END FROM "old"."ZRECIPE" AS s WHERE s."Z_PK" BETWEEN ?1 AND ?2 \
        AND s."Z_ENT" = 2
        -- validation
        """)
  }

  @Test func alteredCopy() {
    let recipes = AlterProgram.KeptTable(
      origin: "ZRECIPE", name: "ZRECIPE", renamed: [],
      appended: [.init(name: "ZRATING", declaredType: "FLOAT"), .init(name: "ZNOTE", declaredType: "VARCHAR")],
      values: [.init(column: "ZRATING", value: .value(.real(2.5)))], join: nil)
    let program = AlterProgram(
      kept: [recipes], written: [], droppedTables: [], droppedHistory: ["ACHANGE"],
      droppedIndexes: ["Z_Recipe_byTitle"], createdIndexes: [], rows: 0
    )
    #expect(
      program.schemaStatements(in: "new").joined(separator: "\n")
        == """
        DROP INDEX IF EXISTS "new"."Z_Recipe_byTitle"
        DROP TABLE IF EXISTS "new"."ACHANGE"
        ALTER TABLE "new"."ZRECIPE" ADD COLUMN ZRATING FLOAT
        ALTER TABLE "new"."ZRECIPE" ADD COLUMN ZNOTE VARCHAR
        """)
    let steps = program.program(
      HopProgram(source: .schema("old"), destination: "new", preconditions: [], steps: []), destination: "new")
    #expect(
      text(steps) == #"UPDATE "new"."ZRECIPE" AS s SET "ZRATING" = 2.5 WHERE s."Z_PK" >= ?1 AND s."Z_PK" <= ?2"#)
  }
}
