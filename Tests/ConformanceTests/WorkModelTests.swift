// The model of the work on simulated machines: its progress never falls, is 1 only at the end, and the remaining time
// is near the truth if the proportions are.

import MigrationEngine
import SeededRandom
import Testing

@testable import MigrationPipeline

@Suite struct WorkModelTests {
  /// Runs random work: `told` receives each share, the remaining time, and the time that is really left.
  private func run(
    seed: UInt64, error: ClosedRange<Double>, told: (_ fraction: Double, _ remaining: Double, _ left: Double) -> Void
  ) -> WorkModel {
    var dice = Dice(seed: seed)
    let speed = Double.random(in: 0.5...20, using: &dice)
    func factor() -> Double { speed * Double.random(in: error, using: &dice) }
    let hops = 1 + dice.below(3)
    var pieces: [WorkModel.Piece] = []
    var outlines: [HopOutline] = []
    for hop in 0..<hops {
      let steps =
        (0..<(1 + dice.below(5))).map { _ in
          HopOutline.Step(.rows, seconds: Double.random(in: 0.3...3, using: &dice))
        } + (0..<dice.below(4)).map { _ in HopOutline.Step(.index, seconds: Double.random(in: 0.05...1, using: &dice)) }
      outlines.append(HopOutline(steps: steps))
      pieces.append(.init(part: .copying, hop: hop, step: nil, seconds: steps.reduce(0) { $0 + $1.seconds }))
    }
    pieces.append(.init(part: .verifying, hop: nil, step: nil, seconds: Double.random(in: 0.2...2, using: &dice)))
    pieces.append(.init(part: .replacing, hop: nil, step: nil, seconds: 0.1))
    let times = outlines.map { $0.steps.map { $0.seconds * factor() } }
    let (verification, replacement) = (pieces[hops].seconds * factor(), pieces[hops + 1].seconds * factor())
    let whole = times.flatMap { $0 }.reduce(0, +) + verification + replacement
    var time = 0.0
    var model = WorkModel(pieces, at: 0)
    func tell() { told(model.fraction(at: time), model.remaining(at: time), whole - time) }
    tell()
    for hop in 0..<hops {
      for (step, seconds) in times[hop].enumerated() {
        let isRows = outlines[hop].steps[step].kind == .rows
        for tick in 0...20 {
          model.advance(
            hop: hop, step: step, share: isRows ? Double(tick) / 20 : 0, outline: outlines[hop], at: time)
          tell()
          if tick < 20 { time += seconds / 20 }
        }
      }
    }
    for (part, seconds) in [(WorkPart.verifying, verification), (.replacing, replacement)] {
      model.begin(part, at: time)
      for _ in 0..<10 {
        tell()
        time += seconds / 10
      }
    }
    model.finish()
    return model
  }

  @Test(arguments: UInt64(0)..<200) func theShareNeverFallsAndIsOneOnlyAtTheEnd(_ seed: UInt64) {
    var last = 0.0
    // Costs that are wrong by a factor of up to ten, in either direction.
    var model = run(seed: seed, error: 0.1...10) { fraction, remaining, _ in
      #expect(fraction >= last && fraction < 1 && remaining >= 0 && remaining.isFinite)
      last = fraction
    }
    #expect(model.fraction(at: 1e9) == 1 && model.remaining(at: 1e9) == 0 && model.part == .done)
  }

  @Test(arguments: UInt64(0)..<100) func onAMachineOfAnySpeedTheTimeToGoIsRightFromTheMiddleOn(_ seed: UInt64) {
    var wrong: [Double] = []
    var whole = 0.0
    _ = run(seed: seed, error: 1...1) { _, remaining, left in
      whole = max(whole, left)
      guard left <= whole / 2, left > whole / 20 else { return }
      wrong.append(abs(remaining - left) / left)
    }
    // Correct proportions give correct times.
    #expect((wrong.max() ?? 1) < 0.2)
  }

