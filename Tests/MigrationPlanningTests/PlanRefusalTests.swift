// Everything that must stop a migration before its first byte is written, with the place and the count that a person
// needs.

import BlockingTests
import Diagnostics
import ManagedObjectModel
import PersistentStore
import PropertyLists
import Testing

@testable import MigrationPlanning

@Suite(.blocking) struct PlanRefusalTests {
  private let simple = catalog([entity("A", [attribute("x")])], [entity("A", [attribute("x"), attribute("y")])])

  private func refusal(
    _ store: SmallStore, _ catalog: ModelCatalog, sourceLocation: SourceLocation = #_sourceLocation
  ) -> HopdError? {
    #expect(throws: HopdError.self, sourceLocation: sourceLocation) { try store.plan(catalog) }
  }

  // MARK: The store is not what it claims

  @Test func missingTablesAndColumnsAndStrangeObjects() throws {
    let model = try simple.model("V1")
    for (sql, code, words) in [
      ("ALTER TABLE ZA DROP COLUMN ZX", HopdError.Code.schemaMismatch, "ZA.ZX is missing"),
      ("DROP TABLE ZA", .schemaMismatch, "the table ZA is missing"),
      ("DELETE FROM Z_PRIMARYKEY", .schemaMismatch, "no entity number 1"),
      ("UPDATE Z_PRIMARYKEY SET Z_SUPER = 5", .schemaMismatch, "the parent 5"),
      ("INSERT INTO Z_PRIMARYKEY VALUES (2, 'B', 0, 0)", .schemaMismatch, "entity number 2"),
      ("CREATE TABLE notes (a)", .unknownTable, "notes"),
      ("CREATE VIRTUAL TABLE places USING rtree(Z_PK, a, b)", .unknownTable, "virtual table places"),
      (
        "CREATE TRIGGER Z_DA_ZA_A_n_SOURCE_INSERT AFTER INSERT ON ZA BEGIN SELECT 1; END", .unknownTrigger,
        "Z_DA_ZA_A_n_SOURCE_INSERT"
      ),
      ("CREATE VIEW v AS SELECT 1", .unknownView, "view v"),
      ("CREATE TRIGGER t AFTER INSERT ON ZA BEGIN SELECT 1; END", .unknownTrigger, "trigger t"),
      ("CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY)", .historyNotUnderstood, "ACHANGE"),
      ("CREATE TABLE ANSCKMETADATAENTRY (Z_PK INTEGER PRIMARY KEY)", .cloudKitNotSupported, "CloudKit"),
    ] {
      let error = refusal(try SmallStore(model, sql), simple)
      let all = error.map { [$0] + $0.reasons } ?? []
      #expect(all.contains { $0.code == code && $0.message.contains(words) }, "\(sql): \(error?.description ?? "")")
      #expect(error?.place.store != nil)
      #expect(all.allSatisfy { $0.hint != nil })
    }
  }

  /// Many findings stay readable, and hide no other kind of finding.
  @Test func aCrowdOfStrangeTablesIsReportedInPart() throws {
    let tables = (0..<300).map { "CREATE TABLE notes\($0) (a)" }.joined(separator: "; ")
    let error = refusal(
      try SmallStore(try simple.model("V1"), tables + "; CREATE VIEW v AS SELECT 1; ALTER TABLE ZA DROP COLUMN ZX"),
      simple)
    let reasons = error?.reasons ?? []
    #expect(error?.message.contains("102 reasons or more") == true)
    #expect(reasons.count == 102)
    #expect(Set(reasons.map(\.code)) == [.unknownTable, .unknownView, .schemaMismatch])
  }

  @Test func keysThatSQLiteDoesNotKeepAreRefused() throws {
    let model = try simple.model("V1")
    // Keys of these tables may repeat, be NULL or be text: a copy by ranges of numbers would lose rows or never end.
    for columns in [
      "Z_PK INTEGER, Z_ENT INTEGER, Z_OPT INTEGER, ZX VARCHAR)",
      "Z_PK INT PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZX VARCHAR)",
      "Z_PK INTEGER PRIMARY KEY DESC, Z_ENT INTEGER, Z_OPT INTEGER, ZX VARCHAR)",
      "Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZX VARCHAR) WITHOUT ROWID",
      "Z_PK INTEGER, Z_ENT INTEGER, Z_OPT INTEGER, ZX VARCHAR, PRIMARY KEY (Z_PK, Z_ENT))",
    ] {
      let error = refusal(
        try SmallStore(model, "DROP TABLE ZA; CREATE TABLE ZA (\(columns); INSERT INTO ZA VALUES (1, 1, 1, 'x')"),
        simple)
      #expect(error?.code == .schemaMismatch, "\(columns): \(error?.description ?? "")")
      #expect(error?.message.contains("ZA.Z_PK") == true && error?.place.entity == "A" && error?.hint != nil)
    }
  }

