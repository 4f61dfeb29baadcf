// Disk space of a migration: reserved before the first row is written, returned after the last one, after a stop, and
// after a failure. Checked from outside, by the blocks of the files.

import Diagnostics
import DurableFiles
import FoundationEssentials
import Glibc
import ManagedObjectModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import StoreReplacement
import SystemPackage
import Testing

@Suite struct SpaceTests {
  /// A store of V1 in its own folder, to be migrated to V3 in files.
  final class World {
    let folder: FilePath
    let store: FilePath
    var request: MigrationRequest
    let files = LinuxFileSystem()

    init(copies: Bool) throws {
      folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-space-\(UUID().uuidString)")
      try FileManager.default.createDirectory(
        atPath: folder.appending("state").string, withIntermediateDirectories: true)
      store = folder.appending("s.sqlite")
      let shapes = RandomShapes(seed: 7)
      let versions = [
        shapes.model("V1"), shapes.model("V2", modifier: "again"), shapes.model("V3", modifier: "once more"),
      ]
      let schema = StoreSchema(
        model: versions[0], frameworkVersion: 1344, naming: JoinTableNaming(shapes.namingEnds))
      try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: 7)).make(at: store, rows: 600, seed: 7)
      request = MigrationRequest(
        location: CanonicalStoreLocation(unresolved: store),
        catalog: ModelCatalog(bundles: [
          ModelBundle(name: "Shape", path: "/Shape.xcdatamodeld", versions: versions, currentVersionName: "V3")
        ]), stateDirectory: folder.appending("state"), job: "ab12")
      request.engine.altering = copies ? .wherePossible : .never
      request.engine.chunkRowsMax = 20
    }

    deinit { try? FileManager.default.removeItem(atPath: folder.string) }

    /// Whether this file system can reserve space.
    func canReserve() throws -> Bool {
      let probe = try files.canonical(folder).appending("probe")
      try files.createFile(probe, [], mode: 0o600)
      defer { try? files.unlink(probe) }
      return try files.reserve(1 << 20, for: probe)
    }

    /// Returns the staged files: name, size and bytes on the disk.
    func staged() throws -> [(name: String, size: Int64, allocated: Int64)] {
      let folder = try files.canonical(folder)
      return try files.names(in: folder).filter { $0.string.contains(".hop-") && !$0.string.hasSuffix("-journal") }
        .compactMap { name in
          try files.status(folder.appending(name)).map { (name.string, $0.size, $0.allocated) }
        }
    }

    /// Runs; `onProgress` may stop the run by returning false.
    func run(_ onProgress: @escaping () -> Bool = { true }) throws -> MigrationReport {
      let stop = StopSignal()
      return try MigrationPipeline().run(request, stop: stop) { event in
        if case .progress = event, !onProgress() { stop.stop() }
      }
    }
  }

  @Test(arguments: [true, false])
  func spaceIsSetAsideFromTheFirstRowOn(_ copies: Bool) throws {
    let world = try World(copies: copies)
    guard try world.canReserve() else { return }
    let size = try #require(try world.files.status(world.files.canonical(world.store))).size
    var least = Int64.max
    let report = try world.run {
      // At any moment: one staged store is written or reserved, and another one where each hop writes its own.
      let bytes = ((try? world.staged()) ?? []).reduce(0) { $0 + $1.allocated }
      least = min(least, bytes)
      return true
    }
    #expect(report.result == .migrated)
    #expect(least != .max && least >= (copies ? size : 2 * size), "\(least) of \(size)")
    let result = try #require(try world.files.status(world.files.canonical(world.store)))
    #expect(result.allocated <= result.size + 65_536, "\(result.allocated) for \(result.size)")
    #expect(try world.staged().isEmpty)
  }

  @Test func aRunThatStopsKeepsOnlyWhatItWrote() throws {
    let world = try World(copies: false)
    guard try world.canReserve() else { return }
    var events = 0
    #expect(throws: MigrationFailure.self) {
      try world.run {
        events += 1
        return events < 6
      }
    }
    let staged = try world.staged()
    #expect(!staged.isEmpty && !staged.contains { $0.name.hasSuffix("-reserve.tmp") }, "\(staged)")
    for file in staged { #expect(file.allocated <= file.size + 65_536, "\(file)") }
    // The next run reserves it again and continues.
    var most: Int64 = 0
    let report = try world.run {
      most = max(most, ((try? world.staged()) ?? []).reduce(0) { $0 + $1.allocated })
      return true
    }
    #expect(report.wasResumed && most > staged.reduce(0) { $0 + $1.size })
    #expect(try world.staged().isEmpty)
  }

  @Test(
    .enabled(if: getuid() == 0, "only root can mount a small file system"),
    arguments: [true, false])
  func tooLittleSpaceIsReportedBeforeTheFirstRow(_ copies: Bool) throws {
    let world = try World(copies: copies)
    let size = try #require(try world.files.status(world.files.canonical(world.store))).size
    let small = world.folder.appending("small")
    try FileManager.default.createDirectory(atPath: small.string, withIntermediateDirectories: false)
    // One staged store and a half, for any number of hops.
    let room = "size=\((size * 5 / 2 + (3 << 20)) / 1024)k"
    guard mount("none", small.string, "tmpfs", 0, room) == 0 else { return }
    defer { umount2(small.string, Int32(MNT_DETACH)) }
    let store = small.appending("s.sqlite")
    try FileManager.default.copyItem(atPath: world.store.string, toPath: store.string)
    let support = StoreLocation(database: world.store).supportDirectory
    if FileManager.default.fileExists(atPath: support.string) {
      try FileManager.default.copyItem(
        atPath: support.string, toPath: StoreLocation(database: store).supportDirectory.string)
    }
    world.request.location = CanonicalStoreLocation(unresolved: store)
    // Another program fills the disk as soon as the run has begun: the run has already reserved what it needs.
    let filler = open(small.appending("filler").string, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    defer { close(filler) }
    let block = [UInt8](repeating: 1, count: 65_536)
    do {
      let report = try world.run {
        // A little space is left for SQLite's journal.
        while (try? world.files.freeBytes(at: small)) ?? 0 > 1 << 20, write(filler, block, block.count) > 0 {}
        return true
      }
      #expect(report.result == .migrated)
    } catch let error as MigrationFailure {
      // The estimate allows for the store's growth; any other shortage must be reported before.
      #expect(error.error.code == .noSpace, "\(error)")
      Issue.record("\(copies): \(error)")
    }
    #expect(try world.files.names(in: small).allSatisfy { !$0.string.contains(".hop-") })
  }
}
