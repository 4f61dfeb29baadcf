import BlockingTests
import Diagnostics
import ManagedObjectModel
import PersistentStore
import Testing

@testable import MigrationPlanning

@Suite(.blocking) struct MigrationPlannerTests {
  // MARK: Drops and expectations

  @Test func dropsAreTracedThroughRenamesToTheColumnsOfToday() throws {
    let catalog = catalog(
      [
        entity("Item", [attribute("old"), attribute("kept")]), entity("Sub", parent: "Item", [attribute("own")]),
        entity("Gone", [attribute("g")]),
      ],
      [
        entity("Thing", id: "Item", [attribute("middle", id: "old"), attribute("kept")]),
        entity("Sub", parent: "Thing", [attribute("own")]), entity("Gone", [attribute("g")]),
      ],
      [entity("Thing", id: "Item", [attribute("kept")]), entity("Sub", parent: "Thing", [attribute("own")])])
    let store = try SmallStore(
      try catalog.model("V1"),
      """
      INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZOLD, ZKEPT) VALUES (1, 2, 1, 'a', 'k'), (2, 2, 1, NULL, 'k'), \
      (7, 3, 1, 'b', NULL);
      INSERT INTO ZGONE (Z_PK, Z_ENT, Z_OPT, ZG) VALUES (1, 1, 1, 'g'), (2, 1, 1, NULL);
      UPDATE Z_PRIMARYKEY SET Z_MAX = 9 WHERE Z_NAME = 'Item';
      """)
    let plan = try store.plan(catalog)
    #expect(plan.hops.map(\.title) == ["V1 → V2", "V2 → V3"])
    // Reported once, for the entity that declares it, with the rows of its subentities.
    #expect(
      plan.drops == [
        DroppedColumn(hop: 1, entity: "Thing", property: "middle", table: "ZITEM", column: "ZOLD", nonNull: 2),
        DroppedColumn(hop: 1, entity: "Gone", property: nil, table: "ZGONE", column: nil, nonNull: 2),
      ])
    #expect(plan.expectation.rowsByEntity == ["Thing": 2, "Sub": 1])
    #expect(plan.expectation.droppedRowsByEntity == ["Gone": 2])
    #expect(plan.expectation.highWaterMarks == ["Thing": 9])
    #expect(Set(plan.warnings.filter { $0.code == .dataDropped }.map(\.place.entity)) == ["Thing", "Gone"])
    #expect(plan.estimate.rows == 5 + 3)
    #expect(plan.estimate.diskNeeded > plan.estimate.bytes * 2)
    #expect(plan.hops[1].entities.first { $0.mapping == "IEM_Remove_Gone" }?.rows == 2)
  }

  @Test func droppedPairsAreCounted() throws {
    let catalog = catalog(
      [
        entity("A", [], [toMany("bs", "B", inverse: "as"), toOne("c", "B")]),
        entity("B", [], [toMany("as", "A", inverse: "bs")]),
      ],
      [entity("A"), entity("B")])
    let store = try SmallStore(
      try catalog.model("V1"),
      """
      INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZC) VALUES (1, 1, 1, 1), (2, 1, 1, NULL);
      INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1);
      INSERT INTO Z_1BS VALUES (1, 1), (2, 1);
      """)
    let drops = try store.plan(catalog).drops
    #expect(
      drops.map { "\($0.entity).\($0.property ?? "") \($0.table) \($0.nonNull)" } == ["A.bs Z_1BS 2", "A.c ZA 1"])
  }

  @Test func pairsAreReportedForTheEndThatHoldsThemAlsoAfterARename() throws {
    func version(_ toOneName: String) -> [Entity] {
      [
        entity("A", [], [toMany("bs", "B", inverse: toOneName)]),
        entity("B", [], [toOne(toOneName, "A", inverse: "bs")]),
      ]
    }
    // The to-one gets a new name without a renaming identifier; its pairs stay with the to-many, then both are dropped.
    let catalog = catalog(version("a"), version("parent"), [entity("A"), entity("B")])
    let store = try SmallStore(
      try catalog.model("V1"),
      "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1); INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT, ZA) "
        + "VALUES (1, 2, 1, 1)"
    )
    #expect(
      try store.plan(catalog).drops == [
        DroppedColumn(hop: 1, entity: "B", property: "parent", table: "ZB", column: "ZA", nonNull: 1)
      ])
  }

  @Test func joinTablesFromToOnesHaveTheirRowsForetold() throws {
    let before = [
      entity("A", [], [toMany("bs", "B", inverse: "a")]), entity("B", [], [toOne("a", "A", inverse: "bs")]),
    ]
    let after = [
      entity("A", [], [toMany("bs", "B", inverse: "as")]), entity("B", [], [toMany("as", "A", inverse: "bs", id: "a")]),
    ]
    let catalog = catalog(before, after)
    let rows = """
      INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1);
      INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT, ZA) VALUES (1, 2, 1, 1), (2, 2, 1, 1), (3, 2, 1, NULL);
      """
    let plan = try SmallStore(try catalog.model("V1"), rows).plan(catalog)
    #expect(plan.expectation.rowsByJoinTable == ["Z_1BS": 2])
    #expect(plan.expectation.danglingReferences == 0)
    // A dangling reference makes the number uncertain and is reported.
    let broken = try SmallStore(
      try catalog.model("V1"), rows + "INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT, ZA) VALUES (4, 2, 1, 99)"
    ).plan(catalog)
    #expect(broken.expectation.rowsByJoinTable == [:])
    #expect(broken.expectation.danglingReferences == 1)
    #expect(broken.warnings.contains { $0.code == .danglingReferences && $0.place.property == "a" })
  }

  @Test func aStoreAtTheTargetHasNoHops() throws {
    let catalog = catalog([entity("A", [attribute("x", optional: false)])])
    let plan = try SmallStore(
      try catalog.model("V1"),
      "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (3, 1, 1); CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY)"
    ).plan(catalog)
    #expect(plan.hops.isEmpty)
    #expect(plan.expectation.rowsByEntity == ["A": 1])
    #expect(plan.estimate.rows == 0)
  }

  @Test func theFingerprintFollowsDefaultsAndLayoutAndNothingElse() throws {
    func print(_ value: Int64, rows: String = "") throws -> String {
      let catalog = catalog(
        [entity("A")], [entity("A", [attribute("n", .integer16, optional: false, value: .integer(value))])])
      return try SmallStore(try catalog.model("V1"), rows).plan(catalog).fingerprint
    }
    let first = try print(1)
    #expect(first.utf8.count == 32)
    #expect(try print(1) == first)
    #expect(try print(1, rows: "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (3, 1, 1)") == first)
    #expect(try print(2) != first)
  }

  // MARK: Self many-to-manys

  private func links(_ extra: [Attribute] = [], to: String = "to", from: String = "from") -> [Entity] {
    [
      entity(
        "N", extra,
        [toMany(to, "N", inverse: from, id: "to"), toMany(from, "N", inverse: to, id: "from")])
    ]
  }

  /// The name is computed, whatever is added, and whichever end it falls on: the pairs are carried.
  @Test func theNameIsComputedForEveryVersion() throws {
    var ends: Set<String> = []
    for count in 0..<40 {
      let grown = catalog(links(), links((0...count).map { attribute("a\($0)") }))
      let store = try SmallStore(try grown.model("V1"))
      let plan = try store.plan(grown)
      let schema = try #require(plan.hops.last?.destinationSchema)
      #expect(schema.joinTables.map(\.relationship) == schema.selfJoinTables.map(\.computed))
      #expect(!plan.warnings.contains { $0.code == .joinTableNameUnexpected })
      ends.formUnion(schema.joinTables.map(\.relationship))
    }
    #expect(ends == ["to", "from"])
  }

  /// If a store's table has the other name, the chain keeps it, with a warning.
  @Test func aStoreThatContradictsTheRuleIsFollowed() throws {
    let computed = try #require(
      StoreSchema(model: catalog(links()).model("V1"), frameworkVersion: 1344).selfJoinTables.first)
    for side in ["to", "from"] {
      let catalog = catalog(links(), links([attribute("a"), attribute("b")], to: "onto", from: "since"))
      let store = try SmallStore(try catalog.model("V1"), naming: JoinTableNaming(["N.\(side)"]))
      let plan = try store.plan(catalog)
      let reported = plan.warnings.filter { $0.code == .joinTableNameUnexpected }
      let named = plan.hops.last?.destinationSchema.joinTables.first?.relationship
      #expect(plan.hops.first?.sourceSchema.joinTables.first?.relationship == side)
      if side == computed.computed {
        #expect(reported.isEmpty)
        #expect(named == plan.hops.last?.destinationSchema.selfJoinTables.first?.computed)
      } else {
        #expect(reported.map(\.place.property) == [side])
        #expect(reported.first?.message.contains("after \(computed.computed);") == true)
        #expect(named == (side == "to" ? "onto" : "since"))
      }
      #expect(plan.expectation.rowsByJoinTable.count == 1)
      // A given name takes precedence, with a warning if it is not the computed one.
      for end in ["onto", "since"] {
        let given = try store.plan(catalog, naming: JoinTableNaming(["N.\(end)"]))
        let pair = try #require(given.hops.last?.destinationSchema.selfJoinTables.first)
        #expect(given.hops.last?.destinationSchema.joinTables.first?.relationship == end)
        #expect(
          given.warnings.contains { $0.code == .joinTableNameUnexpected && $0.place.property == end }
            == (pair.computed != end))
      }
    }
  }

  /// Under a to-many without inverse the name cannot be computed: the store's name is kept while the number of
  /// properties stays the same, and every other case is refused until a name is given.
  @Test func underAHiddenKeyTheNameIsAskedFor() throws {
    func hidden(_ entities: [Entity]) -> [Entity] {
      entities + [entity("O", [], [Relationship(name: "ns", destinationEntityName: "N", isToMany: true)])]
    }
    for side in ["to", "from"] {
      let renamed = catalog(
        hidden(links([attribute("a")])), hidden(links([attribute("b", id: "a")], to: "onto", from: "since")))
      let store = try SmallStore(try renamed.model("V1"), naming: JoinTableNaming(["N.\(side)"]))
      let plan = try store.plan(renamed)
      #expect(plan.hops.first?.sourceSchema.joinTables.first?.relationship == side)
      #expect(plan.hops.last?.destinationSchema.joinTables.first?.relationship == (side == "to" ? "onto" : "since"))
      #expect(plan.expectation.rowsByJoinTable.count == 1)

      let grown = catalog(hidden(links()), hidden(links([attribute("a")])))
      let other = try SmallStore(try grown.model("V1"), naming: JoinTableNaming(["N.\(side)"]))
      let refusal = #expect(throws: HopdError.self) { try other.plan(grown) }
      #expect(refusal?.code == .joinTableNameUncertain)
      #expect(refusal?.message.contains("O.ns") == true)
      #expect(
        refusal?.hint?.contains("--join-table N.to") == true && refusal?.hint?.contains("--join-table N.from") == true)
      let given = try other.plan(grown, naming: JoinTableNaming(["N.from"]))
      #expect(given.hops.last?.destinationSchema.joinTables.first?.relationship == "from")
    }
  }

  @Test func onlyTheLastVersionNeedsACertainName() throws {
    let catalog = catalog([entity("N")], links(), [entity("N", [attribute("a")])])
    #expect(try SmallStore(try catalog.model("V1")).plan(catalog).hops.count == 2)
  }

  /// A version of which no store can be made is skipped if the versions before and after allow it.
  @Test func aVersionWithoutLayoutIsSkipped() throws {
    var own = toMany("likes", "A", inverse: "likes")
    own.isOrdered = true
    let chain = catalog(
      [entity("A", [attribute("x")])], [entity("A", [attribute("x")], [own])],
      [entity("A", [attribute("x"), attribute("y")])])
    let plan = try SmallStore(try chain.model("V1")).plan(chain)
    #expect(plan.hops.map(\.title) == ["V1 → V3"])
    #expect(plan.warnings.contains { $0.code == .versionsSkipped && $0.message.contains("V2") })
    // As the target it is refused.
    let refused = catalog([entity("A", [attribute("x")])], [entity("A", [attribute("x")], [own])])
    let error = #expect(throws: HopdError.self) { try SmallStore(try refused.model("V1")).plan(refused) }
    #expect(error?.code == .layoutUnsupported)
  }

  /// One version drops an attribute and an entity, a later one has them again: only one direct hop keeps the values.
  @Test func valuesThatOnlyTheDirectWayKeepsAreReported() throws {
    let chain = catalog(
      [entity("A", [attribute("x"), attribute("gone")]), entity("B", [attribute("b")])],
      [entity("A", [attribute("y")])],
      [entity("A", [attribute("x"), attribute("y")]), entity("B", [attribute("b")])])
    let store = try SmallStore(
      try chain.model("V1"),
      "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZX, ZGONE) VALUES (1, 1, 1, 'a', 'c'), (2, 1, 1, 'b', NULL);"
        + "INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT, ZB) VALUES (1, 2, 1, 'd')")
    let reported = try store.plan(chain).warnings.filter { $0.code == .directWayKeeps }
    #expect(reported.map { "\($0.place.entity ?? "").\($0.place.property ?? "")" } == ["A.x", "B."])
    #expect(
      reported.first?.message.contains("2 values") == true && reported.first?.hint?.contains("--route direct") == true)
    let direct = try store.plan(chain, route: .direct)
    #expect(direct.hops.count == 1 && !direct.warnings.contains { $0.code == .directWayKeeps })
  }
}
