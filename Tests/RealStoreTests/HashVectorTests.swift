// The version hashes, compared with those that Apple's software wrote: only they identify a store.

import Diagnostics
import ManagedObjectModel
import SystemPackage
import Testing

/// The hashes in a store's `facts.json`.
private struct StoreFacts: Decodable {
  let entityVersionHashes: [String: String]?
  let digest: String?
  let checksum: String?
}

@Suite(.enabled(if: Fixtures.isAvailable, Fixtures.absence))
struct HashVectorTests {
  @Test func everyVectorMatches() throws {
    var sources = 0
    var compiled = 0
    var entities = 0
    for folder in Fixtures.cases(in: "hash-vectors") {
      let name = folder.lastComponent?.string ?? ""
      let expected = try Fixtures.json([String: String].self, at: folder.appending("expected.json"))
      let contents = folder.appending("contents")
      let model: ManagedObjectModel
      if Fixtures.exists(contents) {
        model = try ModelReader.read(contents: Fixtures.bytes(of: contents), name: name, at: Place(file: contents))
          .model
        sources += 1
      } else {
        model = try #require(try ModelReader.read(at: folder.appending("model.mom")).versions.first)
        compiled += 1
      }
      let actual = model.versionHashes
      for (entity, hash) in expected {
        #expect(actual[entity]?.description == hash, "\(name), \(entity)")
        entities += 1
      }
    }
    print("hash vectors: \(entities) entities of \(sources) models in source form and \(compiled) compiled ones")
    #expect(sources >= 38)
    #expect(compiled >= 8)
    #expect(entities >= 100)
  }

  @Test func everyStoreHasTheHashesOfItsModel() throws {
    let stores = Fixtures.cases(in: "stores")
    var compared = 0
    for folder in stores {
      let facts = try Fixtures.json(StoreFacts.self, at: folder.appending("facts.json"))
      for path in try ModelReader.findBundles(in: folder.appending("model")) {
        let bundle = try ModelReader.read(at: path)
        guard let expected = facts.entityVersionHashes else { continue }
        let match = bundle.versions.first { $0.versionHashes.mapValues(\.description) == expected }
        #expect(match != nil, "\(folder): no version of \(path) has the store's hashes")
        guard let match else { continue }
        compared += 1
        if let digest = facts.digest { #expect(match.versionHashesDigest == digest, "\(folder)") }
        if let checksum = facts.checksum { #expect(match.versionChecksum == checksum, "\(folder)") }
      }
    }
    print("stores compared with their models: \(compared) of \(stores.count)")
    #expect(compared >= 28)
  }

  @Test func everyModelOfEveryChainReads() throws {
    var versions = 0
    for folder in Fixtures.cases(in: "chains") {
      for path in try ModelReader.findBundles(in: folder.appending("models")) {
        let bundle = try ModelReader.read(at: path)
        #expect(!bundle.versions.isEmpty)
        #expect(bundle.versions.count == 1 || bundle.currentVersionName != nil, "\(path)")
        #expect(bundle.warnings.isEmpty, "\(bundle.warnings)")
        versions += bundle.versions.count
      }
    }
    print("versions read from chains: \(versions)")
    #expect(versions > 30)
  }

  @Test func everyModelOfEveryMappingReads() throws {
    for folder in Fixtures.cases(in: "mappings") where Fixtures.isFolder(folder.appending("models")) {
      for path in try ModelReader.findBundles(in: folder.appending("models")) {
        let bundle = try ModelReader.read(at: path)
        #expect(!bundle.versions.isEmpty, "\(path)")
      }
    }
  }

  @Test(arguments: [
    ("moody", ["Moody", "Moody 2", "Moody 3", "Moody 4", "Moody 5", "Moody 6"]),
    ("bookmarks", ["BookmarksModel", "BookmarksModel 2", "BookmarksModel 3"]),
    ("bnr", ["TestModel", "TestModel 2"]),
  ])
  func versionsComeInTheOrderOfTheirNames(chain: String, expected: [String]) throws {
    let folder = try #require(Fixtures.root).appending("chains/\(chain)/models")
    let path = try #require(try ModelReader.findBundles(in: folder).first)
    #expect(Array(try ModelReader.read(at: path).versions.map(\.name).prefix(expected.count)) == expected)
  }
}
