// Every order in which workers on several machines can take, lose and use the lock of one store, with crashes, pauses
// longer than the lease, calls that arrive after their caller has died, and replies that get lost
// (docs/formats/worker-lock.md, "Proof").

import BlockingTests
import Testing

@testable import StoreReplacement

@Suite(.blocking) struct WorkerLockProtocolTests {
  /// How much of the world is visited.
  struct Bounds: Sendable, CustomTestStringConvertible {
    var workers: Int
    /// How often each worker tries to take the lock.
    var attempts: Int
    /// How many leases pass.
    var ticks: Int
    var crashes: Int
    var lostAnswers = 0
    /// Whether calls whose effect no other worker can see are made together with the call before them.
    var joinsPrivateCalls = false
    var testDescription: String {
      "\(workers) workers, \(attempts) attempts, \(ticks) leases, \(crashes) crashes, \(lostAnswers) lost answers"
    }
  }

  static let bounds = [
    Bounds(workers: 2, attempts: 2, ticks: 1, crashes: 1),
    Bounds(workers: 2, attempts: 1, ticks: 0, crashes: 0, lostAnswers: 1),
    Bounds(workers: 3, attempts: 1, ticks: 0, crashes: 0, joinsPrivateCalls: true),
  ]

  @Test(arguments: bounds) func noTwoWorkersReplaceOneStore(_ bounds: Bounds) {
    var world = LockWorld(bounds, .none)
    world.visitAll()
    #expect(world.wrong == nil)
    // The world is not smaller than it was thought to be.
    #expect(world.visited > 2000)
    #expect(world.takeovers > 40 || bounds.ticks == 0)
    #expect(world.lateCalls > 1000 || bounds.crashes == 0)
  }

  @Test(arguments: [
    OmittedRule.fence, .ownershipCheck, .nonce,
  ])
  func everyRuleIsNeeded(_ rule: OmittedRule) {
    var world = LockWorld(Bounds(workers: 2, attempts: 2, ticks: 1, crashes: 0), rule)
    world.visitAll()
    #expect(world.wrong != nil)
  }
}

/// All states that the world can reach. Disks, calls and answers have numbers, and the effect of a call on a disk is
/// computed once: there are far more states than disks.
struct LockWorld {
  private struct State: Hashable {
    /// A number of `disks`.
    var disk: Int
    var time = 0
    /// Each worker's past, as a number of `pasts`; -1 for one that has died.
    var pasts: [Int]
    /// Calls of dead workers that are still on their way.
    var late: [Late] = []
    var crashes = 0
    var lostAnswers = 0
  }

  private struct Late: Hashable {
    let worker: Int
    /// A number of `calls`.
    let call: Int
  }

  private struct Past: Hashable {
    let worker: Int
    let before: Int
    /// A number of `answers`; -1 at the start.
    let answer: Int
  }

  /// The next step of a worker with a certain past.
  private enum Step {
    /// A number of `calls`.
    case call(Int)
    case ended(WorkerEnd)
  }

  private struct Move: Hashable {
    let disk: Int
    let call: Int
    let worker: Int
    let time: Int
  }

  private struct Outcome {
    let disk: Int
    let answer: Int
    let isTakeover: Bool
    let wrong: String?
  }

  private let bounds: WorkerLockProtocolTests.Bounds
  private let omitted: OmittedRule
  private var disks = Numbers<WorldDisk>()
  private var calls = Numbers<WorldCall>()
  private var answers = Numbers<WorldAnswer>()
  private var pasts = Numbers<Past>()
  /// Of each past: the answers in it, and what comes next.
  private var histories: [[WorldAnswer]] = []
  private var steps: [Step] = []
  private var outcomes: [Move: Outcome] = [:]
  /// Disks at the end that a fresh worker was tried on.
  private var ends: Set<Int> = []

  private(set) var visited = 0
  private(set) var takeovers = 0
  private(set) var lateCalls = 0
  /// The first thing that must never happen.
  private(set) var wrong: String?

  init(_ bounds: WorkerLockProtocolTests.Bounds, _ omitted: OmittedRule) {
    (self.bounds, self.omitted) = (bounds, omitted)
  }

  private mutating func past(_ worker: Int, _ before: Int = -1, _ answer: Int = -1) -> Int {
    let number = pasts.number(of: Past(worker: worker, before: before, answer: answer))
    if number < histories.count { return number }
    histories.append(before < 0 ? [] : histories[before] + [answers[answer]])
    let attempts = worker == bounds.workers ? 8 : bounds.attempts
    let worker = ModelWorker(number: worker, attempts: attempts, omitted: omitted)
    switch worker.step(after: histories[number]) {
    case .call(let call): steps.append(.call(calls.number(of: call)))
    case .ended(let end): steps.append(.ended(end))
    }
    return number
  }