  @Test func workOfAnEarlierRunCountsAndSaysNothingOfThePace() {
    let pieces: [WorkModel.Piece] = [
      .init(part: .copying, hop: 0, step: nil, seconds: 10), .init(part: .verifying, hop: nil, step: nil, seconds: 1),
      .init(part: .replacing, hop: nil, step: nil, seconds: 0.1),
    ]
    let outline = HopOutline(steps: [.init(.rows, seconds: 6), .init(.rows, seconds: 4)])
    var model = WorkModel(pieces, at: 0)
    // It continues in the middle of the second step; the machine needs a fifth of the time.
    model.advance(hop: 0, step: 1, share: 0.5, outline: outline, at: 0.001)
    #expect(model.fraction(at: 0.001) > 0.6)
    for tick in 1...10 {
      model.advance(hop: 0, step: 1, share: 0.5 + 0.05 * Double(tick), outline: outline, at: 0.04 * Double(tick))
    }
    #expect(abs(model.remaining(at: 0.4) - 0.22) < 0.05)
  }

  @Test func thePlanShowsHowFastTheMachineIs() {
    let pieces: [WorkModel.Piece] = [
      .init(part: .copying, hop: 0, step: nil, seconds: 10), .init(part: .replacing, hop: nil, step: nil, seconds: 2),
    ]
    // It took three times as long as on the simulated machine.
    let model = WorkModel(pieces, at: 6, planning: 2)
    #expect(abs(model.remaining(at: 6) - 36) < 1)
  }

  @Test(arguments: [WorkModel.Worker.program, .disk]) func aSlowWorkerSaysNothingOfTheMachine(
    _ worker: WorkModel.Worker
  ) {
    let pieces: [WorkModel.Piece] = [
      .init(part: .copying, hop: 0, step: 0, seconds: 1, worker: worker),
      .init(part: .copying, hop: 0, step: 1, seconds: 1, worker: worker),
      .init(part: .verifying, hop: nil, step: nil, seconds: 4),
    ]
    var model = WorkModel(pieces, at: 1, planning: 1)
    model.advance(hop: 0, step: 1, share: 0, outline: nil, at: 21)
    #expect(abs(model.remaining(at: 21) - (20 + 4)) < 1)
    model.begin(.verifying, at: 41)
    #expect(abs(model.remaining(at: 41) - 4) < 0.2)
  }

  @Test func aProgramShowsItsPaceOnceItHasStarted() {
    let pieces: [WorkModel.Piece] = [
      .init(part: .copying, hop: 0, step: 0, seconds: 1, worker: .program),
      .init(part: .verifying, hop: nil, step: nil, seconds: 0.1),
    ]
    var model = WorkModel(pieces, at: 0, planning: 0.01)
    // It needs a second to start, and then ten instead of one.
    model.advance(hop: 0, step: 0, share: 0, outline: nil, at: 0.01)
    for tick in 1...20 {
      let time = 1 + Double(tick) / 2
      model.advance(hop: 0, step: 0, share: Double(tick) / 20, outline: nil, at: time)
      guard (4...19).contains(tick) else { continue }
      let left = 11 - time
      #expect(abs(model.remaining(at: time) - left) < 0.2 * left + 0.15, "at \(time)")
    }
  }

  @Test func anOutlineThatKnowsMoreCounts() {
    let pieces: [WorkModel.Piece] = [
      .init(part: .copying, hop: 0, step: nil, seconds: 10), .init(part: .verifying, hop: nil, step: nil, seconds: 1),
    ]
    var result = HopOutline.Result()
    result.rows = 10e6
    var outline = HopOutline(
      steps: [.init(.rows, seconds: 6), .init(.rows, seconds: 1, isGuess: true)], result: result)
    var model = WorkModel(pieces, at: 0, verified: (hop: 0, isFull: false))
    model.advance(hop: 0, step: 0, share: 0, outline: outline, at: 0)
    // The result has ten million rows: verifying them takes longer than planned.
    let verification = WorkCost.verification(result, isFull: false)
    #expect(abs(model.remaining(at: 0) - (7 + verification)) < 0.01)
    (outline.steps[1].seconds, outline.revision) = (5, 1)
    model.advance(hop: 0, step: 0, share: 0, outline: outline, at: 0)
    #expect(abs(model.remaining(at: 0) - (11 + verification)) < 0.01)
  }

