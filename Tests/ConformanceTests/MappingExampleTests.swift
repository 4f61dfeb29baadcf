// Runs the examples of Examples/Mappings and Examples/Policies: each folder holds a model with versions, a mapping for
// each hop, the rows of a store of the first version (source.sql) and the expected objects (expected.ndjson, as `hopctl
// dump` prints them); those of Policies also hold the mapping's policies (policy.py). To add a case, add a folder.

import Diagnostics
import FoundationEssentials
import Glibc
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import OtherPrograms
import PersistentStore
import PolicyHost
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage
import Testing

@Suite struct MappingExampleTests {
  private static let folder: FilePath = {
    var path = FilePath(#filePath)
    for _ in 0..<3 { path.removeLastComponent() }
    return path.appending("Examples")
  }()

  /// The interpreter itself: a version manager's shim needs an environment that policies do not get.
  private static let interpreter: String? = ["/usr/bin/python3", "/usr/local/bin/python3"].first {
    access($0, X_OK) == 0
  }

  private static func examples(in kind: String) -> [String] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.appending(kind).string)) ?? []
    return names.map { "\(kind)/\($0)" }.filter {
      FileManager.default.fileExists(atPath: folder.appending($0).appending("source.sql").string)
    }.sorted()
  }

  @Test func thereAreExamples() {
    #expect(Self.examples(in: "Mappings").count >= 7 && Self.examples(in: "Policies").count >= 4)
  }

  @Test(arguments: examples(in: "Mappings")) func reachesTheExpectedObjects(_ example: String) throws {
    try migrate(Self.folder.appending(example)) { _ in }
  }

  /// In chunks of two rows, so that a policy's state must outlive a call.
  @Test(.enabled(if: interpreter != nil, "no python3 below /usr"), arguments: examples(in: "Policies"))
  func policiesReachTheExpectedObjects(_ example: String) throws {
    let folder = Self.folder.appending(example)
    let files = try Room()
    let command = [
      try #require(Self.interpreter), folder.appending("policy.py").string, files.path.appending("state").string,
    ]
    var bindings: [String: PolicyBinding] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: folder.string) where name.hasSuffix(".toml") {
      for line in try Self.text(folder.appending(name)).split(separator: "\n") where line.hasPrefix("policy = ") {
        bindings[String(line.dropFirst(10).dropLast())] = PolicyBinding(command: command)
      }
    }
    #expect(!bindings.isEmpty)
    try migrate(folder) { [bindings] request in
      request.engine.chunkRowsMax = 2
      request.policies = { isStopped, lines in PolicyPrograms(bindings, isStopped: isStopped, observer: lines) }
    }
  }

  private func migrate(_ folder: FilePath, configure: (inout MigrationRequest) -> Void) throws {
    let room = try Room()
    var catalog = try ModelCatalog.load([folder])
    try catalog.loadMappings([], beside: [folder])
    let versions = try #require(catalog.bundles.first).versions
    let (first, last) = (try #require(versions.first), try #require(versions.last))
    let location = StoreLocation(database: room.path.appending("store.sqlite"))
    try FreshStore(schema: StoreSchema(model: first, frameworkVersion: 1344), uuid: FreshStore.uuid(seed: 1))
      .make(at: location.database, rows: 0, seed: 1)
    try Connection.ofApp(location.database).execute(Self.text(folder.appending("source.sql")))
    var request = MigrationRequest(
      location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog,
      settings: MigrationSettings(infer: false, verification: .full),
      stateDirectory: room.path.appending("state"), job: "01")
    configure(&request)
    _ = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
    let found = try dump(location, model: last)
    let expected = try Self.text(folder.appending("expected.ndjson")).split(separator: "\n").map {
      try JSONDecoder().decode(DumpedObject.self, from: Data($0.utf8))
    }
    #expect(found.count == expected.count)
    for (object, wanted) in zip(found, expected) where object != wanted { Issue.record("\(object) is not \(wanted)") }
  }

  /// `mapping infer` over random worlds: run as a mapping model, the text gives the objects of the inferred hop.
  @Test func theTextOfAnInferredHopGivesTheSameObjects() throws {
    var compared = 0
    for seed in UInt64(1)...14 {
      var world = RandomModels(seed: seed, derives: seed % 2 == 0)
      let before = world.model("V1")
      world.evolve()
      let after = world.model("V2")
      guard before.versionHashes != after.versionHashes,
        let text = try? InferredTextMapping.text(from: before, to: after)
      else { continue }
      let room = try Room()
      try Data(text.utf8).write(to: URL(filePath: room.path.appending("V1 to V2.hopmap.toml").string))
      var results: [[DumpedObject]] = []
      for isMapped in [false, true] {
        var catalog = ModelCatalog(bundles: [
          ModelBundle(name: "World", path: "/World.xcdatamodeld", versions: [before, after], currentVersionName: "V2")
        ])
        if isMapped { try catalog.loadMappings([room.path.appending("V1 to V2.hopmap.toml")], beside: []) }
        let location = StoreLocation(database: room.path.appending("\(isMapped).sqlite"))
        try FreshStore(schema: StoreSchema(model: before, frameworkVersion: 1344), uuid: FreshStore.uuid(seed: seed))
          .make(at: location.database, rows: 40, seed: seed)
        let request = MigrationRequest(
          location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog,
          settings: MigrationSettings(infer: !isMapped, verification: .full),
          stateDirectory: room.path.appending("state"), job: "01")
        do {
          _ = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
        } catch {
          // The rows do not allow it, or a table's name cannot be known.
          let error = error.error
          #expect(error.code != .internalError, "seed \(seed)\n\(error)\n\(text)")
          if isMapped, !results.isEmpty { Issue.record("seed \(seed): \(error)\n\(text)") }
          break
        }
        results.append(try dump(location, model: after))
      }
      guard results.count == 2 else { continue }
      #expect(results[0].count == results[1].count, "seed \(seed)\n\(text)")
      for (inferred, mapped) in zip(results[0], results[1]) where inferred != mapped {
        Issue.record("seed \(seed): \(mapped) is not \(inferred)\n\(text)")
        break
      }
      compared += results[0].count
    }
    #expect(compared > 300)
  }

  private static func text(_ file: FilePath) throws -> String {
    String(decoding: try Data(contentsOf: URL(filePath: file.string)), as: UTF8.self)
  }

  private final class Room {
    let path: FilePath

    init() throws {
      path = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-example-\(UUID().uuidString)")
      try FileManager.default.createDirectory(atPath: path.appending("state").string, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path.string) }
  }
}
