// Stores of a named configuration and of merged models, migrated and compared object by object with the oracle.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import StoreReplacement
import StoreVerification
import SystemPackage
import Testing

@Suite struct PartialStoreTests {
  /// Migrates a filled store of the first of `stops` and compares it with the oracle's result, stop by stop.
  private func migrationPath(_ stops: [ManagedObjectModel], catalog: ModelCatalog) throws {
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-part-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.appending("state").string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    let location = StoreLocation(database: folder.appending("store.sqlite"))
    let first = try #require(stops.first)
    let last = try #require(stops.last)
    try FreshStore(schema: StoreSchema(model: first, frameworkVersion: 1344), uuid: FreshStore.uuid(seed: 11))
      .make(at: location.database, rows: 80, seed: 11)
    var expected = try dump(location, model: first)
    #expect(expected.count == 80)
    for (source, destination) in zip(stops, stops.dropFirst()) {
      let mapping = try MappingInference.infer(from: source, to: destination)
      expected = ObjectOracle(source: source, destination: destination, mapping: mapping).migrate(expected)
    }
    var request = MigrationRequest(
      location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog,
      settings: MigrationSettings(verification: .full),
      stateDirectory: folder.appending("state"), job: "01")
    // An altered copy keeps the texts of its tables.
    request.engine.altering = .never
    let report = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
    #expect(report.hops.count == stops.count - 1)
    let found = try dump(location, model: last)
    #expect(found.count == expected.count)
    for (object, wanted) in zip(found, expected) where object != wanted { Issue.record("\(object) is not \(wanted)") }
    let assessment = try StoreIdentifier.identify(location, catalog: catalog)
    #expect(assessment.state == .current)
    #expect(assessment.metadata?.versionHashes == last.versionHashes)
    let schema = StoreSchema(model: last, frameworkVersion: 1344)
    let checks = try StoreReader.withUnchangedStore(at: location) {
      try StoreVerifier(depth: .full).checks(of: $0, schema: schema, isExact: true)
    }
    for check in checks where !check.passed { Issue.record("\(check.name): \(check.detail)") }
  }

  private func entity(_ name: String, _ attributes: [String], _ relationships: [Relationship] = []) -> Entity {
    Entity(
      name: name, attributes: attributes.map { Attribute(name: $0, type: .string, isOptional: true) },
      relationships: relationships)
  }

  private func pair(_ name: String, _ destination: String, _ inverse: String, toMany: Bool) -> Relationship {
    Relationship(name: name, destinationEntityName: destination, inverseName: inverse, isToMany: toMany)
  }

  @Test func aConfigurationGoesItsOwnWay() throws {
    func version(_ number: Int) -> ManagedObjectModel {
      let tags = pair("tags", "Tag", "books", toMany: true)
      let books = pair("books", "Book", "tags", toMany: true)
      return ManagedObjectModel(
        name: "V\(number)",
        entities: [
          // Outside entities come before, between and after the inside ones, so that every number differs.
          entity("Account", ["login"]), entity("Book", Array(["title", "isbn", "year"].prefix(number)), [tags]),
          entity("Log", ["text"]), entity("Tag", number > 2 ? ["colour"] : ["colour", "size"], [books]),
          entity("Zebra", ["stripes"]),
        ], configurations: ["Local": ["Tag", "Book"], "Other": ["Log"]])
    }
    let versions = (1...3).map(version)
    let catalog = ModelCatalog(bundles: [
      ModelBundle(name: "M", path: "/M.xcdatamodeld", versions: versions, currentVersionName: "V3")
    ])
    try migrationPath(versions.map { try $0.restricted(toConfiguration: "Local") }, catalog: catalog)
  }

  @Test func mergedModelsAdvanceTogether() throws {
    func books(_ number: Int) -> ManagedObjectModel {
      ManagedObjectModel(
        name: number == 1 ? "Books" : "Books \(number)",
        entities: [
          entity(
            "Book", Array(["title", "isbn", "year"].prefix(number)), [pair("shelf", "Shelf", "books", toMany: false)]),
          entity("Shelf", ["place"], [pair("books", "Book", "shelf", toMany: true)]),
        ])
    }
    func people(_ number: Int) -> ManagedObjectModel {
      ManagedObjectModel(
        name: "People \(number)",
        entities: [entity("Account", number == 1 ? ["login", "old"] : ["login"])]
          + (number == 1 ? [] : [entity("Group", ["name"])]))
    }
    let catalog = ModelCatalog(bundles: [
      ModelBundle(
        name: "Books", path: "/Books.xcdatamodeld", versions: (1...3).map(books), currentVersionName: "Books 3"),
      ModelBundle(
        name: "People", path: "/People.xcdatamodeld", versions: (1...2).map(people), currentVersionName: "People 2"),
    ])
    let stops = try [(1, 1), (2, 2), (3, 2)].map {
      try ManagedObjectModel.merging([books($0), people($1)], name: "\(books($0).name) + \(people($1).name)")
    }
    try migrationPath(stops, catalog: catalog)
  }
}
