// The promise about backups as a property: whatever order migrations, writes, restores, removals, power cuts and clocks
// come in, no committed row is gone from stores and backups unless somebody deleted it by a command that named it, or
// by a rule about backups that the operator set, and that rule never takes what only a restore has put aside.

import Diagnostics
import DurableFiles
import PersistentStore
import SeededRandom
import SimulatedDisk
import SystemPackage
import Testing

@testable import StoreReplacement

@Suite("No committed row is gone")
struct NothingGoneTests {
  /// One sequence of steps.
  private struct Life {
    let world: LifeWorld
    var random: Dice
    var steps: [String] = []
    /// Rows that must be somewhere.
    var owed: Set<Int64> = []
    /// Rows whose store a person has deleted: only backups have them, and the rule for those may take them.
    var exposed: Set<Int64> = []
    var lastRow: Int64 = 0
    var lastName = 0

    init(seed: UInt64) throws {
      random = Dice(seed: seed)
      world = try LifeWorld(hasVault: seed % 3 == 0)
      world.mode = seed % 4 == 1 ? .inPlace : .rename
      world.rule.keep = Int(seed % 5 < 3 ? 1 : seed % 5 - 2)
      try world.disk.mounted {
        try world.create(uuid: "FIRST")
        for _ in 0..<3 { try write() }
      }
    }

    mutating func pick(_ count: Int) -> Int { Int.random(in: 0..<max(1, count), using: &random) }

    mutating func write() throws {
      lastRow += 1
      try world.write(lastRow)
      owed.insert(lastRow)
    }

    // MARK: Steps

    enum Step: CaseIterable { case write, migrate, ask, restore, prune, name, sweep, clock, delete, rename, age }

    mutating func step() throws {
      let step = Step.allCases[pick(Step.allCases.count)]
      let before = try world.disk.mounted { try world.generations() }
      // A step that may be cut off by the power.
      let isCut = pick(4) == 0 && [.migrate, .ask, .restore, .sweep, .name].contains(step)
      var named: Set<FilePath> = []
      let plan = try world.disk.mounted { try prepare(step, &named) }
      steps.append("\(plan.text)\(isCut ? ", cut off" : "")")
      guard let act = plan.act else { return }
      var reported: Set<FilePath>?
      if isCut {
        try cut(act)
      } else {
        reported = Set(try world.disk.mounted { try act(world) }.map(\.generation.directory))
      }
      try judge(before, named: named, reported: reported)
    }

    struct Plan {
      let text: String
      var act: ((LifeWorld) throws -> [BackupRemoval])?
    }

    private mutating func prepare(_ step: Step, _ named: inout Set<FilePath>) throws -> Plan {
      guard try world.hasStore || [.restore, .prune, .name, .sweep, .clock, .age].contains(step) else {
        lastName += 1
        let uuid = "STORE-\(lastName)"
        try world.create(uuid: uuid)
        try write()
        return Plan(text: "a new store")
      }
      let target = LifeWorld.versions[1 + pick(2)]
      switch step {
      case .write:
        try write()
        return Plan(text: "write \(lastRow)")
      case .migrate: return Plan(text: "hopd to \(target)", act: { try $0.migrate(to: target, asked: false) ?? [] })
      case .ask: return Plan(text: "migrate to \(target)", act: { try $0.migrate(to: target, asked: true) ?? [] })
      case .restore:
        let all = try world.backups().generations()
        guard !all.isEmpty else { return Plan(text: "nothing to restore") }
        let chosen = all[pick(3) == 0 ? pick(all.count) : 0]
        let pins = pick(4) > 0
        return Plan(
          text: "restore \(chosen.directory.lastComponent?.string ?? "")",
          act: {
            _ = try $0.restore(chosen.database, pins: pins, anyway: true)
            return []
          })
      case .prune:
        let keep = pick(3)
        return Plan(
          text: "prune --keep \(keep)",
          act: { world in
            try world.backups().remove {
              BackupSet.removals($0, BackupRule(keep: keep), now: world.now, counts: try world.hasStore)
            }
          })
      case .name:
        let all = try world.backups().generations()
        guard !all.isEmpty, pick(3) == 0 else { return Plan(text: "-") }
        let chosen = all[pick(all.count)]
        named.insert(chosen.directory)
        return Plan(
          text: "prune \(chosen.directory.lastComponent?.string ?? "")",
          act: { world in
            try world.backups().remove {
              $0.filter { $0.directory == chosen.directory }.map { BackupRemoval(generation: $0, reason: .named) }
            }
          })
      case .sweep: return Plan(text: "sweep", act: { try $0.sweep() })
      case .clock:
        world.now += Int64(pick(2_000_000)) - 1_000_000
        if pick(4) == 0 { world.now += (Int64(pick(3)) - 1) * 60_000_000 }
        return Plan(text: "the clock says \(world.now)")
      case .delete:
        guard pick(4) == 0 else { return Plan(text: "-") }
        exposed.formUnion(try world.rows(world.location.database))
        try world.takeAway()
        owed.formIntersection(try world.generations().values.reduce(into: try world.living()) { $0.formUnion($1.rows) })
        return Plan(text: "delete the store")
      case .rename:
        guard pick(3) == 0 else { return Plan(text: "-") }
        lastName += 1
        try world.takeAway(to: world.stores.appending("Other \(lastName).sqlite"))
        return Plan(text: "rename the store")
      case .age:
        world.rule.keepFor = pick(3) == 0 ? .seconds(30 * 86_400) : nil
        return Plan(text: "keep_for \(world.rule.keepFor.map { "\($0)" } ?? "never")")
      }
    }

