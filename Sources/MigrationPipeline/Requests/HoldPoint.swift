// The points at which a held run halts: between two chunks, or inside a long statement. It keeps its locks and
// everything that it has built, and continues from the same point.

import Glibc

/// The halts of one run. It belongs to the run's thread.
final class HoldPoint {
  private let stop: StopSignal
  /// Rows at the last chunk, and when that was.
  private var rows: Int64 = -1
  private var lastChunk = ContinuousClock.now
  /// How long the run has halted so far.
  private(set) var held = Duration.zero

  /// A statement that runs for longer than this is no chunk: an index, a check. It halts in its middle.
  private static let longStatement = Duration.seconds(1)
  /// How often a halted run checks whether it may continue, in microseconds.
  private static let pause: UInt32 = 50_000

  init(stop: StopSignal) { self.stop = stop }

  /// Halts here if the run is held and may halt at this event. A halt never lengthens a chunk: the chunk's time decides
  /// the size of the next.
  func passed(_ event: MigrationEvent, keepAlive: (MigrationStage) -> Void) {
    switch event {
    case .progress(let progress):
      let now = ContinuousClock.now
      if progress.rows != rows {
        (rows, lastChunk) = (progress.rows, now)
      } else if now - lastChunk < Self.longStatement {
        return
      }
      halt(.migrate, keepAlive)
    case .alive(let stage):
      // A replacement that has begun is finished: during one, the store is locked for every program.
      switch stage {
      case .plan, .verify: halt(stage, keepAlive)
      case .identify, .lock, .recover, .migrate, .replace, .report: return
      }
    default: return
    }
  }

  private func halt(_ stage: MigrationStage, _ keepAlive: (MigrationStage) -> Void) {
    guard stop.isHeld else { return }
    let start = ContinuousClock.now
    var shown = start
    while stop.isHeld {
      usleep(Self.pause)
      let now = ContinuousClock.now
      if now - shown > .milliseconds(500) {
        shown = now
        keepAlive(stage)
      }
    }
    let end = ContinuousClock.now
    held += end - start
    lastChunk = end
  }
}