  @Test func joinTablesWithoutTheirKeyAreRefused() throws {
    let first = [
      entity("A", [attribute("x")], [toMany("bs", "B", inverse: "as")]),
      entity("B", [], [toMany("as", "A", inverse: "bs")]),
    ]
    let catalog = catalog(first, first + [entity("C")])
    let model = try catalog.model("V1")
    let join = try #require(StoreSchema(model: model, frameworkVersion: 1344).joinTables.first)
    #expect(try SmallStore(model).plan(catalog).hops.count == 1)
    let (owner, target) = (join.ownerColumn, join.targetColumn)
    for columns in [
      "\(owner) INTEGER, \(target) INTEGER)",
      "\(owner) INTEGER, \(target) INTEGER, PRIMARY KEY (\(owner), \(target))) WITHOUT ROWID",
    ] {
      let error = refusal(
        try SmallStore(model, "DROP TABLE \(join.name); CREATE TABLE \(join.name) (\(columns)"), catalog)
      #expect(error?.code == .schemaMismatch, "\(columns): \(error?.description ?? "")")
      #expect(error?.place.property == join.relationship)
    }
  }

  @Test func metadataThatCannotBeFollowed() throws {
    let model = try simple.model("V1")
    for (key, value, code) in [
      (StoreMetadata.Key.deferredMigration, PropertyListValue.boolean(true), HopdError.Code.deferredMigration),
      (StoreMetadata.Key.versionHashesVersion, .integer(4), .metadataNotSupported),
      (StoreMetadata.Key.frameworkVersion, .integer(0), .metadataNotSupported),
    ] {
      #expect(refusal(try SmallStore(model, metadata: [key: value]), simple)?.code == code)
    }
  }

  @Test func allFindingsAreReportedTogether() throws {
    let store = try SmallStore(
      try simple.model("V1"), metadata: [StoreMetadata.Key.deferredMigration: .boolean(true)],
      "CREATE TABLE notes (a); CREATE VIEW v AS SELECT 1; ALTER TABLE ZA DROP COLUMN ZX")
    let error = refusal(store, simple)
    #expect(error?.code == .planRefused)
    #expect(error?.reasons.map(\.code) == [.deferredMigration, .unknownTable, .unknownView, .schemaMismatch])
  }

  @Test func anExtraColumnIsAWarningWithItsValues() throws {
    let store = try SmallStore(
      try simple.model("V1"),
      "ALTER TABLE ZA ADD COLUMN MINE; INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, MINE) VALUES (1, 1, 1, 'm'), (2, 1, 1, NULL)"
    )
    let warning = try store.plan(simple).warnings.first { $0.code == .columnNotCarried }
    #expect(warning?.message.contains("ZA.MINE") == true)
    #expect(warning?.message.contains(" 1 value") == true)
    #expect(warning?.message.contains("'m'") == false)
  }

  // MARK: Rows

  @Test func rowsOfUnknownAndAbstractEntities() throws {
    let catalog = catalog(
      [entity("P", abstract: true), entity("S", parent: "P"), entity("Z")],
      [entity("P", abstract: true), entity("S", parent: "P", [attribute("x")]), entity("Z")])
    let store = try SmallStore(
      try catalog.model("V1"),
      """
      INSERT INTO ZP (Z_PK, Z_ENT, Z_OPT) VALUES (4, 1, 1), (5, 1, 1), (6, 2, 1), (7, 3, 1), (8, NULL, 1), (9, 77, 1);
      """)
    let error = refusal(store, catalog)
    #expect(error?.code == .rowsOfUnknownEntity)
    #expect(error?.reasons.map(\.place.row) == [4, 7])
    #expect(error?.reasons[0].message.contains("2 rows") == true)
    #expect(error?.reasons[1].message.contains("3 rows") == true)
  }

