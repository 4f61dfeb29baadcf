// Stores that Apple's own apps and other apps made, read with the model that each of them holds. They are beside the
// fixtures, or the test is skipped.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import PersistentStore
import SQLite
import StoreVerification
import SystemPackage
import Testing

@Suite(.enabled(if: AppleStores.isAvailable, "no stores of Apple's apps beside the fixtures"))
struct AppleStoreTests {
  /// Runs the body with a copy of a store and the model in it.
  private func withCopy<Result>(
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

  /// The triggers of derived attributes have Apple's texts, and their attributes the values of their targets.
  @Test(arguments: AppleStores.paths)
  func triggersAreApplesByteForByte(path: FilePath) throws {
    try withCopy(of: path) { reader, model, framework in
      let schema = try reader.layout(of: model, frameworkVersion: framework)
      let real = try reader.schemaObjects().filter { $0.type == "trigger" && $0.name.hasPrefix("Z_DA_") }
      #expect(Set(real.map { $0.sql ?? "" }) == Set(schema.triggers.map(\.text)))
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
