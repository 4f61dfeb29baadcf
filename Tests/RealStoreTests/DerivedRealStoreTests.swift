// Derived attributes in stores that Apple's software made: the triggers' texts, their values, and a hop.

import FoundationEssentials
import ManagedObjectModel
import MigrationPipeline
import MigrationPlanning
import OtherPrograms
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage
import Testing

@Suite(.enabled(if: Fixtures.isAvailable, Fixtures.absence))
struct DerivedRealStoreTests {
  private static let stores = [
    ("fw1344-samplemodel2-1", Int64(1344)), ("fw1344-samplemodel2-2", 1344), ("fw1044-samplemodel2-2021", 1044),
  ]

  /// Passes a copy of a store in its own folder, and the version of its model.
  private func withCopy(_ name: String, _ body: (FilePath, StoreLocation, ManagedObjectModel) throws -> Void) throws {
    let source = try #require(Fixtures.root).appending("stores/\(name)")
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-real-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.appending("state").string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    let file = try #require(Fixtures.names(in: source).first { $0.hasSuffix(".sqlite") })
    try FileManager.default.copyItem(
      atPath: source.appending(file).string, toPath: folder.appending(file).string)
    let bundle = try #require(try ModelReader.findBundles(in: source.appending("model")).first)
    let model = try #require(try ModelReader.read(at: bundle).versions.first)
    try body(folder, StoreLocation(database: folder.appending(file)), model)
  }

  @Test(arguments: stores)
  func triggersAreApplesByteForByte(_ name: String, _ framework: Int64) throws {
    try withCopy(name) { _, location, model in
      let schema = StoreSchema(model: model, frameworkVersion: framework)
      try StoreReader.withUnchangedStore(at: location) { reader in
        let real = try reader.schemaObjects().filter { $0.type == "trigger" }
        #expect(real.map(\.name) == schema.triggers.map(\.name))
        #expect(real.map { Array(($0.sql ?? "").utf8) } == schema.triggers.map { Array($0.text.utf8) })
        #expect(real.map(\.table) == schema.triggers.map(\.table))
        let checks = try StoreVerifier(depth: .quick).checks(of: reader, schema: schema, isExact: false)
        #expect(checks.first { $0.name == "derived-counts" }?.passed == true, "\(checks)")
      }
    }
  }

  /// A hop that renames the counted entity and shifts every number; two of the stores have history too.
  @Test(arguments: stores)
  func countsOfRealStoresFollowARename(_ name: String, _ framework: Int64) throws {
    try withCopy(name) { folder, location, model in
      let sum = try StoreReader.withUnchangedStore(at: location) {
        try $0.connection.integer("SELECT sum(ZPAGESCOUNT) FROM ZBOOK") ?? 0
      }
      #expect(sum > 100)
      var entities = model.entities.map { entity in
        var copy = entity
        if copy.name == "Book" { copy.name = "Volume" }
        if copy.parentName == "Book" { copy.parentName = "Volume" }
        copy.relationships = copy.relationships.map { relationship in
          var relationship = relationship
          if relationship.destinationEntityName == "Book" { relationship.destinationEntityName = "Volume" }
          return relationship
        }
        return copy
      }
      entities.append(Entity(name: "Almanac"))
      let next = ManagedObjectModel(name: "Next", entities: entities)
      let catalog = ModelCatalog(bundles: [
        ModelBundle(
          name: "Sample", path: "/Sample.xcdatamodeld", versions: [model, next], currentVersionName: "Next")
      ])
      let request = MigrationRequest(
        location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog,
        settings: MigrationSettings(verification: .full),
        stateDirectory: folder.appending("state"), job: "01")
      let report = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
      #expect(report.result == .migrated)
      let result = try Connection.ofApp(location.database)
      #expect(try result.integer("SELECT sum(ZPAGESCOUNT) FROM ZVOLUME") == sum)
      try SchemaTrigger.registerFunctions(on: result)
      let owner = try #require(try result.integer("SELECT min(Z_PK) FROM ZVOLUME"))
      let old = try result.integer("SELECT ZPAGESCOUNT FROM ZVOLUME WHERE Z_PK = \(owner)") ?? -1
      let schema = StoreSchema(model: next, frameworkVersion: framework)
      let derivation = try #require(schema.derivations.first)
      guard case .count(_, let key) = derivation.kind else { return }
      try result.execute(
        "INSERT INTO ZPAGE (Z_PK, Z_ENT, Z_OPT, ZNUMBER, \(key)) VALUES (99999, \(schema.number(of: "Page") ?? 0), "
          + "1, -1, \(owner))"
      )
      #expect(try result.integer("SELECT ZPAGESCOUNT FROM ZVOLUME WHERE Z_PK = \(owner)") == old + 1)
      try result.execute("DELETE FROM ZPAGE WHERE Z_PK = 99999")
      #expect(try result.integer("SELECT ZPAGESCOUNT FROM ZVOLUME WHERE Z_PK = \(owner)") == old)
    }
  }

