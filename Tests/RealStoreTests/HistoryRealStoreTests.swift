// Persistent history of stores that Apple's software made: the texts are those of `HistoryLayout`, and a migration
// keeps the tables, drops the rows, and continues the counters.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import MigrationPipeline
import MigrationPlanning
import OtherPrograms
import PersistentStore
import PropertyLists
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage
import Testing

@Suite(.enabled(if: Fixtures.isAvailable, Fixtures.absence))
struct HistoryRealStoreTests {
  private func database(_ name: String) throws -> FilePath {
    let folder = try #require(Fixtures.root).appending("stores/\(name)")
    return folder.appending(try #require(Fixtures.names(in: folder).first { $0.hasSuffix(".sqlite") }))
  }

  @Test func theKnownTextsAreThoseOfEveryStoreWithHistory() throws {
    var seen = 0
    for folder in Fixtures.cases(in: "stores") {
      guard let name = Fixtures.names(in: folder).first(where: { $0.hasSuffix(".sqlite") }) else { continue }
      let location = StoreLocation(database: folder.appending(name))
      // The folder is never written: other tests read stores with a log from a copy.
      guard !Fixtures.exists(location.writeAheadLog) else { continue }
      try StoreReader.withUnchangedStore(at: location) { reader in
        let found = try HistoryLayout.read(from: reader)
        #expect(found.errors.isEmpty && found.warnings.isEmpty, "\(name)")
        guard let layout = found.layout else { return }
        seen += 1
        let version = try reader.metadata().frameworkVersion
        #expect(layout.asMade(byFramework: version) == layout, "\(name)")
        #expect(layout.tables.count == 3 && layout.indexes.count == 8)
      }
    }
    #expect(seen >= 2)
  }

  /// Returns the model without derived attributes: these tests are about history only.
  private func plain(_ model: ManagedObjectModel, name: String) -> ManagedObjectModel {
    ManagedObjectModel(
      name: name,
      entities: model.entities.map { entity in
        Entity(
          name: entity.name, parentName: entity.parentName, isAbstract: entity.isAbstract,
          renamingIdentifier: entity.renamingIdentifier,
          attributes: entity.attributes.filter { $0.name != "pagesCount" }.map { attribute in
            // In the app a mapping model carries this one, which is required; here its renaming can be inferred.
            var attribute = attribute
            if attribute.name == "frontCover" { attribute.renamingIdentifier = "cover" }
            return attribute
          }, relationships: entity.relationships,
          uniquenessConstraints: entity.uniquenessConstraints)
      })
  }

  @Test func appleHistoryIsClearedAndItsNumbersGoOn() throws {
    let root = try #require(Fixtures.root).appending("stores")
    let models = try ["fw1344-samplemodel2-1", "fw1344-samplemodel2-2"].map { name in
      try #require(try ModelCatalog.load([root.appending(name).appending("model")]).versions.first).model
    }
    let versions = [plain(models[0], name: "V1"), plain(models[1], name: "V2")]
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-history-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.appending("state").string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    let location = StoreLocation(database: folder.appending("a.sqlite"))
    try Data(Fixtures.bytes(of: database("fw1344-samplemodel2-1"))).write(to: URL(filePath: location.database.string))
    do {
      // The same store without derived attributes, as one of the plain model.
      let connection = try Connection.ofApp(location.database)
      let reader = StoreReader(connection: connection)
      for trigger in try reader.schemaObjects() where trigger.type == "trigger" {
        try connection.execute("DROP TRIGGER \(trigger.name)")
      }
      try connection.execute("ALTER TABLE ZBOOK DROP COLUMN ZPAGESCOUNT")
      let metadata = try reader.metadata().migrated(to: versions[0])
      try connection.run(
        "UPDATE Z_METADATA SET Z_PLIST = ?", [.blob(PropertyList.encodeBinary(.dictionary(metadata.entries)))])
    }
    let catalog = ModelCatalog(bundles: [
      ModelBundle(name: "S", path: "/models/S.xcdatamodeld", versions: versions, currentVersionName: "V2")
    ])
    func objects() throws -> [String] {
      try StoreReader.withUnchangedStore(at: location) { reader in
        try reader.schemaObjects().filter { $0.table.hasPrefix("A") }.compactMap(\.sql)
      }
    }
    let before = try objects()
    var request = MigrationRequest(
      location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog,
      settings: MigrationSettings(history: .refuse, verification: .full),
      stateDirectory: folder.appending("state"), job: "ab12")
    let bytes = try Fixtures.bytes(of: location.database)
    let refused = #expect(throws: MigrationFailure.self) {
      try MigrationPipeline().run(request, stop: StopSignal(), observer: { _ in })
    }
    #expect(refused?.error.code == .historyNotSupported)
    #expect(try Fixtures.bytes(of: location.database) == bytes)

    request.history = .clear
    var reported: [HopdError] = []
    let report = try MigrationPipeline().run(request, stop: StopSignal()) { event in
      if case .planned(let plan) = event { reported = plan.warnings }
    }
    #expect(report.result == .migrated)
    #expect(report.clearedHistory.map(\.rows) == [5468, 1, 2])
    #expect(reported.contains { $0.code == .historyCleared })
    #expect(report.checks.contains { $0.name == "history" && $0.passed })
    // The texts are exactly Apple's, in Apple's order.
    #expect(try objects() == before)
    try StoreReader.withUnchangedStore(at: location) { reader in
      for table in ["ACHANGE", "ATRANSACTION", "ATRANSACTIONSTRING"] {
        #expect(try reader.connection.integer("SELECT count(*) FROM \(table)") == 0)
      }
      let numbers = try reader.primaryKeys().filter(\.isReserved)
      #expect(numbers.map(\.name) == ["CHANGE", "TRANSACTION", "TRANSACTIONSTRING"])
      #expect(numbers.map(\.highWaterMark) == [5468, 1, 2])
      #expect(try reader.connection.integer("SELECT count(*) FROM ZPAGE") == 4970)
    }
    let after = try Fixtures.bytes(of: location.database)
    #expect(try MigrationPipeline().run(request, stop: StopSignal(), observer: { _ in }).result == .current)
    #expect(try Fixtures.bytes(of: location.database) == after)
  }
  /// Stores that SwiftData made and that have no saves: the tables of history exist, but not yet their numbers.
  @Test func aFreshStoreOfSwiftDataIsAnOrdinaryOne() throws {
    let source = try #require(Fixtures.root).appending("swiftdata/freezeray")
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-fresh-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.appending("state").string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    for name in ["App-1.0.0.sqlite", "App-2.0.0.sqlite"] {
      try Data(Fixtures.bytes(of: source.appending(name))).write(to: URL(filePath: folder.appending(name).string))
    }
    let newer = try #require(try StoreModels.bundle(ofStoreAt: folder.appending("App-2.0.0.sqlite")).versions.first)
    let older = try #require(try StoreModels.bundle(ofStoreAt: folder.appending("App-1.0.0.sqlite")).versions.first)
    let catalog = ModelCatalog(bundles: [
      ModelBundle(name: "App", path: "/models/App.momd", versions: [older, newer], currentVersionName: newer.name)
    ])
    let location = StoreLocation(database: folder.appending("App-1.0.0.sqlite"))
    for mode in [ReplacementMode.rename, .inPlace] {
      try Data(Fixtures.bytes(of: source.appending("App-1.0.0.sqlite"))).write(
        to: URL(filePath: location.database.string))
      var request = MigrationRequest(
        location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog,
        settings: MigrationSettings(verification: .full),
        stateDirectory: folder.appending("state"),
        job: mode == .rename ? "ab13" : "ab14")
      request.replacement = mode
      let report = try MigrationPipeline().run(request, stop: StopSignal(), observer: { _ in })
      #expect(report.result == .migrated && report.checks.contains { $0.name == "history" && $0.passed })
      try StoreReader.withUnchangedStore(at: location) { reader in
        let (numbers, history) = (try reader.primaryKeys(), try HistoryLayout.read(from: reader).layout)
        let (metadata, columns) = (try reader.metadata(), try reader.columns(of: "ZUSER"))
        #expect(numbers.allSatisfy { !$0.isReserved } && history?.tables.count == 3)
        #expect(metadata.versionHashes == newer.versionHashes && columns.contains { $0.name == "ZEMAIL" })
      }
    }
  }

