// A watch that cannot be served does not affect the others, is named, and returns by itself. And limits that let
// nothing be served.

import ConfigurationInspection
import Diagnostics
import Glibc
import HopdConfiguration
import MigrationPipeline
import PersistentStore
import ServiceState
import StoreReplacement
import Synchronization
import SystemPackage
import SystemdSupport
import Testing

@testable import HopdService

@Suite struct DegradedWatchTests {
  /// Two watches; the second has its models and its directory elsewhere.
  private func place(models: String, directory: String = "more") throws -> DaemonTests.Place {
    let place = try DaemonTests.Place()
    mkdir(place.root.appending("more").string, 0o755)
    func watch(_ name: String, _ directory: String, _ model: String) -> String {
      """
      [[watch]]
      name = "\(name)"
      directory = "\(place.root.appending(directory))"
      models = ["\(place.root.appending(model))"]
      settle = "50ms"
      rescan = "1s"

      """
    }
    try place.write("hopd.toml", watch("w", "stores", "A.xcdatamodel") + watch("v", directory, models))
    try place.write("stores/a.sqlite", "x")
    try place.write("more/b.sqlite", "x")
    return place
  }

  private func coordinator(_ place: DaemonTests.Place, _ work: FakeWork) throws -> DaemonCoordinator {
    DaemonCoordinator(
      DaemonCoordinator.Surroundings(
        source: .file(place.configuration), stateDirectory: place.root.appending("state"),
        pauseFile: place.root.appending("pause"), notifier: ServiceNotifier(socketPath: place.manager.path), work: work,
        logger: place.log.logger,
        recorder: try StateRecorder(stateDirectory: place.root.appending("state"), logger: place.log.logger) {
          Int64(time(nil))
        }),
      setup: try DaemonSetup(ConfigurationSource.file(place.configuration).load(), mayDegrade: true))
  }

  private func inspections() -> (work: FakeWork, names: @Sendable () -> [String]) {
    let names = Names()
    let work = FakeWork(onInspect: { request in
      names.list.withLock { $0.append(request.location.fileName) }
      return .success(.current(nil))
    })
    return (work, { names.list.withLock { $0 } })
  }

  private final class Names: Sendable {
    let list = Mutex<[String]>([])
  }

  @Test func modelsThatAreGoneDegradeTheirWatchAloneAndItRecovers() async throws {
    let place = try place(models: "later/A.xcdatamodel")
    let (work, names) = inspections()
    try await DaemonTests().running(place, try coordinator(place, work)) {
      try await eventually("the other is served") { names() == ["a.sqlite"] }
      let entry = try #require(place.log.all(.watchDegraded).first)
      #expect(entry[.watch] == "v" && entry.text.contains("is unavailable"))
      try await eventually("status") {
        place.manager.messages.contains { $0.contains("STATUS=watching 1 store; unavailable: v") }
      }
      mkdir(place.root.appending("later").string, 0o755)
      #expect(
        rename(place.root.appending("A.xcdatamodel").string, place.root.appending("later/A.xcdatamodel").string) == 0)
      try await eventually("served again") { names() == ["a.sqlite", "b.sqlite"] }
      #expect(place.log.all(.watchRestored).first?[.watch] == "v")
      try await eventually("status") {
        place.manager.messages.last { $0.contains("STATUS=") }?.contains("unavailable") == false
      }
    }
  }

  @Test func aDirectoryThatIsNotMountedIsNamedInTheStatus() async throws {
    let place = try place(models: "A.xcdatamodel", directory: "mount")
    let (work, names) = inspections()
    try await DaemonTests().running(place, try coordinator(place, work)) {
      try await eventually("status") { place.manager.messages.contains { $0.contains("; unavailable: v") } }
      try await eventually("the reason is recorded") {
        let facts = try? StateReader(stateDirectory: place.root.appending("state")).service()
        return facts?[.unavailable] == "v" && facts?[.unavailableReasons]?.isEmpty == false
      }
      try await eventually("the other is served") { names() == ["a.sqlite"] }
      #expect(rename(place.root.appending("more").string, place.root.appending("mount").string) == 0)
      try await eventually("served") { names() == ["a.sqlite", "b.sqlite"] }
    }
  }

  /// Where every watch waits for a late mount, the daemon waits too; where none can ever be served, it does not start.
  @Test func onlyWhatTimeCannotMendKeepsTheDaemonFromStarting() throws {
    let place = try DaemonTests.Place()
    let source = ConfigurationSource.file(place.configuration)
    try place.write("A.xcdatamodel/contents", "<model><entity name='A'>")
    #expect(throws: HopdError.self) { try DaemonSetup(source.load(), mayDegrade: true) }
    unlink(place.root.appending("A.xcdatamodel/contents").string)
    rmdir(place.root.appending("A.xcdatamodel").string)
    let setup = try DaemonSetup(source.load(), mayDegrade: true)
    #expect(Array(setup.unavailable.keys) == ["w"] && setup.directories.isEmpty && setup.allDirectories.count == 1)
    // A reload takes all or nothing.
    #expect(throws: HopdError.self) { try DaemonSetup(source.load()) }
  }

  @Test func twoWatchesOfOneDirectoryAreAnError() throws {
    let place = try place(models: "A.xcdatamodel", directory: "stores")
    let error = #expect(throws: HopdError.self) {
      try DaemonSetup(ConfigurationSource.file(place.configuration).load(), mayDegrade: true)
    }
    #expect(error?.code == .configurationInvalid && error?.place.line == 9 && error?.message.contains(":3)") == true)
    #expect(Daemon(configurationFile: place.configuration.string).check() == 78)
  }

  @Test func limitsThatAreTooLowAreReported() throws {
    try ProcessLimits.check(jobs: 2, memory: 64 << 20)
    let memory = #expect(throws: HopdError.self) { try ProcessLimits.checkMemory(1 << 60) }
    #expect(memory?.code == .limitsTooLow && memory?.hint?.contains("LimitDATA=") == true)
  }

  @Test func storesOfOthersAreReportedAtTheStart() throws {
    let place = try DaemonTests.Place()
    try place.write("stores/a.sqlite", "x")
    func warnings(_ more: String, user: UInt32, canLease: Bool) throws -> [HopdError] {
      try place.configure(more)
      return LeaseOutlook.warnings(
        try ConfigurationSource.file(place.configuration).load().configuration, user: user, canLease: canLease)
    }
    let stranger = geteuid() &+ 1
    #expect(try warnings("", user: geteuid(), canLease: false).isEmpty)
    #expect(try warnings("", user: stranger, canLease: true).isEmpty)
    let warning = try #require(try warnings("", user: stranger, canLease: false).first)
    #expect(warning.message.contains("CAP_LEASE") && warning.message.contains("replaced in place"), "\(warning)")
  }
}
