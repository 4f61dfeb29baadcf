// The queue, with a clock that only the test moves. The small-world test at the end tries every history of a few
// events.

import HopdConfiguration
import StoreReplacement
import SystemPackage
import Testing

@testable import HopdService

/// The scheduler as an object: the macros of tests take no mutating calls.
private final class Queue {
  private var value: JobScheduler

  init(jobs: Int, rules: [String: RetryRule]) { value = JobScheduler(jobs: jobs, rules: rules) }
  @discardableResult func found(_ store: FoundStore, step: JobStep = .inspect, now: JobScheduler.Instant) -> Bool {
    value.found(store, step: step, now: now)
  }
  func vanished(_ key: FilePath) { value.vanished(key) }
  func configure(jobs: Int, rules: [String: RetryRule]) { value.configure(jobs: jobs, rules: rules) }
  @discardableResult func start(haltingMigrations isHalted: Bool = false) -> JobTicket? {
    value.start(haltingMigrations: isHalted)
  }
  func wake(now: JobScheduler.Instant) { value.wake(now: now) }
  func nextAlarm() -> JobScheduler.Instant? { value.nextAlarm() }
  @discardableResult func finished(_ key: FilePath, _ outcome: JobOutcome, now: JobScheduler.Instant) -> JobVerdict {
    value.finished(key, outcome, now: now)
  }
  func replaced(_ key: FilePath, by fingerprint: SourceFingerprint) { value.replaced(key, by: fingerprint) }
  func state(of key: FilePath) -> JobState? { value.state(of: key) }
  var counts: JobScheduler.Counts { value.counts }
  var batch: Int { value.batch }
  var busyCount: Int { value.entries.count }
}

@Suite struct JobSchedulerTests {
  let start = ContinuousClock.now
  let a = FoundStore.sample("a.sqlite")
  let b = FoundStore.sample("b.sqlite", inode: 2)
  let rule = RetryRule(attempts: 3, backoff: .seconds(30), longest: .seconds(100))

  func at(_ seconds: Int) -> JobScheduler.Instant { start.advanced(by: .seconds(seconds)) }
  private func scheduler(jobs: Int = 1) -> Queue { Queue(jobs: jobs, rules: ["w": rule]) }

  /// A scheduler whose store `a` is in migration.
  private func migrating() throws -> Queue {
    let queue = scheduler()
    queue.found(a, now: start)
    #expect(queue.start()?.step == .inspect)
    #expect(queue.finished(a.key, .behind, now: start) == .queued)
    #expect(queue.start()?.step == .migrate)
    return queue
  }

