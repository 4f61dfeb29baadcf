// The daemon in this process, on a temporary directory, with a service manager that only listens: its messages, their
// order, and the effects on files.

import ConfigurationInspection
import Diagnostics
import Glibc
import HopdConfiguration
import Logging
import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import StoreReplacement
import Synchronization
import SystemPackage
import SystemdSupport
import Testing

@testable import HopdService
@testable import MigrationPipeline

@Suite struct DaemonTests {
  /// A temporary place with a model, a configuration and a directory of stores.
  final class Place: Sendable {
    let root: FilePath
    let log = RecordedLog()
    let manager: ManagerSocket

    init(watch: String = "", jobs: Int = 1, rescan: String = "1s") throws {
      manager = try ManagerSocket()
      var template = Array("/tmp/hopd-daemon-XXXXXX".utf8CString)
      try #require(mkdtemp(&template) != nil)
      root = FilePath(String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
      for name in ["stores", "state", "A.xcdatamodel"] { mkdir(root.appending(name).string, 0o755) }
      try write(
        "A.xcdatamodel/contents",
        """
        <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
        <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0">
          <entity name="Person"><attribute name="name" optional="YES" attributeType="String"/></entity>
        </model>
        """)
      try configure(watch, jobs: jobs, rescan: rescan)
    }

    deinit { removeTree(root) }

    var configuration: FilePath { root.appending("hopd.toml") }

    func configure(_ more: String = "", jobs: Int = 1, rescan: String = "1s") throws {
      try write(
        "hopd.toml",
        """
        [daemon]
        jobs = \(jobs)
        [[watch]]
        name = "w"
        directory = "\(root.appending("stores"))"
        models = ["\(root.appending("A.xcdatamodel"))"]
        settle = "50ms"
        rescan = "\(rescan)"
        \(more)
        [watch.migration]
        retry = { attempts = 2, backoff = "100ms", max = "200ms" }
        """)
    }

    func write(_ name: String, _ text: String) throws {
      let file = fopen(root.appending(name).string, "w")
      try #require(file != nil)
      fputs(text, file)
      fclose(file)
    }

    func store(_ name: String) -> String { root.appending("stores").appending(name).string }

    func coordinator(_ work: any StoreWork, watchdog: Duration? = nil) throws -> DaemonCoordinator {
      let source = ConfigurationSource.file(configuration)
      return DaemonCoordinator(
        DaemonCoordinator.Surroundings(
          source: source, stateDirectory: root.appending("state"), pauseFile: root.appending("pause"),
          notifier: ServiceNotifier(socketPath: manager.path), watchdogInterval: watchdog, work: work,
          logger: log.logger), setup: try DaemonSetup(source.load()))
    }

    private func removeTree(_ path: FilePath) {
      guard let stream = opendir(path.string) else {
        unlink(path.string)
        return
      }
      var names: [String] = []
      while let entry = readdir(stream) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { names.append(name) }
      }
      closedir(stream)
      for name in names { removeTree(path.appending(name)) }
      rmdir(path.string)
    }
  }

  /// Runs a daemon during `body`, then stops it.
  func running(_ place: Place, _ coordinator: DaemonCoordinator, _ body: () async throws -> Void) async throws {
    let run = Task { try await coordinator.run() }
    do {
      try await body()
    } catch {
      coordinator.stop()
      _ = try? await run.value
      throw error
    }
    coordinator.stop()
    try await run.value
  }

  static let facts = StoreFacts(uuid: "U", model: "A", version: "A", frameworkVersion: 1)

  @Test func aStoreThatArrivesIsInspectedMigratedAndReported() async throws {
    let place = try Place()
    let isDone = Mutex(false)
    let work = FakeWork(
      onInspect: { _ in
        isDone.withLock { $0 } ? .success(.current(nil)) : .success(.behind(Self.facts, target: "A 2"))
      },
      onMigrate: { request, _, observer in
        observer(.identified(Self.facts))
        observer(.hopStarted(index: 0, hops: 1, from: "A", to: "A 2"))
        isDone.withLock { $0 = true }
        return .success(.sample(request.location.database))
      })
    try await running(place, try place.coordinator(work)) {
      try await eventually("READY") { place.manager.messages.contains { $0.hasPrefix("READY=1\nSTATUS=watching 0") } }
      try place.write("stores/a.sqlite", "x")
      try place.write("stores/.hidden.sqlite", "x")
      try place.write("stores/a.sqlite-wal", "x")
      try place.write("stores/notes.txt", "x")
      try await eventually("migrated") { !place.log.all(.storeMigrated).isEmpty }
    }
    #expect(place.log.kinds(of: place.store("a.sqlite")) == [.storeMigrated])
    #expect(place.log.entries.allSatisfy { $0[.store].map { $0.hasSuffix("/a.sqlite") } ?? true })
    let service = place.log.entries.compactMap(\.kind)
    #expect(service.first == .serviceStarted)
    #expect(service.last == .serviceStopping)
    #expect(service.contains(.serviceReady))
    #expect(place.manager.messages.contains("STOPPING=1\nSTATUS=stopping"))
  }

