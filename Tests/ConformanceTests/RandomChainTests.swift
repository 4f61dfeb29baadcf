// Random models, random data, random chains: the engine's SQL, whole and in small chunks, interrupted and not, compared
// with the object-by-object oracle. HOPD_SEEDS sets how many worlds are tried; a failure names its seed.

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
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage
import Testing

@Suite struct RandomChainTests {
  private static let count = getenv("HOPD_SEEDS").flatMap { Int(String(cString: $0)) } ?? 12

  private final class Folder {
    let path: FilePath

    init() throws {
      path = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-random-\(UUID().uuidString)")
      try FileManager.default.createDirectory(atPath: path.appending("state").string, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path.string) }
  }

  @Test func everyPathReachesTheSameObjects() throws {
    var compared = 0
    var refused = 0
    for seed in 1...UInt64(Self.count) {
      guard let objects = try tryWorld(seed) else {
        refused += 1
        continue
      }
      compared += objects
    }
    print("\(Self.count) worlds, \(refused) not inferable, \(compared) objects compared")
    #expect(compared > Self.count)
    #expect(refused * 3 <= Self.count)
  }

  /// Returns the number of compared objects; nil if the world's chain cannot be inferred.
  private func tryWorld(_ seed: UInt64) throws -> Int? {
    var world = RandomModels(seed: seed, derives: seed % 3 == 0)
    var versions = [world.model("V1")]
    for number in 2...4 {
      world.evolve()
      versions.append(world.model("V\(number)"))
    }
    // Two versions may be equal for a store (only defaults changed): then there is no hop between them.
    guard Set(versions.map(\.versionHashes)).count == versions.count else { return 0 }
    let catalog = ModelCatalog(bundles: [
      ModelBundle(name: "World", path: "/World.xcdatamodeld", versions: versions, currentVersionName: "V4")
    ])
    let folder = try Folder()
    let framework: Int64 = [637, 754, 866, 1044, 1344][Int(seed % 5)]
    let original = folder.path.appending("original.sqlite")
    let first = StoreSchema(model: versions[0], frameworkVersion: framework)
    guard first.unsupported.isEmpty else { return 0 }
    let source = StoreLocation(database: original)
    let samples = ExternalSamples { name, content in
      let files = source.externalDataDirectory
      try FileManager.default.createDirectory(atPath: files.string, withIntermediateDirectories: true)
      try Data(content).write(to: URL(filePath: files.appending(name.text).string))
    }
    try FreshStore(schema: first, uuid: FreshStore.uuid(seed: seed)).make(
      at: original, rows: 60, seed: seed, external: samples)
    var expected = try dump(source, model: versions[0])
    for (before, after) in zip(versions, versions.dropFirst()) {
      // Several random changes together may be refused, such as a relationship whose destination was removed: such a
      // world has nothing to compare.
      guard let mapping = try? MappingInference.infer(from: before, to: after) else { return nil }
      expected = ObjectOracle(source: before, destination: after, mapping: mapping).migrate(expected)
    }
    var schemas: [String: String] = [:]
    for (path, chunk, interrupts, altering) in [
      ("whole", Int64(50_000), false, AlterRule.never), ("chunks", 7, false, .never), ("interrupted", 7, true, .never),
      ("altered whole", 50_000, false, .wherePossible), ("altered chunks", 7, false, .wherePossible),
      ("altered interrupted", 7, true, .wherePossible),
    ] {
      let copy = folder.path.appending("\(path).sqlite")
      try FileManager.default.copyItem(atPath: original.string, toPath: copy.string)
      let files = StoreLocation(database: copy).supportDirectory
      if FileManager.default.fileExists(atPath: source.supportDirectory.string) {
        try FileManager.default.copyItem(atPath: source.supportDirectory.string, toPath: files.string)
      }
      var request = MigrationRequest(
        location: CanonicalStoreLocation(unresolved: copy), catalog: catalog,
        settings: MigrationSettings(verification: .full),
        stateDirectory: folder.path.appending("state"), job: "0\(seed)")
      request.engine.chunkRowsMax = chunk
      request.engine.altering = altering
      // Moves within a hierarchy can join both ends of a many-to-many in one entity: its table's name is then given.
      request.naming = JoinTableNaming(
        Set(
          StoreSchema(model: versions[3], frameworkVersion: framework).uncertainJoinTables.map {
            "\($0.entity).\($0.computed)"
          }))
      try migrate(request, interrupts: interrupts, seed: seed)
      let found = try dump(request.location.store, model: versions[3])
      try #require(
        found.count == expected.count, "seed \(seed), \(path): \(found.count) objects, not \(expected.count)")
      for (object, wanted) in zip(found, expected) where object != wanted {
        Issue.record("seed \(seed), \(path): \(object) is not \(wanted)")
        return 0
      }
      schemas[path] = try schemaFacts(copy)
    }
    // An altered copy keeps texts and positions of columns.
    for (path, facts) in schemas {
      #expect(facts == schemas[path.hasPrefix("altered") ? "altered whole" : "whole"], "seed \(seed), \(path)")
    }
    return expected.count
  }

  /// Returns the file's facts in addition to its rows: schema in its order, and the settings of its header.
  private func schemaFacts(_ path: FilePath) throws -> String {
    let connection = try Connection.ofApp(path, .readOnly)
    var facts = try StoreReader(connection: connection).schemaObjects().map { "\($0)" }
    for pragma in ["page_size", "auto_vacuum", "encoding", "user_version", "application_id", "journal_mode"] {
      facts.append("\(pragma) \(try connection.text("PRAGMA \(pragma)") ?? "-")")
    }
    // Schema format, text encoding, default cache size; and the SQLite version that wrote the file
    // (sqlite.org/fileformat2.html, section 1.3).
    let header = try Data(contentsOf: URL(filePath: path.string)).prefix(100)
    facts.append("\(Array(header[16..<24])) \(Array(header[44..<60])) \(Array(header[96..<100]))")
    return facts.joined(separator: "\n")
  }

  private func migrate(_ request: MigrationRequest, interrupts: Bool, seed: UInt64) throws {
    var runs = 0
    while true {
      runs += 1
      try #require(runs < 500, "seed \(seed) never ends")
      let stop = StopSignal()
      var events = 0
      do {
        let report = try MigrationPipeline().run(request, stop: stop) { event in
          guard interrupts, case .progress = event else { return }
          events += 1
          if events == 15 { stop.stop() }
        }
        #expect(report.result == .migrated, "seed \(seed)")
        return
      } catch {
        if interrupts, error.error.code == .interrupted { continue }
        Issue.record("seed \(seed): \(error)")
        throw error
      }
    }
  }
}
