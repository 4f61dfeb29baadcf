// Derived attributes, R-Trees and names outside ASCII in plans: which ones are computed, carried, or refused.

import BlockingTests
import Diagnostics
import PersistentStore
import SQLite
import Testing

@testable import ManagedObjectModel
@testable import MigrationPlanning

@Suite(.blocking) struct DerivationPlanTests {
  private func derived(_ name: String, _ expression: String, _ type: AttributeType = .string) -> Attribute {
    Attribute(name: name, type: type, isOptional: true, derivationExpression: expression)
  }

  private static let trigger =
    "CREATE TRIGGER Z_DA_ZA_A_plain_UPDATE AFTER UPDATE OF ZX ON ZA FOR EACH ROW BEGIN UPDATE ZA SET ZPLAIN = lower(ZX)"
    + " WHERE Z_PK = NEW.Z_PK AND Z_ENT = 1; END"

  private let before = { (derived: Attribute) in
    [entity("A", [attribute("x"), derived]), entity("B", [attribute("y")])]
  }

  /// Plans from a store whose A.plain is derived, with or without the store's trigger.
  private func plan(_ after: [Entity]..., trigger: String = trigger, expression: String = "canonical:(x)") throws
    -> MigrationPlan
  {
    let versions = [before(derived("plain", expression))] + after
    let catalog = ModelCatalog(bundles: [bundle(versions, name: "Library", current: nil)])
    return try SmallStore(
      try catalog.model("V1"), "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZX, ZPLAIN) VALUES (1, 1, 1, 'É', 'e');" + trigger
    ).plan(catalog)
  }

  private func refused(_ body: () throws -> MigrationPlan, sourceLocation: SourceLocation = #_sourceLocation)
    -> HopdError?
  {
    #expect(throws: HopdError.self, sourceLocation: sourceLocation) { try body() }
  }

  @Test func otherDerivationsStayWhileNothingTheySpeakOfChanges() throws {
    let plain = derived("plain", "canonical:(x)")
    // Something else changes: values and triggers stay unchanged, and their number is expected.
    let plan = try plan([entity("A", [attribute("x"), plain]), entity("B", [attribute("y"), attribute("z")])])
    let schema = try #require(plan.hops.last?.destinationSchema)
    #expect(schema.triggers.map(\.text) == [Self.trigger])
    #expect(plan.expectation.valuesByColumn["ZA"]?["ZPLAIN"] == 1)
    // A plain attribute may continue the values, and the derivation may be removed.
    #expect(try self.plan([entity("A", [attribute("x"), attribute("plain")]), entity("B")]).hops.count == 1)
    #expect(try self.plan([entity("A", [attribute("x")]), entity("B", [attribute("y")])]).drops.isEmpty)
    // Through two hops, too; a derivation of a version between does not matter.
    let odd = entity("B", [attribute("y"), derived("w", "now()", .date)])
    #expect(
      try self.plan(
        [entity("A", [attribute("x"), plain]), odd], [entity("A", [attribute("x"), plain]), entity("B")]
      ).hops.count == 2)
  }

