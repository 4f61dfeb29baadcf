// Plans with mapping models: which entities they leave out, what they drop, and what is known of their result.

import BlockingTests
import Diagnostics
import Expressions
import ManagedObjectModel
import PersistentStore
import PropertyLists
import SQLite
import SystemPackage
import Testing

@testable import MappingModel
@testable import MigrationPlanning

@Suite(.blocking) struct MappedPlanTests {
  private static let before = [
    entity("E", [attribute("kept"), attribute("computed"), attribute("unread")]), entity("Lost"), entity("Gone"),
  ]
  private static let after = [entity("E", [attribute("kept"), attribute("sum")]), entity("Lost"), entity("New")]

  private struct OneHop: MappingSource, HopMappings {
    let hop: MappedHop
    var isEmpty: Bool { false }
    func hops(among versions: [CatalogedVersion]) -> any HopMappings { self }
    func hop(
      from source: CatalogedVersion, to destination: CatalogedVersion
    ) throws(HopdError) -> (hop: MappedHop, warnings: [HopdError])? { (hop, []) }
    func nearMisses(from source: CatalogedVersion, to destination: CatalogedVersion) -> [HopdError] { [] }
  }

  private func catalog(
    filter: PredicateNode? = nil, policy: String? = nil, userInfo: [String: PropertyListValue] = [:],
    grouping: SourceGrouping = .each, sum: ExpressionFunction = .uppercase
  ) -> ModelCatalog {
    var catalog = ModelCatalog(bundles: [bundle([Self.before, Self.after], name: "M")])
    let source = { (name: String) in ExpressionNode.keyPath(.variable("source"), [.key(name)]) }
    catalog.mappings = OneHop(
      hop: MappedHop(mappings: [
        ExplicitMapping(
          name: "Map", path: "/Map.cdm", sourceVersion: "V1", destinationVersion: "V2",
          entityMappings: [
            ExplicitEntityMapping(
              name: "EToE", type: .transform, source: "E", destination: "E", policy: policy, userInfo: userInfo,
              filter: filter.map { SourceFilter(text: "", predicate: $0) },
              attributes: [
                ExplicitPropertyMapping(name: "kept", value: .expression(source("kept"))),
                ExplicitPropertyMapping(
                  name: "sum", value: .expression(.function(sum, [source("computed")]))),
              ], grouping: grouping)
          ])
      ]))
    return catalog
  }

  private func store(_ sql: String) throws -> SmallStore {
    try SmallStore(ManagedObjectModel(name: "V1", entities: Self.before), sql)
  }

