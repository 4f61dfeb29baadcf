// What the simulated disk must find: replacements with a mistake in them. A judge that is content with these proves
// nothing by being content with ours.

import Diagnostics
import DurableFiles
import PersistentStore
import SQLite
import SimulatedDisk
import StoreVerification
import SystemPackage
import Testing

@testable import StoreReplacement

@Suite("Mistakes that a power cut shows")
struct PowerCutControlTests {
  /// The first complaint about an image of a run's last operations, among which its mistake is; about any where all are
  /// looked at.
  private func firstComplaint(_ run: Recording, last operations: Int = 4) throws -> String? {
    var found: String?
    var plan = CutPlan(seed: Simulation.seed)
    if !Simulation.isWhole { plan.moments = max(0, run.world.disk.moment - operations)...Int.max }
    var cuts = PowerCuts(plan)
    try cuts.forEach(of: run.world.disk, reported: run.reported) { image in
      let judgement = Judgement(isReported: image.moment >= run.reported)
      found = try run.world.with(image.disk).complaint(judgement)
      return found == nil
    }
    return found
  }

  /// Runs a wrong way of putting version 2 in place, with the migration path's own preparations.
  private func run(
    _ scenario: DiskScenario, _ swap: (DiskWorld, _ staged: FilePath, _ folder: FilePath) throws -> Void
  ) throws -> Recording {
    let world = try DiskWorld(scenario)
    return try Recording(world) {
      let store = try LockedStore(location: world.location, lockDirectory: world.locks.path, files: world.disk)
      let area = StagingArea(location: store.location, job: "ab12", files: world.disk)
      let staged = try world.stage(store, area)
      store.release()
      try swap(world, staged, BackupSet(location: world.location, rule: world.rule, files: world.disk).directory)
    }
  }

  @Test("Removing the store and renaming the new one over it")
  func naive() throws {
    let run = try run(DiskScenario(kind: .rollback, keep: 0)) { world, staged, _ in
      try world.disk.syncFile(staged)
      try world.disk.unlink(world.location.database)
      try world.disk.rename(staged, to: world.location.database)
      try world.disk.syncDirectory(world.stores)
    }
    let complaint = try #require(try firstComplaint(run))
    #expect(complaint.contains("there is no store"))
  }

  @Test("Renaming without syncing the file first")
  func withoutFileSync() throws {
    let run = try run(DiskScenario(kind: .rollback, keep: 0)) { world, staged, _ in
      try world.disk.rename(staged, to: world.location.database)
      try world.disk.syncDirectory(world.stores)
    }
    #expect(try firstComplaint(run) != nil)
  }

  @Test("Reporting success before the directory is synced")
  func withoutDirectorySync() throws {
    let run = try run(DiskScenario(kind: .rollback, keep: 0)) { world, staged, _ in
      try world.disk.syncFile(staged)
      try world.disk.rename(staged, to: world.location.database)
    }
    let complaint = try #require(try firstComplaint(run))
    #expect(complaint.contains("success was reported"))
  }

  @Test("Renaming over a store whose log still has rows")
  func overALog() throws {
    let run = try run(DiskScenario(kind: .hotLog, keep: 0)) { world, staged, _ in
      try world.disk.syncFile(staged)
      try world.disk.rename(staged, to: world.location.database)
      try world.disk.syncDirectory(world.stores)
    }
    #expect(try firstComplaint(run) != nil)
  }

  @Test("The same with everything in its order: no complaint")
  func careful() throws {
    let run = try run(DiskScenario(kind: .rollback, keep: 0)) { world, staged, _ in
      try world.disk.syncFile(staged)
      try world.disk.rename(staged, to: world.location.database)
      try world.disk.syncDirectory(world.stores)
    }
    #expect(try firstComplaint(run) == nil)
  }

  /// Syncs of a migration without which a power cut loses something, by what they are of; where a log is folded in or a
  /// backup is given up again, a later sync of the same file or directory stands in for some of them.
  static let indispensable: Set<String> = ["sync .Library.sqlite.hop-ab12.tmp", "sync directory stores"]

  @Test(
    "A sync that is left out is missed",
    arguments: Simulation.isWhole
      ? PowerCutTests.scenarios.filter { $0.mode == .rename } : [DiskScenario(kind: .rollback)])
  func skippedSyncs(_ scenario: DiskScenario) throws {
    let start = try DiskWorld(scenario)
    var (missed, others): ([String], [String]) = ([], [])
    for number in 1... {
      let world = try start.with(start.disk.copy())
      world.disk.skipSync(number)
      let run = try Recording(world) { try world.migrate() }
      guard world.disk.syncs >= number else { break }
      let name = world.disk.lastFault
      // To find no complaint takes every image: the others are for `tools/simulate`.
      guard Simulation.isWhole || Self.indispensable.contains(name) else { continue }
      if try firstComplaint(run, last: 12) != nil { missed.append(name) } else { others.append(name) }
    }
    print("simulated: \(scenario): missed \(missed), not missed \(others)")
    let isPlain = scenario.kind == .rollback && scenario.keep > 0
    #expect(!missed.isEmpty && (!isPlain || Self.indispensable.isSubset(of: missed)))
  }
}
