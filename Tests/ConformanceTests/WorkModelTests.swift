// The model of the work on simulated runs: its progress never falls, is 1 only at the end, and advances with the keys
// of a long table; the remaining time is linear.

import MigrationEngine
import SeededRandom
import Testing

@testable import MigrationPipeline

@Suite struct WorkModelTests {
  private static func run(_ hops: Int, weights: (Int) -> Double) -> [WorkModel.Stage] {
    (0..<hops).flatMap { hop in
      [HopStage.rows, .indexes].map {
        WorkModel.Stage(part: $0.part, hop: hop, stage: $0, weight: weights(hop))
      }
    } + [
      WorkModel.Stage(part: .verifying, weight: weights(0)), WorkModel.Stage(part: .replacing, weight: 1),
    ]
  }

  @Test(arguments: UInt64(0)..<200) func theShareNeverFallsAndIsOneOnlyAtTheEnd(_ seed: UInt64) {
    var dice = Dice(seed: seed)
    let hops = 1 + dice.below(3)
    var model = WorkModel(Self.run(hops) { _ in Double(dice.below(1000)) }, at: 0)
    var (time, last) = (0.0, 0.0)
    func report() {
      let now = model.fraction()
      #expect(now >= last && now < 1)
      if let left = model.remaining(at: time) { #expect(left >= 0 && left.isFinite) }
      last = now
      time += 0.1
    }
    report()
    for hop in 0..<hops {
      for stage in [HopStage.rows, .indexes] {
        for tick in 0...20 {
          model.advance(stage.part, hop: hop, stage: stage, share: Double(tick) / 20)
          #expect(model.part == stage.part)
          report()
        }
      }
    }
    for part in [WorkPart.verifying, .replacing] {
      model.advance(part)
      #expect(model.part == part)
      report()
    }
    model.finish()
    #expect(model.fraction() == 1 && model.remaining(at: 1e9) == 0 && model.part == .done)
  }

  @Test("The share and the remaining time follow the keys of a long table") func longTable() {
    var model = WorkModel(
      [
        .init(part: .copying, hop: 0, stage: .rows, weight: 80),
        .init(part: .indexing, hop: 0, stage: .indexes, weight: 10),
        .init(part: .verifying, weight: 5), .init(part: .replacing, weight: 5),
      ], at: 2)
    for tick in 0...10 {
      let share = Double(tick) / 10
      model.advance(.copying, hop: 0, stage: .rows, share: share)
      #expect(abs(model.fraction() - 0.8 * share) < 1e-9)
      // Each tenth takes 8 seconds, so the whole run takes 100.
      let left = model.remaining(at: 2 + 80 * share)
      if tick == 0 {
        #expect(left == nil)
      } else {
        #expect(abs((left ?? 0) - (100 - 80 * share)) < 1e-6)
      }
    }
  }

  @Test func workOfAnEarlierRunCountsAndSaysNothingOfThePace() {
    var model = WorkModel(
      [.init(part: .copying, hop: 0, stage: .rows, weight: 9), .init(part: .replacing, weight: 1)], at: 0)
    model.advance(.copying, hop: 0, stage: .rows, share: 0.5)
    #expect(abs(model.fraction() - 0.45) < 1e-9 && model.remaining(at: 1) == nil)
    model.advance(.copying, hop: 0, stage: .rows, share: 0.6)
    #expect(abs(model.fraction() - 0.54) < 1e-9)
    #expect(abs((model.remaining(at: 9) ?? 0) - 46) < 1e-6)
  }

  @Test func whatComesInNoOrderDoesNoHarm() {
    var dice = Dice(seed: 3)
    for _ in 0..<300 {
      let stages = (0..<dice.below(5)).map { index in
        WorkModel.Stage(
          part: dice.pick(WorkPart.allCases), hop: dice.chance(50) ? index : nil, stage: nil,
          weight: dice.chance(20) ? 0 : Double(dice.below(100)))
      }
      var model = WorkModel(stages, at: 0)
      var (time, last) = (0.0, 0.0)
      for _ in 0..<40 {
        time += dice.chance(20) ? 0 : Double.random(in: 0...2, using: &dice)
        model.advance(
          dice.pick(WorkPart.allCases), hop: dice.chance(50) ? dice.below(6) : nil,
          share: dice.pick([0, 0.5, 1, 2, -1, .nan, .infinity]))
        let now = model.fraction()
        #expect(now >= last && now < 1 && (model.remaining(at: time) ?? 0) >= 0)
        last = now
      }
      model.finish()
      #expect(model.fraction() == 1)
    }
  }
}
