// The daemon with the real pipeline on a store that Apple's software made.

import DurableFiles
import Glibc
import Logging
import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SystemPackage
import SystemdSupport
import Testing

@testable import HopdService
@testable import StoreReplacement

private let chain: FilePath = {
  let folder = getenv("HOPD_FIXTURES").map { FilePath(String(cString: $0)) }
  let here = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
  return (folder ?? here.removingLastComponent().appending("shared/fixtures")).appending("chains/bookmarks")
}()

@Suite(.enabled(if: access(chain.string, R_OK) == 0, "the folder of real stores is not there"))
struct RealStoreDaemonTests {
  @Test func aRealStoreIsMigratedByTheDaemonAndIsCurrentForTheNextOne() async throws {
    let place = try DaemonTests.Place()
    let model = chain.appending("models/BookmarksModel.xcdatamodeld")
    try place.write(
      "hopd.toml",
      """
      [[watch]]
      name = "w"
      directory = "\(place.root.appending("stores"))"
      models = ["\(model)"]
      target = "BookmarksModel 3"
      settle = "700ms"
      """)
    for name in ["Bookmarks_V1.sqlite", "Bookmarks_V1.sqlite-wal"] {
      try copy(chain.appending("source").appending(name), to: FilePath(place.store(name)))
    }
    // They are long at rest together when they are looked at: a log that comes later would be news.
    let store = place.store("Bookmarks_V1.sqlite")
    let tests = DaemonTests()
    try await tests.running(place, try place.coordinator(PipelineWork())) {
      try await eventually("migrated") { !place.log.all(.storeMigrated).isEmpty }
      // Another file comes to rest after hopd's own rename, so the event of that one has been dealt with by then.
      for name in ["Bookmarks_V1.sqlite", "Bookmarks_V1.sqlite-wal"] {
        try copy(
          chain.appending("source").appending(name),
          to: FilePath(place.store(name.replacing("Bookmarks_V1", with: "Later"))))
      }
      try await eventually("the later one, too") { place.log.all(.storeMigrated).count == 2 }
      #expect(place.log.all(.storeMigrated).last?[.store] == place.store("Later.sqlite"))
    }
    // The rename that put the new store in place causes no second inspection.
    #expect(place.log.all(.storeCurrent).isEmpty)
    #expect(place.log.kinds(of: store) == [.storeMigrated])
    let done = try #require(place.log.all(.storeMigrated).first)
    #expect(done[.from] == "BookmarksModel" && done[.to] == "BookmarksModel 3" && done[.rows] == "10")
    let backup = try #require(done[.backup])
    #expect(access(backup, R_OK) == 0)
    let catalog = try ModelCatalog.load([model])
    func version(_ path: String) throws -> String? {
      try StoreIdentifier.identify(
        StoreLocation(database: FilePath(path)), catalog: catalog, target: .named("BookmarksModel 3")
      ).version?.model.name
    }
    #expect(try version(store) == "BookmarksModel 3")
    #expect(try version(backup) == "BookmarksModel")
    // The log contains no titles.
    #expect(place.log.entries.allSatisfy { !$0.text.contains("http") })

    let reported = place.log.entries.count { $0[.store] == store && $0.level > .debug }
    try await tests.running(place, try place.coordinator(PipelineWork())) {
      try await eventually("looked at again") { place.log.all(.storeCurrent).contains { $0[.store] == store } }
    }
    #expect(place.log.entries.count { $0[.store] == store && $0.level > .debug } == reported)
  }

  @Test func aRestoredStoreIsHeldBackUntilSomebodyReleasesIt() async throws {
    let place = try DaemonTests.Place()
    try place.write(
      "hopd.toml",
      """
      [[watch]]
      name = "w"
      directory = "\(place.root.appending("stores"))"
      models = ["\(chain.appending("models/BookmarksModel.xcdatamodeld"))"]
      target = "BookmarksModel 3"
      settle = "200ms"
      rescan = "1s"
      [watch.migration]
      retry = { attempts = 2, backoff = "200ms", max = "400ms" }
      """)
    for name in ["Bookmarks_V1.sqlite", "Bookmarks_V1.sqlite-wal"] {
      try copy(chain.appending("source").appending(name), to: FilePath(place.store(name)))
    }
    let store = place.store("Bookmarks_V1.sqlite")
    let tests = DaemonTests()
    try await tests.running(place, try place.coordinator(PipelineWork())) {
      try await eventually("migrated") { !place.log.all(.storeMigrated).isEmpty }
      let backup = try #require(place.log.all(.storeMigrated).first?[.backup])
      // While the daemon runs, with a state directory of its own, as hopctl has one.
      let files = LinuxFileSystem()
      let state = place.root.appending("other state")
      for folder in [state, state.appending("locks")] { try files.ensureDirectory(folder) }
      let swap = StoreSwap(
        files: files, intents: try IntentStore(stateDirectory: state, files: files),
        identify: { VersionHash.digest(of: try StoreReader(connection: $0).metadata().versionHashes) })
      let restored = try Restore(swap: swap, lockDirectory: state.appending("locks")).restore(
        FilePath(backup), to: CanonicalStoreLocation(resolving: FilePath(store)), job: "b2", backup: BackupRule(),
        now: 1_900_000_000)
      #expect(restored.pin?.replaced.map(\.name) == ["BookmarksModel 3"])
      try await eventually("held back") { !place.log.all(.storePinned).isEmpty }
      // Rescans find the pin as it was.
      try await Task.sleep(for: .seconds(3))
      #expect(place.log.all(.storeMigrated).count == 1)
      #expect(place.log.all(.storePinned).count { $0.level > .debug } == 1)
      try PinStore(location: CanonicalStoreLocation(resolving: FilePath(store)), files: files).remove()
      try await eventually("migrated again") { place.log.all(.storeMigrated).count == 2 }
      // The store that the restore put aside still exists; the second migration's pruning is reported.
      let kept = try #require(restored.replaced.backup)
      #expect(access(kept.string, R_OK) == 0)
      #expect(place.log.all(.backupPruned).map { $0[.backup] } == [FilePath(backup).removingLastComponent().string])
    }
  }

  private func copy(_ source: FilePath, to target: FilePath) throws {
    let input = fopen(source.string, "r")
    let output = fopen(target.string, "w")
    try #require(input != nil && output != nil)
    defer {
      fclose(input)
      fclose(output)
    }
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while case let count = fread(&buffer, 1, buffer.count, input), count > 0 { fwrite(buffer, 1, count, output) }
  }
}