  /// A to-one that names another entity than its target has cannot be carried; if it is dropped, it is not an obstacle.
  @Test func wrongDiscriminatorsThatWouldBeCarried() throws {
    let tree = [entity("P", [], [toMany("owners", "Q", inverse: "p")]), entity("S", parent: "P")]
    let pointing = tree + [entity("Q", [], [toOne("p", "P", inverse: "owners")])]
    let carrying = catalog(pointing, pointing + [entity("Z")])
    let dropping = catalog(pointing, [entity("P"), entity("S", parent: "P"), entity("Q")])
    let model = try carrying.model("V1")
    let schema = StoreSchema(model: model, frameworkVersion: 1344)
    guard let own = schema.storage(ofRelationship: "p", in: "Q")?.ownColumns, let discriminator = own.discriminator
    else {
      Issue.record("Q.p has no discriminator")
      return
    }
    for (number, isWrong) in [("1", true), ("2", false), ("NULL", true), ("77", true), ("'text'", true)] {
      let rows = """
        INSERT INTO ZP (Z_PK, Z_ENT, Z_OPT) VALUES (5, 2, 1);
        INSERT INTO \(own.table) (Z_PK, Z_ENT, Z_OPT, \(own.key), \(discriminator)) VALUES
          (1, 3, 1, 5, \(number)), (2, 3, 1, NULL, NULL), (3, 3, 1, 999, 1)
        """
      let store = try SmallStore(model, rows)
      #expect(try store.plan(dropping).hops.count == 1)
      guard isWrong else {
        #expect(try store.plan(carrying).hops.count == 1)
        continue
      }
      let error = refusal(store, carrying)
      #expect(error?.code == .wrongDiscriminators && error?.code.exit == .dataError, "\(number)")
      #expect(error?.message.hasPrefix("1 row") == true && error?.message.contains("text") == false)
      #expect(error?.place.entity == "Q" && error?.place.property == "p" && error?.hint != nil)
    }
  }

  @Test func anEntityThatBecomesAbstractMayHaveNoRows() throws {
    let catalog = catalog(
      [entity("P"), entity("S", parent: "P")], [entity("P", abstract: true), entity("S", parent: "P")])
    let model = try catalog.model("V1")
    #expect(try SmallStore(model).plan(catalog).hops.count == 1)
    let error = refusal(try SmallStore(model, "INSERT INTO ZP (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1)"), catalog)
    #expect(error?.code == .rowsOfUnknownEntity)
    #expect(error?.place.hop == "V1 → V2")
  }

  // MARK: Required values

  /// Every combination of an attribute before and after, with a row that has a value and one that has none.
  @Test func requiredValuesOverASmallWorld() throws {
    for existed in [true, false] {
      for wasOptional in [true, false] {
        for isOptional in [true, false] {
          for hasDefault in [true, false] {
            for hasGap in [true, false] {
              let before = existed ? [attribute("x", .integer16, optional: wasOptional)] : []
              let after = attribute(
                "x", .integer16, optional: isOptional, value: hasDefault ? .integer(5) : nil)
              let catalog = catalog([entity("A", before)], [entity("A", [after, attribute("more")])])
              let value = existed ? ", ZX" : ""
              let stored = existed ? hasGap ? ", NULL" : ", 3" : ""
              let store = try SmallStore(
                try catalog.model("V1"),
                "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT\(value)) VALUES (8, 1, 1\(stored))")
              let mustFail = !isOptional && !hasDefault && (existed ? wasOptional && hasGap : true)
              let outcome = Result { try store.plan(catalog) }
              switch outcome {
              case .success: #expect(!mustFail)
              case .failure(let error):
                let error = try #require(error as? HopdError)
                #expect(mustFail, "\(error)")
                #expect(error.code == .missingRequiredValue)
                #expect(error.place.entity == "A" && error.place.property == "x" && error.place.hop == "V1 → V2")
                #expect(error.place.row == (existed ? 8 : nil))
              }
            }
          }
        }
      }
    }
  }

  @Test func requiredValuesAreTracedThroughHops() throws {
    let catalog = catalog(
      [entity("A", [attribute("x")])], [entity("B", id: "A", [attribute("y", id: "x")])],
      [entity("B", id: "A", [attribute("z", id: "x", optional: false)])])
    let model = try catalog.model("V1")
    let error = refusal(
      try SmallStore(
        model, "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZX) VALUES (1, 1, 1, 'v'), (2, 1, 1, NULL), (3, 1, 1, NULL)"),
      catalog)
    #expect(error?.code == .missingRequiredValue)
    #expect(error?.place.hop == "V2 → V3")
    #expect(error?.place.row == 2)
    #expect(error?.message.contains("2 rows have") == true)
    #expect(error?.description.contains("'v'") == false)
    #expect(try SmallStore(model).plan(catalog).hops.count == 2)
  }

