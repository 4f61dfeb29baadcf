// How many stores a worker has at a time: its jobs.

import Diagnostics
import Glibc
import MigrationPipeline
import Synchronization
import Testing

@testable import StoreFleet

@Suite struct FleetWorkerTests {
  /// Counts the stores at work.
  private final class Presence: Sendable {
    private let counts = Mutex((now: 0, most: 0))

    var now: Int { counts.withLock { $0.now } }
    var most: Int { counts.withLock { $0.most } }

    func enter() { counts.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) } }
    func leave() { counts.withLock { $0.now -= 1 } }
  }

  @Test(arguments: [1, 2, 3])
  func storesAtATime(_ jobs: Int) throws {
    let presence = Presence()
    let stores = (0..<24).map { StoreLine(store: "/stores/\($0)") }
    let worker = FleetWorker(
      task: { line, _ in
        presence.enter()
        // Waits for as many others as can be there, so that the test depends on no speed.
        let end = ContinuousClock.now + .seconds(10)
        while presence.most < jobs, ContinuousClock.now < end { usleep(1000) }
        presence.leave()
        return ResultLine(store: line.store, result: .migrated, seconds: 0, time: Moment(milliseconds: 1), run: "r")
      }, limits: FleetWorker.Limits(jobs: jobs), signal: StopSignal(), keep: { _ in })
    let outcome = try worker.run(stores) { _, _ in }
    #expect(outcome.migrated == 24)
    #expect(presence.most == jobs)
    #expect(presence.now == 0)
  }
}
