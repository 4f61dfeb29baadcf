// A store with external binary data and one external file, migrated to versions that keep, switch off and drop the
// flag.

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
struct ExternalBinaryStoreTests {
  private static let file = "5D0E0A1C-7B3F-4E59-9C55-0A6E4B1F2D33"

  @Test(arguments: [true, false])
  func theNextVersionHoldsTheSameValues(_ keepsFlag: Bool) throws {
    let source = try #require(Fixtures.root).appending("stores/own-external-binary")
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-assets-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.appending("state").string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    let location = StoreLocation(database: folder.appending("Assets.sqlite"))
    for name in [location.fileName, ".Assets_SUPPORT"] {
      try FileManager.default.copyItem(atPath: source.appending(name).string, toPath: folder.appending(name).string)
    }
    let loaded = try ModelCatalog.load([source.appending("model")])
    let first = try #require(loaded.versions.first).model
    var asset = try #require(first.entity(named: "Asset"))
    asset.attributes.append(Attribute(name: "note", type: .string, isOptional: true))
    for index in asset.attributes.indices where asset.attributes[index].name == "payload" {
      #expect(asset.attributes[index].allowsExternalStorage)
      asset.attributes[index].allowsExternalStorage = keepsFlag
    }
    let next = ManagedObjectModel(name: "Assets 2", entities: [asset])
    let catalog = ModelCatalog(bundles: [
      ModelBundle(
        name: "Assets", path: "/Assets.xcdatamodeld", versions: [first, next], currentVersionName: "Assets 2")
    ])
    func payloads() throws -> [String] {
      try Connection.ofApp(location.database, .readOnly).rows(
        "SELECT CASE WHEN length(ZPAYLOAD) < 100 THEN hex(ZPAYLOAD) ELSE length(ZPAYLOAD) END, hex(ZRAW) FROM ZASSET "
          + "ORDER BY Z_PK"
      ) { "\($0.text(at: 0) ?? "NULL") \($0.text(at: 1) ?? "NULL")" }
    }
    func dumped(_ model: ManagedObjectModel) throws -> String {
      try StoreReader.withUnchangedStore(at: location) { reader in
        var bytes: [UInt8] = []
        let schema = StoreSchema(model: model, frameworkVersion: 1344)
        try StoreDump(reader: reader, schema: schema, external: ExternalDataDirectory(of: location)).write {
          bytes += $0
        }
        return String(decoding: bytes, as: UTF8.self)
      }
    }
    let (before, dump) = (try payloads(), try dumped(first))
    #expect(before.count == 4)
    #expect(dump.contains("6bfb631a0ede49d22f2da9c34b1db493e636bac4e829fc59dc58e536320a7317"))
    let report = try MigrationPipeline().run(
      MigrationRequest(
        location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog,
        settings: MigrationSettings(verification: .full),
        stateDirectory: folder.appending("state"),
        job: "a1"), stop: StopSignal()
    ) { _ in }
    #expect(report.result == .migrated)
    #expect(try dumped(next).replacing("\"note\":null,", with: "") == dump)
    let reference = "02" + Self.file.utf8.map { String($0, radix: 16, uppercase: true) }.joined() + "00"
    if keepsFlag {
      #expect(try payloads() == before)
      #expect(before[1].hasPrefix(reference))
    } else {
      let raw = before.map { $0.split(separator: " ", omittingEmptySubsequences: false).last ?? "" }
      let contents = ["68656C6C6F20696E6C696E65", "150000", "", ""]
      #expect(
        try payloads()
          == zip(contents, raw).enumerated().map { $0.offset == 2 ? before[2] : "\($0.element.0) \($0.element.1)" })
    }
    let files = try FileManager.default.contentsOfDirectory(atPath: location.externalDataDirectory.string)
    #expect(files == [Self.file])
  }
}
