// The line of a terminal that says how far a fleet is: rewritten in place, from any thread.

import Diagnostics
import Synchronization

/// Shows one line.
final class FleetProgress: Sendable {
  private struct State {
    var last: ContinuousClock.Instant?
    var isDrawn = false
  }

  private let isShown: Bool
  private let state = Mutex(State())

  init(_ output: OutputOptions) {
    isShown = !output.json && !output.quiet && !output.noProgress && StandardStreams.Stream.error.isTerminal
  }

  /// Draws the line, at most five times a second.
  func show(_ text: @autoclosure () -> String) {
    guard isShown else { return }
    state.withLock { state in
      let now = ContinuousClock.now
      if let last = state.last, now - last < .milliseconds(200) { return }
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
