// Stores that are not one whole version of one model: configurations, merges, and models that the store itself holds.

import BlockingTests
import Diagnostics
import ManagedObjectModel
import PersistentStore
import SeededRandom
import SystemPackage
import Testing

@testable import MigrationPlanning

@Suite(.blocking) struct StoreMatchingTests {
  private func bundle(
    _ name: String, _ versions: [ManagedObjectModel], current: String? = nil
  ) -> ModelBundle {
    ModelBundle(
      name: name, path: FilePath("/models/\(name).xcdatamodeld"), versions: versions,
      currentVersionName: current ?? versions.last?.name)
  }

  private func version(
    _ name: String, _ entities: [Entity], _ configurations: [String: [String]] = [:]
  ) -> ManagedObjectModel {
    ManagedObjectModel(name: name, entities: entities, configurations: configurations)
  }

  private func match(
    _ store: ManagedObjectModel, _ catalog: ModelCatalog, _ target: TargetVersion = .current
  ) throws(HopdError) -> StoreMatch? {
    try StoreMatching(hashes: store.versionHashes, catalog: catalog, target: target, place: Place()).match()
  }

  // MARK: Configurations

  private var library: ModelCatalog {
    let book = entity("Book", [attribute("title")])
    let log = entity("Log", [attribute("text")])
    let more = entity("Log", [attribute("text"), attribute("level", .integer16)])
    return ModelCatalog(bundles: [
      bundle(
        "Library",
        [
          version("V1", [book, log], ["Books": ["Book"], "Logs": ["Log"]]),
          version("V2", [book, more], ["Books": ["Book"], "Logs": ["Log"]]),
          version("V3", [book, more, entity("Tag")], ["Books": ["Book", "Tag"]]),
        ])
    ])
  }

  @Test func aStoreOfAConfigurationHasAPlanOfItsOwn() throws {
    let part = try library.model("V1").restricted(toConfiguration: "Logs")
    let store = try SmallStore(part, "INSERT INTO ZLOG (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1)")
    let found = try store.identify(library, .named("V2"))
    #expect(found.state == .behind)
    #expect(found.version?.configuration == "Logs")
    #expect(found.version?.title == "V1, configuration Logs")
    #expect(found.entities.map(\.name) == ["Log"] && found.entities.first?.rows == 1)
    let plan = try store.plan(library, .named("V2"))
    #expect(plan.hops.map(\.title) == ["V1 → V2"])
    #expect(plan.hops.first?.destination.entities.map(\.name) == ["Log"])
    #expect(plan.hops.first?.destinationSchema.numbers == ["Log": 1])
    #expect(plan.expectation.rowsByEntity == ["Log": 1])
  }

  @Test func aConfigurationThatTheTargetLacksIsRefusedWithThoseItHas() throws {
    let store = try SmallStore(try library.model("V2").restricted(toConfiguration: "Logs"))
    let error = #expect(throws: HopdError.self) { try store.identify(library) }
    #expect(error?.code == .noSuchConfiguration)
    #expect(error?.message.contains("V3 has no configuration \"Logs\"") == true)
    #expect(error?.hint?.contains("\"Books\"") == true)
    // An inspection that migrates nothing needs no target.
    #expect(try store.identify(library, .own).version?.configuration == "Logs")
  }

  @Test func noVersionOnTheWayIsSkipped() throws {
    let (old, new) = (entity("Book", [attribute("title")]), entity("Book", [attribute("title"), attribute("isbn")]))
    let other = entity("Log")
    let catalog = ModelCatalog(bundles: [
      bundle(
        "M",
        [
          version("V1", [old, other], ["Books": ["Book"]]), version("V2", [old, other, entity("X")]),
          version("V3", [new, other], ["Books": ["Book"]]),
        ])
    ])
    let store = try SmallStore(version("part", [old]))
    #expect(try store.identify(catalog, .named("V1")).state == .current)
    let error = #expect(throws: HopdError.self) { try store.identify(catalog) }
    #expect(error?.code == .noSuchConfiguration)
    #expect(error?.message.contains("V2") == true)
  }