  private func plan(
    _ small: SmallStore, _ catalog: ModelCatalog, _ rules: PlanningRules = PlanningRules()
  ) throws -> (plan: MigrationPlan, expectation: StoreExpectation) {
    try StoreReader.withUnchangedStore(at: small.location) { reader in
      let found = try StoreIdentifier.identify(reader: reader, location: small.location, catalog: catalog)
      let plan = try MigrationPlanner.plan(
        store: try #require(found.identified), catalog: catalog, rules: rules, reader: reader)
      return (plan, try MigrationPlanner.expectation(of: plan, rules: rules, input: reader))
    }
  }

  private static let rows =
    "INSERT INTO ZE (Z_PK, Z_ENT, Z_OPT, ZKEPT, ZCOMPUTED, ZUNREAD) VALUES (1, 1, 1, 'a', 'b', 'c'), "
    + "(2, 1, 1, 'a', 'b', NULL);"
    + "UPDATE Z_PRIMARYKEY SET Z_MAX = 2"

  @Test func entitiesThatGoOnUnmappedAreRefusedWhereTheyHaveRows() throws {
    let empty = try store(Self.rows)
    #expect(try plan(empty, catalog()).plan.isMixed)
    let full = try store(Self.rows + ";INSERT INTO ZLOST (Z_PK, Z_ENT, Z_OPT) VALUES (1, 3, 1), (2, 3, 1)")
    let error = #expect(throws: HopdError.self) { try plan(full, catalog()) }
    #expect(error?.code == .unmappedEntities)
    #expect(error?.place.entity == "Lost")
    #expect(error?.message.contains("2 rows") == true)
    let dropped = try plan(full, catalog(), PlanningRules(unmappedEntities: .drop)).plan
    #expect(dropped.expectation.droppedRowsByEntity == ["Lost": 2])
    #expect(dropped.warnings.contains { $0.code == .dataDropped && $0.place.entity == "Lost" })
  }

  @Test func entitiesThatEndAreDroppedAndReported() throws {
    let small = try store(Self.rows + ";INSERT INTO ZGONE (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1)")
    let plan = try plan(small, catalog()).plan
    #expect(plan.expectation.droppedRowsByEntity == ["Gone": 1])
    #expect(plan.warnings.contains { $0.code == .dataDropped && $0.place.entity == "Gone" })
  }

  @Test func onlyWhatNoExpressionReadsIsADrop() throws {
    let plan = try plan(try store(Self.rows), catalog()).plan
    #expect(plan.drops.map(\.property) == ["unread"])
    #expect(plan.drops.first?.nonNull == 1)
    // A policy may read anything.
    #expect(try self.plan(try store(Self.rows), catalog(policy: "P")).plan.drops.isEmpty)
  }

  @Test func rowsOfTheResultAreOnlyExpectedWhereTheyAreKnown() throws {
    let small = try store(Self.rows)
    #expect(try plan(small, catalog()).expectation.rowsByEntity == ["E": 2, "Lost": 0, "New": 0])
    // Through a filter, as far as SQL can express it.
    let unread = PredicateNode.comparison(
      Comparison(.keyPath(.selfObject, [.key("unread")]), .equal, .constant(.string("c"))))
    let filtered = try plan(small, catalog(filter: unread))
    #expect(filtered.expectation.rowsByEntity == ["E": 1, "Lost": 0, "New": 0])
    #expect(filtered.plan.hops.first?.entities.map(\.rows) == [1])
    #expect(filtered.plan.warnings.contains { $0.code == .dataDropped && $0.message.hasPrefix("1 row fulfils") })
    let later = PredicateNode.comparison(
      Comparison(.function(.now, []), .greater, .constant(.date(0))))
    #expect(try plan(small, catalog(filter: later)).expectation.rowsByEntity == ["Lost": 0, "New": 0])
    #expect(try plan(small, catalog(policy: "P")).expectation.rowsByEntity.isEmpty)
    let rules = PlanningRules(invalidRows: InvalidRowsRules(byEntity: ["E": .skip]))
    #expect(try plan(small, catalog(), rules).expectation.rowsByEntity == ["Lost": 0, "New": 0])
  }

  @Test func theFingerprintFollowsMappingsAndRules() throws {
    let small = try store(Self.rows)
    let plain = try plan(small, catalog()).plan.fingerprint
    #expect(try plan(small, catalog()).plan.fingerprint == plain)
    let kept = ExpressionNode.keyPath(.variable("source"), [.key("kept")])
    let others = [
      try plan(small, catalog(filter: .constant(true))).plan.fingerprint,
      try plan(small, catalog(policy: "P")).plan.fingerprint,
      try plan(small, catalog(policy: "P", userInfo: ["a": .string("b")])).plan.fingerprint,
      try plan(small, catalog(sum: .lowercase)).plan.fingerprint,
      try plan(small, catalog(grouping: .distinctBy([kept], keep: .lowest))).plan.fingerprint,
      try plan(small, catalog(grouping: .distinctBy([kept], keep: .latest(kept)))).plan.fingerprint,
      try plan(small, catalog(grouping: .deduplicate(by: [kept], keep: .lowest))).plan.fingerprint,
      try plan(small, catalog(), PlanningRules(unmappedEntities: .drop)).plan.fingerprint,
      try plan(small, catalog(), PlanningRules(invalidRows: InvalidRowsRules(standard: .skip))).plan.fingerprint,
    ]
    #expect(Set(others + [plain]).count == others.count + 1)
  }

  @Test func patternsThatAreNotReadAreNamed() throws {
    func remarks(_ pattern: String?) -> [HopdError] {
      let text = Attribute(name: "text", type: .string)
      var attribute = text
      attribute.regularExpression = pattern
      let model = ManagedObjectModel(name: "V2", entities: [entity("E", [attribute, text])])
      return UncheckedPatterns.remarks(on: model, hop: "V1 → V2")
    }
    for pattern in [nil, "", "[A-Z][a-z]+", "\\d{3}-\\d{4}", "(cat|dog)s?"] { #expect(remarks(pattern).isEmpty) }
    for pattern in ["(?=x)y", "(", "a++"] {
      #expect(remarks(pattern).map(\.code) == [.patternNotChecked])
      #expect(remarks(pattern).first?.place.property == "text")
    }
  }
}
