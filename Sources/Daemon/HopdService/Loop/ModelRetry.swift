// When to read again models that could not be read.

/// The attempts to read the models of watches that are not served.
struct ModelRetry {
  /// When the next attempt is due; nil for none.
  private(set) var due: ContinuousClock.Instant?
  private var pause = Duration.seconds(1)

  /// Schedules an attempt, after twice the pause of the last one.
  mutating func schedule() {
    pause = min(pause * 2, .seconds(30))
    due = .now.advanced(by: pause)
  }

  /// Whether an attempt is due; it counts as begun.
  mutating func take(now: ContinuousClock.Instant) -> Bool {
    guard let at = due, at <= now else { return false }
    due = nil
    return true
  }
}
