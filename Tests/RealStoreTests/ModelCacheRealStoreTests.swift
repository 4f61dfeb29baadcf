// The model that hopd would write into a store, compared with the one that Apple's software wrote into it.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import PersistentStore
import PropertyLists
import SQLite
import SystemPackage
import Testing

@Suite(.enabled(if: Fixtures.isAvailable, Fixtures.absence))
struct ModelCacheRealStoreTests {
  /// Stores whose model was built in code; its source was transcribed from the store's hashes and schema, and lacks the
  /// parts that leave no trace there (fetched properties' requests, validation as text, defaults of the app's own
  /// classes).
  private static let builtInCode = ["fw1044-samplemodel2-2021", "fw1344-samplemodel2-1", "fw1344-samplemodel2-2"]

  private struct Case {
    let name: String
    let metadata: StoreMetadata
    let content: [UInt8]
    let model: ManagedObjectModel?
  }

  /// Returns every store with a cache, and the version of the models next to it that has the store's hashes.
  private static func cases() throws -> [Case] {
    var found: [Case] = []
    for (part, models, folders) in [("stores", "model", [""]), ("chains", "models", ["source", "golden"])] {
      for folder in Fixtures.cases(in: part) {
        let versions = try ModelReader.findBundles(in: folder.appending(models)).flatMap {
          try ModelReader.read(at: $0).versions
        }
        for place in folders.map({ $0.isEmpty ? folder : folder.appending($0) }) where Fixtures.isFolder(place) {
          for name in Fixtures.names(in: place) {
            let path = place.appending(name)
            guard !Fixtures.isFolder(path), !StoreLocation.isAuxiliaryFile(fileName: name), !name.hasPrefix("."),
              try Fixtures.bytes(of: path).starts(with: Array("SQLite format 3".utf8))
            else { continue }
            // Without its log, and without touching the folder: the bookkeeping is in the database itself.
            let reader = StoreReader(connection: try Connection(path: path, access: .immutable))
            guard let content = try reader.modelCacheContent() else { continue }
            let metadata = try reader.metadata()
            let model = versions.first { $0.versionHashes == metadata.versionHashes }
            let title = "\(folder.lastComponent?.string ?? "")/\(name)"
            found.append(Case(name: title, metadata: metadata, content: content, model: model))
          }
        }
      }
    }
    return found
  }

  /// The compressor equals Apple's to the byte: it reproduces what Apple's software wrote.
  @Test func cachesCompressToTheSameBytes() throws {
    let cases = try Self.cases()
    for item in cases {
      #expect(item.metadata.frameworkVersion >= ModelCache.firstFrameworkVersion, "\(item.name)")
      #expect(try ModelCache.compress(ModelCache.decompress(item.content)) == item.content, "\(item.name)")
    }
    print("model caches: \(cases.count) of \(cases.count) compress to the same bytes")
    #expect(cases.count > 30)
  }

  /// Counts the models with a cache of Apple's that are archived to an equal graph, and returns the others.
  static func comparedGraphs() throws -> (equal: Int, all: Int, exceptions: [String]) {
    var equal = 0
    var all = 0
    var exceptions: [String] = []
    for item in try cases() {
      let real = try #require(ArchiveGraph(PropertyList.decode(ModelCache.decompress(item.content))))
      guard let source = item.model else { continue }
      // The identifiers of the store: a source may be an earlier or later revision (docs/formats/model-files.md,
      // "Differences between source and compiled model").
      let model = ManagedObjectModel(
        name: source.name, versionIdentifiers: item.metadata.versionIdentifiers, entities: source.entities,
        configurations: source.configurations, composites: source.composites)
      all += 1
      do {
        let archived = try model.archived(frameworkVersion: item.metadata.frameworkVersion)
        let differences = try #require(ArchiveGraph(PropertyList.decode(archived))).differences(from: real)
        if differences.isEmpty {
          equal += 1
        } else {
          exceptions.append("\(item.name): \(differences.prefix(12).joined(separator: "; "))")
        }
      } catch let error as HopdError {
        let parts = (error.reasons.isEmpty ? [error] : error.reasons).map(\.message)
        exceptions.append("\(item.name): refused: \(parts.joined(separator: "; "))")
      }
    }
    return (equal, all, exceptions)
  }

  /// Object by object, the graph equals the one that Apple's software archived, or the model is refused.
  @Test func archivedModelsAreTheRealOnes() throws {
    let (equal, all, exceptions) = try Self.comparedGraphs()
    print("model caches: \(equal) of \(all) graphs equal")
    for exception in exceptions {
      print("  \(exception)")
      #expect(exception.contains(": refused: "))
      #expect(Self.builtInCode.contains { exception.hasPrefix($0) }, "\(exception)")
    }
    #expect(all > 30)
  }

  /// Every cache of Apple's is the model of its store, and equals the source, if there is one.
  @Test func cachesAreReadAsTheirModels() throws {
    for item in try Self.cases() {
      let (model, _) = try ModelReader.read(compiled: ModelCache.decompress(item.content), name: item.name)
      #expect(model.versionHashes == item.metadata.versionHashes, "\(item.name)")
    }
  }

  /// An archived model is read as the same model again: the source of every store and chain, in both forms of indexes.
  @Test func archivedModelsAreReadAgain() throws {
    var all = 0
    for (part, models) in [("stores", "model"), ("chains", "models"), ("mappings", "models")] {
      for folder in Fixtures.cases(in: part) where Fixtures.isFolder(folder.appending(models)) {
        for model in try ModelReader.findBundles(in: folder.appending(models)).flatMap({
          try ModelReader.read(at: $0).versions
        }) {
          for framework in [Int64(637), 1344] {
            guard let archived = try? model.archived(frameworkVersion: framework) else { continue }
            #expect(try archived == model.archived(frameworkVersion: framework), "\(model.name) is not archived alike")
            let (again, _) = try ModelReader.read(compiled: archived, name: model.name)
            #expect(again.versionHashes == model.versionHashes, "\(model.name)")
            #expect(again.versionIdentifiers == model.versionIdentifiers, "\(model.name)")
            for (was, now) in zip(model.entities, again.entities) {
              #expect(was.name == now.name && was.parentName == now.parentName)
              #expect(was.renamingIdentifier == now.renamingIdentifier)
              #expect(was.attributes.map(\.name) == now.attributes.map(\.name), "\(model.name): \(was.name)")
              #expect(was.attributes.map(\.defaultValue) == now.attributes.map(\.defaultValue))
              #expect(was.attributes.map(\.minimum) == now.attributes.map(\.minimum))
              #expect(was.relationships == now.relationships, "\(model.name): \(was.name)")
              #expect(was.uniquenessConstraints == now.uniquenessConstraints)
            }
            all += 1
          }
        }
      }
    }
    print("model caches: \(all) archives read again")
    #expect(all > 60)
  }
}