  @Test func theLastWordOfABusyMomentIsReported() async throws {
    // Neither a watchdog nor a rescan, so nothing wakes the daemon but what it has set itself.
    let place = try Place(rescan: "1h")
    let mayEnd = Mutex(false)
    let work = FakeWork(onInspect: { _ in
      while !mayEnd.withLock({ $0 }) { usleep(1000) }
      return .success(.current(nil))
    })
    func reported(_ text: String) -> Bool { place.manager.messages.last { $0.contains("STATUS=") } == "STATUS=\(text)" }
    try await running(place, try place.coordinator(work)) {
      try await eventually("READY") { place.manager.messages.contains { $0.hasPrefix("READY=1") } }
      try place.write("stores/a.sqlite", "x")
      try await eventually("the first") { reported("watching 1 store: 1 to inspect") }
      // Between two of the ticks that jobs cause, so that the last of them comes too early for the last message.
      try await Task.sleep(for: .milliseconds(1400))
      try place.write("stores/b.sqlite", "x")
      try await eventually("the second") { reported("watching 2 stores: 2 to inspect") }
      mayEnd.withLock { $0 = true }
      // Before the daemon wakes to rest.
      try await eventually("the last word", within: 4) { reported("watching 2 stores") }
    }
  }

  @Test func aStopReachesTheRunningJobAndWaitsForIt() async throws {
    let place = try Place()
    try place.write("stores/a.sqlite", "x")
    let work = FakeWork(
      onInspect: { _ in .success(.behind(Self.facts, target: "A 2")) },
      onMigrate: { _, stop, observer in
        observer(.hopStarted(index: 0, hops: 1, from: "A", to: "A 2"))
        while !stop.isStopping { usleep(1000) }
        usleep(300_000)
        return .failure(MigrationFailure(stage: .migrate, error: HopdError(.interrupted, "stopped on request")))
      })
    try await running(place, try place.coordinator(work)) {
      try await eventually("at work") {
        place.manager.messages.contains { $0.contains("STATUS=store 1/1 a.sqlite") }
      }
    }
    #expect(place.log.all(.migrationInterrupted).count == 1)
    let stopping = place.manager.messages.drop { !$0.hasPrefix("STOPPING=1") }
    #expect(stopping.first == "STOPPING=1\nSTATUS=finishing chunk of a.sqlite")
    #expect(stopping.contains { $0.hasPrefix("EXTEND_TIMEOUT_USEC=") })
  }

  @Test func aRefusalIsReportedOnceWhateverTheRescansAndReloads() async throws {
    let place = try Place()
    try place.write("stores/a.sqlite", "x")
    let inspections = Mutex(0)
    let work = FakeWork(onInspect: { _ in
      inspections.withLock { $0 += 1 }
      return .failure(MigrationFailure(stage: .identify, error: HopdError(.noRoute, "no way")))
    })
    let coordinator = try place.coordinator(work)
    try await running(place, coordinator) {
      try await eventually("refused") { place.log.all(.storeRefused).count == 1 }
      try await Task.sleep(for: .milliseconds(2500))
      #expect(place.log.all(.storeRefused).count == 1)
      #expect(inspections.withLock { $0 } == 1)
      coordinator.reload()
      try await eventually("looked at again") { inspections.withLock { $0 } == 2 }
      try await Task.sleep(for: .milliseconds(300))
      #expect(place.log.entries.filter { $0.kind == .storeRefused && $0.level > .debug }.count == 1)
    }
    let words = place.manager.messages
    let reloading = try #require(words.firstIndex { $0.hasPrefix("RELOADING=1\nMONOTONIC_USEC=") })
    #expect(words[reloading...].contains { $0.hasPrefix("READY=1\n") })
    #expect(place.log.all(.configurationReloaded).count == 1)
  }

