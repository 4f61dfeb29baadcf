// Names of join tables and the order of order keys: computed, and compared with those that Apple's software wrote.

import FoundationEssentials
import ManagedObjectModel
import PersistentStore
import SQLite
import SystemPackage
import Testing

@Suite(.enabled(if: Fixtures.isAvailable, Fixtures.absence))
struct JoinTableRealStoreTests {
  /// A database of the fixtures with the models that may be its own.
  private struct Case {
    let database: FilePath
    let models: [ManagedObjectModel]
  }

  private static func databases(in folder: FilePath) -> [FilePath] {
    Fixtures.names(in: folder).map { folder.appending($0) }.filter { path in
      guard !Fixtures.isFolder(path), let bytes = try? Fixtures.bytes(of: path) else { return false }
      return bytes.starts(with: Array("SQLite format 3".utf8))
    }
  }

  private static func cases() throws -> [Case] {
    func models(_ folder: FilePath) throws -> [ManagedObjectModel] {
      try ModelReader.findBundles(in: folder).flatMap { try ModelReader.read(at: $0).versions }
    }
    var cases: [Case] = []
    for folder in Fixtures.cases(in: "stores") {
      cases += try databases(in: folder).map { Case(database: $0, models: try models(folder.appending("model"))) }
    }
    for folder in Fixtures.cases(in: "chains") {
      let models = try models(folder.appending("models"))
      cases += databases(in: folder.appending("source")).map { Case(database: $0, models: models) }
    }
    for folder in Fixtures.cases(in: "swiftdata") {
      cases += databases(in: folder).map { Case(database: $0, models: []) }
    }
    return cases
  }

  private func withCopy<Result>(of database: FilePath, _ body: (StoreReader) throws -> Result) throws -> Result {
    let copy = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-joins-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: copy.string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: copy.string) }
    let name = database.lastComponent?.string ?? ""
    for suffix in ["", "-wal", "-journal"] where Fixtures.exists(FilePath(database.string + suffix)) {
      try FileManager.default.copyItem(
        atPath: database.string + suffix, toPath: copy.appending(name + suffix).string)
    }
    return try StoreReader.withUnchangedStore(at: StoreLocation(database: copy.appending(name)), body)
  }

  /// Every join table of every store has the computed name, without any given names; and order keys have the computed
  /// order of columns in tables that were never altered.
  @Test func computedNamesAreTheStoredOnes() throws {
    var tables = 0
    var selves = 0
    var orders = 0
    for one in try Self.cases() {
      try withCopy(of: one.database) { reader in
        let metadata = try reader.metadata()
        let own =
          try one.models.first { model in
            let hashes = model.versionHashes
            return metadata.versionHashes.allSatisfy { hashes[$0.key] == $0.value }
          } ?? reader.cachedModel(name: "own")?.model
        let model = try #require(own, "\(one.database): no model")
        let schema = StoreSchema(model: model, frameworkVersion: metadata.frameworkVersion)
        let stored = Set(
          try reader.schemaObjects().filter { $0.type == "table" && $0.name.hasPrefix("Z_") }.map(\.name)
        ).subtracting(["Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE"])
        #expect(Set(schema.joinTables.map(\.name)) == stored, "\(one.database)")
        tables += stored.count
        selves += schema.selfJoinTables.count
        #expect(schema.uncertainJoinTables.isEmpty)
        for table in schema.tables {
          let keys = table.columns.map(\.name).filter { $0.hasPrefix("Z_FOK_") }
          guard keys.count > 1 else { continue }
          #expect(try reader.columns(of: table.name).map(\.name).filter { $0.hasPrefix("Z_FOK_") } == keys)
          orders += 1
        }
      }
    }
    print("join tables \(tables), inside one entity \(selves); tables with several order keys \(orders)")
    if Fixtures.isStandardSet {
      #expect(tables >= 6)
      #expect(selves >= 2)
      #expect(orders >= 3)
    }
  }

  /// CareKit's model of fw 1345: five pairs, all named after `previous`.
  @Test func careKitNamesItsTablesAfterPrevious() throws {
    let folder = try #require(Fixtures.root).appending("reach/carekit-carekitstore")
    guard Fixtures.isFolder(folder) else { return }
    let models = try ModelReader.findBundles(in: folder).flatMap { try ModelReader.read(at: $0).versions }
    let model = try #require(models.first { $0.name == "CareKitStore2.1" })
    let schema = StoreSchema(model: model, frameworkVersion: 1345)
    let pairs = schema.selfJoinTables
    #expect(
      Set(pairs.map(\.entity)) == [
        "OCKCDCarePlan", "OCKCDContact", "OCKCDOutcome", "OCKCDPatient", "OCKCDTaskBase",
      ])
    #expect(pairs.allSatisfy { $0.computed == "previous" && $0.doubt == nil })
    var orders = KeyOrders(model: model, numbers: schema.numbers)
    let counts = try pairs.map { orders.order(of: try #require(model.entity(named: $0.entity))).keys.count }
    #expect(counts.min() == 26 && counts.max() == 35)
  }
}
