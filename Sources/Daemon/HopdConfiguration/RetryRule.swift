// How hopd retries after a temporary failure.

/// The number of attempts after failures, and the pauses between them.
package struct RetryRule: Sendable, Hashable {
  /// Attempts in all.
  package var attempts: Int
  /// The first pause; it doubles with each failure.
  package var backoff: Duration
  /// The longest pause.
  package var longest: Duration

  /// Creates a rule; the default is that of the configuration.
  package init(attempts: Int = 5, backoff: Duration = .seconds(30), longest: Duration = .seconds(3600)) {
    (self.attempts, self.backoff, self.longest) = (attempts, backoff, longest)
  }

  /// The pause after the `failures`-th failure in a row, from 1.
  package func pause(after failures: Int) -> Duration {
    var pause = min(backoff, longest)
    for _ in 1..<max(2, min(failures, 64)) where failures > 1 {
      if pause >= longest { break }
      pause = min(pause + pause, longest)
    }
    return max(pause, .milliseconds(1))
  }
}
