// Every call of a replacement fails once, and from there on, those that SQLite makes too: reads, locks, writes and
// syncs. The quick tier takes a sample of the calls by its seed; `tools/simulate` takes all.

import Diagnostics
import DurableFiles
import Glibc
import PersistentStore
import SQLite
import SimulatedDisk
import SystemPackage
import Testing

@testable import StoreReplacement

@Suite("A failure of every call")
struct DiskFaultTests {
  /// A way of failing.
  struct Fault: Sendable, CustomTestStringConvertible {
    let errno: Int32
    let isSticky: Bool
    var testDescription: String { "\(Errno(rawValue: errno))\(isSticky ? ", from there on" : "")" }
  }

  /// Of the quick tier two that differ most.
  static let faults: [Fault] =
    Simulation.isWhole
    ? [EIO, ENOSPC, EROFS].flatMap { errno in [false, true].map { Fault(errno: errno, isSticky: $0) } }
    : [Fault(errno: EIO, isSticky: false), Fault(errno: ENOSPC, isSticky: true)]

  static let scenarios = [
    DiskScenario(kind: .rollback), DiskScenario(kind: .hotLog, hasExternalData: true, hasQuarantine: true),
    DiskScenario(kind: .hotLogWithoutIndex, hasExternalData: true, keep: 0),
    DiskScenario(kind: .rollback, hasExternalData: true, mode: .inPlace),
    DiskScenario(kind: .hotLog, hasExternalData: true, keep: 0, mode: .inPlace),
  ]

  /// Runs `body` with each call failing in its turn until it runs through without meeting its fault. What comes back is
  /// how often it failed.
  private func failEach(
    _ start: DiskWorld, _ fault: Fault, oneIn every: UInt64, _ body: (DiskWorld) throws -> Void,
    check: (DiskWorld, Recording, (any Error)?, String) throws -> Void
  ) throws -> Int {
    var number = UInt64(fault.errno)
    var failures = 0
    for call in 1... {
      guard Simulation.takes(oneIn: every, &number) else { continue }
      let world = try start.with(start.disk.copy())
      world.disk.fail(at: call, isSticky: fault.isSticky, errno: fault.errno)
      let (run, error) = try Recording.attempt(world) { try body(world) }
      let isMet = world.disk.calls >= call
      let place = "\(start.scenario): \(fault.testDescription) at call \(call): \(world.disk.lastFault)"
      world.disk.heal()
      world.hasFailed = true
      if let error {
        failures += 1
        #expect(error is HopdError, "\(place): an error without place and advice: \(error)")
      }
      try check(world, run, error, place)
      if !isMet { return failures }
    }
    return failures
  }

  @Test(
    "A replacement that fails leaves the old or the new store, says so, and can be done again",
    arguments: scenarios, faults)
  func migration(_ scenario: DiskScenario, _ fault: Fault) throws {
    let start = try DiskWorld(scenario)
    let failures = try failEach(start, fault, oneIn: 67) { world in
      try world.migrate()
    } check: { world, run, error, place in
      // Before anything is cleaned up: what a power cut in the same moment would leave.
      var plan = CutPlan(seed: Simulation.seed)
      plan.moments = world.disk.moment...world.disk.moment
      plan.exhaustiveBelow = 2
      plan.alone = 2
      plan.mixes = 2
      var cuts = PowerCuts(plan)
      _ = try run.judge(
        &cuts, oneIn: 3, stopAfter: 1, { $0.complaint($1) }, { "\(place), then a power cut: \($0)".record() })
      let judgement = Judgement(isReported: error == nil, withRetry: true)
      if let complaint = world.complaint(judgement) { "\(place): \(complaint)".record() }
    }
    #expect(failures > 0)
    print("simulated: \(scenario): failed \(failures) times by \(fault.testDescription)")
  }

  @Test("A recovery that fails can be done again", arguments: faults)
  func recovery(_ fault: Fault) throws {
    let start = try DiskWorld(DiskScenario(kind: .hotLog, hasExternalData: true, hasQuarantine: true))
    let run = try Recording(start) { try start.migrate() }
    var number: UInt64 = 0
    var cuts = PowerCuts(CutPlan(seed: Simulation.seed))
    var tried = 0
    try cuts.forEach(of: start.disk, reported: run.reported) { image in
      number += 1
      guard (number &+ Simulation.seed) % (Simulation.isWhole ? 10 : 150) == 0 else { return true }
      let left = try start.with(image.disk)
      tried += try failEach(left, fault, oneIn: 67, { try $0.recover() }) { world, _, _, place in
        let judgement = Judgement(isReported: image.moment >= run.reported)
        if let complaint = world.complaint(judgement) {
          "\(place) of recovery from \(run.place(image)): \(complaint)".record()
        }
      }
      return true
    }
    #expect(cuts.distinct > 100)
    print("simulated: recovery failed \(tried) times by \(fault.testDescription)")
  }
}

extension String {
  /// Makes an issue of it.
  fileprivate func record() { Issue.record(Comment(rawValue: self)) }
}
