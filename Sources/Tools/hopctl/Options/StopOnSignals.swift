// SIGINT, SIGTERM and SIGHUP stop a long command at its next safe point. A second SIGINT or SIGTERM ends the program at
// once; even then the old store is complete.

import Diagnostics
import Glibc
import MigrationPipeline

/// Turns signals into a `StopSignal`.
enum StopOnSignals {
  /// Returns a stop signal that SIGINT and SIGTERM set from now on, and SIGHUP unless nohup had it ignored.
  static func start() -> StopSignal {
    let stop = StopSignal()
    // All threads block the signals, and a dedicated thread waits for them. Without a signal handler its restrictions
    // do not apply.
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
          // A session that ends may send SIGHUP twice: by the terminal, and by the shell.
          if stop.isStopping, signal != SIGHUP { _exit(ExitStatus.temporaryFailure.rawValue) }
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
    // While it is blocked, a wait would return even an ignored signal.
    if !isIgnored(SIGHUP) { sigaddset(&signals, SIGHUP) }
    return signals
  }

  private static func isIgnored(_ number: Int32) -> Bool {
    var action = sigaction()
    guard sigaction(number, nil, &action) == 0 else { return false }
    return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }
}
