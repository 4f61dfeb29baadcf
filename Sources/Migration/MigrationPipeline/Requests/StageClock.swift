// The time that each stage of a run took: the sum of the hops does not show it (planning reads the rows, verification
// counts them again).

import Diagnostics

/// Adds up the time of stages; one may be entered several times.
struct StageClock {
  private var since = ContinuousClock.now
  private var past: [MigrationStage: Double] = [:]

  /// The run continues from `stage` to another one, or to the same again.
  mutating func leave(_ stage: MigrationStage) {
    let now = ContinuousClock.now
    past[stage, default: 0] += (now - since).seconds
    since = now
  }

  /// Seconds by stage, where the run is still in `stage`.
  func seconds(upTo stage: MigrationStage) -> [MigrationStage: Double] {
    var clock = self
    clock.leave(stage)
    return clock.past
  }
}
