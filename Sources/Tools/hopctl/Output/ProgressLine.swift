// The progress line on a terminal: any thread rewrites it in place, and it is removed before the result is printed. It
// is never written to a file or a pipe.

import Diagnostics
import Synchronization

/// Shows one line.
final class ProgressLine: Sendable {
  private struct State {
    var last: ContinuousClock.Instant?
    var isDrawn = false
  }

  /// Whether a terminal shows the line.
  let isShown: Bool
  private let pause: Duration
  private let state = Mutex(State())

  /// Creates a line that is drawn at most once per `pause`.
  init(_ output: OutputOptions, every pause: Duration) {
    self.pause = pause
    isShown = !output.json && !output.quiet && !output.noProgress && StandardStreams.Stream.error.isTerminal
  }

  func show(_ line: @autoclosure () -> FittedLine) {
    guard isShown else { return }
    state.withLock { state in
      let now = ContinuousClock.now
      if let last = state.last, now - last < pause { return }
      (state.last, state.isDrawn) = (now, true)
      // A line that wraps cannot be rewritten. The size is asked for each time, because windows change; a character in
      // the last column would leave the cursor between two lines.
      let columns = max(1, (StandardStreams.Stream.error.size?.columns ?? 80) - 1)
      try? StandardStreams.write("\r\u{1b}[K" + line().text(columns: columns), to: .error)
    }
  }

  /// Removes the line.
  func end() {
    state.withLock { state in
      guard state.isDrawn else { return }
      try? StandardStreams.write("\r\u{1b}[K", to: .error)
      state.isDrawn = false
    }
  }
}
