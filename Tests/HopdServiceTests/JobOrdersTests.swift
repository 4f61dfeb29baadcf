// Orders of an operator to the queue: again, first, not now.

import Diagnostics
import Glibc
import HopdConfiguration
import SystemPackage
import Testing

@testable import HopdService

@Suite struct JobOrdersTests {
  private let now = ContinuousClock.now
  private let rules = [
    "w": RetryRule(attempts: 1, backoff: .seconds(3600), longest: .seconds(3600)),
    "v": RetryRule(attempts: 1, backoff: .seconds(3600), longest: .seconds(3600)),
  ]

  /// A queue of stores that wait for their migration, in this order.
  private func queue(_ names: [String], jobs: Int = 1) -> JobScheduler {
    var queue = JobScheduler(jobs: jobs, rules: rules)
    for name in names {
      queue.found(.sample(name, watch: name.hasPrefix("v") ? "v" : "w"), step: .migrate, now: now)
    }
    return queue
  }

  /// Takes every migration that may begin to its end; the names in their order.
  private func run(_ queue: inout JobScheduler) -> [String] {
    var names: [String] = []
    while let ticket = queue.start() {
      let outcome: JobOutcome = ticket.step == .inspect ? .behind : .migrated
      _ = queue.finished(ticket.store.key, outcome, now: now)
      if ticket.step == .migrate { names.append(ticket.store.key.lastComponent?.string ?? "") }
    }
    return names
  }

  private func key(_ name: String) -> FilePath { FilePath("/srv/\(name)") }

  @Test func aStoreThatIsPutInFrontIsNext() {
    var queue = queue(["a", "b", "c"])
    let done1 = queue.order(key("c"), first: true)
    #expect(done1)
    do {
      let names = run(&queue)
      #expect(names == ["c", "a", "b"])
    }
    // Also one at its target: it is looked at while another migration is at work, and is in front only this once.
    for name in ["d", "e"] { queue.found(.sample(name), step: .migrate, now: now) }
    queue.order(key("a"), first: true)
    let tickets = [queue.start(), queue.start()]
    #expect(tickets.map { $0?.store.key } == [key("d"), key("a")])
    _ = queue.finished(key("a"), .behind, now: now)
    _ = queue.finished(key("d"), .migrated, now: now)
    do {
      let names = run(&queue)
      #expect(names == ["a", "e"])
    }
    #expect(queue.prioritized.isEmpty)
    let done2 = queue.order(key("nothing"), first: true)
    #expect(!done2)
  }

  @Test func whatIsPausedDoesNotBeginAndGoesOnInItsOrder() {
    var queue = queue(["a", "v1", "b", "v2", "c"])
    queue.changePauses { $0.pause(watch: "v") }
    queue.changePauses { $0.pause(store: key("b")) }
    do {
      let names = run(&queue)
      #expect(names == ["a", "c"])
    }
    #expect(queue.counts.waiting == 3)
    queue.order(key("v2"), first: true)
    do {
      let names = run(&queue)
      #expect(names == [])
    }
    let done3 = queue.changePauses { $0.resume(store: key("b")) }
    #expect(done3)
    do {
      let names = run(&queue)
      #expect(names == ["b"])
    }
    let done4 = queue.changePauses { $0.resume() }
    #expect(done4)
    do {
      let names = run(&queue)
      #expect(names == ["v2", "v1"])
    }
    let done5 = queue.changePauses { $0.resume(watch: "v") }
    #expect(!done5)
    #expect(queue.counts.waiting == 0 && queue.parked.isEmpty)
  }

  @Test func everyFailureCanBeTriedAgainAtOnce() {
    var queue = queue(["refused", "gaveUp", "busy", "outside", "well"], jobs: 9)
    let outcomes: [String: JobOutcome] = [
      "refused": .refused(reason: "x"), "gaveUp": .failed(code: "x"), "busy": .busy(code: "x"),
      "outside": .outside(code: "x"), "well": .migrated,
    ]
    while let ticket = queue.start() {
      _ = queue.finished(ticket.store.key, outcomes[ticket.store.key.lastComponent?.string ?? ""] ?? .gone, now: now)
    }
    #expect(queue.failing.map { $0.lastComponent?.string } == ["busy", "gaveUp", "outside", "refused"])
    let none = queue.start()
    #expect(none == nil)
    for key in queue.failing {
      let isTried = queue.order(key, first: false)
      #expect(isTried)
    }
    #expect(queue.failing.isEmpty)
    let names = Set(run(&queue))
    #expect(names == ["busy", "gaveUp", "outside", "refused"])
    #expect(queue.counts == JobScheduler.Counts(known: 5))
  }

