// The line of a terminal that says how far a command is: rewritten in place, from any thread, and gone before the
// result is printed. Programs never see it.

import Diagnostics
import Synchronization

/// Shows one line.
final class ProgressLine: Sendable {
  private struct State {
    var last: ContinuousClock.Instant?
    var isDrawn = false
  }

  /// Is there a terminal that shows it?
  let isShown: Bool
  private let pause: Duration
  private let state = Mutex(State())

  /// A line that is drawn once in `pause` at most.
  init(_ output: OutputOptions, every pause: Duration) {
    self.pause = pause
    isShown = !output.json && !output.quiet && !output.noProgress && StandardStreams.Stream.error.isTerminal
  }

  func show(_ text: @autoclosure () -> String) {
    guard isShown else { return }
    state.withLock { state in
      let now = ContinuousClock.now
      if let last = state.last, now - last < pause { return }
      (state.last, state.isDrawn) = (now, true)
      // A line that wraps cannot be rewritten.
      try? StandardStreams.write("\r\u{1b}[K" + text().printableLine.prefix(79), to: .error)
    }
  }

  /// Takes the line away.
  func end() {
    state.withLock { state in
      guard state.isDrawn else { return }
      try? StandardStreams.write("\r\u{1b}[K", to: .error)
      state.isDrawn = false
    }
  }
}