  @Test func aReloadThatIsOrderedDuringTheStartFollowsIt() async throws {
    let place = try Place()
    let coordinator = try place.coordinator(FakeWork())
    coordinator.reload()
    try await running(place, coordinator) {
      try await eventually("reloaded") { place.log.all(.configurationReloaded).count == 1 }
    }
  }

  @Test func aBrokenConfigurationChangesNothingAndIsNamedWithItsLine() async throws {
    let place = try Place()
    let coordinator = try place.coordinator(FakeWork())
    try await running(place, coordinator) {
      try await eventually("READY") { place.manager.messages.contains { $0.hasPrefix("READY=1") } }
      try place.configure("rescan = 7")
      coordinator.reload()
      try await eventually("refused") { place.log.all(.reloadFailed).count == 1 }
      let place1 = try #require(place.log.all(.reloadFailed).first?[.configuration])
      #expect(place1.hasPrefix(place.configuration.string + ":"))
      try await eventually("status") {
        place.manager.messages.contains { $0.contains("READY=1") && $0.contains("configuration refused") }
      }
      // Work continues as before.
      try place.write("stores/b.sqlite", "x")
      try await eventually("looked at") { place.log.entries.contains { $0.kind == .storeCurrent } }
      // A model that is gone counts like a wrong line.
      try place.configure("target = \"no such version\"")
      coordinator.reload()
      try await eventually("refused") { place.log.all(.reloadFailed).count == 2 }
      try place.configure()
      coordinator.reload()
      try await eventually("repaired") { place.log.all(.configurationReloaded).count == 1 }
      #expect(place.manager.messages.last?.contains("configuration refused") == false)
    }
  }

  @Test func aRunningJobKeepsWhatItBeganWithThroughAReload() async throws {
    let place = try Place()
    try place.write("stores/a.sqlite", "x")
    let mayEnd = Mutex(false)
    let runs = Mutex(0)
    let work = FakeWork(
      onInspect: { _ in
        runs.withLock { $0 } == 0 ? .success(.behind(Self.facts, target: "A 2")) : .success(.current(nil))
      },
      onMigrate: { request, _, _ in
        runs.withLock { $0 += 1 }
        while !mayEnd.withLock({ $0 }) { usleep(1000) }
        return .success(.sample(request.location.database))
      })
    let coordinator = try place.coordinator(work)
    try await running(place, coordinator) {
      try await eventually("at work") { runs.withLock { $0 } == 1 }
      coordinator.reload()
      try await eventually("reloaded") { place.log.all(.configurationReloaded).count == 1 }
      mayEnd.withLock { $0 = true }
      try await eventually("looked at with the new configuration") {
        place.log.entries.contains { $0.kind == .storeCurrent }
      }
    }
    #expect(runs.withLock { $0 } == 1)
    #expect(place.log.all(.storeMigrated).count == 1)
  }

  @Test func theFlagFileHoldsMigrationsBack() async throws {
    let place = try Place()
    try place.write("pause", "")
    try place.write("stores/a.sqlite", "x")
    let work = FakeWork(onInspect: { _ in .success(.behind(Self.facts, target: "A 2")) })
    try await running(place, try place.coordinator(work)) {
      try await eventually("queued") { !place.log.all(.storeQueued).isEmpty }
      try await eventually("told") {
        place.manager.messages.contains { $0.contains("paused; watching 1 store: 1 to migrate") }
      }
      #expect(place.log.all(.storeMigrated).isEmpty)
      unlink(place.root.appending("pause").string)
      try await eventually("migrated") { !place.log.all(.storeMigrated).isEmpty }
    }
  }

  @Test func theWatchdogIsFedWhileJobsMoveAndStarvesWithAHungOne() async throws {
    let place = try Place()
    let mayMove = Mutex(true)
    let work = FakeWork(
      onInspect: { _ in .success(.behind(Self.facts, target: "A 2")) },
      onMigrate: { _, stop, observer in
        while !stop.isStopping {
          if mayMove.withLock({ $0 }) { observer(.verifying) }
          usleep(10_000)
        }
        return .failure(MigrationFailure(stage: .verify, error: HopdError(.interrupted, "stopped")))
      })
    func pings() -> Int { place.manager.messages.count { $0 == "WATCHDOG=1" } }
    try await running(place, try place.coordinator(work, watchdog: .milliseconds(800))) {
      try await eventually("fed while idle") { pings() >= 2 }
      try place.write("stores/a.sqlite", "x")
      try await eventually("at work") { place.manager.messages.contains { $0.contains("a.sqlite verifying") } }
      let before = pings()
      try await eventually("fed at work") { pings() >= before + 3 }
      mayMove.withLock { $0 = false }
      try await eventually("told") { place.log.all(.serviceFailed).count == 1 }
      let starved = pings()
      try await Task.sleep(for: .milliseconds(1500))
      #expect(pings() == starved)
    }
  }

