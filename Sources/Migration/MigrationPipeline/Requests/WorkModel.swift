// The share of a run that is done. Each stage has a weight, and counts as far as its keys are done; the time left
// follows from the pace so far. Pure: the time comes from outside.

import MappingModel
import MigrationEngine
import MigrationPlanning
import StoreReplacement
import StoreVerification

/// The current part of a run's work.
package enum WorkPart: String, Sendable, Hashable, CaseIterable {
  case planning, copying, indexing, verifying, replacing, done
}

extension HopStage {
  /// The part of a run's work that the stage belongs to.
  var part: WorkPart { self == .indexes ? .indexing : .copying }
}

/// The work of one run.
struct WorkModel: Sendable {
  /// A stage of the work.
  struct Stage: Sendable, Hashable {
    let part: WorkPart
    /// For a stage of a hop.
    var hop: Int?
    var stage: HopStage?
    let weight: Double
  }

  private let stages: [Stage]
  private let start: Double
  private var current = 0
  /// The share of the current stage that is done.
  private var share = 0.0
  /// The share of the run that earlier runs have done.
  private var before: Double?
  private var reported = 0.0
  private var isDone = false

  /// The run begins at a time, in seconds.
  init(_ stages: [Stage], at time: Double) {
    self.stages = stages.isEmpty ? [Stage(part: .replacing, weight: 1)] : stages
    start = time
  }

  /// So much of a stage is done, and all of the stages before it, by this run or by an earlier one. Reports out of
  /// order have no effect.
  mutating func advance(_ part: WorkPart, hop: Int? = nil, stage: HopStage? = nil, share: Double = 0) {
    let found = stages.firstIndex { $0.part == part && $0.hop == hop && $0.stage == stage }
    guard let index = found, index >= current else { return }
    if index > current { (current, self.share) = (index, 0) }
    if share > self.share { self.share = min(share, 1) }
    if before == nil { before = done }
  }

  /// The run has ended.
  mutating func finish() { isDone = true }

  /// The current part of the work.
  var part: WorkPart { isDone ? .done : stages[current].part }

  private var done: Double {
    let all = stages.reduce(0) { $0 + $1.weight }
    let before = stages[..<current].reduce(0) { $0 + $1.weight }
    return all > 0 ? (before + stages[current].weight * share) / all : 0
  }

  /// The share of the run that is done, 0 to 1. It never falls, and is 1 only for a run that has ended.
  mutating func fraction() -> Double {
    if isDone { return 1 }
    reported = max(reported, min(done, 0.999))
    return reported
  }

  /// Seconds to go at the pace of this run; nil while it is unknown.
  func remaining(at time: Double) -> Double? {
    if isDone { return 0 }
    guard let before, reported - before > 0.01 else { return nil }
    return max(0, time - start) * (1 - reported) / (reported - before)
  }
}

// MARK: The stages of a plan

/// How long the stages take for each row, in proportion to a row that SQL writes.
private enum Weight {
  static let row = 1.0
  /// An object that a program makes.
  static let object = 50.0
  /// A row of a file that is copied, and a row that is then changed.
  static let copied = 0.2
  static let altered = 0.2
  static let indexed = 1.0
  static let verified = 0.5
  static let fullyVerified = 5.0
  static let replaced = 0.4
  static let replacedInPlace = 2.4
}

extension WorkModel {
  /// The work of a plan that is complete.
  init(
    _ plan: MigrationPlan, execution: ChainExecution, settings: MigrationSettings, replaces: Bool, at time: Double
  ) {
    var stages: [Stage] = []
    var rows = 1.0
    func add(_ part: WorkPart, _ weight: Double) { stages.append(Stage(part: part, weight: rows * weight)) }
    for (index, decision) in execution.hops.enumerated() {
      rows = Double(max(1, plan.hops[index].rowsToRead))
      func add(_ stage: HopStage, _ weight: Double) {
        stages.append(Stage(part: stage.part, hop: index, stage: stage, weight: rows * weight))
      }
      switch decision {
      case .alter:
        if !execution.staysInStore(index) { add(.copy, Weight.copied) }
        add(.rows, Weight.altered)
      case .write:
        add(.rows, plan.hops[index].mapped?.policies.isEmpty == false ? Weight.object : Weight.row)
      }
      // Only the last store has indexes.
      add(.indexes, index == plan.hops.count - 1 ? Weight.indexed : 0)
    }
    add(.verifying, settings.verification == .full ? Weight.fullyVerified : Weight.verified)
    add(
      .replacing,
      !replaces ? 0 : settings.replacement == .inPlace ? Weight.replacedInPlace : Weight.replaced)
    self.init(stages, at: time)
  }
}
