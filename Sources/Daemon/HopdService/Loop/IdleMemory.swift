// Returns memory while the daemon is idle: inspections, migrations and scans of large directories need much that an
// idle daemon does not, and what a tick used is not needed until the next.

import MigrationPipeline

/// Decides when an idle daemon returns memory.
struct IdleMemory {
  /// When memory is next returned; nil if nothing has happened since the last time.
  private(set) var due: ContinuousClock.Instant?
  private var returned: ContinuousClock.Instant?

  /// How long nothing must have happened before.
  private static let idleDelay = Duration.seconds(5)
  /// The shortest time between two returns, however often the timer fires.
  private static let shortestPause = Duration.seconds(2)

  /// Notes that something has happened.
  mutating func used() { due = .now.advanced(by: Self.idleDelay) }

  /// Returns memory if that is due.
  mutating func giveBack(now: ContinuousClock.Instant) {
    guard let at = due ?? returned?.advanced(by: Self.shortestPause), at <= now else { return }
    (due, returned) = (nil, now)
    BlockingWork.run("rest") { ProgramMemory.giveBack() }
  }
}
