// A power cut at every moment of a replacement, of its recovery and of a restore, with every image that it could leave.
// The quick tier takes a sample by a seed that it prints; `tools/simulate` takes every image, in an optimised build.

import Diagnostics
import DurableFiles
import Glibc
import PersistentStore
import SQLite
import SimulatedDisk
import SystemPackage
import Testing

@testable import StoreReplacement

/// How much of what can be simulated is simulated.
enum Simulation {
  /// HOPD_IMAGES=all takes every image and every call.
  static let isWhole = word("HOPD_IMAGES") == "all"
  /// HOPD_SEED is the seed of samples, mixes and tears.
  static let seed = word("HOPD_SEED").flatMap { UInt64($0) } ?? UInt64(time(nil)) % 1_000_000

  private static func word(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

  /// Takes every so many, the first by the seed; or all. `number` counts what could be taken.
  static func takes(oneIn every: UInt64, _ number: inout UInt64) -> Bool {
    number &+= 1
    return isWhole || (number &+ seed) % every == 0
  }

  /// A plan for the images of a run: more mixes where all of them are looked at.
  static var plan: CutPlan {
    var plan = CutPlan(seed: seed)
    if isWhole { plan.mixes = 60 }
    return plan
  }

  /// One line of figures, always printed.
  static func report(_ what: String, _ cuts: PowerCuts, judged: Int) {
    print("simulated: \(what): \(cuts.made) images, \(cuts.distinct) distinct, \(judged) judged, seed \(seed)")
  }
}

/// Runs that are recorded, and their images.
struct Recording {
  let world: DiskWorld
  /// The moment from which on success had been reported; beyond the end when it never was.
  let reported: Int

  /// Records what `body` does to the world's disk, from here on.
  init(_ world: DiskWorld, _ body: () throws -> Void) throws {
    self.world = world
    world.disk.settle()
    reported = try world.disk.mounted {
      try body()
      return world.disk.moment
    }
  }

  private init(_ world: DiskWorld, reported: Int) { (self.world, self.reported) = (world, reported) }

  /// A run that may fail; the error is an answer.
  static func attempt(_ world: DiskWorld, _ body: () throws -> Void) throws -> (Recording, (any Error)?) {
    world.disk.settle()
    return try world.disk.mounted {
      do {
        try body()
        return (Recording(world, reported: world.disk.moment), nil)
      } catch {
        return (Recording(world, reported: .max), error)
      }
    }
  }

  /// Says where an image comes from.
  func place(_ image: DiskImage) -> String {
    "\(world.scenario): \(image.kind), after \(image.moment) of \(world.disk.moment) operations, the last being "
      + "\(world.disk.operation(image.moment - 1)), seed \(Simulation.seed)"
  }

  /// Complaints about the images; one image in `every` is looked at. Answers how many were.
  func judge(
    _ cuts: inout PowerCuts, oneIn every: UInt64, stopAfter limit: Int = 5,
    _ complaint: (DiskWorld, Judgement) throws -> String? = { $0.complaint($1) },
    _ report: (String) -> Void = { Issue.record(Comment(rawValue: $0)) }
  ) throws -> Int {
    var number: UInt64 = 0
    var (judged, complaints) = (0, 0)
    try cuts.forEach(of: world.disk, reported: reported) { image in
      guard Simulation.takes(oneIn: every, &number) else { return true }
      judged += 1
      let judgement = Judgement(isReported: image.moment >= reported, withRetry: judged % 8 == 0)
      if let found = try complaint(try world.with(image.disk), judgement) {
        complaints += 1
        report("\(found) (\(place(image)))")
      }
      return complaints < limit
    }
    return judged
  }
}

@Suite("A power cut at every moment")
struct PowerCutTests {
  static let scenarios: [DiskScenario] = [ReplacementMode.rename, .inPlace].flatMap { mode in
    SourceKind.allCases.map { DiskScenario(kind: $0, mode: mode) }
      + SourceKind.allCases.map { DiskScenario(kind: $0, hasExternalData: true, hasQuarantine: true, mode: mode) }
      + [
        DiskScenario(kind: .rollback, keep: 0, mode: mode),
        DiskScenario(kind: .hotLog, hasExternalData: true, keep: 0, mode: mode),
        DiskScenario(kind: .rollback, hasExternalData: true, mode: mode, isElsewhere: true),
      ]
  }

