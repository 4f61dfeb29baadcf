// Causes that lie outside a store: each cure is noticed by the next rescan, without a touch of the store.

import Diagnostics
import Glibc
import Logging
import MigrationPlanning
import PersistentStore
import StoreReplacement
import Synchronization
import SystemPackage
import SystemdSupport
import Testing

@testable import HopdService
@testable import MigrationPipeline

@Suite struct OutsideCausesTests {
  private func request(_ place: DaemonTests.Place) throws -> MigrationRequest {
    let setup = try DaemonSetup(ConfigurationSource.file(place.configuration).load())
    let path = FilePath(place.store("a.sqlite"))
    let store = FoundStore(key: path, path: path, watch: "w", fingerprint: FoundStore.fingerprint(inode: 1))
    return try #require(setup.request(for: store, job: "1", stateDirectory: place.root.appending("state")))
  }

  @Test func eachCureIsSeenAndHopdsOwnWorkIsNone() throws {
    let place = try DaemonTests.Place()
    try place.write("stores/a.sqlite", "x")
    let request = try request(place)
    let file = place.store("a.sqlite")
    func change(_ cure: () -> Void) -> Circumstances.Change {
      let before = Circumstances(of: request)
      usleep(20_000)  // Times of a file system move in steps.
      cure()
      return before.change()
    }
    #expect(change {} == .none)
    #expect(change { chmod(file, 0o600) } == .mended)
    #expect(change { chmod(place.root.appending("stores").string, 0o750) } == .mended)
    #expect(change { link(file, place.root.appending("second").string) } == .mended)
    #expect(change { unlink(place.root.appending("second").string) } == .mended)
    // A staged file that comes and goes looks like any other change of the directory.
    #expect(change { close(creat(place.store("other"), 0o600)) } == .perhaps)
    #expect(change { mkdir(place.store(".a_SUPPORT"), 0o700) } == .mended)
    #expect(change { mkdir(place.store(".a_SUPPORT/_EXTERNAL_DATA"), 0o700) } == .mended)
    #expect(change { close(creat(place.store(".a_SUPPORT/_EXTERNAL_DATA/1"), 0o600)) } == .mended)
    #expect(change { chmod(place.root.appending("state").string, 0o700) } == .mended)
  }

  /// Free space for backups changes neither the store nor the time of any file near it.
  @Test(.enabled(if: geteuid() == 0, "only root can mount")) func roomOnTheDiskOfBackupsIsSeen() throws {
    let place = try DaemonTests.Place()
    let vault = place.root.appending("vault").string
    mkdir(vault, 0o700)
    guard mount("tmpfs", vault, "tmpfs", 0, "size=8m") == 0 else { return }
    defer { umount2(vault, Int32(MNT_DETACH)) }
    try place.write("stores/a.sqlite", "x")
    try place.configure("[watch.backup]\ndirectory = \"\(vault)\"")
    try place.write("vault/full", String(repeating: "x", count: 6 << 20))
    let request = try request(place)
    let before = Circumstances(of: request)
    #expect(before.change() == .none)
    unlink("\(vault)/full")
    #expect(before.change() == .mended)
  }

  /// A repair beside the store that makes no event, or a granted right: `chmod` changes neither size nor time nor inode
  /// of the store, and is seen at once.
  @Test(arguments: [HopdError.Code.noPermission, .cannotReplace, .externalDataMissing], ["1s", "1h"])
  func aCureIsSeenByTheRescanAndOneOfRightsAtOnce(_ code: HopdError.Code, _ rescan: String) async throws {
    let place = try DaemonTests.Place()
    // The pause is far longer than the test.
    try place.write(
      "hopd.toml",
      """
      [[watch]]
      name = "w"
      directory = "\(place.root.appending("stores"))"
      models = ["\(place.root.appending("A.xcdatamodel"))"]
      settle = "50ms"
      rescan = "\(rescan)"
      [watch.migration]
      retry = { attempts = 2, backoff = "1h", max = "1h" }
      """)
    try place.write("stores/a.sqlite", "x")
    chmod(place.store("a.sqlite"), 0o400)
    let isMended = Mutex(false)
    let tries = Mutex(0)
    let work = FakeWork(
      onLook: { _ in .success(.behind(DaemonTests.facts, target: "A 2")) },
      onMigrate: { request, _, _ in
        tries.withLock { $0 += 1 }
        return isMended.withLock { $0 }
          ? .success(.sample(request.location.database))
          : .failure(JobFailure(stage: .lock, error: HopdError(code, "not now")))
      })
    try await DaemonTests().running(place, try place.coordinator(work)) {
      try await eventually("failed") { place.log.all(.storeRefused).count == 1 }
      try await Task.sleep(for: .milliseconds(2500))
      let entry = try #require(place.log.all(.storeRefused).first)
      #expect(entry.level == .error && entry[.attempt] == "1" && entry[.next] != nil)
      #expect(tries.withLock { $0 } == 1, "rescans alone are no reason")
      isMended.withLock { $0 = true }
      if rescan == "1s" { mkdir(place.store(".a_SUPPORT"), 0o700) } else { chmod(place.store("a.sqlite"), 0o600) }
      try await eventually("migrated") { !place.log.all(.storeMigrated).isEmpty }
    }
  }
}
