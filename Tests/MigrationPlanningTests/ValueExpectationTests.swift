// The expected numbers of the finished store, for small stores whose values are counted by hand. A number that is not
// certain must be missing.

import BlockingTests
import Diagnostics
import ManagedObjectModel
import PersistentStore
import Testing

@testable import MigrationPlanning

@Suite(.blocking) struct ValueExpectationTests {
  private func values(_ catalog: ModelCatalog, _ sql: String) throws -> [String: [String: Int64]] {
    try SmallStore(try catalog.model("V1"), sql).plan(catalog).expectation.valuesByColumn
  }

  @Test func attributesAreFollowedThroughRenamesDefaultsAndFallbacks() throws {
    let catalog = catalog(
      [
        entity("Item", [attribute("old"), attribute("gap")]), entity("Sub", parent: "Item", [attribute("own")]),
        entity("Other", parent: "Item"),
      ],
      [
        entity("Item", [attribute("middle", id: "old"), attribute("gap", optional: false, value: .string("-"))]),
        entity("Sub", parent: "Item", [attribute("own"), attribute("new", value: .string("n"))]),
        entity("Other", parent: "Item"),
      ],
      [
        entity(
          "Item", [attribute("last", id: "old"), attribute("gap", optional: false, value: .string("+"))]),
        entity(
          "Sub", parent: "Item",
          [attribute("own"), attribute("new", value: .string("n")), attribute("nothing")]),
        entity("Other", parent: "Item"), entity("Added", [attribute("empty", value: .string("e"))]),
      ])
    // Item is 1, Other 2, Sub 3. A value in a sibling's row (row 3) belongs to no property.
    let found = try values(
      catalog,
      """
      INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZOLD, ZGAP, ZOWN) VALUES
        (1, 1, 1, 'a', NULL, NULL), (2, 1, 1, NULL, 'g', NULL), (3, 2, 1, 'b', NULL, 'stray'),
        (4, 3, 1, 'c', NULL, 'o'), (5, 3, 1, 'd', 'g', NULL)
      """)
    #expect(
      found == [
        "ZITEM": ["ZLAST": 4, "ZGAP": 5, "ZOWN": 1, "ZNEW": 2, "ZNOTHING": 0], "ZADDED": ["ZEMPTY": 0],
      ])
  }

  @Test func anAttributeThatMovedUpCountsEachEntityByItself() throws {
    let catalog = catalog(
      [entity("Base"), entity("Left", parent: "Base", [attribute("x")]), entity("Right", parent: "Base")],
      [
        entity("Base", [attribute("x", value: .string("d"))]), entity("Left", parent: "Base"),
        entity("Right", parent: "Base"),
      ])
    let found = try values(
      catalog,
      "INSERT INTO ZBASE (Z_PK, Z_ENT, Z_OPT, ZX) VALUES (1, 2, 1, 'a'), (2, 2, 1, NULL), (3, 3, 1, NULL), "
        + "(4, 1, 1, NULL)"
    )
    #expect(found == ["ZBASE": ["ZX": 1 + 1 + 1]])
  }

  @Test func keysCountWhereEveryTargetSurvivesAndOnlyThere() throws {
    func version(_ removesTruck: Bool, moves: Bool = false) -> [Entity] {
      let vehicles =
        [entity("Vehicle"), entity("Bike", parent: "Vehicle")]
        + (removesTruck ? [] : [entity("Truck", parent: "Vehicle")])
      return vehicles + [
        entity("Person", [], [toOne("vehicle", "Vehicle"), toMany("things", "Thing"), toOne("best", "Thing")]),
        entity("Thing", [attribute("n"), removesTruck ? attribute("m") : attribute("n2")]),
      ]
    }
    let rows = """
      INSERT INTO ZVEHICLE (Z_PK, Z_ENT, Z_OPT) VALUES (1, 3, 1), (2, 4, 1), (3, 5, 1);
      INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZVEHICLE, Z3_VEHICLE, ZBEST) VALUES
        (1, 1, 1, 1, 3, 1), (2, 1, 1, 3, 5, NULL), (3, 1, 1, 3, 5, 2), (4, 1, 1, NULL, NULL, 1);
      INSERT INTO ZTHING (Z_PK, Z_ENT, Z_OPT, ZN, Z1THINGS) VALUES (1, 2, 1, 'n', 1), (2, 2, 1, NULL, NULL), \
      (3, 2, 1, 'n', 2);
      """
    let kept = version(false).map { value in
      var value = value
      if value.name == "Thing" { value.attributes.append(attribute("more")) }
      return value
    }
    let all = try values(catalog(version(false), kept), rows)
    #expect(all["ZPERSON"] == ["ZVEHICLE": 3, "ZBEST": 3])
    #expect(all["ZTHING"] == ["ZN": 2, "ZN2": 0, "ZMORE": 0, "Z1THINGS": 2])
    // Two references point at the dropped truck: reported as a loss, and no number is expected.
    let removing = catalog(version(false), version(true))
    let plan = try SmallStore(try removing.model("V1"), rows).plan(removing)
    #expect(plan.expectation.valuesByColumn["ZPERSON"] == ["ZBEST": 3])
    let reported = plan.warnings.filter { $0.code == .dataDropped && $0.place.property == "vehicle" }
    #expect(reported.map(\.place.entity) == ["Person"])
    #expect(reported.allSatisfy { $0.message.hasPrefix("2 references are cleared") && $0.message.contains("Truck") })
  }

  @Test func missingOrderKeysOfTheSourceAreCounted() throws {
    let ordered = Relationship(
      name: "many", destinationEntityName: "B", inverseName: "one", isToMany: true, isOrdered: true)
    let pairs = Relationship(
      name: "pairs", destinationEntityName: "B", inverseName: "back", isToMany: true, isOrdered: true)
    let catalog = catalog(
      [
        entity("A", [], [ordered, pairs]),
        entity("B", [], [toOne("one", "A", inverse: "many"), toMany("back", "A", inverse: "pairs")]),
      ])
    let store = try SmallStore(
      try catalog.model("V1"),
      """
      INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1);
      INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT, ZONE, Z_FOK_ONE) VALUES (1, 2, 1, 1, NULL), (2, 2, 1, 1, 2048), \
      (3, 2, 1, NULL, NULL);
      INSERT INTO Z_1PAIRS (Z_1BACK, Z_2PAIRS, Z_FOK_2PAIRS) VALUES (1, 1, NULL), (1, 2, NULL), (1, 3, 1024);
      """)
    #expect(try store.plan(catalog).expectation.nullOrderKeys == 3)
  }
}

