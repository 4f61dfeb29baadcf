// The order of jobs: priorities, fairness, and no job waits for ever.

import HopdConfiguration
import SeededRandom
import SystemPackage
import Testing

@testable import HopdService

@Suite struct MigrationTurnTests {
  private let now = ContinuousClock.now
  private let rule = RetryRule(attempts: 1, backoff: .seconds(3600), longest: .seconds(3600))

  private func queue(_ priorities: [String: Int]) -> JobScheduler {
    var queue = JobScheduler(jobs: 1, rules: priorities.mapValues { _ in rule })
    queue.migrations.priorities = priorities
    return queue
  }

  private func add(_ names: [String], to queue: inout JobScheduler) {
    for name in names {
      queue.found(.sample(name, watch: String(name.prefix(1))), step: .migrate, now: now)
    }
  }

  /// Takes migrations to their end; the names in their order.
  private func run(_ queue: inout JobScheduler, most: Int = .max) -> [String] {
    var names: [String] = []
    while names.count < most, let ticket = queue.start() {
      _ = queue.finished(ticket.store.key, .migrated, now: now)
      if ticket.step == .migrate { names.append(ticket.store.key.lastComponent?.string ?? "") }
    }
    return names
  }

  @Test func aHigherPriorityIsFirstAndWatchesOfOnePriorityTakeTurns() {
    var queue = queue(["a": 0, "b": 0, "h": 5])
    add(["a1", "a2", "a3", "b1", "h1", "h2"], to: &queue)
    let names = run(&queue)
    #expect(names == ["h1", "h2", "a1", "b1", "a2", "a3"])
  }

  @Test func everyEighthIsTheOneThatHasWaitedLongest() {
    var queue = queue(["l": -1, "h": 1])
    add((1...3).map { "l\($0)" } + (1...40).map { "h\($0)" }, to: &queue)
    let names = run(&queue)
    #expect(names.firstIndex(of: "l1") == 7 && names.firstIndex(of: "l2") == 15 && names.firstIndex(of: "l3") == 23)
    #expect(names.filter { $0.hasPrefix("h") } == (1...40).map { "h\($0)" })
  }

  @Test func aReloadChangesPrioritiesAndKeepsTheOrder() {
    var queue = queue(["a": 0, "b": 0])
    add(["a1", "b1", "a2", "b2"], to: &queue)
    queue.configure(jobs: 1, rules: ["a": rule, "b": rule], priorities: ["b": 9])
    let names = run(&queue)
    #expect(names == ["b1", "b2", "a1", "a2"])
  }

  @Test func outsideItsHoursAWatchBeginsNothingAndTheOthersGoOn() {
    var queue = queue(["a": 9, "b": 0])
    add(["a1", "b1", "a2", "b2"], to: &queue)
    queue.close(["a"])
    // Also what an operator put in front waits for its hour.
    queue.order("/srv/a2", first: true)
    do {
      let names = run(&queue)
      #expect(names == ["b1", "b2"])
    }
    do {
      let waiting = queue.waitingForTheirHour()
      #expect(waiting == ["a"] && queue.haltedCount >= 2 && queue.counts.waiting == 2)
    }
    queue.close([])
    do {
      let names = run(&queue)
      let waiting = queue.waitingForTheirHour()
      #expect(names == ["a2", "a1"] && waiting.isEmpty)
    }
  }

  @Test func otherModelsOfAWatchLetItsStoresBeInspectedAgainAndNoOthers() {
    var queue = queue(["a": 0, "b": 0])
    add(["a1", "a2", "a3", "b1"], to: &queue)
    let outcomes: [JobOutcome] = [.migrated, .refused(reason: "x"), .failed(code: "x"), .refused(reason: "y")]
    // Watches take turns: a1, b1, a2, a3.
    for outcome in outcomes {
      let ticket = queue.start()
      _ = queue.finished(ticket?.store.key ?? "", outcome, now: now)
    }
    #expect(queue.counts.inspecting == 0 && queue.counts.attention == 3)
    queue.modelsChanged(ofWatch: "a")
    #expect(queue.counts.inspecting == 3 && queue.state(of: "/srv/b1") == .failed)
    queue.modelsChanged(ofWatch: "nothing")
    #expect(queue.counts.inspecting == 3)
  }

  /// Random arrivals, priorities, pauses and hours: every store that may begin does, none twice, and none is overtaken
  /// for ever.
  @Test(arguments: UInt64(0)..<40) func nobodyWaitsForEver(_ seed: UInt64) {
    var dice = Dice(seed: seed)
    let watches = ["a", "b", "c", "d"]
    var queue = queue(Dictionary(uniqueKeysWithValues: watches.map { ($0, dice.below(5) - 2) }))
    var added: [String: Int] = [:]
    var begun: [String] = []
    for step in 0..<300 {
      if dice.chance(60) {
        let name = "\(dice.pick(watches))\(step)"
        add([name], to: &queue)
        added[name] = begun.count
      }
      if dice.chance(5) { queue.close(dice.chance(50) ? [] : [dice.pick(watches)]) }
      if dice.chance(5) {
        let watch = dice.pick(watches)
        queue.changePauses { if !$0.resume(watch: watch) { $0.pause(watch: watch) } }
      }
      if dice.chance(40) { begun += run(&queue, most: 1) }
    }
    queue.close([])
    _ = queue.changePauses { $0.resume() }
    let waiting = added.keys.filter { !begun.contains($0) }
    let rest = run(&queue)
    begun += rest
    #expect(Set(begun) == Set(added.keys) && begun.count == added.count)
    // The k-th of those that waited has begun after eight times as many starts.
    let oldest = waiting.sorted { (Int($0.dropFirst()) ?? 0) < (Int($1.dropFirst()) ?? 0) }
    for (position, name) in oldest.enumerated() {
      #expect((rest.firstIndex(of: name) ?? .max) < (position + 1) * Int(MigrationLine.oldestEvery))
    }
    #expect(queue.counts.waiting == 0 && queue.parked.isEmpty)
  }
}
