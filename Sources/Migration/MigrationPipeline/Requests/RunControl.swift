// A run asks this between two chunks and inside long statements whether it continues. A paused run waits here: it keeps
// its locks and everything that it has built, and continues from the same point.

import Glibc
import MigrationEngine

/// Whether one run continues. It belongs to the run's thread.
final class RunControl {
  private let stop: StopSignal
  /// Shows that a paused run lives.
  private let keepAlive: (MigrationStage) -> Void
  private var lastChunk = ContinuousClock.now
  /// How long the run has been paused so far.
  private(set) var paused = Duration.zero

  /// A statement that runs for longer than this is not a chunk: an index, a check. It waits in its middle.
  private static let longStatement = Duration.seconds(1)
  /// How often a paused run checks whether it may continue, in microseconds.
  private static let interval: UInt32 = 50_000

  init(_ stop: StopSignal, keepAlive: @escaping (MigrationStage) -> Void) {
    self.stop = stop
    self.keepAlive = keepAlive
  }

  /// Whether a hop continues after this report; waits while the run is paused. A pause never lengthens a chunk: the
  /// chunk's time decides the size of the next.
  func continues(after progress: HopProgress) -> Bool {
    let now = ContinuousClock.now
    if !progress.isInStatement {
      lastChunk = now
    } else if now - lastChunk < Self.longStatement {
      return !stop.isStopping
    }
    wait(.migrate)
    return !stop.isStopping
  }

  /// Whether a long inspection continues; waits while the run is paused. A replacement that has begun is finished:
  /// during one, the store is locked for every program.
  func continues(in stage: MigrationStage) -> Bool {
    switch stage {
    case .plan, .verify: wait(stage)
    case .identify, .lock, .recover, .migrate, .replace, .report: break
    }
    return !stop.isStopping
  }

  private func wait(_ stage: MigrationStage) {
    guard stop.isPaused else { return }
    let start = ContinuousClock.now
    var shown = start
    while stop.isPaused {
      usleep(Self.interval)
      let now = ContinuousClock.now
      if now - shown > .milliseconds(500) {
        shown = now
        keepAlive(stage)
      }
    }
    lastChunk = ContinuousClock.now
    paused += lastChunk - start
  }
}
