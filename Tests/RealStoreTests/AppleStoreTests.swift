// Stores that Apple's own apps and other apps made, read with the model that each of them holds. They are beside the
// fixtures, or the test is skipped.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import PersistentStore
import PropertyLists
import SQLite
import StoreVerification
import SystemPackage
import Testing

@Suite(.enabled(if: AppleStores.isAvailable, "no stores of Apple's apps beside the fixtures"))
struct AppleStoreTests {
  /// Runs the body with a copy of a store and the model in it.
  func withCopy<Result>(
    of path: FilePath, _ body: (StoreReader, ManagedObjectModel, Int64) throws -> Result
  ) throws -> Result {
    let copy = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-apple-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: copy.string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: copy.string) }
    for suffix in ["", "-wal"] where Fixtures.exists(FilePath(path.string + suffix)) {
      try FileManager.default.copyItem(
        atPath: path.string + suffix, toPath: copy.appending("store" + suffix).string)
    }
    return try StoreReader.withUnchangedStore(at: StoreLocation(database: copy.appending("store"))) { reader in
      let model = try #require(try reader.cachedModel(name: "own")?.model, "\(path): no model")
      return try body(reader, model, try reader.metadata().frameworkVersion)
    }
  }

  /// The model of the store is read, its hashes are the store's, every check passes, and a dump lacks nothing.
  @Test(arguments: AppleStores.paths)
  func everyStoreIsRead(path: FilePath) throws {
    try withCopy(of: path) { reader, model, framework in
      #expect(try reader.metadata().versionHashes == model.versionHashes)
      let schema = try reader.layout(of: model, frameworkVersion: framework)
      let checks = try StoreVerifier(depth: .quick).checks(of: reader, schema: schema, isExact: false)
      for check in checks where !check.passed {
        Issue.record("\(path.lastComponent?.string ?? ""): \(check.name): \(check.detail)")
      }
      let written = try StoreDump(reader: reader, schema: schema).write { _ in }
      #expect(written.leftOut.isEmpty, "\(written.leftOut)")
    }
  }

  /// The name of every join table is computed, and no index is predicted that the store has not.
  @Test(arguments: AppleStores.paths)
  func namesAndIndexesAreTheComputedOnes(path: FilePath) throws {
    try withCopy(of: path) { reader, model, framework in
      let schema = StoreSchema(model: model, frameworkVersion: framework)
      let objects = try reader.schemaObjects()
      let tables = Set(objects.filter { $0.type == "table" }.map(\.name))
      for join in schema.joinTables { #expect(tables.contains(join.name), "\(join.name)") }
      #expect(try reader.layout(of: model, frameworkVersion: framework).unexpectedJoinTables.isEmpty)
      let texts = Dictionary(objects.map { ($0.name, $0.sql) }, uniquingKeysWith: { first, _ in first })
      for index in schema.indexes where !schema.joinTables.contains(where: { $0.name == index.table }) {
        #expect(texts[index.name] == index.createStatement, "\(path.lastComponent?.string ?? "")")
      }
    }
  }

  /// The model of the store is archived as Apple's software archived it: partial indexes, indexes over the object and
  /// its entity, descending elements, paths of two keys.
  @Test(arguments: AppleStores.paths)
  func modelsAreArchivedAsTheyWere(path: FilePath) throws {
    try withCopy(of: path) { reader, model, _ in
      let content = try ModelCache.decompress(try #require(try reader.modelCacheContent()))
      let source = ManagedObjectModel(
        name: model.name, versionIdentifiers: model.versionIdentifiers, entities: model.entities,
        configurations: model.configurations, composites: model.composites)
      // The list of a store's own copy has every index; as up to fw 973, no second one follows from a flag.
      let archived = try #require(ArchiveGraph(PropertyList.decode(source.archived(frameworkVersion: 973))))
      let real = try #require(ArchiveGraph(PropertyList.decode(content)))
      // The oldest has a list in a user info, which only a model built in code can have.
      let differences = archived.differences(from: real).filter { difference in
        !["/boundedByRect.NSUserInfo: ", "/boundedByRect._P: "].contains { difference.contains($0) }
      }
      #expect(differences.isEmpty, "\(path.lastComponent?.string ?? ""): \(differences.prefix(20))")
    }
  }

  /// The R-Tree of Photos' locations has the text that the layout explains, and `verify` does not call it unknown.
  @Test(arguments: AppleStores.paths)
  func locationsAreExplained(path: FilePath) throws {
    try withCopy(of: path) { reader, model, framework in
      let schema = try reader.layout(of: model, frameworkVersion: framework)
      let texts = try reader.schemaObjects().compactMap(\.sql)
      #expect(schema.locations.allSatisfy { texts.contains($0.createStatement) })
      let checks = try StoreVerifier(depth: .quick).checks(of: reader, schema: schema, isExact: false)
      let unchecked = checks.first { $0.name == "not-checked" }?.detail ?? ""
      for location in schema.locations { #expect(!unchecked.contains(location.name), "\(unchecked)") }
      let name = path.lastComponent?.string ?? ""
      if ["Photos-15.4.1.sqlite", "Photos-26.1.sqlite"].contains(name) {
        #expect(schema.locations.map(\.name) == ["Z_RT_Asset_boundedByRect"])
      }
    }
  }

  /// The triggers of derived attributes have Apple's texts, and their attributes the values of their targets.
  @Test(arguments: AppleStores.paths)
  func triggersAreApplesByteForByte(path: FilePath) throws {
    try withCopy(of: path) { reader, model, framework in
      let schema = try reader.layout(of: model, frameworkVersion: framework)
      let real = try reader.schemaObjects().filter { $0.type == "trigger" && $0.name.hasPrefix("Z_DA_") }
      let derived = schema.triggers.filter { $0.name.hasPrefix("Z_DA_") }
      #expect(Set(real.map { $0.sql ?? "" }) == Set(derived.map(\.text)))
      #expect(!schema.unsupported.contains { $0.code == .derivationUnsupported })
      let checks = try StoreVerifier(depth: .quick).checks(of: reader, schema: schema, isExact: false)
      #expect(checks.contains { $0.name == "derived-values" } == !real.isEmpty)
      if path.lastComponent?.string == "ChatModel.sqlite" { #expect(real.count == 16) }
    }
  }
}

/// The stores.
enum AppleStores {
  static let isAvailable = !paths.isEmpty

  static let paths: [FilePath] = {
    guard let root = Fixtures.root else { return [] }
    let folders =
      ["photos", "plaso"].map { root.removingLastComponent().appending("field/stores").appending($0) }
      + Fixtures.cases(in: "apple")
    return folders.flatMap { folder in
      Fixtures.names(in: folder).filter { $0.hasSuffix(".sqlite") || $0.hasSuffix(".db") }.map { folder.appending($0) }
    }
  }()
}
