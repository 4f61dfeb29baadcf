// Causes that lie outside a store: hopd never gives the store up, and retries it after the pause.

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
  @Test(
    "A store that failed for a cause outside it is retried by back-off alone, beyond the configured attempts",
    arguments: [HopdError.Code.noPermission, .cannotReplace, .externalDataMissing])
  func retryAfterOutsideCause(_ code: HopdError.Code) async throws {
    let place = try DaemonTests.Place()
    try place.write(
      "hopd.toml",
      """
      [[watch]]
      name = "w"
      directory = "\(place.root.appending("stores"))"
      models = ["\(place.root.appending("A.xcdatamodel"))"]
      settle = "50ms"
      rescan = "1s"
      [watch.migration]
      retry = { attempts = 1, backoff = "1s", max = "1s" }
      """)
    try place.write("stores/a.sqlite", "x")
    let isMended = Mutex(false)
    let tries = Mutex(0)
    let work = FakeWork(
      onInspect: { _ in .success(.behind(DaemonTests.facts, target: "A 2")) },
      onMigrate: { request, _, _ in
        tries.withLock { $0 += 1 }
        return isMended.withLock { $0 }
          ? .success(.sample(request.location.database))
          : .failure(MigrationFailure(stage: .lock, error: HopdError(code, "not now")))
      })
    try await DaemonTests().running(place, try place.coordinator(work)) {
      try await eventually("failed") { place.log.all(.storeRefused).count == 1 }
      let entry = try #require(place.log.all(.storeRefused).first)
      #expect(entry.level == .error && entry[.attempt] == "1" && entry[.next] != nil)
      try await eventually("retried") { tries.withLock { $0 } >= 3 }
      isMended.withLock { $0 = true }
      try await eventually("migrated") { !place.log.all(.storeMigrated).isEmpty }
    }
  }

  @Test("A rescan alone does not retry a store that failed for a cause outside it")
  func rescanDoesNotRetry() async throws {
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
      rescan = "1s"
      [watch.migration]
      retry = { attempts = 2, backoff = "1h", max = "1h" }
      """)
    try place.write("stores/a.sqlite", "x")
    let tries = Mutex(0)
    let work = FakeWork(
      onInspect: { _ in .success(.behind(DaemonTests.facts, target: "A 2")) },
      onMigrate: { _, _, _ in
        tries.withLock { $0 += 1 }
        return .failure(MigrationFailure(stage: .lock, error: HopdError(.noPermission, "not now")))
      })
    try await DaemonTests().running(place, try place.coordinator(work)) {
      try await eventually("failed") { place.log.all(.storeRefused).count == 1 }
      try await Task.sleep(for: .milliseconds(2500))
      #expect(tries.withLock { $0 } == 1)
    }
  }
}
