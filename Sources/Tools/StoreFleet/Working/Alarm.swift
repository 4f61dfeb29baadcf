// The deadline of a worker: a thread that sleeps, because the others work.

import Diagnostics
import Glibc
import MigrationPipeline
import Synchronization

/// Sets a stop signal after a time.
final class Alarm: Sendable {
  private let isCancelled = Atomic<Bool>(false)
  private let end: ContinuousClock.Instant
  private let signal: StopSignal

  /// Sets `signal` after `duration`, unless it is cancelled before.
  init(after duration: Duration, _ signal: StopSignal) {
    end = ContinuousClock.now + duration
    self.signal = signal
    var thread = pthread_t()
    let context = Unmanaged.passRetained(self)
    let code = pthread_create(
      &thread, nil,
      { context in
        if let context { Unmanaged<Alarm>.fromOpaque(context).takeRetainedValue().wait() }
        return nil
      }, context.toOpaque())
    if code == 0 { pthread_detach(thread) } else { context.release() }
  }

  private func wait() {
    while !isCancelled.load(ordering: .relaxed) {
      if ContinuousClock.now >= end { return signal.stop() }
      Self.sleep(milliseconds: 100)
    }
  }

  /// Cancels the alarm.
  func cancel() { isCancelled.store(true, ordering: .relaxed) }

  /// Lets the calling thread rest.
  static func sleep(milliseconds: Int) {
    var time = timespec(tv_sec: milliseconds / 1000, tv_nsec: milliseconds % 1000 * 1_000_000)
    nanosleep(&time, nil)
  }

  /// Lets the calling thread rest so long, or until `stop` is set.
  static func sleep(_ duration: Duration, unless stop: StopSignal) {
    let end = ContinuousClock.now + duration
    while !stop.isStopping {
      let left = (end - ContinuousClock.now).seconds
      guard left > 0 else { return }
      sleep(milliseconds: max(1, Int(min(left * 1000, 50))))
    }
  }
}
