// SIGINT and SIGTERM ask a long command to stop at the next safe point. A second one ends the program at once: the
// store is the complete old one even then.

import Diagnostics
import Glibc
import MigrationPipeline

/// Turns signals into a `StopSignal`.
enum StopOnSignals {
  /// Makes a signal that SIGINT and SIGTERM set from now on.
  static func start() -> StopSignal {
    let stop = StopSignal()
    // The signals are blocked in every thread and taken by one that does nothing else: no handler, so nothing that a
    // handler must not do.
    var signals = Self.signals
    guard pthread_sigmask(SIG_BLOCK, &signals, nil) == 0 else { return stop }
    var thread = pthread_t()
    let context = Unmanaged.passRetained(stop)
    let code = pthread_create(
      &thread, nil,
      { context in
        guard let context else { return nil }
        let stop = Unmanaged<StopSignal>.fromOpaque(context).takeRetainedValue()
        var signals = StopOnSignals.signals
        var signal: Int32 = 0
        while true {
          guard sigwait(&signals, &signal) == 0 else { continue }
          if stop.isStopping { _exit(ExitStatus.temporaryFailure.rawValue) }
          stop.stop()
        }
      }, context.toOpaque())
    if code != 0 {
      context.release()
      _ = pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    } else {
      pthread_detach(thread)
    }
    return stop
  }

  private static var signals: sigset_t {
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGINT)
    sigaddset(&signals, SIGTERM)
    return signals
  }
}
