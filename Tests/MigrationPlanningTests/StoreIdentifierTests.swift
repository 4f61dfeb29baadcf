import BlockingTests
import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import PersistentStore
import SQLite
import SystemPackage
import Testing

@testable import MigrationPlanning

@Suite(.blocking) struct StoreIdentifierTests {
  private let library = catalog(
    [entity("Book", [attribute("title")])], [entity("Book", [attribute("title"), attribute("isbn")])],
    [entity("Book", [attribute("title")]), entity("Author")])

  @Test func everyVersionAgainstEveryTarget() throws {
    for (position, version) in library.versions.enumerated() {
      let store = try SmallStore(
        version.model, "INSERT INTO ZBOOK (Z_PK, Z_ENT, Z_OPT) VALUES (1, \(position == 2 ? 2 : 1), 1)")
      for (wanted, target) in library.versions.enumerated() {
        let found = try store.identify(library, .named(target.model.name))
        #expect(found.version?.model.name == version.model.name)
        #expect(found.target?.model.name == target.model.name)
        #expect(found.state == (position < wanted ? .behind : position == wanted ? .current : .newer))
        #expect((found.explanation?.code == .storeNewer) == (position > wanted))
        #expect(found.entities.first { $0.name == "Book" }?.rows == 1)
      }
    }
  }

  @Test func filesThatAreNoStores() throws {
    let store = try SmallStore(try library.model("V1"))
    func write(_ bytes: [UInt8]) throws {
      try Data(bytes).write(to: URL(filePath: store.location.database.string))
    }
    try store.execute("DROP TABLE Z_PRIMARYKEY")
    #expect(try store.identify(library).state == .damaged)
    try store.execute("DROP TABLE Z_METADATA")
    #expect(try store.identify(library).state == .notAStore)
    try write([])
    #expect(try store.identify(library).state == .notAStore)
    try write(Array("hello, world".utf8))
    let text = try store.identify(library)
    #expect(text.state == .notAStore)
    #expect(text.explanation?.code == .notAStore)
    try write((0..<4096).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ $0 / 256 &* 59) })
    #expect(try store.identify(library).state == .encrypted)
    try write(Array("SQLite format 3\0".utf8))
    #expect(try store.identify(library).state == .damaged)
    try FileManager.default.removeItem(atPath: store.location.database.string)
    #expect(#expect(throws: HopdError.self) { try store.identify(library) }?.code == .notFound)
  }

  @Test func anUnknownStoreIsComparedWithTheNearestVersion() throws {
    let other = ManagedObjectModel(
      name: "Edited",
      entities: [entity("Book", [attribute("title")]), entity("Author", [attribute("name")]), entity("Shelf")])
    let store = try SmallStore(other, "INSERT INTO ZSHELF (Z_PK, Z_ENT, Z_OPT) VALUES (1, 3, 1), (2, 3, 1)")
    let found = try store.identify(library)
    #expect(found.state == .unknown)
    #expect(found.explanation?.message.contains("closest is V3") == true)
    #expect(found.explanation?.reasons.map(\.place.entity) == ["Author", "Shelf"])
    #expect(found.entities.first { $0.name == "Shelf" }?.rows == 2)
    #expect(found.identified == nil)
  }

  @Test func twoModelsOfOneVersionAreAmbiguous() throws {
    let versions = [[entity("Book", [attribute("title")])]]
    let both = ModelCatalog(bundles: [bundle(versions, name: "One"), bundle(versions, name: "Two")])
    let store = try SmallStore(try both.model("V1"))
    let error = #expect(throws: HopdError.self) { try store.identify(both) }
    #expect(error?.code == .ambiguousModel)
    #expect(error?.message.contains("One.xcdatamodeld") == true && error?.message.contains("Two.xcdatamodeld") == true)
  }

  @Test func versionsThatDifferInDefaultsOnlyAreNotAmbiguous() throws {
    let catalog = catalog(
      [entity("E", [attribute("n", .integer16, value: .integer(1))])],
      [entity("E", [attribute("n", .integer16, value: .integer(2))])],
      [entity("E", [attribute("n", .integer16), attribute("m")])])
    let store = try SmallStore(try catalog.model("V1"))
    #expect(try store.identify(catalog).version?.model.name == "V2")
    #expect(try store.identify(catalog, .named("V1")).version?.model.name == "V1")
    #expect(try store.identify(catalog, .named("V1")).state == .current)
    #expect(try store.plan(catalog).hops.count == 1)
  }

  @Test func targetsThatAreNotThere() throws {
    let store = try SmallStore(try library.model("V1"))
    let missing = #expect(throws: HopdError.self) { try store.identify(library, .named("V9")) }
    #expect(missing?.code == .noSuchVersion)
    #expect(missing?.hint?.contains("V1, V2, V3") == true)
    let unmarked = ModelCatalog(bundles: [
      ModelBundle(
        name: "M", path: "/m.xcdatamodeld", versions: library.versions.map(\.model), currentVersionName: nil)
    ])
    #expect(#expect(throws: HopdError.self) { try store.identify(unmarked) }?.code == .noCurrentVersion)
    #expect(try store.identify(unmarked, .named("V2")).state == .behind)
  }
}