  /// A disk that is full for ten minutes at night must not leave every store behind.
  @Test func aCauseOutsideTheStoreIsNeverFinal() throws {
    let queue = try migrating()
    var now = start
    for attempt in 1...50 {
      let verdict = queue.finished(a.key, .outside(code: "no-space"), now: now)
      let until = now.advanced(by: .seconds(attempt == 1 ? 30 : attempt == 2 ? 60 : 100))
      #expect(
        verdict
          == (attempt == 3
            ? .lasting(until: until, attempt: 3)
            : .retry(until: until, attempt: attempt, attempts: nil, isNews: attempt == 1)))
      #expect(queue.state(of: a.key) == .deferred(.migrate, until: until))
      #expect(queue.nextAlarm() == until)
      now = until
      queue.wake(now: now)
      #expect(queue.start()?.store.key == a.key)
    }
    #expect(queue.finished(a.key, .migrated, now: now) == .settled)
  }

  @Test func aStoreAtItsTargetIsNoLongerKeptAmongThoseAtWork() throws {
    let queue = scheduler()
    let stores = (1...5000).map { FoundStore.sample("\($0).sqlite", inode: UInt64($0)) }
    func inspectAll() {
      while let ticket = queue.start() { queue.finished(ticket.store.key, .current, now: start) }
    }
    for store in stores { queue.found(store, now: start) }
    #expect(queue.busyCount == 5000)
    inspectAll()
    #expect(queue.busyCount == 0)
    #expect(queue.counts == JobScheduler.Counts(known: 5000))
    // Found again by a rescan they stay at rest; the one that changed is looked at.
    for store in stores { #expect(!queue.found(store, now: start)) }
    #expect(queue.busyCount == 0)
    #expect(queue.found(FoundStore.sample("7.sqlite", size: 2, inode: 7), now: start))
    #expect(queue.busyCount == 1)
    #expect(queue.start()?.store.key == "/srv/7.sqlite")
    queue.finished("/srv/7.sqlite", .refused(reason: "newer"), now: start)
    #expect(queue.busyCount == 1)
    #expect(queue.state(of: "/srv/7.sqlite") == .failed)
    #expect(queue.state(of: "/srv/8.sqlite") == .done)
    queue.vanished("/srv/8.sqlite")
    #expect(queue.state(of: "/srv/8.sqlite") == nil)
    #expect(queue.counts.known == 4999)
    // Other models: every one is looked at again, and rests again.
    queue.configure(jobs: 1, rules: ["w": rule])
    #expect(queue.counts.inspecting == 4999)
    inspectAll()
    #expect(queue.busyCount == 0)
    // A watch that is gone takes its stores with it.
    queue.configure(jobs: 1, rules: [:])
    #expect(queue.counts == JobScheduler.Counts())
  }

  @Test func aStoreAtRestKeepsTheNameItWasFoundUnder() throws {
    let queue = scheduler()
    var linked = FoundStore.sample("a.sqlite")
    linked.path = "/link/a.sqlite"
    queue.found(linked, now: start)
    _ = queue.start()
    queue.finished(linked.key, .current, now: start)
    queue.configure(jobs: 1, rules: ["w": rule])
    #expect(queue.start()?.store == linked)
  }

  @Test func theFileThatAJobPutInPlaceIsNoNews() throws {
    for (seen, isNews) in [(UInt64(7), false), (8, true)] {
      let queue = try migrating()
      queue.finished(a.key, .migrated, now: start)
      queue.replaced(a.key, by: FoundStore.fingerprint(inode: 7))
      #expect(queue.found(FoundStore.sample("a.sqlite", inode: seen), now: at(1)) == isNews)
    }
  }

  /// The event of the rename may be there before the end of its job is.
  @Test func theFileThatAJobPutInPlaceIsNoNewsWhileItRuns() throws {
    for (seen, isNews) in [(UInt64(7), false), (8, true)] {
      let queue = try migrating()
      queue.found(FoundStore.sample("a.sqlite", inode: seen), now: start)
      queue.replaced(a.key, by: FoundStore.fingerprint(inode: 7))
      queue.finished(a.key, .migrated, now: start)
      #expect((queue.start()?.store.mark.inode == seen) == isNews)
      #expect(queue.found(FoundStore.sample("a.sqlite", inode: 7), now: at(1)) == false)
    }
  }

  @Test func storesAreServedInTheOrderTheyCame() throws {
    let queue = scheduler()
    let stores = (1...20).map { FoundStore.sample("\($0).sqlite", inode: UInt64($0)) }
    for store in stores { queue.found(store, now: start) }
    var inspected: [FilePath] = []
    var migrated: [FilePath] = []
    var ordinals: [Int] = []
    while let ticket = queue.start() {
      if ticket.step == .inspect {
        inspected.append(ticket.store.key)
        queue.finished(ticket.store.key, .behind, now: start)
      } else {
        migrated.append(ticket.store.key)
        ordinals.append(ticket.ordinal)
        queue.finished(ticket.store.key, .migrated, now: start)
      }
    }
    #expect(inspected == stores.map(\.key))
    #expect(migrated == stores.map(\.key))
    #expect(queue.counts.toDo == 0 && queue.counts.known == 20)
  }

  @Test func positionsInTheBatchBeginAnewWhenTheQueueWasEmpty() throws {
    let queue = scheduler()
    for _ in 1...2 {
      for name in ["x", "y", "z"] {
        queue.found(.sample(name, size: Int64.random(in: 10...1_000_000)), now: start)
        queue.start(haltingMigrations: true)
        queue.finished(FilePath("/srv/\(name)"), .behind, now: start)
      }
      for ordinal in 1...3 {
        let ticket = try #require(queue.start())
        #expect(ticket.ordinal == ordinal)
        #expect(queue.batch == 3)
        queue.finished(ticket.store.key, .migrated, now: start)
      }
      #expect(queue.batch == 0)
    }
  }

  @Test(arguments: 1...4) func noMoreMigrationsThanJobs(jobs: Int) {
    let queue = scheduler(jobs: jobs)
    for number in 0..<10 {
      queue.found(.sample("\(number)", inode: UInt64(number)), step: .migrate, now: start)
    }
    var tickets: [JobTicket] = []
    while let ticket = queue.start() { tickets.append(ticket) }
    #expect(tickets.count == jobs)
    #expect(Set(tickets.map(\.job)).count == jobs)
  }

  @Test func aLongMigrationKeepsNoStoreFromBeingInspected() throws {
    let queue = try migrating()
    queue.found(b, now: start)
    let ticket = try #require(queue.start())
    #expect(ticket.store.key == b.key && ticket.step == .inspect)
    #expect(queue.finished(b.key, .behind, now: start) == .queued)
    #expect(queue.start() == nil)
  }

  @Test func migrationsHeldBackWaitWhileInspectionsGoOn() throws {
    let queue = scheduler()
    queue.found(a, now: start)
    #expect(queue.start(haltingMigrations: true)?.step == .inspect)
    queue.finished(a.key, .behind, now: start)
    #expect(queue.start(haltingMigrations: true) == nil)
    #expect(queue.start()?.step == .migrate)
  }

  @Test func aStoreFoundAgainWhileAtWorkIsNeverGivenOutTwiceAndIsInspectedAfterwards() throws {
    let queue = try migrating()
    queue.found(.sample("a.sqlite", size: 2), now: start)
    #expect(queue.start() == nil)
    #expect(queue.finished(a.key, .migrated, now: start) == .settled)
    #expect(queue.start()?.step == .inspect)
  }

  @Test func aStoreFoundAgainUnchangedWhileAtWorkIsDone() throws {
    let queue = try migrating()
    queue.found(a, now: start)
    queue.finished(a.key, .migrated, now: start)
    #expect(queue.start() == nil)
    #expect(queue.state(of: a.key) == .done)
  }

  @Test func aRefusalIsReportedOnceAndRememberedUntilTheFileChanges() throws {
    let queue = try migrating()
    #expect(queue.finished(a.key, .refused(reason: "no-route"), now: start) == .refused(isNews: true))
    // Rescans report the same again and again.
    for second in 1...100 { #expect(!queue.found(a, now: at(second))) }
    #expect(queue.start() == nil && queue.nextAlarm() == nil)
    #expect(queue.counts.attention == 1)
    // An app that keeps writing the file makes us look, but not speak.
    let written = FoundStore.sample("a.sqlite", size: 2)
    #expect(queue.found(written, now: at(200)))
    queue.start()
    #expect(queue.finished(a.key, .refused(reason: "no-route"), now: at(201)) == .refused(isNews: false))
    // Another file under the name, or another reason, is news.
    #expect(queue.found(.sample("a.sqlite", size: 2, inode: 99), now: at(300)))
    queue.start()
    #expect(queue.finished(a.key, .refused(reason: "no-route"), now: at(301)) == .refused(isNews: true))
    #expect(queue.found(.sample("a.sqlite", size: 3, inode: 99), now: at(400)))
    queue.start()
    #expect(queue.finished(a.key, .refused(reason: "damaged"), now: at(401)) == .refused(isNews: true))
  }

  @Test func aNewConfigurationGivesRefusedStoresAnotherChance() throws {
    let queue = try migrating()
    queue.finished(a.key, .refused(reason: "no-route"), now: start)
    queue.configure(jobs: 1, rules: ["w": rule])
    let ticket = try #require(queue.start())
    #expect(ticket.step == .inspect)
    // The same refusal of the same file is reported once, whatever the reloads.
    #expect(queue.finished(a.key, .refused(reason: "no-route"), now: at(5)) == .refused(isNews: false))
  }

  @Test func storesOfAWatchThatWentAwayAreForgottenAndRunningOnesFinish() throws {
    let queue = try migrating()
    queue.found(b, now: start)
    queue.configure(jobs: 1, rules: [:])
    #expect(queue.state(of: b.key) == nil)
    #expect(queue.state(of: a.key) == .running(.migrate))
    #expect(queue.finished(a.key, .migrated, now: start) == .settled)
    #expect(queue.state(of: a.key) == nil)
    #expect(queue.counts == JobScheduler.Counts())
  }

  @Test func aStoreInUseIsTriedForEverWithGrowingPausesAndReportedOnce() throws {
    let queue = try migrating()
    var now = start
    var pauses: [Duration] = []
    for round in 1...50 {
      guard case .deferred(let until, let isNews) = queue.finished(a.key, .busy(code: "store-busy"), now: now) else {
        Issue.record("not deferred in round \(round)")
        return
      }
      #expect(isNews == (round == 1))
      pauses.append(until - now)
      #expect(queue.nextAlarm() == until)
      queue.wake(now: until.advanced(by: .milliseconds(-1)))
      #expect(queue.start() == nil)
      now = until
      queue.wake(now: now)
      #expect(queue.start()?.step == .migrate)
    }
    #expect(pauses.prefix(4) == [.seconds(30), .seconds(60), .seconds(100), .seconds(100)])
    #expect(queue.finished(a.key, .migrated, now: now) == .settled)
    #expect(queue.nextAlarm() == nil)
  }

  @Test func aBusyStoreThatIsLetGoIsTriedSoonButNotAtEachWrite() throws {
    let queue = try migrating()
    for _ in 1...3 {
      queue.finished(a.key, .busy(code: "store-busy"), now: start)
      queue.wake(now: at(1000))
      queue.start()
    }
    queue.finished(a.key, .busy(code: "store-busy"), now: at(1000))
    #expect(queue.nextAlarm() == at(1100))
    for second in 1...20 { queue.found(.sample("a.sqlite", size: Int64(100 + second)), now: at(1000 + second)) }
    #expect(queue.nextAlarm() == at(1031))
    #expect(queue.start() == nil)
  }

  @Test func aFailureThatMayPassIsTriedAsOftenAsConfiguredAndThenNeedsAttention() throws {
    let queue = try migrating()
    #expect(
      queue.finished(a.key, .failed(code: "no-space"), now: start)
        == .retry(until: at(30), attempt: 1, attempts: 3, isNews: true))
    queue.wake(now: at(30))
    queue.start()
    #expect(
      queue.finished(a.key, .failed(code: "no-space"), now: at(30))
        == .retry(until: at(90), attempt: 2, attempts: 3, isNews: false))
    queue.wake(now: at(90))
    queue.start()
    #expect(queue.finished(a.key, .failed(code: "no-space"), now: at(90)) == .gaveUp(attempts: 3))
    #expect(queue.state(of: a.key) == .needsAttention)
    #expect(!queue.found(a, now: at(1000)))
    #expect(queue.found(.sample("a.sqlite", size: 5), now: at(1001)))
    queue.start()
    // The tries are counted anew for the changed file.
    #expect(
      queue.finished(a.key, .failed(code: "no-space"), now: at(1001))
        == .retry(until: at(1031), attempt: 1, attempts: 3, isNews: true))
  }

  @Test func aFailureThatIsRetriedByReloadsIsReportedOnceUntilItsCauseChanges() throws {
    let queue = try migrating()
    /// Tries until hopd gives up; whether each verdict is news.
    func rounds(_ code: String) -> [Bool] {
      (1...3).map { _ in
        defer {
          queue.wake(now: at(100_000))
          queue.start()
        }
        switch queue.finished(a.key, .failed(code: code), now: at(0)) {
        case .retry(_, _, _, let isNews), .gaveUp(_, let isNews): return isNews
        default: return false
        }
      }
    }
    #expect(rounds("io-error") == [true, false, true])
    queue.configure(jobs: 1, rules: ["w": rule])
    queue.start()
    #expect(rounds("io-error") == [false, false, false])
    queue.configure(jobs: 1, rules: ["w": rule])
    queue.start()
    #expect(rounds("hook-failed") == [true, false, true])
  }

  @Test func aStoreThatIsHeldBackHasNoNextAttemptAndIsCountedAsSuch() throws {
    let queue = scheduler()
    queue.found(a, now: start)
    queue.start()
    #expect(queue.finished(a.key, .pinned, now: start) == .pinned(isNews: true))
    #expect(queue.nextAlarm() == nil && queue.state(of: a.key) == .pinned)
    #expect(queue.counts == JobScheduler.Counts(known: 1, pinned: 1))
    // Rescans find the same file; other models, and the end of its pin, which counts as a change, are looked at.
    #expect(!queue.found(a, now: at(700)) && queue.start() == nil)
    queue.configure(jobs: 1, rules: ["w": rule])
    #expect(queue.start()?.step == .inspect)
    #expect(queue.finished(a.key, .pinned, now: at(701)) == .pinned(isNews: false))
    #expect(queue.found(FoundStore(key: a.key, path: a.path, watch: "w", mark: a.mark.changed), now: at(800)))
    queue.start()
    #expect(queue.finished(a.key, .current, now: at(801)) == .settled)
    #expect(queue.counts == JobScheduler.Counts(known: 1))
  }

  @Test func oneAttemptMeansNoRetry() throws {
    let queue = Queue(jobs: 1, rules: ["w": RetryRule(attempts: 1, backoff: .zero, longest: .zero)])
    queue.found(a, now: start)
    queue.start()
    #expect(queue.finished(a.key, .failed(code: "io-error"), now: start) == .gaveUp(attempts: 1))
  }

  @Test func deferredStoresQueueUpBehindThoseThatWait() throws {
    let queue = try migrating()
    queue.finished(a.key, .busy(code: "store-busy"), now: start)
    queue.found(b, step: .migrate, now: at(29))
    queue.wake(now: at(30))
    #expect(queue.start()?.store.key == b.key)
  }

  @Test func theJobKeepsItsNumberThroughDeferralsAndGetsANewOneForANewLife() throws {
    let queue = scheduler()
    queue.found(a, now: start)
    let inspection = try #require(queue.start())
    queue.finished(a.key, .behind, now: start)
    let first = try #require(queue.start())
    queue.finished(a.key, .busy(code: "store-busy"), now: start)
    queue.wake(now: at(60))
    let second = try #require(queue.start())
    queue.finished(a.key, .migrated, now: at(61))
    queue.found(.sample("a.sqlite", size: 9), now: at(70))
    let third = try #require(queue.start())
    #expect(inspection.job == first.job && first.job == second.job && second.job != third.job)
  }

  @Test func anotherWatchOfTheSameFileDoesNotBecomeItsOwner() {
    let queue = Queue(jobs: 2, rules: ["w": rule, "v": rule])
    queue.found(a, now: start)
    #expect(queue.start()?.store.watch == "w")
    #expect(!queue.found(.sample("a.sqlite", watch: "v", size: 3), now: start))
    #expect(queue.start() == nil)
    queue.finished(a.key, .current, now: start)
    #expect(!queue.found(.sample("a.sqlite", watch: "v", size: 3), now: start))
    queue.configure(jobs: 2, rules: ["v": rule])
    #expect(queue.found(.sample("a.sqlite", watch: "v", size: 3), now: start))
    #expect(queue.start()?.store.watch == "v")
  }

  @Test func pausesDoubleUpToTheLongestAndNeverOverflow() {
    let rule = RetryRule(attempts: 9, backoff: .seconds(30), longest: .seconds(3600))
    #expect((1...9).map { rule.pause(after: $0).components.seconds } == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600])
    #expect(rule.pause(after: .max) == .seconds(3600))
    #expect(RetryRule(attempts: 9, backoff: .seconds(50), longest: .seconds(5)).pause(after: 1) == .seconds(5))
    #expect(RetryRule(attempts: 9, backoff: .zero, longest: .zero).pause(after: 3) == .milliseconds(1))
  }

  // MARK: Every history of a small world

  enum Step: CaseIterable {
    case findA, findChangedA, findB, loseA, give, endWell, endBehind, endBusy, endFailed, endOutside, endRefused,
      endPinned, later, configure
  }

  /// Every sequence of four events over two stores, from the start and from the middle of a migration: no store is ever
  /// at work twice, no limit is passed, the counts are right, and when everybody is let go everything comes to an end.
  @Test(arguments: [[], [Step.findA, .give, .endBehind, .give]])
  func everyShortHistoryKeepsThePromises(prefix: [Step]) async {
    let steps = Step.allCases
    let length = 4
    var history = [Int](repeating: 0, count: length)
    var failures = 0
    while failures < 5 {
      let events = prefix + history.map { steps[$0] }
      if let problem = play(events) {
        Issue.record("\(events): \(problem)")
        failures += 1
      }
      var index = length - 1
      while index >= 0, history[index] == steps.count - 1 {
        history[index] = 0
        index -= 1
      }
      if index < 0 { return }
      history[index] += 1
      // Other tests wait for events with a deadline, on the same few threads.
      if index < length - 1 { await Task.yield() }
    }
  }

  private func play(_ history: [Step]) -> String? {
    let queue = scheduler(jobs: 1)
    var now = start
    var size: Int64 = 1
    var atWork: [JobTicket] = []
    func end(_ outcome: JobOutcome) -> String? {
      guard let ticket = atWork.last, ticket.step == .inspect || outcome != .behind else { return nil }
      atWork.removeLast()
      queue.finished(ticket.store.key, outcome, now: now)
      if case .running = queue.state(of: ticket.store.key) { return "still running after its end" }
      return nil
    }
    func take() -> String? {
      while let ticket = queue.start() {
        if atWork.contains(where: { $0.store.key == ticket.store.key }) { return "given out twice" }
        atWork.append(ticket)
        if atWork.count(where: { $0.step == .migrate }) > 1 { return "two migrations with one job" }
        if atWork.count > 2 { return "too many slots" }
      }
      return nil
    }
    for step in history {
      var problem: String?
      switch step {
      case .findA: queue.found(.sample("a.sqlite", size: size), now: now)
      case .findChangedA:
        size += 1
        queue.found(.sample("a.sqlite", size: size), now: now)
      case .findB: queue.found(b, now: now)
      case .loseA: queue.vanished(a.key)
      case .give: problem = take()
      case .endWell: problem = end(.migrated)
      case .endBehind: problem = end(.behind)
      case .endBusy: problem = end(.busy(code: "x"))
      case .endFailed: problem = end(.failed(code: "x"))
      case .endOutside: problem = end(.outside(code: "y"))
      case .endRefused: problem = end(.refused(reason: "x"))
      case .endPinned: problem = end(.pinned)
      case .later:
        now = now.advanced(by: .seconds(40))
        queue.wake(now: now)
      case .configure: queue.configure(jobs: 1, rules: ["w": rule])
      }
      if let problem { return problem }
      let keys = [a.key, b.key].filter { queue.state(of: $0) != nil }
      if queue.counts.known != keys.count { return "\(queue.counts.known) known, not \(keys.count)" }
      let migrating = keys.count { queue.state(of: $0) == .running(.migrate) }
      if queue.counts.migrating != migrating { return "\(queue.counts.migrating) migrating, not \(migrating)" }
    }
    // Then everybody is let go and everything succeeds.
    for _ in 0..<20 {
      if let problem = take() { return problem }
      while let ticket = atWork.popLast() { queue.finished(ticket.store.key, .current, now: now) }
      now = now.advanced(by: .seconds(200))
      queue.wake(now: now)
    }
    for key in [a.key, b.key] {
      switch queue.state(of: key) {
      case nil, .done, .failed, .needsAttention, .pinned: continue
      case .waiting, .running, .deferred: return "\(key) never comes to an end"
      }
    }
    let counts = queue.counts
    if counts.inspecting != 0 || counts.toDo != 0 { return "counts do not come to rest: \(counts)" }
    if queue.nextAlarm() != nil { return "an alarm is left" }
    return nil
  }
}
