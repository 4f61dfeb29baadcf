// The pressure of the machine: the content of the kernel's files, when work halts, and how often that is reported.

import Diagnostics
import Glibc
import MigrationPipeline
import PersistentStore
import Synchronization
import SystemPackage
import SystemdSupport
import Testing

@testable import HopdConfiguration
@testable import HopdService

@Suite struct PressureTests {
  private let now = ContinuousClock.now
  private let limits = Configuration.Throttle(ioPressure: 40, cpuPressure: 0, memoryPressure: 20)

  private func at(_ seconds: Int) -> ContinuousClock.Instant { now.advanced(by: .seconds(seconds)) }

  @Test func theKernelsLineIsRead() {
    let text = "some avg10=41.30 avg60=1.00 avg300=0.10 total=7\nfull avg10=99.00 avg60=0.00 avg300=0.00 total=1\n"
    #expect(PressureFiles.share(text) == 41.3)
    for text in ["", "full avg10=1.00\n", "some avg60=1.00\n", "some avg10=x\n", "some avg10=nan\n"] {
      #expect(PressureFiles.share(text) == nil, "\(text)")
    }
    #expect(PressureFiles(folder: "/nothing/there").read() == nil)
  }

  @Test func workHaltsAboveALimitAndIsReportedOnce() {
    var throttle = PressureThrottle()
    #expect(throttle.take(Pressure(io: 40, cpu: 100, memory: 20), limits: limits, now: at(0)) == nil)
    #expect(!throttle.isHalting)
    #expect(throttle.take(Pressure(io: 40.1), limits: limits, now: at(1)) == .halted("I/O pressure above 40%"))
    #expect(throttle.isHalting && throttle.detail == "I/O pressure 41%, limit 40%")
    // Its own halts lower the pressure: up and down, and nothing is reported.
    for second in 2..<100 {
      #expect(throttle.take(Pressure(io: second % 20 < 10 ? 10 : 90), limits: limits, now: at(second)) == nil)
      #expect(throttle.isHalting == (second % 20 >= 10))
    }
    #expect(throttle.take(Pressure(memory: 21), limits: limits, now: at(100)) == nil)
    #expect(throttle.reason == "memory pressure above 20%")
    #expect(throttle.take(Pressure(), limits: limits, now: at(101)) == nil && !throttle.isHalting)
    #expect(throttle.take(Pressure(), limits: limits, now: at(160)) == nil)
    #expect(throttle.take(Pressure(), limits: limits, now: at(161)) == .over)
    #expect(throttle.take(Pressure(io: 50), limits: limits, now: at(162)) == .halted("I/O pressure above 40%"))
  }

  /// A daemon whose kernel files a test writes; each migration moves for as long as it is not halted.
  private struct World {
    let place: DaemonTests.Place
    let chunks = Counter()

    final class Counter: Sendable {
      private let number = Mutex(0)
      var value: Int { number.withLock { $0 } }
      func add() { number.withLock { $0 += 1 } }
    }

    init(_ configuration: String = "[throttle]\nio_pressure = 40\n") throws {
      place = try DaemonTests.Place()
      mkdir(place.root.appending("psi").string, 0o755)
      let text = """
        [[watch]]
        name = "w"
        directory = "\(place.root.appending("stores"))"
        models = ["\(place.root.appending("A.xcdatamodel"))"]
        settle = "50ms"
        """
      try place.write("hopd.toml", configuration + text)
      try place.write("stores/a.sqlite", "x")
    }

    func pressure(_ value: Int) throws {
      try place.write("psi/new", "some avg10=\(value).00 avg60=0.00 avg300=0.00 total=0\n")
      rename(place.root.appending("psi/new").string, place.root.appending("psi/io").string)
    }

    var coordinator: DaemonCoordinator {
      get throws {
        let chunks = chunks
        let work = FakeWork(
          onInspect: { _ in .success(.behind(DaemonTests.facts, target: "A 2")) },
          onMigrate: { _, stop, observer in
            while !stop.isStopping {
              if !stop.isPaused { chunks.add() }
              observer(.alive(.migrate))
              usleep(10_000)
            }
            return .failure(MigrationFailure(stage: .migrate, error: HopdError(.interrupted, "stopped")))
          })
        var surroundings = DaemonCoordinator.Surroundings(
          source: .file(place.configuration), stateDirectory: place.root.appending("state"),
          pauseFile: place.root.appending("pause"), notifier: ServiceNotifier(socketPath: place.manager.path),
          work: work, logger: place.log.logger)
        surroundings.pressure = PressureFiles(folder: place.root.appending("psi"))
        return DaemonCoordinator(
          surroundings, setup: try DaemonSetup(ConfigurationSource.file(place.configuration).load()))
      }
    }

    /// Waits until nothing moves, and returns how far it is.
    func halted() async throws -> Int {
      var last = -1
      try await eventually("halted", within: 30) {
        defer { last = chunks.value }
        usleep(100_000)
        return chunks.value == last
      }
      return last
    }
  }

  @Test func aMigrationInItsMiddleHaltsAndGoesOn() async throws {
    let world = try World()
    try world.pressure(5)
    try await DaemonTests().running(world.place, try world.coordinator) {
      try await eventually("at work") { world.chunks.value > 3 }
      try world.pressure(77)
      let chunks = try await world.halted()
      try await eventually("status") {
        world.place.manager.messages.contains { $0.contains("throttled: I/O pressure 77%, limit 40%") }
      }
      try world.pressure(5)
      try await eventually("goes on") { world.chunks.value > chunks + 3 }
      #expect(world.place.log.all(.workThrottled).count == 1)
      // And once more, to be stopped while it halts.
      try world.pressure(77)
      _ = try await world.halted()
    }
    #expect(world.place.log.all(.migrationInterrupted).count + world.place.log.all(.serviceStopping).count > 0)
    #expect(world.place.log.all(.workThrottled).count == 1)
  }

  @Test func aPauseFileHaltsAMigrationInItsMiddle() async throws {
    let world = try World("")
    try await DaemonTests().running(world.place, try world.coordinator) {
      try await eventually("at work") { world.chunks.value > 3 }
      try world.place.write("pause", "")
      let chunks = try await world.halted()
      unlink(world.place.root.appending("pause").string)
      try await eventually("goes on") { world.chunks.value > chunks + 3 }
    }
  }

  @Test func aKernelWithoutPressureIsReportedOnceAndWorkGoesOn() async throws {
    let world = try World()
    try await DaemonTests().running(world.place, try world.coordinator) {
      try await eventually("at work") { world.chunks.value > 3 }
    }
    let reported = world.place.log.all(.configurationWarning).filter { $0.text.contains("/proc/pressure") }
    #expect(reported.count == 1 && reported.first?[.hint]?.contains("psi=1") == true)
  }

  @Test func outsideItsHoursNoStoreBegins() async throws {
    // A window of one minute that was a while ago.
    let past = Int64(time(nil)) % 86_400 / 60 + 720
    func text(_ minute: Int64) -> String {
      let (hours, minutes) = (minute % 1440 / 60, minute % 60)
      return "\(hours < 10 ? "0" : "")\(hours):\(minutes < 10 ? "0" : "")\(minutes)"
    }
    let world = try World(
      "[daemon]\nwindow = \"\(text(past))-\(text(past + 1))\"\ntime_zone = \"UTC\"\n")
    try await DaemonTests().running(world.place, try world.coordinator) {
      try await eventually("status") {
        world.place.manager.messages.contains { $0.contains("1 to migrate; waiting until \(text(past)) UTC") }
      }
      #expect(world.chunks.value == 0)
    }
  }
}
