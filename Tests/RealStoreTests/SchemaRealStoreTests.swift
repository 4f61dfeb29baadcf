// The layout that is predicted from a model, compared with the layout that Apple's software made of it.

import FoundationEssentials
import ManagedObjectModel
import PersistentStore
import SQLite
import SystemPackage
import Testing

@Suite(.enabled(if: Fixtures.isAvailable, Fixtures.absence))
struct SchemaRealStoreTests {
  private struct Facts: Decodable {
    let frameworkVersion: Int64
    let createdFresh: Bool?
  }

  private func withStore<Result>(_ folder: FilePath, _ body: (StoreReader) throws -> Result) throws -> Result {
    let copy = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-schema-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: copy.string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: copy.string) }
    var database: FilePath?
    for name in Fixtures.names(in: folder) where !["model", "facts.json", "ORIGIN"].contains(name) {
      try FileManager.default.copyItem(atPath: folder.appending(name).string, toPath: copy.appending(name).string)
      if !name.hasPrefix("."), !StoreLocation.isAuxiliaryFile(fileName: name) { database = copy.appending(name) }
    }
    return try StoreReader.withUnchangedStore(at: StoreLocation(database: try #require(database)), body)
  }

  /// Compares tables and indexes of every fresh store, statement by statement. Differences are listed, and counted.
  @Test func predictedLayoutIsTheRealOne() throws {
    var tables = (right: 0, all: 0)
    var indexes = (right: 0, all: 0)
    var differences: [String] = []
    for folder in Fixtures.cases(in: "stores") {
      let name = folder.lastComponent?.string ?? ""
      let facts = try Fixtures.json(Facts.self, at: folder.appending("facts.json"))
      guard facts.createdFresh == true else { continue }
      for path in try ModelReader.findBundles(in: folder.appending("model")) {
        let model = try #require(try ModelReader.read(at: path).versions.first)
        try withStore(folder) { reader in
          let naming = try reader.joinTableNaming(for: model, frameworkVersion: facts.frameworkVersion)
          let schema = StoreSchema(model: model, frameworkVersion: facts.frameworkVersion, naming: naming)
          let real = Set(try reader.schemaObjects().compactMap(\.sql))
          for text in schema.tables.map(\.createStatement) + schema.joinTables.map(\.createStatement) {
            tables.all += 1
            if real.contains(text) { tables.right += 1 } else { differences.append("\(name): \(text)") }
          }
          for index in schema.indexes {
            indexes.all += 1
            if real.contains(index.createStatement) {
              indexes.right += 1
            } else {
              differences.append("\(name): \(index.createStatement)")
            }
          }
          // Numbers, names and parents never differ (docs/formats/store-layout.md, "Entity numbers").
          let keys = try reader.primaryKeys().filter { $0.number < 16000 }
          #expect(
            keys.map { "\($0.number) \($0.name) \($0.parent)" }
              == schema.primaryKeyEntries.map { "\($0.number) \($0.name) \($0.parent)" }, "\(name)")
          // Missing columns would lose values, whatever their order.
          for table in schema.tables {
            let columns = Set(try reader.columns(of: table.name).map(\.name))
            #expect(Set(table.columns.map(\.name)) == columns, "\(name): \(table.name)")
          }
        }
      }
    }
    print("tables \(tables.right) of \(tables.all), indexes \(indexes.right) of \(indexes.all)")
    for difference in differences { print("  \(difference)") }
    #expect(tables.all > 50)
    #expect(Double(tables.right) >= 0.97 * Double(tables.all))
    #expect(Double(indexes.right) >= 0.98 * Double(indexes.all))
  }
}