  /// A hop that renames an entity and an attribute under values of targets, and shifts every number.
  @Test(.enabled(if: Fixtures.exists(chat), "no store with values of targets beside the fixtures"))
  func valuesOfARealStoreFollowARename() throws {
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-real-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.appending("state").string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    let location = StoreLocation(database: folder.appending("ChatModel.sqlite"))
    try FileManager.default.copyItem(atPath: Self.chat.string, toPath: location.database.string)
    let own = try StoreReader.withUnchangedStore(at: location) { try $0.cachedModel(name: "own")?.model }
    let model = try #require(own)
    var entities = model.entities.map { entity in
      var copy = entity
      if copy.name == "ManagedChat" { copy.name = "Talk" }
      copy.relationships = copy.relationships.map { relationship in
        var relationship = relationship
        if relationship.destinationEntityName == "ManagedChat" { relationship.destinationEntityName = "Talk" }
        return relationship
      }
      copy.attributes = copy.attributes.map { attribute in
        var attribute = attribute
        if entity.name == "ManagedAccount", attribute.name == "serverId" { attribute.name = "key" }
        if attribute.derivationExpression == "otherAccount.serverId" {
          attribute.derivationExpression = "otherAccount.key"
        }
        return attribute
      }
      return copy
    }
    entities.append(Entity(name: "Almanac"))
    let next = ManagedObjectModel(name: "Next", entities: entities)
    let question = "SELECT group_concat(v) FROM (SELECT ZOTHERACCOUNTID || ZAVATARURL || total(ZLASTACTIVITYDATE) AS v"
    let before = try Connection.ofApp(location.database).text("\(question) FROM ZMANAGEDCHAT GROUP BY Z_PK)")
    let request = MigrationRequest(
      location: CanonicalStoreLocation(unresolved: location.database),
      catalog: ModelCatalog(bundles: [
        ModelBundle(name: "Chat", path: "/Chat.xcdatamodeld", versions: [model, next], currentVersionName: "Next")
      ]), settings: MigrationSettings(verification: .full), stateDirectory: folder.appending("state"), job: "01")
    #expect(try MigrationPipeline().run(request, stop: StopSignal()) { _ in }.result == .migrated)
    let result = try Connection.ofApp(location.database)
    #expect(try result.text("\(question) FROM ZTALK GROUP BY Z_PK)") == before && before != nil)
    try SchemaTrigger.registerFunctions(on: result)
    try result.execute("UPDATE ZTALK SET ZSERVERID = 'new' || Z_PK; UPDATE ZMANAGEDACCOUNT SET ZKEY = 'other' || Z_PK")
    #expect(
      try result.integer("SELECT total(ZCHATID IS NOT 'new' || ZCHAT) FROM ZMANAGEDEVENTBASE WHERE ZCHAT NOT NULL") == 0
    )
    #expect(try result.integer("SELECT total(ZOTHERACCOUNTID IS NOT 'other' || ZOTHERACCOUNT) FROM ZTALK") == 0)
  }

  private static let chat =
    Fixtures.root?.appending("apple/derived-keypath-fw1340/ChatModel.sqlite") ?? FilePath("/nonexistent")
}