  @Test func configurationsWithTheSameEntitiesMatterOnlyWhereTheyPart() throws {
    let book = entity("Book", [attribute("title")])
    func catalog(_ last: [String: [String]]) -> ModelCatalog {
      ModelCatalog(bundles: [
        bundle(
          "M",
          [
            version("V1", [book, entity("Log")], ["A": ["Book"], "B": ["Book"]]),
            version("V2", [book, entity("Log"), entity("Tag")], last),
          ])
      ])
    }
    let store = version("part", [book])
    let same = try match(store, catalog(["A": ["Book", "Tag"], "B": ["Tag", "Book"]]))
    #expect(same?.version.configuration == "A" && same?.target.versionHashes.count == 2)
    #expect(try match(store, catalog(["B": ["Book", "Tag"]]))?.version.configuration == "B")
    let error = #expect(throws: HopdError.self) {
      try match(store, catalog(["A": ["Book"], "B": ["Book", "Tag"]]))
    }
    #expect(error?.code == .ambiguousModel)
    #expect(error?.message.contains("\"A\", \"B\"") == true)
    #expect(try match(store, catalog([:]), .own)?.version.configuration == "A")
    #expect(
      #expect(throws: HopdError.self) { try match(store, catalog([:])) }?.code == .noSuchConfiguration)
  }

  @Test func aPartThatIsNoConfigurationIsExplained() throws {
    let store = try SmallStore(version("part", [entity("Tag")]))
    let found = try store.identify(library)
    #expect(found.state == .unknown)
    #expect(found.explanation?.message.contains("1 of the 3 entities of V3") == true)
    #expect(found.explanation?.hint?.contains("\"Books\" (Book, Tag)") == true)
    #expect(found.explanation?.reasons.map(\.place.entity) == ["Book", "Log"])
  }

  @Test func anEditedVersionIsReportedEntityByEntity() throws {
    let store = version(
      "edited", [entity("Book", [attribute("title"), attribute("isbn")]), entity("Log", [attribute("text")])])
    let error = VersionComparison.explain(store.versionHashes, catalog: library)
    #expect(error.reasons.map(\.place.entity) == ["Book"])
    #expect(error.reasons.first?.message == "differs between the store and V1")
    #expect(error.hint?.contains("V1 before it was edited") == true)
  }

  @Test func aStoreWithMoreThanTheCurrentVersionMayBeNewer() throws {
    let last = try #require(library.versions.last)
    func explain(_ store: [String: VersionHash], newer: Bool = false) -> HopdError {
      VersionComparison.explain(store, catalog: library, mayBeNewer: newer)
    }
    let more = last.versionHashes.merging(version("v4", [entity("Shelf")]).versionHashes) { old, _ in old }
    let found = explain(more)
    #expect(found.code == .perhapsNewer && found.hint?.hasPrefix("add the model version of the newer app") == true)
    let edited = version(
      "edited", [entity("Book", [attribute("title"), attribute("isbn")]), entity("Log", [attribute("text")])]
    ).versionHashes
    #expect(explain(edited).code == .unknownVersion)
    // The store's own model tells more than its hashes.
    #expect(explain(edited, newer: true).code == .perhapsNewer)
    let foreign = explain(version("x", [entity("Stranger")]).versionHashes)
    #expect(foreign.code == .foreignStore && foreign.hint?.contains("exclude") == false)
  }

  // MARK: Merges

  private func content(_ name: String, _ attributes: String...) -> Entity {
    entity(name, attributes.map { attribute($0) })
  }

  private var app: ModelCatalog {
    ModelCatalog(bundles: [
      bundle(
        "A",
        [
          version("A", [content("Book", "a")]), version("A 2", [content("Book", "a", "b")]),
          version("A 3", [content("Book", "a", "b", "c")]),
        ]),
      bundle("B", [version("B", [content("Log", "a")]), version("B 2", [content("Log", "a", "b")])]),
      bundle("C", [version("C", [content("Tag", "a")])]),
    ])
  }

  private func merged(_ entities: Entity...) -> ManagedObjectModel { version("merged", entities) }

  @Test func aMergeAdvancesEachModelByOneVersionPerHop() throws {
    let store = try SmallStore(
      merged(content("Book", "a"), content("Log", "a"), content("Tag", "a")),
      "INSERT INTO ZLOG (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1)")
    let found = try store.identify(app)
    #expect(found.state == .behind)
    #expect(found.version?.title == "A + B + C")
    #expect(found.version?.modelName == "A + B + C")
    let plan = try store.plan(app)
    #expect(plan.hops.map(\.title) == ["A + B + C → A 2 + B 2 + C", "A 2 + B 2 + C → A 3 + B 2 + C"])
    #expect(plan.expectation.rowsByEntity == ["Book": 0, "Log": 1, "Tag": 0])
    #expect(try store.plan(app, .named("A 2 + B")).hops.map(\.title) == ["A + B + C → A 2 + B + C"])
    #expect(try store.plan(app, .named("B/B 2 + A")).hops.map(\.title) == ["A + B + C → A + B 2 + C"])
  }

  @Test func targetsOfAMergeAreNamedPerModel() throws {
    let store = merged(content("Book", "a", "b"), content("Log", "a", "b"))
    #expect(try match(store, app)?.target.model.name == "A 3 + B 2")
    #expect(try match(store, app, .named("A 2"))?.target.model.name == "A 2 + B 2")
    #expect(try match(store, app, .own)?.version.model.name == "A 2 + B 2")
    // If one model is ahead of its target, no model can be migrated.
    let ahead = try match(store, app, .named("A 3 + B"))
    #expect((ahead?.version.position ?? 0) > (ahead?.target.position ?? 0))
    for wrong in ["A 9", "C", "A 2 + A 3", "A 2 + "] {
      let error = #expect(throws: HopdError.self, "\(wrong)") { try match(store, app, .named(wrong)) }
      #expect(error?.code == .noSuchVersion)
      #expect(error?.hint?.contains("A, A 2, A 3, B, B 2") == true, "\(wrong)")
    }
    #expect(app.canName("A 2 + B") && app.canName("B 2") && !app.canName("A 2 + B 9"))
  }

  @Test func versionsOfOneNameAreDistinguishedByTheirModels() throws {
    let catalog = ModelCatalog(bundles: [
      bundle("A", [version("V1", [content("Book", "a")]), version("V2", [content("Book", "a", "b")])]),
      bundle("B", [version("V1", [content("Log", "a")]), version("V2", [content("Log", "a", "b")])]),
    ])
    let store = merged(content("Book", "a"), content("Log", "a"))
    #expect(try match(store, catalog)?.version.model.name == "A/V1 + B/V1")
    #expect(try match(store, catalog, .named("A/V2 + B/V1"))?.target.model.name == "A/V2 + B/V1")
    let error = #expect(throws: HopdError.self) { try match(store, catalog, .named("V2")) }
    #expect(error?.hint?.contains("A/V1, A/V2, B/V1, B/V2") == true)
  }

  @Test func modelsThatContradictEachOtherLaterAreRefused() throws {
    let catalog = ModelCatalog(bundles: [
      bundle(
        "A", [version("A", [content("Book", "a")]), version("A 2", [content("Book", "a"), content("Tag", "x")])]),
      bundle("B", [version("B", [content("Log", "a")]), version("B 2", [content("Log", "a"), content("Tag", "y")])]),
    ])
    let error = #expect(throws: HopdError.self) {
      try match(merged(content("Book", "a"), content("Log", "a")), catalog)
    }
    #expect(error?.code == .modelsContradict)
    #expect(error?.reasons.map(\.place.entity) == ["Tag"])
  }

  @Test func whatNoModelExplainsIsNamed() throws {
    let store = merged(content("Book", "a", "b"), content("Log", "other"), content("Photo", "a"))
    #expect(try match(store, app) == nil)
    let error = VersionComparison.explain(store.versionHashes, catalog: app)
    #expect(error.message.contains("A 2 of A explains 1 of its 3 entities"))
    #expect(error.reasons.map(\.place.entity) == ["Log", "Photo"])
    #expect(error.reasons.first?.message.contains("B of B, B 2 of B") == true)
    #expect(error.reasons.last?.message == "none of the models has this entity")
  }

  /// All combinations that explain a store, found by trying all selections, compared with the search.
  @Test(arguments: 0..<400)
  func theSearchFindsEveryWay(_ seed: UInt64) throws {
    var random = Dice(seed: seed)
    let names = ["W", "X", "Y", "Z"]
    func model(_ name: String) -> ManagedObjectModel {
      let chosen = names.filter { _ in Bool.random(using: &random) }
      return version(
        name,
        (chosen.isEmpty ? ["W"] : chosen).map { content($0, Int.random(in: 0..<4, using: &random) == 0 ? "y" : "x") })
    }
    let catalog = ModelCatalog(
      bundles: (0..<Int.random(in: 2...4, using: &random)).map { index in
        bundle("M\(index)", (0..<Int.random(in: 1...3, using: &random)).map { model("M\(index) \($0)") })
      })
    let store = version("store", names.prefix(3).map { content($0, "x") }).versionHashes
    let choices = catalog.bundles.map { bundle in [nil] + Array(Set(bundle.versions.map(\.versionHashes))).map { $0 } }
    var expected: Set<[[String: VersionHash]?]> = []
    func union(_ selection: [[String: VersionHash]?]) -> [String: VersionHash]? {
      var all: [String: VersionHash] = [:]
      for part in selection.compactMap(\.self) {
        for (name, hash) in part {
          if let known = all[name], known != hash { return nil }
          all[name] = hash
        }
      }
      return all
    }
    var selections: [[[String: VersionHash]?]] = [[]]
    for choice in choices { selections = selections.flatMap { head in choice.map { head + [$0] } } }
    for selection in selections where union(selection) == store && !selection.contains(store) {
      let isNeeded = selection.indices.allSatisfy { index in
        guard selection[index] != nil else { return true }
        var rest = selection
        rest[index] = nil
        return union(rest) != store
      }
      if isNeeded { expected.insert(selection) }
    }
    let search = MergeMatching(
      matching: StoreMatching(hashes: store, catalog: catalog, target: .current, place: Place()))
    let found = Set(
      try search.ways().map { way in
        catalog.bundles.indices.map { index in way.first { $0.bundle == index }?.hashes }
      })
    #expect(found.isSubset(of: expected), "seed \(seed)")
    // Five combinations are enough to report that there are several.
    #expect(found.count == min(5, expected.count), "seed \(seed)")
    let isWhole = catalog.versions.contains { $0.versionHashes == store }
    if !isWhole, expected.count > 1 {
      #expect(
        #expect(throws: HopdError.self) {
          try StoreMatching(hashes: store, catalog: catalog, target: .current, place: Place()).match()
        }?.code == .ambiguousModel, "seed \(seed)")
    }
  }

  @Test func aHundredModelsAreSearchedWithinBounds() throws {
    // Every entity is in each of many models: the number of combinations is astronomical.
    let names = (0..<40).map { "E\($0)" }
    let catalog = ModelCatalog(
      bundles: (0..<100).map { index in
        bundle(
          "M\(index)",
          [
            version(
              "M\(index)", names.enumerated().filter { $0.offset % 7 != index % 7 }.map { content($0.element, "x") })
          ])
      })
    let error = #expect(throws: HopdError.self) {
      try match(version("store", names.map { content($0, "x") }), catalog)
    }
    #expect(error?.code == .ambiguousModel)
  }

  // MARK: The store's own model

  private func answer(
    _ own: ManagedObjectModel, _ catalog: ModelCatalog, _ target: TargetVersion = .current
  ) -> OwnModelMatching.Answer {
    OwnModelMatching(
      matching: StoreMatching(hashes: own.versionHashes, catalog: catalog, target: target, place: Place()), model: own
    ).answer()
  }

  @Test func theStoresOwnModelIsOneHopBeforeTheTargetOfTheModelNextToIt() throws {
    let own = version("1.0", [content("Book", "a")])
    guard case .match(let found) = answer(own, app) else {
      #expect(Bool(true) == false, "the own model was not used")
      return
    }
    #expect(found.version.isFromStoreItself)
    #expect(found.version.model.name == "1.0" && found.target.model.name == "A 3")
    let stops = MigrationGraph(versions: found.line.versions, infer: true).stops(from: found.version, to: found.target)
    #expect(stops.map(\.model.name) == ["1.0", "A 3"])
    guard case .match(let named) = answer(version("A 2", [content("Book", "c")]), app, .named("A 3")) else {
      #expect(Bool(true) == false, "the own model was not used")
      return
    }
    #expect(named.version.model.name == "A 2 (of the store)")
    guard case .match(let inspected) = answer(version("1.0", [content("Nothing")]), app, .own) else {
      #expect(Bool(true) == false, "a look needs no target")
      return
    }
    #expect(inspected.version.model.entities.map(\.name) == ["Nothing"])
  }

  @Test func aStoreThatMayBeNewerIsNotTakenBack() {
    func refusal(_ entities: Entity...) -> HopdError? {
      guard case .refused(let error) = answer(version("1.0", entities), app) else { return nil }
      return error
    }
    let attribute = refusal(content("Book", "a", "z"))
    #expect(attribute?.code == .ownModelUnused)
    #expect(attribute?.reasons.map(\.place.property) == ["z"])
    #expect(attribute?.hint?.contains("--models STORE") == true)
    #expect(refusal(content("Book", "a"), content("New", "a"))?.reasons.map(\.place.entity) == ["New"])
    #expect(refusal(content("Stranger", "a"))?.message.contains("none of the models has an entity in common") == true)
    #expect(refusal(content("Book", "a"), content("Tag", "a"))?.message.contains("each of A, C") == true)
  }

  /// A hop back would lose an order, and values that are computed again, without dropping a property.
  @Test func aNewerStoreLosesNeitherOrderNorValues() {
    func library(_ isOrdered: Bool, isDerived: Bool) -> [Entity] {
      [
        Entity(
          name: "Book",
          attributes: [
            Attribute(
              name: "count", type: .integer64, isOptional: true, derivationExpression: isDerived ? "pages.@count" : nil)
          ],
          relationships: [
            Relationship(
              name: "pages", destinationEntityName: "Page", inverseName: "book", isToMany: true, isOrdered: isOrdered)
          ]),
        Entity(
          name: "Page",
          relationships: [Relationship(name: "book", destinationEntityName: "Book", inverseName: "pages")]),
      ]
    }
    func reported(_ own: [Entity], _ given: [Entity]) -> [String?] {
      let catalog = ModelCatalog(bundles: [bundle("L", [version("V1", [entity("Old")]), version("V2", given)])])
      guard case .refused(let error) = answer(version("1.0", own), catalog) else { return [] }
      return error.reasons.map(\.place.property)
    }
    #expect(reported(library(true, isDerived: true), library(false, isDerived: true)) == ["pages"])
    #expect(reported(library(false, isDerived: false), library(false, isDerived: true)) == ["count"])
    #expect(reported(library(true, isDerived: false), library(false, isDerived: true)) == ["count", "pages"])
    #expect(reported(library(false, isDerived: true), library(true, isDerived: false)) == [])
  }

  @Test func modelsGivenOneByOneAreAChainInTheirOrder() throws {
    func single(_ path: String, _ name: String, _ attributes: String...) -> ModelBundle {
      let model = version(name, [entity("Book", attributes.map { attribute($0) })])
      return ModelBundle(name: name, path: FilePath(path), versions: [model], currentVersionName: name)
    }
    let parts = [
      single("/a/Old.sqlite", "1.0", "a"), single("/b/Mid.mom", "Mid", "a", "b"),
      single("/c/New.sqlite", "1.0", "a", "b", "c"),
    ]
    let chain = try ModelChain.bundle(of: parts, declaredOrder: [])
    #expect(chain.versions.map(\.name) == ["1.0 (Old)", "Mid", "1.0 (New)"])
    #expect(chain.currentVersionName == "1.0 (New)")
    let store = parts[0].versions[0]
    let found = try match(store, ModelCatalog(bundles: [chain]))
    #expect(found?.version.position == 0 && found?.target.position == 2)
    let turned = try ModelChain.bundle(of: parts, declaredOrder: ["Mid", "1.0 (Old)", "1.0 (New)"])
    #expect(turned.versions.map(\.name) == ["Mid", "1.0 (Old)", "1.0 (New)"])
    let error = #expect(throws: HopdError.self) { try ModelChain.bundle(of: parts, declaredOrder: ["Mid"]) }
    #expect(error?.code == .versionOrder && error?.hint?.contains("\"1.0 (Old)\", \"Mid\"") == true)
    let same = try ModelChain.bundle(
      of: [single("/a/default.store", "1.0", "a"), single("/b/default.store", "1.0", "b")], declaredOrder: [])
    #expect(same.versions.map(\.name) == ["1.0 (default)", "1.0 (default) #2"])
  }

  /// The first version and the third have equal hashes: the hop to the second leads forward from the first.
  @Test func ofVersionsWithEqualHashesTheOneBeforeTheTargetIsTaken() throws {
    let same = [entity("A", [attribute("x")])]
    let catalog = catalog(same, [entity("A", [attribute("x"), attribute("y")])], same, [entity("A")])
    let store = try SmallStore(try catalog.model("V1"), "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1)")
    for (target, start, hops) in [("V2", "V1", 1), ("V3", "V3", 0), ("V4", "V3", 1), ("V1", "V1", 0)] {
      let found = try StoreReader.withUnchangedStore(at: store.location) { reader in
        try StoreIdentifier.identify(
          reader: reader, location: store.location, catalog: catalog, target: .named(target))
      }
      #expect(found.version?.model.name == start, "to \(target)")
      #expect(found.state == (hops == 0 ? .current : .behind), "to \(target)")
    }
  }
}
