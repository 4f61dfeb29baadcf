// Filtered counts through a whole migration: names, numbers and the condition change, and the triggers go on counting.

import FoundationEssentials
import MigrationPipeline
import MigrationPlanning
import OtherPrograms
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage
import Testing

@testable import ManagedObjectModel

@Suite struct FilteredCountHopTests {
  private func version(_ person: String, _ condition: String?, extra: [Entity] = []) -> [Entity] {
    let userInfo = condition.map { ["NSTriggerKey": $0] } ?? [:]
    return [
      Entity(
        name: "Face",
        attributes: [
          Attribute(name: "hidden", type: .boolean, isOptional: true),
          Attribute(name: "size", type: .integer32, isOptional: true),
        ],
        relationships: [Relationship(name: "person", destinationEntityName: person, inverseName: "faces")]),
      Entity(
        name: person, renamingIdentifier: "Person",
        attributes: [Attribute(name: "n", type: .integer32, isOptional: true, userInfo: userInfo)],
        relationships: [
          Relationship(name: "faces", destinationEntityName: "Face", inverseName: "person", isToMany: true)
        ]),
    ] + extra
  }

  private func migrate(_ versions: [[Entity]], inspect: (Connection) throws -> Void) throws {
    let models = versions.enumerated().map { ManagedObjectModel(name: "V\($0.offset + 1)", entities: $0.element) }
    let catalog = ModelCatalog(bundles: [
      ModelBundle(
        name: "World", path: "/World.xcdatamodeld", versions: models, currentVersionName: "V\(models.count)")
    ])
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-filtered-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.appending("state").string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    let store = folder.appending("store.sqlite")
    let schema = StoreSchema(model: models[0], frameworkVersion: 1344)
    try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: 9)).make(at: store, rows: 300, seed: 9)
    let request = MigrationRequest(
      location: CanonicalStoreLocation(unresolved: store), catalog: catalog,
      settings: MigrationSettings(verification: .full), stateDirectory: folder.appending("state"), job: "01")
    let report = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
    #expect(report.result == .migrated)
    try inspect(Connection.ofApp(store))
  }

  private let condition = "(faces.hidden == NO)"

  /// Whether the first version has the count or not, and whether hops rewrite rows or could alter a copy.
  @Test(arguments: [true, false])
  func countsFollowNamesAndConditions(_ wasCounted: Bool) throws {
    try migrate([
      version("Person", wasCounted ? condition : nil), version("Person", condition, extra: [Entity(name: "Album")]),
      version("Human", "(faces.hidden == NO) && (faces.size != 0)", extra: [Entity(name: "Album")]),
    ]) { (connection: Connection) throws -> Void in
      let wrong = """
        SELECT count(*) FROM ZHUMAN p WHERE ZN IS NOT
          (SELECT count(*) FROM ZFACE WHERE ZPERSON = p.Z_PK AND ZHIDDEN = 0 AND ZSIZE <> 0)
        """
      #expect(try connection.integer(wrong) == 0)
      #expect(try connection.integer("SELECT sum(ZN) > 5 FROM ZHUMAN") == 1)
      #expect(try connection.integer("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'") == 7)
      try SchemaTrigger.registerFunctions(on: connection)
      // Core Data's triggers compare with !=, so they do not count a value that follows nil.
      try connection.execute("UPDATE ZFACE SET ZHIDDEN = 0, ZSIZE = 4 WHERE ZHIDDEN + ZSIZE IS NOT NULL")
      try connection.execute("DELETE FROM ZFACE WHERE Z_PK % 3 = 0")
      #expect(try connection.integer(wrong) == 0)
    }
  }

  /// Without the key the attribute keeps its values, and the triggers stay behind.
  @Test func aCountThatBecomesAPlainValueStays() throws {
    try migrate([version("Person", condition), version("Person", nil, extra: [Entity(name: "Album")])]) {
      (connection: Connection) throws -> Void in
      #expect(
        try connection.integer(
          "SELECT count(*) FROM ZPERSON p WHERE ZN IS NOT"
            + " (SELECT count(*) FROM ZFACE WHERE ZPERSON = p.Z_PK AND ZHIDDEN = 0)") == 0)
      #expect(try connection.integer("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'") == 0)
    }
  }
}