    /// The power fails in the middle of a step: one of the images that it could leave, and the next start.
    private mutating func cut(_ act: (LifeWorld) throws -> [BackupRemoval]) throws {
      world.disk.settle()
      _ = try world.disk.mounted { try act(world) }
      var cuts = CutPlan(seed: random.next())
      let moment = pick(world.disk.moment + 1)
      cuts.moments = moment...moment
      cuts.mixes = 1
      cuts.exhaustiveBelow = 1
      cuts.alone = 2
      var images: [SimulatedDisk] = []
      var all = PowerCuts(cuts)
      all.forEach(of: world.disk) { image in
        images.append(image.disk)
        return images.count < 12
      }
      guard !images.isEmpty else { return }
      world.reboot(into: images[pick(images.count)])
      _ = try world.disk.mounted { try world.recover() }
    }

    // MARK: Judging

    private mutating func judge(
      _ before: [FilePath: (generation: BackupGeneration, rows: Set<Int64>)], named: Set<FilePath>,
      reported: Set<FilePath>?
    ) throws {
      let (after, living) = try world.disk.mounted { (try world.generations(), try world.living()) }
      let present = after.values.reduce(into: living) { $0.formUnion($1.rows) }
      // The generations that are under their name in neither place. A move to the configured place is no removal.
      let names = Set(after.keys.compactMap(\.lastComponent))
      let gone = before.filter { folder, _ in folder.lastComponent.map { !names.contains($0) } ?? true }
      for (folder, value) in gone where !named.contains(folder) {
        let isOld =
          world.rule.longestAge.map { longest in
            value.generation.record.map { world.now - $0.createdAt > longest } ?? false
          } ?? false
        if let reported, !reported.contains(folder) { throw Finding("\(folder) is gone, and nobody was told") }
        if value.generation.record?.origin == .restore, !isOld { throw Finding("\(folder) of a restore is gone") }
      }
      let missing = owed.subtracting(present)
      for row in missing {
        let last = gone.filter { $0.value.rows.contains(row) }
        guard !last.isEmpty else { throw Finding("row \(row) is gone, and no backup that had it went") }
        let byCommand = last.contains { folder, value in
          named.contains(folder)
            || world.rule.longestAge.map { longest in
              value.generation.record.map { world.now - $0.createdAt > longest } ?? false
            } == true
        }
        guard byCommand || exposed.contains(row) else { throw Finding("row \(row) is gone with \(last.keys)") }
      }
      owed.subtract(missing)
    }
  }

  @Test("Over random lives of a store")
  func lives() throws {
    let count: UInt64 = Simulation.isWhole ? 2000 : 24
    let first = Simulation.seed &* 10_000
    print("lives of backups: \(count) from seed \(first) (HOPD_SEED=\(Simulation.seed))")
    for seed in first..<first + count {
      var life = try Life(seed: seed)
      do {
        for _ in 0..<30 { try life.step() }
      } catch {
        Issue.record("seed \(seed): \(error), after: \(life.steps.joined(separator: "; "))")
        return
      }
    }
  }
}