  // MARK: Uniqueness

  @Test func duplicatesForANewConstraintAreCountedThroughRenames() throws {
    let catalog = catalog(
      [entity("A", [attribute("x"), attribute("n", .integer16)])],
      [entity("A", [attribute("y", id: "x"), attribute("n", .integer16)])],
      [entity("A", unique: [["y"], ["y", "n"]], [attribute("y", id: "x"), attribute("n", .integer16)])])
    let model = try catalog.model("V1")
    func store(_ rows: String) throws -> SmallStore {
      try SmallStore(model, "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZX, ZN) VALUES \(rows)")
    }
    let error = refusal(
      try store("(1,1,1,'secret',1), (2,1,1,'secret',2), (3,1,1,'b',1), (4,1,1,'b',1), (5,1,1,NULL,1), (6,1,1,NULL,1)"),
      catalog)
    #expect(error?.code == .uniquenessViolation)
    #expect(error?.reasons.map(\.place.property) == ["y", nil])
    #expect(error?.reasons.first?.message.contains("2 values") == true)
    #expect(error?.reasons.last?.message.contains("1 value ") == true)
    #expect(error?.description.contains("secret") == false)
    // NULLs never collide.
    #expect(try store("(1,1,1,'a',1), (2,1,1,'b',1), (3,1,1,NULL,1), (4,1,1,NULL,1)").plan(catalog).hops.count == 2)
  }

  @Test func duplicatesOverAToOneAreCounted() throws {
    func versions(_ last: [Entity]) -> ModelCatalog {
      catalog(
        [
          entity("A", [attribute("n", .integer16)], [toOne("b", "B")]), entity("B"), entity("C", parent: "B"),
        ], last)
    }
    let unique = entity("A", unique: [["b", "n"]], [attribute("n", .integer16)], [toOne("b", "B")])
    let known = versions([unique, entity("B"), entity("C", parent: "B")])
    let model = try known.model("V1")
    func store(_ rows: String) throws -> SmallStore {
      try SmallStore(
        model,
        "INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1), (2, 3, 1); "
          + "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZB, ZN) VALUES " + rows + "; UPDATE ZA SET Z2_B = ZB + 1")
    }
    let error = refusal(try store("(1,1,1,1,7), (2,1,1,1,7), (3,1,1,2,7), (4,1,1,NULL,7), (5,1,1,NULL,7)"), known)
    #expect(error?.code == .uniquenessViolation)
    #expect(error?.description.contains("1 value of the uniqueness constraint b, n") == true)
    #expect(try store("(1,1,1,1,7), (2,1,1,1,8), (3,1,1,2,7)").plan(known).hops.count == 1)
    // References to a removed entity are cleared: the remaining ones may be unique.
    let without = versions([unique, entity("B")])
    #expect(try store("(1,1,1,2,7), (2,1,1,2,7)").plan(without).hops.count == 1)
  }

