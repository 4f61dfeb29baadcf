// Orders over the socket of a daemon whose record other programs hold: the record waits, the orders do not.

import ConfigurationInspection
import Diagnostics
import Glibc
import HopdConfiguration
import HopdControl
import SQLite
import ServiceState
import SystemPackage
import SystemdSupport
import Testing

@testable import HopdService
@testable import MigrationPipeline

@Suite struct OrderTimeTests {
  /// A busy machine may need longer than hopctl's patience.
  @discardableResult
  private func call(_ socket: FilePath, _ method: String, _ parameters: [String: ControlValue] = [:]) throws
    -> ControlValue
  {
    try ControlClient(socket).call(method, parameters, timeout: .seconds(120))
  }

  /// Runs a daemon with a socket during `body`, which gets the socket's path and the file of the record.
  private func serving(_ body: @escaping @Sendable (DaemonTests.Place, FilePath, FilePath) throws -> Void) async throws
  {
    let place = try DaemonTests.Place(rescan: "1h")
    try place.write("stores/a.sqlite", "x")
    let state = place.root.appending("state")
    let recorder = try StateRecorder(stateDirectory: state, logger: place.log.logger) { Int64(time(nil)) }
    let source = ConfigurationSource.file(place.configuration)
    let daemon = DaemonCoordinator(
      DaemonCoordinator.Surroundings(
        source: source, stateDirectory: state, pauseFile: place.root.appending("pause"),
        notifier: ServiceNotifier(socketPath: place.manager.path),
        work: FakeWork(onInspect: { _ in .success(.current(DaemonTests.facts)) }), logger: place.log.logger,
        recorder: recorder), setup: try DaemonSetup(source.load()))
    let handler = ControlRequestHandler(coordinator: daemon, stateDirectory: state, logger: place.log.logger)
    let socket = place.root.appending("socket")
    let server = try #require(handler.serve(socket, runtime: nil, recorder: recorder))
    defer { server.stop() }
    try await DaemonTests().running(place, daemon) {
      try await eventually("ready") { !place.log.all(.serviceReady).isEmpty }
      // A client blocks its thread, so it gets one of its own: the daemon needs those of the pool.
      try await withCheckedThrowingContinuation { continuation in
        BlockingWork.run("client") {
          continuation.resume(with: Result { try body(place, socket, state.appending("state.sqlite")) })
        }
      }
    }
  }

  @Test func anOrderDoesNotWaitForTheRecord() async throws {
    try await serving { place, socket, record in
      let state = record.removingLastComponent()
      while try StateReader(stateDirectory: state).stores().isEmpty { usleep(10_000) }
      let other = try Connection(path: record, access: .shared(writes: true))
      try other.execute("BEGIN IMMEDIATE")
      // The lock is held until all orders are carried out.
      for method in ["Pause", "Resume", "Pause", "Resume"] { try call(socket, method) }
      try call(socket, "Retry", ["failed": .boolean(true)])
      // And the record can be read meanwhile.
      let stores = try call(socket, "ListStores")["stores"]?.list
      #expect(stores?.count == 1)
      try other.execute("ROLLBACK")
    }
  }

  @Test func theNextQueryFindsAnOrder() async throws {
    try await serving { place, socket, record in
      let reader = try StateReader(stateDirectory: record.removingLastComponent())
      // The answer waits half a second for the record, which a busy machine may need longer to write.
      var found = 0
      for _ in 0..<20 {
        try call(socket, "Pause")
        found += try reader.service()[.paused] == "everything" ? 1 : 0
        try call(socket, "Resume")
        found += try reader.service()[.paused] == nil ? 1 : 0
      }
      #expect(found > 20, "\(found) of 40")
    }
  }

  /// The calls of the kernel end a path at a NUL, so an order for one store would act on another.
  @Test func aNameWithANULIsInvalid() async throws {
    try await serving { place, socket, _ in
      let name = ControlValue.string(place.store("a.sqlite") + "\0/etc/passwd")
      for (method, parameters) in [
        ("Pause", ["name": name]), ("Resume", ["name": name]), ("PauseNow", ["store": name]),
        ("RetryFirst", ["store": name]),
        ("Retry", ["stores": .array([name])]), ("GetStore", ["store": name]), ("ListJobs", ["store": name]),
      ] as [(String, [String: ControlValue])] {
        let error = #expect(throws: HopdError.self, "\(method)") { try call(socket, method, parameters) }
        #expect(error?.message.contains("InvalidParameter") == true, "\(method): \(String(describing: error))")
      }
    }
  }

  @Test func theMostJobsAreReported() async throws {
    try await serving { place, socket, _ in
      try call(socket, "Set", ["key": .string("jobs"), "value": .string("64")])
      let error = #expect(throws: HopdError.self) {
        try call(socket, "Set", ["key": .string("jobs"), "value": .string("65")])
      }
      #expect(error?.hint?.contains("jobs = 1 to 64") == true)
      try call(socket, "Set", ["key": .string("memory_limit"), "value": .string("2MiB")])
      try call(socket, "Set", ["key": .string("jobs"), "value": .string("16")])
    }
  }
}
