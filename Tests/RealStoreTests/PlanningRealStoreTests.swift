// Stores that Apple's software made, identified and planned with the models next to them. Every store is copied first,
// and the copy's folder must be the same afterwards, byte for byte.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import SystemPackage
import Testing

/// A store's files in their own folder, which is removed at the end.
private final class StoreCopy {
  let folder: FilePath
  let location: StoreLocation

  /// Copies a store of `fixtures/stores` or of a chain's `source`: everything in the folder except models and notes.
  init(of source: FilePath) throws {
    folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-planning-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
    var databases: [String] = []
    for name in Fixtures.names(in: source)
    where name != "model" && name != "facts.json" && name != "ORIGIN" && name != "expected.json" {
      try FileManager.default.copyItem(
        atPath: source.appending(name).string, toPath: folder.appending(name).string)
      if !name.hasPrefix("."), !StoreLocation.isAuxiliaryFile(fileName: name) { databases.append(name) }
    }
    let database = try #require(databases.first)
    try #require(databases.count == 1, "\(source) holds \(databases)")
    location = StoreLocation(database: folder.appending(database))
  }

  deinit { try? FileManager.default.removeItem(atPath: folder.string) }

  /// Returns names and bytes of everything in the folder.
  func snapshot() throws -> [String: [UInt8]] {
    var result: [String: [UInt8]] = [:]
    for name in Fixtures.names(in: folder) where !Fixtures.isFolder(folder.appending(name)) {
      result[name] = try Fixtures.bytes(of: folder.appending(name))
    }
    return result
  }

  func plan(
    _ catalog: ModelCatalog, target: TargetVersion = .current, naming: JoinTableNaming = JoinTableNaming()
  ) throws -> MigrationPlan {
    try StoreReader.withUnchangedStore(at: location) { reader in
      let assessment = try StoreIdentifier.identify(
        reader: reader, location: location, catalog: catalog, target: target)
      let store = try #require(assessment.identified, "\(assessment.explanation?.description ?? "")")
      return try MigrationPlanner.plan(
        store: store, catalog: catalog, target: target, rules: PlanningRules(naming: naming), reader: reader)
    }
  }
}

private struct PlanningFacts: Decodable {
  let frameworkVersion: Int64
  let uuid: String
  let rows: [String: Int64]
  let hasWalFile: Bool?
}

private func chain(_ name: String) throws -> (folder: FilePath, catalog: ModelCatalog) {
  let folder = try #require(Fixtures.root).appending("chains/\(name)")
  return (folder, try ModelCatalog.load([folder.appending("models")]))
}

