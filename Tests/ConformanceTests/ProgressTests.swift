// The reported progress of a run, for every kind of chain: it never falls, is below 1 until the end, and ends at 1.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import MigrationEngine
import MigrationPlanning
import PersistentStore
import StoreReplacement
import StoreVerification
import SystemPackage
import Testing

@testable import MigrationPipeline

@Suite struct ProgressTests {
  /// A kind of chain.
  enum Kind: CaseIterable {
    case written, altered, copied, inPlace, fullyVerified, mapped
  }

  private final class World {
    let folder: FilePath
    var request: MigrationRequest

    /// `versions` replace random models.
    init(_ kind: Kind, rows: Int64 = 600, versions: [ManagedObjectModel]? = nil) throws {
      folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-progress-\(UUID().uuidString)")
      try FileManager.default.createDirectory(
        atPath: folder.appending("state").string, withIntermediateDirectories: true)
      let store = folder.appending("s.sqlite")
      var catalog: ModelCatalog
      if kind == .mapped {
        let root = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
        let workload = root.appending("Benchmarks/Workload")
        catalog = try ModelCatalog.load([workload.appending("Workload.xcdatamodeld")])
        try catalog.loadMappings([workload.appending("Mappings")], beside: [])
        let first = try #require(catalog.bundles.first?.versions.first)
        try FreshStore(schema: StoreSchema(model: first, frameworkVersion: 1344), uuid: FreshStore.uuid(seed: 7))
          .make(at: store, rows: rows, seed: 7)
      } else {
        let shapes = RandomShapes(seed: 7)
        let versions =
          versions ?? [
            shapes.model("V1"), shapes.model("V2", modifier: "again"), shapes.model("V3", modifier: "once more"),
          ]
        let schema = StoreSchema(
          model: versions[0], frameworkVersion: 1344, naming: JoinTableNaming(shapes.namingEnds))
        try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: 7)).make(at: store, rows: rows, seed: 7)
        catalog = ModelCatalog(bundles: [
          ModelBundle(
            name: "Shape", path: "/Shape.xcdatamodeld", versions: versions, currentVersionName: "V\(versions.count)")
        ])
      }
      request = MigrationRequest(
        location: CanonicalStoreLocation(unresolved: store), catalog: catalog,
        stateDirectory: folder.appending("state"),
        job: "ab12")
      request.engine.altering = kind == .altered ? .wherePossible : .never
      request.engine.chunkRowsMax = 50
      if kind == .copied { request.output = folder.appending("copy.sqlite") }
      if kind == .inPlace { request.replacement = .inPlace }
      if kind == .fullyVerified { request.verification = .full }
    }

    deinit { try? FileManager.default.removeItem(atPath: folder.string) }

    /// Runs; `onProgress` may stop the run by returning false.
    func run(_ onProgress: @escaping (MigrationProgress) -> Bool = { _ in true }) throws -> [MigrationProgress] {
      let stop = StopSignal()
      var reported: [MigrationProgress] = []
      do {
        _ = try MigrationPipeline().run(request, stop: stop) { event in
          guard case .advanced(let progress) = event else { return }
          reported.append(progress)
          if !onProgress(progress) { stop.stop() }
        }
      } catch {
        guard error.error.code == .interrupted else { throw error }
      }
      return reported
    }
  }

  @Test(arguments: Kind.allCases) func itNeverFallsAndEndsAtOne(_ kind: Kind) throws {
    let reported = try World(kind).run()
    let last = try #require(reported.last)
    #expect(last.fraction == 1 && last.part == .done && last.remaining == 0)
    for (before, after) in zip(reported, reported.dropFirst()) {
      #expect(before.fraction <= after.fraction && before.elapsed <= after.elapsed)
      #expect(before.fraction < 1 && before.part != .done)
      #expect((before.remaining ?? 0) >= 0 && before.remaining?.isFinite != false)
      #expect(before.rows <= before.totalRows)
    }
    #expect(reported.contains { $0.part == .verifying } && reported.contains { $0.part == .replacing })
  }

  @Test(arguments: [Kind.written, .altered, .mapped])
  func aRunThatGoesOnTellsItsOwnWay(_ kind: Kind) throws {
    let world = try World(kind)
    var runs = 0
    // Each run may go a bit further; a stopped run never reports that it is done.
    for most in 1...200 {
      var seen = 0
      let reported = try world.run { _ in
        seen += 1
        return seen <= most
      }
      runs += 1
      for (before, after) in zip(reported, reported.dropFirst()) { #expect(before.fraction <= after.fraction) }
      if reported.last?.fraction == 1 { break }
      #expect(reported.allSatisfy { $0.fraction < 1 })
      #expect(runs < 200)
    }
  }

  @Test(
    "The share of a hop advances with each chunk of a long table",
    arguments: [Kind.written, .mapped])
  func longTable(_ kind: Kind) throws {
    let world = try World(kind, rows: 20_000)
    var reported: [ChunkProgress] = []
    _ = try MigrationPipeline().run(world.request, stop: StopSignal()) { event in
      if case .progress(let progress) = event { reported.append(progress) }
    }
    var advanced = 0
    for (before, after) in zip(reported, reported.dropFirst())
    where before.hop == after.hop && before.stage == after.stage {
      #expect(0...1 ~= after.share)
      if after.chunkRows > 0, after.share > before.share { advanced += 1 }
    }
    #expect(advanced > reported.count { $0.chunkRows > 0 } * 3 / 4)
  }

  @Test("Rows are counted while a chunk runs, and their number never falls")
  func rowsWithinAChunk() throws {
    let attributes = (1...8).map { Attribute(name: "a\($0)", type: .string, isOptional: true) }
    let versions = ["V1", "V2"].map { name in
      ManagedObjectModel(
        name: name, entities: [Entity(name: "Item", versionHashModifier: name, attributes: attributes)])
    }
    let world = try World(.written, rows: 40_000, versions: versions)
    world.request.engine.chunkRowsMax = 50_000
    world.request.engine.chunkTime = .seconds(60)
    var reported: [ChunkProgress] = []
    _ = try MigrationPipeline().run(world.request, stop: StopSignal()) { event in
      if case .progress(let progress) = event { reported.append(progress) }
    }
    let pairs = Array(zip(reported, reported.dropFirst()))
    #expect(pairs.allSatisfy { $0.rows <= $1.rows })
    // No chunk ended between the two reports, and still there are more rows.
    #expect(pairs.contains { $0.rows < $1.rows && $1.chunkRows == 0 })
  }

  @Test func aStoreThatIsCurrentTellsNothing() throws {
    let world = try World(.written)
    _ = try world.run()
    #expect(try world.run().isEmpty)
  }
}