  @Test func otherDerivationsAreRefusedWhenSomethingChanges() throws {
    let plain = derived("plain", "canonical:(x)")
    let cases: [([Entity], String)] = [
      // Renamed column, renumbered entity, renamed entity, another expression, another type, new.
      ([entity("A", [attribute("v", id: "x"), plain]), entity("B")], "ZA.ZX changes"),
      ([entity("A", [attribute("x"), plain]), entity("B"), entity("0")], "renumbered"),
      ([entity("Z", id: "A", [attribute("x"), plain]), entity("B")], "none of this expression"),
      ([entity("A", [attribute("x"), derived("plain", "uppercase:(x)")]), entity("B")], "none of this expression"),
      ([entity("A", [attribute("x"), derived("plain", "canonical:(x)", .uri)]), entity("B")], "type changes"),
      ([entity("A", [attribute("x", optional: false, value: .string("")), plain]), entity("B")], "ZA.ZX changes"),
      ([entity("A", [attribute("x"), plain]), entity("AA", parent: "A"), entity("B")], "is added"),
      ([entity("A", [attribute("x"), plain, derived("n", "now()", .date)]), entity("B")], "none of this expression"),
    ]
    for (after, words) in cases {
      let error = refused { try plan(after) }
      let all = error.map { [$0] + $0.reasons } ?? []
      #expect(
        all.contains { $0.code == .derivationUnsupported && $0.message.contains(words) && $0.hint != nil },
        "\(words): \(error?.description ?? "")")
    }
    // Without triggers, the expression itself shows what it refers to; if it is not understood, nothing is carried.
    let same = [entity("A", [attribute("x"), plain]), entity("B", [attribute("y"), attribute("z")])]
    #expect(try plan(same, trigger: "").hops.count == 1)
    let odd = derived("plain", "add:to:(x, 1)")
    #expect(
      refused {
        try plan([entity("A", [attribute("x"), odd]), entity("B")], trigger: "", expression: "add:to:(x, 1)")
      }?.code == .derivationUnsupported)
  }

  /// Values derived by a version between, which the last one continues, would have to be made.
  @Test func derivationsInBetweenCountWhereTheirValuesGoOn() throws {
    let base = entity("A", [attribute("x")], [toMany("bs", "B", inverse: "a")])
    let child = entity("B", [], [toOne("a", "A", inverse: "bs")])
    func with(_ attribute: Attribute) -> Entity {
      var copy = base
      copy.attributes.append(attribute)
      return copy
    }
    func plan(_ expression: String) throws -> MigrationPlan {
      let catalog = catalog(
        [base, child], [with(derived("n", expression, .integer64)), child], [with(attribute("n", .integer64)), child])
      return try SmallStore(try catalog.model("V1")).plan(catalog)
    }
    #expect(try plan("bs.@count").hops.map(\.computed.count) == [1, 0])
    #expect(refused { try plan("now()") }?.code == .derivationUnsupported)
  }

  @Test func aTriggerOfAnotherTextIsReplacedWithARemark() throws {
    let first = [
      entity("A", [derived("n", "bs.@count", .integer64)], [toMany("bs", "B", inverse: "a")]),
      entity("B", [], [toOne("a", "A", inverse: "bs")]),
    ]
    let catalog = catalog(first, first + [entity("C")])
    let store = try SmallStore(try catalog.model("V1"))
    #expect(try store.plan(catalog).warnings.isEmpty)
    let trigger = try #require(store.schema.triggers.first)
    try store.execute(
      "DROP TRIGGER \(trigger.name); CREATE TRIGGER \(trigger.name) AFTER INSERT ON \(trigger.table) BEGIN "
        + "SELECT 1; END"
    )
    let plan = try store.plan(catalog)
    #expect(plan.warnings.map(\.code) == [.triggerRewritten])
    #expect(plan.hops.last?.destinationSchema.triggers.contains(trigger) == true)
  }

  /// "n" and "n_x": the names of the longer one's triggers begin like those of the shorter one's.
  @Test func triggersOfNamesThatBeginAlikeAreDistinguished() throws {
    let first = [
      entity(
        "A", [attribute("x"), derived("n", "canonical:(x)"), derived("n_x", "bs.@count", .integer64)],
        [toMany("bs", "B", inverse: "a")]),
      entity("B", [], [toOne("a", "A", inverse: "bs")]),
    ]
    let catalog = catalog(first, first + [entity("C")])
    let text = Self.trigger.replacing("plain", with: "n").replacing("ZPLAIN", with: "ZN")
    let store = try SmallStore(try catalog.model("V1"), text)
    let triggers = try #require(try store.plan(catalog).hops.last?.destinationSchema.triggers.map(\.name))
    #expect(triggers.count == 6 && Set(triggers).count == 6)
  }

  @Test func valuesThatGiveWayToACountAreReported() throws {
    func library(_ count: Attribute) -> [Entity] {
      [entity("A", [count], [toMany("bs", "B", inverse: "a")]), entity("B", [], [toOne("a", "A", inverse: "bs")])]
    }
    let (plain, count) = (attribute("n", .integer64), derived("n", "bs.@count", .integer64))
    let rows = "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZN) VALUES (1, 1, 1, 7), (2, 1, 1, NULL), (3, 1, 1, 0)"
    func warnings(_ versions: [Entity]...) throws -> [HopdError] {
      let catalog = ModelCatalog(bundles: [bundle(versions, name: "Library", current: nil)])
      return try SmallStore(try catalog.model("V1"), rows).plan(catalog).warnings
    }
    let reported = try warnings(library(plain), library(plain) + [entity("C")], library(count) + [entity("C")])
    #expect(reported.map(\.code) == [.valuesReplaced])
    #expect(reported.first?.message.contains("2 values") == true && reported.first?.place.property == "n")
    #expect(try warnings(library(count), library(count) + [entity("C")]).isEmpty)
  }

  @Test func rTreesAreCarriedByTheRuleTheStoreShows() throws {
    func place(_ names: [String], id: String? = nil) -> Entity {
      Entity(
        name: id == nil ? "Place" : "Site", renamingIdentifier: id,
        attributes: names.map { Attribute(name: $0, type: .double, isOptional: true) },
        fetchIndexes: [
          FetchIndex(name: "where", elements: names.map { FetchIndex.Element(propertyName: $0, kind: .rTree) })
        ])
    }
    let catalog = catalog([place(["lat", "lon"])], [place(["lat", "lon"], id: "Place")])
    let model = try catalog.model("V1")
    let table = try #require(StoreSchema(model: model, frameworkVersion: 1344).rTreeIndexes.first)
    func remarks(_ plan: MigrationPlan) -> [HopdError.Code] { plan.warnings.map(\.code) }
    // Without the table the index is left out; with it the index is made under the new name.
    #expect(remarks(try SmallStore(model).plan(catalog)) == [.indexLeftOut])
    let plan = try SmallStore(model, table.createStatement).plan(catalog)
    #expect(remarks(plan).isEmpty)
    #expect(plan.hops.last?.destinationSchema.rTrees.map(\.name) == ["Z_Site_where"])
    // Other columns, or a trigger that maintains it: the rule is not proven. A table of no index is dropped.
    for sql in [
      "CREATE VIRTUAL TABLE \(table.name) USING RTREE (Z_PK, a, b)",
      table.createStatement
        + "; CREATE TRIGGER \(table.name)_INSERT AFTER INSERT ON ZPLACE BEGIN DELETE FROM \(table.name); END",
    ] {
      #expect(remarks(try SmallStore(model, sql).plan(catalog)) == [.indexLeftOut], "\(sql)")
    }
    let stale = try SmallStore(
      model, table.createStatement + "; CREATE VIRTUAL TABLE Z_Place_old USING RTREE (Z_PK, a, b)"
    ).plan(catalog)
    #expect(remarks(stale) == [.indexLeftOut])
    #expect(stale.warnings.first?.message.contains("Z_Place_old") == true)
    #expect(stale.hops.last?.destinationSchema.rTrees.count == 1)
    // SQLite's own quoting of the name, and no space before the list.
    let quoted = table.createStatement.replacing(table.name, with: "\"\(table.name)\"").replacing(
      "RTREE (", with: "rtree(")
    #expect(remarks(try SmallStore(model, quoted).plan(catalog)).isEmpty)
  }

  @Test("An index that the app made itself is left out with a warning that names it")
  func appIndexIsReported() throws {
    let catalog = catalog([entity("A", [attribute("x")])], [entity("A", [attribute("x")]), entity("B")])
    let model = try catalog.model("V1")
    let plan = try SmallStore(model, "CREATE INDEX RADAR_1 ON ZA (ZX); CREATE INDEX Z_A_old ON ZA (ZX)").plan(catalog)
    #expect(plan.warnings.map(\.code) == [.indexLeftOut])
    #expect(plan.warnings.first?.message.contains("RADAR_1 on ZA") == true)
    #expect(!plan.hops.last!.destinationSchema.indexes.contains { $0.name == "RADAR_1" })
  }

  /// A table that only looks like an R-Tree may belong to another program: dropping it would lose its data.
  @Test func tablesThatOnlyClaimToBeRTreesAreRefused() throws {
    let catalog = catalog([entity("A", [attribute("x")])], [entity("A", [attribute("x")]), entity("B")])
    for (sql, tables) in [
      (
        "CREATE TABLE Z_RT_A_x (a TEXT DEFAULT ' USING RTREE'); CREATE TABLE Z_RT_A_x_node (mine TEXT)",
        ["Z_RT_A_x", "Z_RT_A_x_node"]
      ),
      ("CREATE VIRTUAL TABLE Z_RT_A_x USING rtree_i32 (Z_PK, a, b)", ["Z_RT_A_x"]),
      ("CREATE VIRTUAL TABLE Z_RT_A_x USING fts5 (mine, prefix = '2') -- USING RTREE (a)", ["Z_RT_A_x"]),
    ] {
      let error = refused { try SmallStore(try catalog.model("V1"), sql).plan(catalog) }
      let all = error.map { [$0] + $0.reasons } ?? []
      for table in tables {
        #expect(
          all.contains { $0.code == .unknownTable && $0.message.contains("table \(table)") },
          "\(sql): \(error?.description ?? "accepted")")
      }
    }
  }

  @Test func namesOutsideASCIIAreKnownFromTheStore() throws {
    let first = [entity("Straße", [attribute("größe")])]
    let catalog = catalog(first, [entity("Straße", [attribute("größe"), attribute("n")])])
    #expect(try SmallStore(try catalog.model("V1")).plan(catalog).hops.count == 1)
    // A new one was never proven; between two hops it does not matter.
    let new = self.catalog(first, [entity("Straße", [attribute("größe"), attribute("fuß")])])
    let error = refused { try SmallStore(try new.model("V1")).plan(new) }
    #expect(error?.code == .layoutUnsupported && error?.place.property == "fuß")
    let passing = self.catalog(
      first, [entity("Straße", [attribute("größe"), attribute("fuß")])],
      [entity("Straße", [attribute("größe"), attribute("foot", id: "fuß")])])
    #expect(try SmallStore(try passing.model("V1")).plan(passing).hops.count == 2)
  }

  private func catalog(_ versions: [Entity]...) -> ModelCatalog {
    ModelCatalog(bundles: [bundle(versions, name: "Library", current: nil)])
  }
}
