// Stores that SwiftData made: they are recognised without options, a folder of them is a list of versions, and each is
// migrated along its chain without options.

import Diagnostics
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
struct SwiftDataRealStoreTests {
  private final class Room {
    let path: FilePath
    /// The stores, by app.
    let stores: [FilePath]

    init() throws {
      path = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-swiftdata-\(UUID().uuidString)")
      let models = path.appending("models")
      try FileManager.default.createDirectory(atPath: path.appending("state").string, withIntermediateDirectories: true)
      var stores: [FilePath] = []
      for app in Fixtures.cases(in: "swiftdata") {
        let folder = models.appending(app.lastComponent?.string ?? "")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        for name in Fixtures.names(in: app) {
          let copy = folder.appending(name)
          try Data(Fixtures.bytes(of: app.appending(name))).write(to: URL(filePath: copy.string))
          if name.hasSuffix(".sqlite") || name.hasSuffix(".store") { stores.append(copy) }
        }
      }
      self.stores = stores
    }

    deinit { try? FileManager.default.removeItem(atPath: path.string) }

    var models: FilePath { path.appending("models") }

    /// Returns names and content of all files in the stores' folders.
    func snapshot() throws -> [String: Data] {
      var found: [String: Data] = [:]
      for folder in try FileManager.default.contentsOfDirectory(atPath: models.string) {
        for name in try FileManager.default.contentsOfDirectory(atPath: models.appending(folder).string) {
          found["\(folder)/\(name)"] = try Data(
            contentsOf: URL(filePath: models.appending(folder).appending(name).string))
        }
      }
      return found
    }
  }

  @Test func aFolderOfStoresIsAListOfVersions() throws {
    let room = try Room()
    #expect(room.stores.count >= 3)
    let before = try room.snapshot()
    let catalog = try ModelCatalog.load([room.models])
    let app = try #require(catalog.bundles.first { $0.versions.contains { $0.entities.map(\.name) == ["User"] } })
    #expect(app.versions.map(\.name) == ["1.0.0", "2.0.0"] && app.currentVersionName == "2.0.0")
    #expect(try room.snapshot() == before)
    // Version identifiers decide, whatever the names and the order of the stores.
    let freezeray = room.models.appending("freezeray")
    let folder = room.path.appending("named")
    try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
    for (name, old) in [
      ("b.store", "App-1.0.0.sqlite"), ("a.store", "App-2.0.0.sqlite"), ("z.store", "App-2.0.0.sqlite"),
    ] {
      try FileManager.default.copyItem(
        atPath: freezeray.appending(old).string, toPath: folder.appending(name).string)
    }
    #expect(try ModelCatalog.load([folder]).bundles.map { $0.versions.map(\.name) } == [["1.0.0", "2.0.0"]])
    #expect(
      try ModelCatalog.load([folder.appending("a.store"), folder.appending("b.store")]).bundles
        .map { $0.versions.map(\.name) } == [["1.0.0", "2.0.0"]])
  }

  @Test func everyStoreIsReportedAndGoesAlongItsChainWithoutAnOption() throws {
    let room = try Room()
    let catalog = try ModelCatalog.load([room.models])
    var migrated = 0
    for (number, store) in room.stores.enumerated() {
      let location = StoreLocation(database: room.path.appending("store\(number).store"))
      for suffix in ["", "-wal"] where Fixtures.exists(FilePath(store.string + suffix)) {
        try FileManager.default.copyItem(
          atPath: store.string + suffix, toPath: location.database.string + suffix)
      }
      let found = try StoreIdentifier.identify(location, catalog: catalog, target: .current)
      #expect(found.state == .current || found.state == .behind, "\(store): \(String(describing: found.explanation))")
      #expect(try StoreReader.withUnchangedStore(at: location) { try StoreModels.isSwiftData($0) }, "\(store)")
      guard found.state == .behind else { continue }
      let request = MigrationRequest(
        location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog,
        settings: MigrationSettings(verification: .full),
        stateDirectory: room.path.appending("state"), job: "cd1\(number)")
      let report = try MigrationPipeline().run(request, stop: StopSignal(), observer: { _ in })
      #expect(report.result == .migrated, "\(store)")
      #expect(try StoreIdentifier.identify(location, catalog: catalog, target: .current).state == .current)
      #expect(try StoreReader.withUnchangedStore(at: location) { try StoreModels.isSwiftData($0) }, "\(store)")
      migrated += 1
    }
    #expect(migrated >= 1)
  }

  /// A store with a save: its history is carried, with the mark.
  @Test func historyOfASaveGoesAlong() throws {
    let room = try Room()
    let catalog = try ModelCatalog.load([room.models.appending("freezeray")])
    let location = StoreLocation(database: room.models.appending("freezeray/App-1.0.0.sqlite"))
    try Connection.ofApp(location.database).execute(
      """
      INSERT INTO ZUSER (Z_PK, Z_ENT, Z_OPT, ZCREATEDAT, ZNAME) VALUES (1, 1, 2, 5.0, 'a');
      UPDATE Z_PRIMARYKEY SET Z_MAX = 1;
      INSERT INTO Z_PRIMARYKEY VALUES (16001, 'CHANGE', 0, 2), (16002, 'TRANSACTION', 0, 2),
        (16003, 'TRANSACTIONSTRING', 0, 1);
      INSERT INTO ATRANSACTIONSTRING VALUES (1, 16003, NULL, 'App');
      INSERT INTO ATRANSACTION (Z_PK, Z_ENT, ZPROCESSIDTS, ZTIMESTAMP) VALUES (1, 16002, 1, 5.0), (2, 16002, 1, 6.0);
      INSERT INTO ACHANGE (Z_PK, Z_ENT, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZTRANSACTIONID, ZCOLUMNS)
        VALUES (1, 16001, 0, 1, 1, 1, NULL), (2, 16001, 1, 1, 1, 2, X'40');
      """)
    let request = MigrationRequest(
      location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog,
      settings: MigrationSettings(verification: .full),
      stateDirectory: room.path.appending("state"), job: "cd20")
    let report = try MigrationPipeline().run(request, stop: StopSignal(), observer: { _ in })
    #expect(report.result == .migrated && report.clearedHistory.isEmpty)
    try StoreReader.withUnchangedStore(at: location) { reader in
      // createdAt, name became createdAt, email, name: the second of two bits is the third of three.
      let columns = try reader.connection.rows("SELECT hex(ZCOLUMNS) FROM ACHANGE ORDER BY Z_PK") { $0.text(at: 0) }
      #expect(columns == ["", "20"])
      let marks = try reader.primaryKeys().filter(\.isReserved).map(\.highWaterMark)
      #expect(marks == [2, 3, 3])
      let author = try reader.connection.text(
        "SELECT ZNAME FROM ATRANSACTION AS t JOIN ATRANSACTIONSTRING AS s ON s.Z_PK = ZAUTHORTS WHERE t.Z_PK = 3")
      #expect(author?.hasPrefix("com.apple.coredata.schemamigrator: lightweight migration") == true)
    }
  }
}