  @Test func aRefusalThatIsRetriedIsNoNewsUntilItsCauseChanges() {
    var queue = queue(["a"])
    func refused(_ reason: String) -> JobVerdict {
      _ = queue.start()
      return queue.finished(key("a"), .refused(reason: reason), now: now)
    }
    var verdicts: [JobVerdict] = []
    for reason in ["x", "x", "x", "y"] {
      verdicts.append(refused(reason))
      if verdicts.count == 3 { #expect(queue.times(key("a")) == 3) }
      queue.order(key("a"), first: false)
    }
    #expect(verdicts == [true, false, false, true].map { .refused(isNews: $0) })
    #expect(queue.times(key("a")) == 1)
  }

  @Test func aStoreAtWorkIsLeftAlone() throws {
    var queue = queue(["a"])
    let first = queue.start()
    let ticket = try #require(first)
    let done6 = queue.order(ticket.store.key, first: true)
    #expect(!done6)
    queue.changePauses { $0.pause(all: true) }
    let verdict = queue.finished(ticket.store.key, .interrupted, now: now)
    let next = queue.start()
    #expect(verdict == .queued && next == nil && queue.isPaused(ticket.store))
    _ = queue.changePauses { $0.resume() }
    do {
      let names = run(&queue)
      #expect(names == ["a"])
    }
  }

  @Test func pausesOutliveTheDaemon() throws {
    var template = Array("/tmp/hopd-pauses-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let room = FilePath(String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
    let file = room.appending("paused.json").string
    defer {
      unlink(file)
      rmdir(room.string)
    }
    var pauses = Pauses(stateDirectory: room)
    #expect(pauses.isEmpty)
    pauses.pause(watch: "w")
    pauses.pause(store: "/srv/a b")
    pauses.pause(all: true)
    var again = Pauses(stateDirectory: room)
    #expect(again.all && again.watches == ["w"] && again.stores == ["/srv/a b"])
    // The pause of everything ends alone, and once.
    let endsGlobal = again.resumeGlobal()
    let endsNone = again.resumeGlobal()
    #expect(endsGlobal && !endsNone && !again.all && again.watches == ["w"] && again.stores == ["/srv/a b"])
    #expect(!Pauses(stateDirectory: room).all)
    let done7 = again.resume()
    #expect(done7)
    #expect(Pauses(stateDirectory: room).isEmpty && access(file, F_OK) != 0)
    // A file that is not a list of pauses may have been one, so everything is paused, and an operator is told.
    close(open(file, O_CREAT | O_WRONLY, 0o600))
    var lost = Pauses(stateDirectory: room)
    #expect(lost.all && lost.problem?.place.file?.string == file)
    let ends = lost.resume()
    #expect(ends && lost.problem == nil && Pauses(stateDirectory: room).isEmpty)
    // A pause that cannot be stored is in force, and the order fails.
    try #require(mkdir(file, 0o700) == 0)
    defer { rmdir(file) }
    lost.pause(all: true)
    #expect(lost.all && lost.problem != nil)
  }

  @Test func thePaceOfTheQueue() {
    var pace = QueuePace()
    #expect(pace.remaining(waiting: 3, jobs: 1, working: []) == nil)
    #expect(pace.remaining(waiting: 0, jobs: 1, working: [nil, 7]) == 7)
    pace.note(seconds: 10)
    #expect(pace.remaining(waiting: 4, jobs: 2, working: [5, nil]) == 27.5)
    #expect(pace.remaining(waiting: 1, jobs: 2, working: [100]) == 100)
    pace.note(seconds: .nan)
    #expect(pace.remaining(waiting: 1, jobs: 1, working: []) == 10)
  }
}
