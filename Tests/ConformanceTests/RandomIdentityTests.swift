// A store of every shape survives: it is made, filled and dumped, migrated to the same model under other version hashes
// by each path, and dumped again. HOPD_SHAPES sets how many models are tried (75 in the quick tier, 500 under
// HOPD_TESTS=full); a failure names its seed.

import Diagnostics
import FoundationEssentials
import Glibc
import ManagedObjectModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import StoreReplacement
import StoreVerification
import SystemPackage
import Testing

@Suite struct RandomIdentityTests {
  private static let count =
    getenv("HOPD_SHAPES").flatMap { UInt64(String(cString: $0)) }
    ?? (getenv("HOPD_TESTS").map { String(cString: $0) } == "full" ? 500 : 75)
  private static let frameworks: [Int64] = [419, 519, 637, 754, 836, 866, 977, 1044, 1251, 1344]

  @Test func everyShapeSurvivesEveryPath() throws {
    var objects: Int64 = 0
    var left: [String: Int] = [:]
    for seed in 1...Self.count {
      let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-shape-\(UUID().uuidString)")
      try FileManager.default.createDirectory(
        atPath: folder.appending("state").string, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: folder.string) }
      do {
        objects += try tryShape(seed, in: folder)
      } catch let error as HopdError where Self.isLimitOfSamples(error) {
        left[error.code.name, default: 0] += 1
      }
    }
    let skipped = left.values.reduce(0, +)
    print(
      "\(Self.count) random models, \(skipped) left out (\(left.sorted { $0.key < $1.key })), \(objects) objects; "
        + "create, dump, migrate to itself, dump: all equal")
    // A generator of mostly untestable models would prove nothing.
    #expect(skipped * 10 < Int(Self.count))
    #expect(objects > Int64(Self.count) * 10)
  }

  /// Samples cannot be made for a few of these models: constraints over types with few values, layouts without
  /// evidence.
  private static func isLimitOfSamples(_ error: HopdError) -> Bool {
    error.code == .cannotFill || error.code == .layoutUnsupported
  }

  /// One path from store to store.
  private struct Path {
    let name: String
    let chunk: Int64
    let copies: Bool

    init(_ name: String, _ chunk: Int64, copies: Bool = true) {
      self.name = name
      self.chunk = chunk
      self.copies = copies
    }
  }

  private func tryShape(_ seed: UInt64, in folder: FilePath) throws -> Int64 {
    let shapes = RandomShapes(seed: seed)
    let (before, after) = (shapes.model("V1"), shapes.model("V2", modifier: "again"))
    let catalog = ModelCatalog(bundles: [
      ModelBundle(name: "Shape", path: "/Shape.xcdatamodeld", versions: [before, after], currentVersionName: "V2")
    ])
    let framework = Self.frameworks[Int(seed % UInt64(Self.frameworks.count))]
    let naming = JoinTableNaming(shapes.namingEnds)
    let original = folder.appending("original.sqlite")
    let schema = StoreSchema(model: before, frameworkVersion: framework, naming: naming)
    try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: seed)).make(at: original, rows: 40, seed: seed)
    var objects: Int64 = 0
    let wanted = try text(StoreLocation(database: original), before, &objects)
    var paths = [Path("copied", 50_000), Path("copied in chunks", 3)]
    // A replacement makes many more file calls, which take most of the time in a debug build.
    if seed % 10 == 0 { paths += [Path("replaced", 50_000, copies: false), Path("interrupted", 7, copies: false)] }
    for path in paths {
      let copy = folder.appending("\(path.name).sqlite")
      try FileManager.default.copyItem(atPath: original.string, toPath: copy.string)
      let support = StoreLocation(database: original).supportDirectory
      if FileManager.default.fileExists(atPath: support.string) {
        try FileManager.default.copyItem(
          atPath: support.string, toPath: StoreLocation(database: copy).supportDirectory.string)
      }
      var request = MigrationRequest(
        location: CanonicalStoreLocation(unresolved: copy), catalog: catalog,
        settings: MigrationSettings(verification: .full),
        stateDirectory: folder.appending("state"), job: "0\(seed)")
      request.engine.chunkRowsMax = path.chunk
      if path.copies { request.output = folder.appending("\(path.name)-output.sqlite") }
      try migrate(request, interrupts: path.name == "interrupted", "seed \(seed), \(path.name)")
      let result = request.output.map { StoreLocation(database: $0) } ?? request.location.store
      var count: Int64 = 0
      let found = try text(result, after, &count)
      try #require(found == wanted, "seed \(seed), framework \(framework), \(path.name): \(difference(found, wanted))")
      if request.output != nil {
        #expect(
          try text(request.location.store, before, &count) == wanted, "seed \(seed): the source of a copy changed")
      }
    }
    return objects
  }

  private func text(
    _ location: StoreLocation, _ model: ManagedObjectModel, _ objects: inout Int64
  ) throws -> [UInt8] {
    final class Sink { var bytes: [UInt8] = [] }
    let sink = Sink()
    objects = try StoreReader.withUnchangedStore(at: location) { reader in
      let framework = try reader.metadata().frameworkVersion
      let naming = try reader.joinTableNaming(for: model, frameworkVersion: framework)
      let schema = StoreSchema(model: model, frameworkVersion: framework, naming: naming)
      return try StoreDump(reader: reader, schema: schema).write { sink.bytes += $0 }.objects
    }
    return sink.bytes
  }

  /// Returns the first line that differs.
  private func difference(_ found: [UInt8], _ wanted: [UInt8]) -> String {
    let newline = UInt8(ascii: "\n")
    let pairs = zip(found.split(separator: newline), wanted.split(separator: newline))
    guard let pair = pairs.first(where: { $0 != $1 }) else { return "\(found.count) and \(wanted.count) bytes" }
    return "\(String(decoding: pair.0, as: UTF8.self)) is not \(String(decoding: pair.1, as: UTF8.self))"
  }

  private func migrate(_ request: MigrationRequest, interrupts: Bool, _ what: String) throws {
    // Stopped twice, each time a little later; the third run finishes.
    for run in 1...3 {
      let stop = StopSignal()
      var events = 0
      do {
        let report = try MigrationPipeline().run(request, stop: stop) { event in
          guard interrupts, run < 3, case .progress = event else { return }
          events += 1
          if events == 3 + 4 * run { stop.stop() }
        }
        #expect(report.result == .migrated, "\(what)")
        return
      } catch {
        if interrupts, error.error.code == .interrupted { continue }
        Issue.record("\(what): \(error)")
        throw error
      }
    }
    Issue.record("\(what) never ends")
  }
}
