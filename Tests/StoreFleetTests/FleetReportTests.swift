// The report of many workers: each store once, whatever the order of files and lines and however many runs there were.

import Diagnostics
import FoundationEssentials
import SeededRandom
import Testing

@testable import StoreFleet

@Suite struct FleetReportTests {
  /// A made-up history: workers come and go, are killed, and come again; what the stores went through is known.
  private struct World {
    var results: [ResultLine] = []
    var runs: [RunLine] = []
    var migrated = 0
    var current = 0
    var failed = 0
    var waiting = 0

    init(seed: UInt64) {
      var dice = Dice(seed: seed)
      let shards = 1 + dice.below(5)
      for index in 1...shards {
        guard let shard = Shard(index: index, count: shards) else { continue }
        let stores = (0..<dice.below(12)).map { "/srv/\(index)/\($0).sqlite" }
        var last: [String: StoreResult] = [:]
        var wasMigrated: Set<String> = []
        for run in 0...dice.below(3) {
          let name = "\(index)-\(run)"
          let time = Int64(run * 1000)
          runs.append(
            RunLine(
              run: name, shard: shard, stores: stores.count, fleet: 99, host: "h", time: Moment(milliseconds: time),
              canary: false))
          for (place, store) in stores.enumerated() {
            let isDone = last[store] == .migrated || last[store] == .current
            let result: StoreResult = isDone ? .current : dice.pick([.migrated, .current, .failed, .waiting])
            var line = ResultLine(
              store: store, result: result, seconds: 0.5, time: Moment(milliseconds: time + Int64(place)), run: name)
            (line.from, line.to, line.rows) = (isDone ? "2" : "1", "2", result == .migrated ? 10 : nil)
            if result == .failed || result == .waiting {
              line.error = LineError(HopdError(result == .failed ? .usage : .noSpace, "why \(place)"))
            }
            results.append(line)
            if result == .migrated { wasMigrated.insert(store) }
            last[store] = result
          }
          var end = runs[runs.count - 1]
          (end.event, end.outcome) = (
            .end, RunOutcome(exit: 0, migrated: 0, current: 0, failed: 0, waiting: 0, untried: 0, seconds: 1)
          )
          runs.append(end)
        }
        migrated += wasMigrated.count
        current += last.count { $0.value == .current && !wasMigrated.contains($0.key) }
        failed += last.count { $0.value == .failed }
        waiting += last.count { $0.value == .waiting }
      }
    }
  }

  @Test(arguments: 1...60)
  func everyStoreCountsOnce(_ seed: Int) throws {
    let world = World(seed: UInt64(seed))
    var dice = Dice(seed: UInt64(seed))
    var texts: [String] = []
    for order in 0..<4 {
      var builder = FleetReportBuilder()
      for line in world.runs.shuffled(using: &dice) { builder.add(line) }
      // The first order is that of time.
      for line in order == 0 ? world.results : world.results.shuffled(using: &dice) { builder.add(line) }
      let report = builder.made()
      #expect(report.migrated == world.migrated, "seed \(seed), order \(order)")
      #expect(report.current == world.current && report.failed == world.failed, "seed \(seed), order \(order)")
      #expect(report.waiting == world.waiting && report.migratedTwice == 0, "seed \(seed), order \(order)")
      #expect(report.withoutResult == 0 && report.shards.allSatisfy { $0.state == .ended })
      #expect(report.failures.reduce(0) { $0 + $1.stores } == world.failed + world.waiting)
      #expect(report.exit == (world.waiting > 0 ? .temporaryFailure : world.failed > 0 ? .dataError : .success))
      let encoder = JSONEncoder()
      encoder.outputFormatting = .sortedKeys
      texts.append(String(decoding: try encoder.encode(report.versions), as: UTF8.self))
    }
    #expect(Set(texts).count == 1, "the versions depend on the order of the lines: seed \(seed)")
  }

  @Test func aKilledRunAndAMissingShardAreNamed() throws {
    var builder = FleetReportBuilder()
    let first = RunLine(
      run: "a", shard: try #require(Shard("1/3")), stores: 2, fleet: 6, host: "n1", time: Moment(milliseconds: 1),
      canary: false)
    builder.add(first)
    builder.add(ResultLine(store: "/a", result: .migrated, seconds: 1, time: Moment(milliseconds: 2), run: "a"))
    let second = RunLine(
      run: "b", shard: try #require(Shard("2/3")), stores: 2, fleet: 6, host: "n2", time: Moment(milliseconds: 1),
      canary: false)
    builder.add(second)
    var end = second
    end.event = .end
    end.outcome = RunOutcome(
      exit: 75, stopped: .deadline, migrated: 0, current: 0, failed: 0, waiting: 0, untried: 2, seconds: 1)
    builder.add(end)
    let report = builder.made()
    #expect(report.shards.map(\.state) == [.unfinished, .stopped, .missing])
    #expect(report.fleet == 6 && report.withoutResult == 5 && report.exit == .temporaryFailure)
  }

  /// Nothing is known of the fleet: an empty file, or the torn first line of a worker that was killed.
  @Test func withoutARunNothingIsDone() {
    let report = FleetReportBuilder().made()
    #expect(report.runs == 0 && report.exit == .temporaryFailure)
  }

  /// The results of two workers that migrated the same store.
  @Test func aStoreThatWasMigratedTwiceIsReported() {
    var builder = FleetReportBuilder()
    for (run, time) in [("a", Int64(1)), ("b", 2)] {
      var line = ResultLine(store: "/a", result: .migrated, seconds: 1, time: Moment(milliseconds: time), run: run)
      (line.from, line.to) = ("1", "2")
      builder.add(line)
    }
    let report = builder.made()
    #expect(report.migrated == 1 && report.migratedTwice == 1)
  }

  /// The example of a cause is a store that still has it.
  @Test func examplesAreStillTrue() {
    var builder = FleetReportBuilder()
    for (store, time) in [("/mended", Int64(1)), ("/broken", 1)] {
      var line = ResultLine(store: store, result: .failed, seconds: 1, time: Moment(milliseconds: time), run: "a")
      line.error = LineError(HopdError(.usage, "it fails", hint: "mend it"))
      builder.add(line)
    }
    var again = ResultLine(store: "/mended", result: .failed, seconds: 1, time: Moment(milliseconds: 0), run: "a")
    again.error = LineError(HopdError(.usage, "it fails"))
    builder.add(again)
    builder.add(ResultLine(store: "/mended", result: .migrated, seconds: 1, time: Moment(milliseconds: 5), run: "b"))
    let causes = builder.made().failures
    #expect(causes.count == 1 && causes.first?.example == "/broken" && causes.first?.stores == 1)
  }
}
