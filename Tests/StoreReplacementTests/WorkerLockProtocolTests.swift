// Every order in which workers on several machines can take, lose and use the lock of one store, with crashes, pauses
// longer than the lease, calls that arrive after their caller has died, and answers that get lost
// (docs/formats/worker-lock.md, "Proof").

import BlockingTests
import Testing

@testable import StoreReplacement

@Suite(.blocking) struct WorkerLockProtocolTests {
  /// How much of the world is visited.
  struct Bounds: Sendable, CustomTestStringConvertible {
    var workers: Int
    /// How often each looks for the lock.
    var attempts: Int
    /// How many leases pass.
    var ticks: Int
    var crashes: Int
    var lostAnswers = 0
    /// Are calls that nobody else can see the effect of made together with the call before them?
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

/// All states that the world can come to.
struct LockWorld {
  private struct State: Hashable {
    var disk = WorldDisk()
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
    let call: WorldCall
  }

  private struct Past: Hashable {
    let worker: Int
    let before: Int
    let answer: WorldAnswer?
  }

  private let bounds: WorkerLockProtocolTests.Bounds
  private let omitted: OmittedRule
  private var pasts: [Past: Int] = [:]
  private var answers: [[WorldAnswer]] = []
  private var steps: [WorkerStep] = []
  /// Disks at the end that a fresh worker was tried on.
  private var ends: Set<WorldDisk> = []

  private(set) var visited = 0
  private(set) var takeovers = 0
  private(set) var lateCalls = 0
  /// The first thing that must never happen.
  private(set) var wrong: String?

  init(_ bounds: WorkerLockProtocolTests.Bounds, _ omitted: OmittedRule) {
    (self.bounds, self.omitted) = (bounds, omitted)
  }

  private mutating func past(_ worker: Int, _ before: Int?, _ answer: WorldAnswer?) -> Int {
    let key = Past(worker: worker, before: before ?? -1, answer: answer)
    if let known = pasts[key] { return known }
    let number = answers.count
    pasts[key] = number
    answers.append((before.map { answers[$0] } ?? []) + (answer.map { [$0] } ?? []))
    steps.append(
      ModelWorker(number: worker, attempts: bounds.attempts, omitted: omitted).step(after: answers[number]))
    return number
  }

  mutating func visitAll() {
    var known: Set<State> = []
    var waiting = [State(pasts: (0..<bounds.workers).map { past($0, nil, nil) })]
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
      if call.changesTheDisk, state.lostAnswers < bounds.lostAnswers {
        found.append(answering(call, of: worker, in: state, losesAnswer: true))
      }
      guard state.crashes < bounds.crashes else { continue }
      var dead = state
      dead.crashes += 1
      dead.pasts[worker] = -1
      found.append(dead)
      if call.changesTheDisk {
        dead.late.append(Late(worker: worker, call: call))
        found.append(dead)
      }
    }
    for (index, late) in state.late.enumerated() {
      var next = state
      next.late.remove(at: index)
      note(next.disk.make(late.call, by: late.worker, at: state.time).wrong)
      lateCalls += 1
      found.append(next)
    }
    if state.time < bounds.ticks, !hasEnded {
      var next = state
      next.time += 1
      found.append(next)
    }
    if hasEnded { tryFreshWorker(state) }
    return found
  }

  private mutating func answering(
    _ call: WorldCall, of worker: Int, in state: State, losesAnswer: Bool = false
  ) -> State {
    var next = state
    if case .rename(let old, _) = call, case .lock(let other, _)? = state.disk.files[old], other != worker {
      takeovers += 1
    }
    let (answer, wrong) = next.disk.make(call, by: worker, at: state.time)
    note(wrong)
    if losesAnswer { next.lostAnswers += 1 }
    next.pasts[worker] = past(worker, state.pasts[worker], losesAnswer ? .lost : answer)
    if bounds.joinsPrivateCalls, case .call(let following) = steps[next.pasts[worker]], following.isPrivate {
      return answering(following, of: worker, in: next)
    }
    return next
  }

  private mutating func note(_ wrong: String?) { self.wrong = self.wrong ?? wrong }

  /// Whatever the others have left: a worker that comes later migrates the store, or finds it migrated, and leaves no
  /// lock.
  private mutating func tryFreshWorker(_ state: State) {
    guard ends.insert(state.disk).inserted else { return }
    var disk = state.disk
    var time = state.time
    let worker = ModelWorker(number: bounds.workers, attempts: 8, omitted: omitted)
    var answers: [WorldAnswer] = []
    while case .call(let call) = worker.step(after: answers), answers.count < 400 {
      // Time passes with each look at the clock.
      if call == .clock { time += 1 }
      let (answer, wrong) = disk.make(call, by: worker.number, at: time)
      note(wrong)
      answers.append(answer)
    }
    guard case .ended(let end) = worker.step(after: answers), end == .migrated || end == .current else {
      return note("a worker that came later did not end")
    }
    guard disk.files[WorldDisk.store] == .store(1) else { return note("the store was not migrated exactly once") }
    let isFree = !disk.folders.contains("/d/.s.hop-lock")
    if !isFree { note("a lock is left") }
  }
}