  @Test func aFailureOutsideTheStoreIsTriedForEverAndLoudOnce() async throws {
    let place = try Place()
    try place.write("stores/a.sqlite", "x")
    let work = FakeWork(
      onInspect: { _ in .success(.behind(Self.facts, target: "A 2")) },
      onMigrate: { _, _, _ in
        .failure(MigrationFailure(stage: .migrate, error: HopdError(.noSpace, "no space on /srv")))
      })
    try await running(place, try place.coordinator(work)) {
      try await eventually("loud") { place.log.all(.migrationFailed).contains { $0.level == .error } }
      try await eventually("status") { place.manager.messages.contains { $0.contains("1 retrying") } }
      try await eventually("tried on and on") { place.log.all(.migrationFailed).count >= 5 }
    }
    let failures = place.log.all(.migrationFailed).filter { $0.level > .debug }
    #expect(failures.map(\.level) == [.warning, .error])
    #expect(failures.allSatisfy { $0[.error] == "no-space" && $0[.hint] != nil })
  }

  @Test func whatACrashLeftIsReportedAndItsJobGoesOnWithoutALook() async throws {
    let place = try Place()
    try place.write("stores/a.sqlite", "x")
    try place.write("stores/b.sqlite", "x")
    let stores = place.root.appending("stores")
    let work = FakeWork(
      onInspect: { request in
        #expect(request.location.fileName == "b.sqlite")
        return .success(.current(nil))
      },
      onMigrate: { request, _, observer in .success(.sample(request.location.database, result: .completedBeforeCrash))
      },
      recovered: [
        RecoveredStore(
          store: stores.appending("a.sqlite"), sentence: "the new store is in place", failure: nil, continues: true),
        RecoveredStore(
          store: "/elsewhere/c.sqlite", sentence: nil,
          failure: MigrationFailure(stage: .recover, error: HopdError(.storeQuarantined, "the store is missing")),
          continues: false),
      ])
    try await running(place, try place.coordinator(work)) {
      try await eventually("reported") { place.log.all(.storeMigrated).count == 1 }
    }
    #expect(place.log.all(.crashRecovered).first?[.store] == place.store("a.sqlite"))
    #expect(place.log.all(.storeRefused).first?[.store] == "/elsewhere/c.sqlite")
  }

  @Test func symbolicLinksAreReportedOnceAndLeftAlone() async throws {
    let place = try Place()
    try place.write("elsewhere.sqlite", "x")
    for name in ["a.sqlite", "b.sqlite"] {
      #expect(symlink(place.root.appending("elsewhere.sqlite").string, place.store(name)) == 0)
    }
    try await running(place, try place.coordinator(FakeWork())) {
      try await eventually("reported") { !place.log.all(.linksIgnored).isEmpty }
      // The next rescan finds the same links.
      try place.write("stores/c.sqlite", "x")
      try await eventually("looked at") { !place.log.all(.storeCurrent).isEmpty }
      try await Task.sleep(for: .milliseconds(1500))
    }
    let entries = place.log.all(.linksIgnored)
    #expect(entries.count == 1 && entries.first?[.watch] == "w")
    #expect(entries.first?.text.contains("sqlite and 1 more") == true, "\(entries)")
    #expect(place.log.all(.storeCurrent).compactMap { $0[.store] } == [place.store("c.sqlite")])
  }

  @Test func startsThatMakeNoSenseEndWithTheirStatus() throws {
    let place = try Place()
    #expect(Daemon(configurationFile: place.configuration.string).check() == 0)
    try place.write("hopd.toml", "[[watch]]\nname = 7\n")
    #expect(Daemon(configurationFile: place.configuration.string).check() == 78)
    #expect(Daemon(configurationFile: place.root.appending("missing.toml").string).check() == 78)
    #expect(Daemon.startStatus(ConfigurationInspection.notConfigured([])) == .notConfigured)
    #expect(Daemon.startStatus(HopdError(.noModels, "none")) == .notConfigured)
    #expect(Daemon.startStatus(HopdError(.noRoute, "a model is wrong")) == .configuration)
    #expect(Daemon.startStatus(HopdError(.inputOutput, "disk")) == .inputOutput)
  }
}