  /// The effect of a call on a disk.
  private mutating func outcome(_ move: Move) -> Outcome {
    if let known = outcomes[move] { return known }
    var disk = disks[move.disk]
    var isTakeover = false
    if case .rename(let old, _) = calls[move.call], case .lock(let other, _)? = disk.files[old] {
      isTakeover = other != move.worker
    }
    let (answer, wrong) = disk.make(calls[move.call], by: move.worker, at: move.time)
    let outcome = Outcome(
      disk: disks.number(of: disk), answer: answers.number(of: answer), isTakeover: isTakeover, wrong: wrong)
    outcomes[move] = outcome
    return outcome
  }

  mutating func visitAll() {
    var known: Set<State> = []
    var waiting = [State(disk: disks.number(of: WorldDisk()), pasts: (0..<bounds.workers).map { past($0) })]
    known.insert(waiting[0])
    while let state = waiting.popLast() {
      visited += 1
      let next = successors(of: state)
      if wrong != nil { return }
      for next in next where known.insert(next).inserted { waiting.append(next) }
    }
  }

  private mutating func successors(of state: State) -> [State] {
    var found: [State] = []
    var hasEnded = state.late.isEmpty
    for worker in state.pasts.indices where state.pasts[worker] >= 0 {
      guard case .call(let call) = steps[state.pasts[worker]] else { continue }
      hasEnded = false
      found.append(answering(call, of: worker, in: state))
      if calls[call].changesTheDisk, state.lostAnswers < bounds.lostAnswers {
        found.append(answering(call, of: worker, in: state, losesAnswer: true))
      }
      guard state.crashes < bounds.crashes else { continue }
      var dead = state
      dead.crashes += 1
      dead.pasts[worker] = -1
      found.append(dead)
      if calls[call].changesTheDisk {
        dead.late.append(Late(worker: worker, call: call))
        found.append(dead)
      }
    }
    for (index, late) in state.late.enumerated() {
      var next = state
      next.late.remove(at: index)
      let outcome = outcome(Move(disk: state.disk, call: late.call, worker: late.worker, time: state.time))
      note(outcome.wrong)
      next.disk = outcome.disk
      lateCalls += 1
      found.append(next)
    }
    if state.time < bounds.ticks, !hasEnded {
      var next = state
      next.time += 1
      found.append(next)
    }
    if hasEnded { tryFreshWorker(on: state.disk, at: state.time) }
    return found
  }

  private mutating func answering(
    _ call: Int, of worker: Int, in state: State, losesAnswer: Bool = false
  ) -> State {
    var next = state
    let outcome = outcome(Move(disk: state.disk, call: call, worker: worker, time: state.time))
    if outcome.isTakeover { takeovers += 1 }
    note(outcome.wrong)
    next.disk = outcome.disk
    if losesAnswer { next.lostAnswers += 1 }
    next.pasts[worker] = past(
      worker, state.pasts[worker], losesAnswer ? answers.number(of: .lost) : outcome.answer)
    if bounds.joinsPrivateCalls, case .call(let following) = steps[next.pasts[worker]], calls[following].isPrivate {
      return answering(following, of: worker, in: next)
    }
    return next
  }

  private mutating func note(_ wrong: String?) { self.wrong = self.wrong ?? wrong }

  /// Whatever the others have left: a worker that comes later migrates the store, or finds it migrated, and leaves no
  /// lock.
  private mutating func tryFreshWorker(on end: Int, at time: Int) {
    guard ends.insert(end).inserted else { return }
    let worker = bounds.workers
    var (disk, time) = (end, time)
    var now = past(worker)
    while case .call(let call) = steps[now], histories[now].count < 400 {
      // Time passes with each reading of the clock.
      if calls[call] == .clock { time += 1 }
      let outcome = outcome(Move(disk: disk, call: call, worker: worker, time: time))
      note(outcome.wrong)
      disk = outcome.disk
      now = past(worker, now, outcome.answer)
    }
    guard case .ended(let end) = steps[now], end == .migrated || end == .current else {
      return note("a worker that came later did not end")
    }
    guard disks[disk].files[WorldDisk.store] == .store(1) else {
      return note("the store was not migrated exactly once")
    }
    if disks[disk].folders.contains("/d/.s.hop-lock") { note("a lock is left") }
  }
}

/// Values and a number for each.
private struct Numbers<Value: Hashable> {
  private var numbers: [Value: Int] = [:]
  private var values: [Value] = []

  subscript(number: Int) -> Value { values[number] }

  mutating func number(of value: Value) -> Int {
    if let known = numbers[value] { return known }
    numbers[value] = values.count
    values.append(value)
    return values.count - 1
  }
}