  @Test func theStepsOfAFullVerificationShowItsPace() {
    var result = HopOutline.Result()
    (result.rows, result.entries) = (1e6, 4e6)
    let pieces: [WorkModel.Piece] = [
      .init(part: .copying, hop: 0, step: nil, seconds: 1),
      .init(part: .verifying, hop: nil, step: 0, seconds: 1),
      .init(part: .verifying, hop: nil, step: 1, seconds: 1, isUneven: true),
    ]
    var model = WorkModel(pieces, at: 0, verified: (hop: 0, isFull: true))
    let outline = HopOutline(steps: [.init(.rows, seconds: 1)], result: result)
    model.advance(hop: 0, step: 0, share: 0, outline: outline, at: 0)
    // The machine runs at half its speed, as copying has shown.
    model.begin(.verifying, at: 2)
    let order = WorkCost.verification(result, isFull: true)
    let lookUps = WorkCost.lookUps(result)
    #expect(abs(model.remaining(at: 2) - 2 * (order + lookUps)) < 0.2)
    model.advanceVerification(steps: 0, at: 2 + order)
    var time = 2 + 2 * order
    func goOn(_ ticks: ClosedRange<Int>, secondsEach: Double) {
      for tick in ticks {
        let steps = WorkCost.verificationSteps(result) * Double(tick) / 100
        model.advanceVerification(steps: Int(steps), at: time)
        time += secondsEach
      }
    }
    goOn(1...50, secondsEach: lookUps / 50)
    #expect(abs(model.remaining(at: time) - lookUps) < 0.1 * lookUps)
    // The last steps take longer than the first: near the end their pace decides.
    goOn(51...95, secondsEach: lookUps / 25)
    #expect(abs(model.remaining(at: time) - 0.16 * lookUps) < 0.05 * lookUps)
    #expect(model.part == .verifying)
  }

  @Test func theStepsOfAReplacementFollowEachOther() {
    let pieces = (0..<3).map { WorkModel.Piece(part: .replacing, hop: nil, step: $0, seconds: 1, worker: .disk) }
    var model = WorkModel(pieces, at: 0, planning: 0)
    model.begin(.replacing, step: 1, at: 3)
    // The time of the first step shows how fast the disk is.
    #expect(abs(model.remaining(at: 3) - 6) < 0.2 && model.part == .replacing)
    model.begin(.replacing, step: 0, at: 4)
    #expect(abs(model.remaining(at: 4) - 5) < 0.2)
  }

  @Test func whatComesInNoOrderDoesNoHarm() {
    var dice = Dice(seed: 3)
    for _ in 0..<300 {
      let pieces = (0..<dice.below(5)).map { index in
        WorkModel.Piece(
          part: dice.pick(WorkPart.allCases), hop: dice.chance(50) ? index : nil, step: nil,
          seconds: dice.chance(20) ? 0 : Double(dice.below(100)))
      }
      var model = WorkModel(pieces, at: 0)
      var (time, last) = (0.0, 0.0)
      for _ in 0..<40 {
        time += dice.chance(20) ? 0 : Double.random(in: 0...2, using: &dice)
        if dice.chance(20) {
          model.begin(dice.pick(WorkPart.allCases), at: time)
        } else {
          let steps = [HopOutline.Step(.rows, seconds: 1), HopOutline.Step(.index, seconds: 0)]
          let outline = dice.chance(50) ? HopOutline(steps: steps) : nil
          let share = dice.pick([0, 0.5, 1, 2, -1, .nan, .infinity])
          model.advance(hop: dice.below(6), step: dice.below(4) - 1, share: share, outline: outline, at: time)
        }
        let now = model.fraction(at: time)
        #expect(now >= last && now < 1 && model.remaining(at: time) >= 0)
        last = now
      }
      model.finish()
      #expect(model.fraction(at: time) == 1)
    }
  }
}
