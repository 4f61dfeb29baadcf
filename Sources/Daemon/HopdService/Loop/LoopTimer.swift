// The one timer of the daemon's loop.

/// A timer that can be set to an earlier time.
struct LoopTimer {
  private var timer: (at: ContinuousClock.Instant, task: Task<Void, Never>)?

  /// Calls `fire` at a time, unless it is called before that anyway.
  mutating func set(
    _ at: ContinuousClock.Instant, now: ContinuousClock.Instant, fire: @escaping @Sendable () -> Void
  ) {
    if let timer, timer.at > now, timer.at <= at { return }
    cancel()
    timer = (
      at,
      Task {
        do { try await Task.sleep(until: at, clock: .continuous) } catch { return }
        fire()
      }
    )
  }

  /// Never calls `fire`.
  func cancel() { timer?.task.cancel() }
}