@Suite(.blocking) struct ClearedReferencesTests {
  private static let rows = """
    INSERT INTO ZBASE (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 2, 1), (3, 3, 1);
    """

  /// Join tables and to-many relationships without inverse lose pairs as well; nothing is reported if there are none.
  @Test(arguments: [("", [String]()), ("x", ["Owner.many 1", "Owner.own 1"])])
  func pairsWithRemovedTargetsAreReported(_ data: String, _ expected: [String]) throws {
    func version(_ removes: Bool) -> [Entity] {
      [
        entity("Base", [], [toMany("back", "Owner", inverse: "many")]), entity("Kept", parent: "Base"),
      ] + (removes ? [] : [entity("Lost", parent: "Base")])
        + [entity("Owner", [], [toMany("many", "Base", inverse: "back"), toMany("own", "Base")])]
    }
    let catalog = catalog(version(false), version(true))
    let store = try SmallStore(
      try catalog.model("V1"),
      Self.rows + """
        INSERT INTO ZOWNER (Z_PK, Z_ENT, Z_OPT) VALUES (1, 4, 1);
        INSERT INTO Z_1BACK VALUES (1, 1), (2, 1);
        UPDATE ZBASE SET Z4OWN = 1 WHERE Z_PK = 1;
        """
        + (data.isEmpty ? "" : "INSERT INTO Z_1BACK VALUES (3, 1); UPDATE ZBASE SET Z4OWN = 1 WHERE Z_PK = 3"))
    let reported = try store.plan(catalog).warnings.filter { $0.code == .dataDropped && $0.place.property != nil }
    #expect(
      reported.map { "\($0.place.entity ?? "").\($0.place.property ?? "") \($0.message.prefix { $0 != " " })" }
        == expected)
  }

  /// If a to-many without inverse moves down, only owners other than the new one lose it.
  @Test func aRelationshipThatMovesDownIsLostByOtherOwnersOnly() throws {
    let tags = toMany("tags", "Tag")
    let catalog = catalog(
      [entity("Base", [], [tags]), entity("Child", parent: "Base"), entity("Tag")],
      [entity("Base"), entity("Child", parent: "Base", [], [tags]), entity("Tag")])
    let store = try SmallStore(
      try catalog.model("V1"),
      """
      INSERT INTO ZBASE (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 2, 1);
      INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, Z1TAGS) VALUES (1, 3, 1, 1), (2, 3, 1, 2), (3, 3, 1, 2), (4, 3, 1, NULL), \
      (5, 3, 1, 1), (6, 3, 1, 1);
      """)
    let plan = try store.plan(catalog)
    #expect(plan.drops.map { "\($0.entity).\($0.property ?? "") \($0.nonNull)" } == ["Base.tags 3"])
    // The owner column is filtered: no number is expected.
    #expect(plan.expectation.valuesByColumn["ZTAG"]?.isEmpty ?? true)
  }
}
