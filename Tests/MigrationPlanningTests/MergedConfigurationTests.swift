// Stores of a configuration of merged models: Core Data merges the configurations of the models by their names.

import BlockingTests
import Diagnostics
import ManagedObjectModel
import SystemPackage
import Testing

@testable import MigrationPlanning

@Suite(.blocking) struct MergedConfigurationTests {
  private func bundle(_ name: String, _ versions: [ManagedObjectModel]) -> ModelBundle {
    ModelBundle(
      name: name, path: FilePath("/models/\(name).xcdatamodeld"), versions: versions,
      currentVersionName: versions.last?.name)
  }

  private func version(
    _ name: String, _ entities: [Entity], _ configurations: [String: [String]]
  ) -> ManagedObjectModel {
    ManagedObjectModel(name: name, entities: entities, configurations: configurations)
  }

  private let book = entity("Book", [attribute("title")])
  private let draft = entity("Draft", [attribute("text")])
  private let cart = entity("Cart", [attribute("sum", .double)])
  private let cache = entity("Cache", [attribute("key")])

  /// Two models of an app, each with synchronised entities and entities that stay on the device.
  private func catalog(_ later: [String: [String]] = ["Cloud": ["Book"], "Local": ["Draft"]]) -> ModelCatalog {
    let printed = entity("Book", [attribute("title"), attribute("isbn")])
    return ModelCatalog(bundles: [
      bundle(
        "Library",
        [
          version("L1", [book, draft], ["Cloud": ["Book"], "Local": ["Draft"]]),
          version("L2", [printed, draft], later),
        ]),
      bundle("Shop", [version("S1", [cart, cache], ["Cloud": ["Cart"], "Local": ["Cache"]])]),
    ])
  }

  private func match(_ entities: [Entity], _ catalog: ModelCatalog) throws(HopdError) -> StoreMatch? {
    let hashes = ManagedObjectModel(name: "store", entities: entities).versionHashes
    return try StoreMatching(hashes: hashes, catalog: catalog, target: .current, place: Place()).match()
  }

  @Test func aConfigurationOfMergedModelsIsMigrated() throws {
    let store = try SmallStore(
      ManagedObjectModel(name: "store", entities: [book, cart]),
      "INSERT INTO ZBOOK (Z_PK, Z_ENT, Z_OPT, ZTITLE) VALUES (1, 1, 1, 'Emma')")
    let found = try store.identify(catalog())
    #expect(found.state == .behind)
    #expect(found.version?.title == "L1 + S1, configuration Cloud" && found.version?.modelName == "Library + Shop")
    let plan = try store.plan(catalog())
    #expect(plan.hops.map(\.title) == ["L1 + S1 → L2 + S1"])
    #expect(plan.hops.first?.destination.entities.map(\.name).sorted() == ["Book", "Cart"])
    #expect(plan.expectation.rowsByEntity == ["Book": 1, "Cart": 0])
  }

  @Test func everyConfigurationIsFoundAndNoOtherPart() throws {
    let all = ["Book": book, "Draft": draft, "Cart": cart, "Cache": cache]
    let known: [Set<String>: String] = [
      ["Book", "Cart"]: "Cloud", ["Draft", "Cache"]: "Local", ["Book", "Draft", "Cart", "Cache"]: "",
      ["Book"]: "Cloud", ["Draft"]: "Local", ["Cart"]: "Cloud", ["Cache"]: "Local",
      // Whole models need no configuration.
      ["Book", "Draft"]: "", ["Cart", "Cache"]: "",
    ]
    for mask in 1..<16 {
      let names = Set(all.keys.sorted().enumerated().filter { mask >> $0.offset & 1 == 1 }.map(\.element))
      let found = try match(names.compactMap { all[$0] }, catalog())
      #expect(found.map { $0.version.configuration ?? "" } == known[names], "\(names)")
    }
  }

  @Test func aConfigurationThatALaterVersionLacksIsRefused() throws {
    let error = #expect(throws: HopdError.self) { try match([book, cart], catalog(["Local": ["Draft"]])) }
    #expect(error?.code == .noSuchConfiguration)
    #expect(error?.message.contains("L2 has no configuration \"Cloud\"") == true, "\(String(describing: error))")
  }

  @Test func configurationsThatPartLaterAreAmbiguous() throws {
    func catalog(_ last: [String: [String]]) -> ModelCatalog {
      ModelCatalog(bundles: [
        bundle(
          "Library",
          [
            version("L1", [book, draft], ["A": ["Book"], "B": ["Book"]]),
            version("L2", [book, draft, cache], last),
          ]),
        bundle("Shop", [version("S1", [cart, entity("Log")], ["A": ["Cart"], "B": ["Cart"]])]),
      ])
    }
    let same = try match([book, cart], catalog(["A": ["Book"], "B": ["Book"]]))
    #expect(same?.version.configuration == "A")
    let error = #expect(throws: HopdError.self) {
      try match([book, cart], catalog(["A": ["Book"], "B": ["Book", "Cache"]]))
    }
    #expect(error?.code == .ambiguousModel && error?.message.contains("\"A\", \"B\"") == true)
  }
}