  @Test("The old store or the new one, whole, and the next start finishes", arguments: scenarios)
  func migration(_ scenario: DiskScenario) throws {
    let world = try DiskWorld(scenario)
    let run = try Recording(world) { try world.migrate() }
    var cuts = PowerCuts(Simulation.plan)
    let judged = try run.judge(&cuts, oneIn: 32)
    #expect(judged > 3)
    Simulation.report("migration, \(scenario)", cuts, judged: judged)
  }

  @Test("A power cut while the backup is moved to its directory: recovery ends the move, and there is one backup")
  func move() throws {
    let world = try DiskWorld(DiskScenario(kind: .rollback, hasExternalData: true, isElsewhere: true))
    var confirmed = 0
    world.observer = { [disk = world.disk] in if $0 == .confirmed { confirmed = disk.moment } }
    let run = try Recording(world) { try world.migrate() }
    var plan = CutPlan(seed: Simulation.seed)
    plan.moments = confirmed...Int.max
    (plan.mixes, plan.exhaustiveBelow, plan.alone) = (1, 1, 1)
    var cuts = PowerCuts(plan)
    let judged = try run.judge(&cuts, oneIn: Simulation.isWhole ? 1 : 2)
    #expect(confirmed > 0 && judged > 20)
    Simulation.report("move of a backup", cuts, judged: judged)
  }

  @Test("A power cut during recovery: the next recovery finishes", arguments: scenarios)
  func recovery(_ scenario: DiskScenario) throws {
    let world = try DiskWorld(scenario)
    let run = try Recording(world) { try world.migrate() }
    // Of the images of the run one in some; of the run of its recovery every image.
    var number: UInt64 = 0
    var first = PowerCuts(CutPlan(seed: Simulation.seed))
    var second = PowerCuts(Simulation.plan)
    var (judged, complaints) = (0, 0)
    try first.forEach(of: world.disk, reported: run.reported) { image in
      guard Simulation.isWhole || Simulation.takes(oneIn: 80, &number) else { return true }
      let left = try world.with(image.disk)
      let again = try Recording(left) { try left.recover() }
      guard left.disk.moment > 0 else { return true }
      judged += try again.judge(
        &second, oneIn: 24,
        { $0.complaint(Judgement(isReported: image.moment >= run.reported, withRetry: $1.withRetry)) },
        {
          complaints += 1
          Issue.record("recovery from \(run.place(image)): \($0)")
        })
      return complaints < 5
    }
    Simulation.report("recovery, \(scenario)", second, judged: judged)
  }

  @Test(
    "A restore puts the whole old store back, or leaves what was there",
    arguments: [
      DiskScenario(kind: .rollback, hasExternalData: true), DiskScenario(kind: .hotLog, hasExternalData: true),
      DiskScenario(kind: .rollback, hasExternalData: true, mode: .inPlace),
      DiskScenario(kind: .hotLog, hasExternalData: true, mode: .inPlace),
    ], [true, false])
  func restore(_ scenario: DiskScenario, hadStore: Bool) throws {
    let world = try DiskWorld(scenario)
    try world.disk.mounted {
      try world.migrate()
      guard !hadStore else { return }
      for name in DiskWorld.external { try world.disk.unlink(world.location.externalDataDirectory.appending(name)) }
      for directory in [world.location.externalDataDirectory, world.location.supportDirectory] {
        try world.disk.removeDirectory(directory)
      }
      try world.disk.unlink(world.location.database)
    }
    let run = try Recording(world) { try world.restore(job: "cd34") }
    var cuts = PowerCuts(Simulation.plan)
    let judged = try run.judge(&cuts, oneIn: 16, { $0.complaintAboutRestore($1, hadStore: hadStore) })
    #expect(judged > 0)
    Simulation.report("restore, \(world.scenario)\(hadStore ? "" : ", of a missing store")", cuts, judged: judged)
  }
}