  @Test func aDefaultThatEveryRowGetsIsNotUnique() throws {
    let catalog = catalog(
      [entity("A")], [entity("A", unique: [["k"]], [attribute("k", .integer16, optional: false, value: .integer(0))])])
    let model = try catalog.model("V1")
    #expect(
      refusal(try SmallStore(model, "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (1,1,1), (2,1,1)"), catalog)?.code
        == .uniquenessViolation)
    #expect(try SmallStore(model, "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (1,1,1)").plan(catalog).hops.count == 1)
  }

  /// The index of a constraint is over the whole table: what A declares over an inherited attribute binds B too.
  @Test func duplicatesBesideTheEntityWithTheConstraintAreNamed() throws {
    let root = entity("P", abstract: true, [attribute("n")])
    func versions(_ last: Entity...) -> ModelCatalog {
      catalog([root, entity("A", parent: "P"), entity("B", parent: "P", [attribute("k")])], [root] + last)
    }
    let inherited = versions(entity("A", parent: "P", unique: [["n"]]), entity("B", parent: "P", [attribute("k")]))
    let model = try inherited.model("V1")
    func store(_ rows: String) throws -> SmallStore {
      try SmallStore(model, "INSERT INTO ZP (Z_PK, Z_ENT, Z_OPT, ZN, ZK) VALUES \(rows)")
    }
    let error = refusal(
      try store("(1,2,1,'secret',NULL), (2,3,1,'secret',NULL), (3,3,1,NULL,NULL), (4,2,1,NULL,NULL)"), inherited)
    #expect(error?.code == .uniquenessViolation && error?.place.hop == "V1 → V2")
    #expect(error?.place.entity == "B" && error?.place.property == "n" && error?.place.row == 2)
    #expect(error?.message.contains("constraint n of A") == true)
    #expect(error?.description.contains("secret") == false)
    // Each entity with rows too many is named: the rule for invalid rows is one per entity.
    let both = refusal(
      try store("(1,3,1,'x',NULL), (2,2,1,'x',NULL), (3,3,1,'x',NULL), (4,2,1,'y',NULL), (5,2,1,'y',NULL)"), inherited)
    #expect(both?.reasons.map(\.place.entity) == ["A", "B"])
    #expect(both?.reasons.map(\.place.row) == [2, 3])
    #expect(both?.reasons.first?.message.contains("2 values") == true)
    #expect(try store("(1,2,1,'a',NULL), (2,3,1,'b',NULL), (3,3,1,NULL,'x')").plan(inherited).hops.count == 1)
    // An attribute of the same name in a sibling has a column of its own.
    let own = versions(
      entity("A", parent: "P", unique: [["k"]], [attribute("k", value: .string("x"))]),
      entity("B", parent: "P", [attribute("k")]))
    #expect(try store("(1,2,1,NULL,NULL), (2,3,1,NULL,'x'), (3,3,1,NULL,'x')").plan(own).hops.count == 1)
  }

  // MARK: Models

  @Test func tablesWithMoreColumnsThanSQLiteMakesAreRefused() throws {
    // Z_PK, Z_ENT and Z_OPT are added to the attributes.
    for (count, fits) in [(1997, true), (1998, false)] {
      let wide = entity("A", (0..<count).map { attribute("a\($0)") })
      let catalog = catalog([entity("A")], [wide])
      let store = try SmallStore(try catalog.model("V1"))
      if fits {
        #expect(try store.plan(catalog).hops.count == 1)
      } else {
        let error = refusal(store, catalog)
        #expect(error?.code == .layoutUnsupported && error?.place.entity == "A" && error?.hint != nil)
        #expect(error?.message.contains("2001") == true)
      }
    }
  }

  /// No layout is known for a to-many whose inverse is transient: only its pairs stand in the way.
  @Test func pairsWithoutAPlaceInTheNextVersionAreRefused() throws {
    let rows =
      "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (3, 1, 1);"
      + "INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT) VALUES (4, 2, 1);"
    for (stored, pair) in [
      (toMany("as", "A", inverse: "bs"), "INSERT INTO Z_1BS VALUES (3, 4);"),
      (toOne("as", "A", inverse: "bs"), "UPDATE ZB SET ZAS = 3;"),
    ] {
      var transient = stored
      transient.isTransient = true
      let owner = entity("A", [], [toMany("bs", "B", inverse: "as")])
      let (before, after) = ([owner, entity("B", [], [stored])], [owner, entity("B", [], [transient])])
      let forwards = catalog(before, after)
      let first = try forwards.model("V1")
      #expect(try SmallStore(first, rows).plan(forwards).hops.count == 1)
      let error = refusal(try SmallStore(first, rows + pair), forwards)
      #expect(error?.code == .rowsForbidInference && error?.hint != nil)
      #expect(error?.place.entity == "A" && error?.place.property == "bs")
      #expect(error?.message.contains("B.as is transient") == true && error?.message.contains("A/p3") == true)
      // Stored again, it begins empty.
      let backwards = catalog(after, before)
      #expect(try SmallStore(try backwards.model("V1"), rows).plan(backwards).hops.count == 1)
    }
  }

  @Test func layoutsThatAreNotKnownAreRefused() throws {
    var own = toMany("next", "A", inverse: "next")
    own.isOrdered = true
    let catalog = catalog([entity("A")], [entity("A", [], [own])])
    let error = refusal(try SmallStore(try catalog.model("V1")), catalog)
    #expect(error?.code == .layoutUnsupported)
    #expect(error?.place.entity == "A" && error?.place.property == "next")
  }

  @Test func noRouteAndInferenceOffNameTheStore() throws {
    let catalog = catalog([entity("A", [attribute("x")])], [entity("A", [attribute("x", .date)])])
    let store = try SmallStore(try catalog.model("V1"))
    let error = refusal(store, catalog)
    #expect(error?.code == .noRoute)
    #expect(error?.place.store == store.location.database)
    #expect(#expect(throws: HopdError.self) { try store.plan(catalog, infer: false) }?.code == .inferenceOff)
  }
}