private func store(_ name: String) throws -> StoreCopy {
  try StoreCopy(of: try #require(Fixtures.root).appending("stores/\(name)"))
}

@Suite(.enabled(if: Fixtures.isAvailable, Fixtures.absence))
struct PlanningRealStoreTests {
  @Test func everyStoreIsIdentifiedAndItsFolderStaysAsItWas() throws {
    var seen = 0
    for source in Fixtures.cases(in: "stores") {
      let facts = try Fixtures.json(PlanningFacts.self, at: source.appending("facts.json"))
      let copy = try StoreCopy(of: source)
      let before = try copy.snapshot()
      let catalog = try ModelCatalog.load([source.appending("model")])
      let assessment = try StoreIdentifier.identify(copy.location, catalog: catalog)
      #expect(assessment.state == .current, "\(source): \(assessment.explanation?.description ?? "")")
      #expect(assessment.metadata?.uuid == facts.uuid)
      #expect(assessment.metadata?.frameworkVersion == facts.frameworkVersion)
      let rows = facts.rows.filter { !$0.key.hasPrefix("Z_") && $0.key.hasPrefix("Z") }.values.reduce(0, +)
      #expect(assessment.entities.reduce(0) { $0 + $1.rows } == rows, "\(source)")
      #expect(assessment.sideFiles.contains(copy.location.writeAheadLog) == (facts.hasWalFile ?? false))
      #expect(try copy.snapshot() == before, "\(source): the folder changed")
      seen += 1
    }
    #expect(seen >= 28)
  }

  @Test func aStoreOfNoVersionNamesTheNearest() throws {
    let (_, catalog) = try chain("bookmarks")
    let copy = try store("fw0866-wibosco-revised-1")
    let assessment = try StoreIdentifier.identify(copy.location, catalog: catalog)
    #expect(assessment.state == .unknown)
    #expect(assessment.version == nil)
    #expect(assessment.entities.first?.rows == 10)
    let explanation = try #require(assessment.explanation)
    #expect(explanation.code == .foreignStore)
    #expect(explanation.reasons.map(\.place.entity).contains("Post"))
    #expect(explanation.reasons.map(\.place.entity).contains("BookmarkEntity"))
  }

  @Test func testModelPlansOneHop() throws {
    let (folder, catalog) = try chain("bnr")
    let copy = try StoreCopy(of: folder.appending("source"))
    let before = try copy.snapshot()
    let plan = try copy.plan(catalog, target: .named("TestModel 2"))
    #expect(plan.hops.map(\.title) == ["TestModel → TestModel 2"])
    #expect(
      plan.hops.first?.mapping.entityMappings.map(\.name) == [
        "IEM_Copy_Author", "IEM_Transform_Book", "IEM_Add_Publisher",
      ])
    #expect(plan.expectation.rowsByEntity == ["Author": 0, "Book": 0, "Publisher": 0])
    #expect(plan.expectation.rowsByJoinTable == ["Z_1BOOKS": 0])
    #expect(plan.drops.isEmpty)
    #expect(try copy.snapshot() == before)
  }

  @Test func bookmarksPlansWithTheComputedTableName() throws {
    let (folder, catalog) = try chain("bookmarks")
    let copy = try StoreCopy(of: folder.appending("source"))
    let before = try copy.snapshot()
    let plan = try copy.plan(catalog, target: .named("BookmarksModel 6"))
    #expect(plan.hops.count == 5)
    #expect(plan.hops.last?.destinationSchema.joinTables.map(\.name) == ["Z_1FAVORITES"])
    #expect(plan.expectation.rowsByEntity == ["BookmarkEntity": 10])
    #expect(plan.expectation.highWaterMarks == ["BookmarkEntity": 10])
    let dropped = plan.drops.map { "\($0.hop) \($0.entity).\($0.property ?? "") \($0.table).\($0.column ?? "")" }
    #expect(dropped == ["1 BookmarkEntity.isFavorite ZBOOKMARKENTITY.ZISFAVORITE"])
    #expect(plan.drops.first?.nonNull == 10)
    #expect(plan.warnings.contains { $0.code == .dataDropped && $0.place.property == "isFavorite" })
    #expect(!plan.warnings.contains { $0.code == .joinTableNameUnexpected })
    let other = try copy.plan(
      catalog, target: .named("BookmarksModel 6"), naming: JoinTableNaming(["BookmarkEntity.favoriteFolders"]))
    #expect(other.hops.last?.destinationSchema.joinTables.map(\.name) == ["Z_1FAVORITEFOLDERS"])
    #expect(other.warnings.contains { $0.code == .joinTableNameUnexpected })
    #expect(other.fingerprint != plan.fingerprint)
    #expect(try copy.snapshot() == before)
  }

  @Test(arguments: [
    ("fw1251-bookmarks-1", 3, "BookmarksModel 4"), ("fw1251-bookmarks-3", 1, "BookmarksModel 4"),
    ("fw1333-bookmarks-4", 1, "BookmarksModel 5"), ("fw1251-bookmarks-5", 1, "BookmarksModel 6"),
  ])
  func bookmarksStoresOfEveryVersionPlan(_ name: String, _ hops: Int, _ target: String) throws {
    let (_, catalog) = try chain("bookmarks")
    let plan = try store(name).plan(catalog, target: .named(target))
    #expect(plan.hops.count == hops)
    #expect(plan.expectation.rowsByJoinTable["Z_1FAVORITES"] != nil)
    #expect(!plan.warnings.contains { $0.code == .joinTableNameUnexpected })
  }

  @Test func aReferenceStoreSettlesTheTableName() throws {
    let (folder, catalog) = try chain("bookmarks")
    let reference = try store("fw1251-bookmarks-5")
    let before = try reference.snapshot()
    let naming = try MigrationPlanner.naming(
      fromReference: reference.location, catalog: catalog, target: .named("BookmarksModel 5"))
    #expect(naming == JoinTableNaming(["BookmarkEntity.favorites"]))
    #expect(try reference.snapshot() == before)
    let copy = try StoreCopy(of: folder.appending("source"))
    let plan = try copy.plan(catalog, target: .named("BookmarksModel 5"), naming: naming)
    #expect(plan.hops.count == 4)
    let mismatch = #expect(throws: HopdError.self) {
      try MigrationPlanner.naming(
        fromReference: reference.location, catalog: catalog, target: .named("BookmarksModel 6"))
    }
    #expect(mismatch?.code == .referenceMismatch)
  }

  @Test func theStoreOfALaterVersionIsNewer() throws {
    let (_, catalog) = try chain("bookmarks")
    let copy = try store("fw1251-bookmarks-5")
    let assessment = try StoreIdentifier.identify(copy.location, catalog: catalog, target: .named("BookmarksModel 3"))
    #expect(assessment.state == .newer)
    #expect(assessment.explanation?.code == .storeNewer)
    #expect(
      #expect(throws: HopdError.self) { try copy.plan(catalog, target: .named("BookmarksModel 3")) }?.code
        == .storeNewer)
  }

  @Test func theFirstHopsOfMixedChainsPlan() throws {
    for (name, target, rows) in [
      ("coredataplus-samplemodel", "SampleModel2", Int64(145)), ("moody", "Moody 2", 9),
      ("wibosco-revised", "CoreDataMigration_Example 2", 10),
    ] {
      let (folder, catalog) = try chain(name)
      let copy = try StoreCopy(of: folder.appending("source"))
      let before = try copy.snapshot()
      let plan = try copy.plan(catalog, target: .named(target))
      #expect(plan.hops.count == 1, "\(name)")
      #expect(plan.expectation.rowsByEntity.values.reduce(0, +) == rows, "\(name)")
      #expect(plan.expectation.droppedRowsByEntity.isEmpty)
      #expect(plan.estimate.rows == rows)
      #expect(try copy.snapshot() == before)
    }
  }

  @Test func theLastHopsOfTheWiboscoChainsPlan() throws {
    let (_, example) = try chain("wibosco-example")
    let plan = try store("fw0847-wibosco-3").plan(example, target: .named("CoreDataMigration_Example 4"))
    #expect(plan.hops.count == 1)
    #expect(plan.expectation.rowsByEntity.values.reduce(0, +) == 15990)
    let (_, revised) = try chain("wibosco-revised")
    let other = try store("fw0866-wibosco-revised-3").plan(revised, target: .named("CoreDataMigration_Example 4"))
    #expect(other.expectation.rowsByEntity.values.reduce(0, +) == 26)
  }

  @Test func renamedEntityAndDroppedAttributeOfSampleModel() throws {
    let (folder, catalog) = try chain("coredataplus-samplemodel")
    let plan = try StoreCopy(of: folder.appending("source")).plan(catalog, target: .named("SampleModel2"))
    let mapping = try #require(plan.hops.first?.mapping)
    #expect(mapping.mapping(toDestination: "LuxuryCar")?.sourceEntity == "ExpensiveSportCar")
    // Rows that a rename without identifier would have lost.
    #expect(plan.expectation.rowsByEntity["LuxuryCar", default: 0] > 0)
    #expect(plan.drops.allSatisfy { $0.hop == 0 })
    #expect(plan.drops.map { "\($0.entity).\($0.property ?? "")" } == ["Car.color", "Person.id"])
    #expect(plan.drops.map(\.nonNull) == [0, 20])
  }

  @Test func everyPairOfEveryChainIsInferredOrRefusedWithReasons() throws {
    for folder in Fixtures.cases(in: "chains") {
      let catalog = try ModelCatalog.load([folder.appending("models")])
      for (source, destination) in zip(catalog.versions, catalog.versions.dropFirst()) {
        do {
          let mapping = try MappingInference.infer(from: source.model, to: destination.model)
          #expect(
            Set(mapping.entityMappings.compactMap(\.destinationEntity)) == Set(destination.model.entities.map(\.name)))
        } catch {
          #expect(!error.reasons.isEmpty)
          #expect(error.reasons.allSatisfy { $0.place.entity != nil && $0.hint != nil })
        }
      }
    }
  }
}
