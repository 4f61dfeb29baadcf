// External files that take long to copy: the run reports that it is alive during the copy, and a stop ends it.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import StoreReplacement
import SystemPackage
import Testing

@Suite struct LargeExternalDataTests {
  /// A store with one large external file, and a backup directory on another file system.
  private final class World {
    static let size = 24 << 20
    let folder: FilePath
    /// In memory: no file can be linked there, and no file system shares blocks with it.
    let vault: FilePath
    let location: StoreLocation

    init() throws {
      let id = UUID().uuidString
      folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-large-\(id)")
      vault = FilePath("/dev/shm").appending("hopd-large-\(id)")
      location = StoreLocation(database: folder.appending("a.sqlite"))
      for path in [folder.appending("state"), vault, location.externalDataDirectory] {
        try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
      }
      try FreshStore(
        schema: StoreSchema(model: Self.model("One"), frameworkVersion: 1344), uuid: FreshStore.uuid(seed: 1)
      ).make(at: location.database, rows: 20, seed: 1)
      try Data(count: Self.size).write(to: URL(filePath: location.externalDataDirectory.appending("LARGE").string))
    }

    deinit {
      for path in [folder, vault] { try? FileManager.default.removeItem(atPath: path.string) }
    }

    private static func model(_ name: String) -> ManagedObjectModel {
      var attributes = [Attribute(name: "name", type: .string, isOptional: true)]
      if name == "Two" { attributes.append(Attribute(name: "pages", type: .integer16, isOptional: true)) }
      return ManagedObjectModel(name: name, entities: [Entity(name: "Book", attributes: attributes)])
    }

    func request(_ mode: ReplacementMode) -> MigrationRequest {
      let bundle = ModelBundle(
        name: "Books", path: "/Books.xcdatamodeld", versions: [Self.model("One"), Self.model("Two")],
        currentVersionName: "Two")
      return MigrationRequest(
        location: CanonicalStoreLocation(unresolved: location.database), catalog: ModelCatalog(bundles: [bundle]),
        settings: MigrationSettings(replacement: mode, backup: BackupRule(keep: 1, directory: vault)),
        stateDirectory: folder.appending("state"), job: "01")
    }

    /// Returns the sizes of the copies of the large file.
    func copies() -> [Int] {
      let names = (try? FileManager.default.subpathsOfDirectory(atPath: vault.string)) ?? []
      return names.filter { $0.hasSuffix("/LARGE") }.compactMap {
        try? FileManager.default.attributesOfItem(atPath: vault.appending($0).string)[.size] as? Int
      }
    }

    /// Whether the large file is being copied now.
    func isCopying() -> Bool { copies().contains { $0 > 0 && $0 < Self.size } }
  }

  /// Without these events the watchdog ends a daemon whose external data take longer than its interval.
  @Test(arguments: [ReplacementMode.rename, .inPlace])
  func aCopyToAnotherDiskReportsThatItIsAlive(_ mode: ReplacementMode) throws {
    let world = try World()
    var signs = 0
    let report = try MigrationPipeline().run(world.request(mode), stop: StopSignal()) { event in
      if case .alive = event, world.isCopying() { signs += 1 }
    }
    #expect(report.result == .migrated && signs >= 3, "\(signs) events during the copy")
    #expect(world.copies() == [World.size])
  }

  @Test func aStopEndsTheCopyAndTheStoreIsAsItWas() throws {
    let world = try World()
    let before = try Data(contentsOf: URL(filePath: world.location.database.string))
    let stop = StopSignal()
    let failure = #expect(throws: MigrationFailure.self) {
      try MigrationPipeline().run(world.request(.inPlace), stop: stop) { event in
        if case .alive = event, world.isCopying() { stop.stop() }
      }
    }
    #expect(failure?.error.code == .interrupted, "\(failure as Any)")
    #expect(try Data(contentsOf: URL(filePath: world.location.database.string)) == before)
    #expect(world.copies().isEmpty)
    #expect(try MigrationPipeline().run(world.request(.inPlace), stop: StopSignal()) { _ in }.result == .migrated)
    #expect(world.copies() == [World.size])
  }
}