  /// The verifier's rules for indexes and references hold for stores that Apple's software made and used.
  @Test func everyRealStoreHasTheIndexesOfItsModel() throws {
    var seen = 0
    var missing: [String] = []
    for folder in Fixtures.cases(in: "stores") {
      guard let name = Fixtures.names(in: folder).first(where: { $0.hasSuffix(".sqlite") }) else { continue }
      let location = StoreLocation(database: folder.appending(name))
      guard !Fixtures.exists(location.writeAheadLog),
        let catalog = try? ModelCatalog.load([folder.appending("model")])
      else { continue }
      try StoreReader.withUnchangedStore(at: location) { reader in
        let hashes = try reader.metadata().versionHashes
        guard let version = catalog.versions.first(where: { $0.model.versionHashes == hashes }) else { return }
        let framework = try reader.metadata().frameworkVersion
        let schema = StoreSchema(
          model: version.model, frameworkVersion: framework,
          naming: try reader.joinTableNaming(for: version.model, frameworkVersion: framework))
        seen += 1
        let checks = try StoreVerifier(depth: .quick).checks(of: reader, schema: schema, isExact: false)
        for check in checks where !check.passed && ["indexes", "relationships"].contains(check.name) {
          missing.append("\(folder.lastComponent?.string ?? ""): \(check.name): \(check.detail)")
        }
      }
    }
    #expect(seen >= 10)
    #expect(missing.isEmpty, "\(missing.joined(separator: "\n"))")
  }
}
