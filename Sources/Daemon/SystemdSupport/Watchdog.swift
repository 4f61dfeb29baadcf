// Decides when to ping the watchdog: never by a timer alone. At every tick the caller passes the progress of each
// running job, and the policy returns whether the service has earned a ping. A job without progress for a whole
// interval blocks the ping; systemd then ends the service, and the next start resumes from the checkpoint.

import CSystemd

/// The watchdog that the unit configures.
package enum Watchdog {
  /// WatchdogSec= for this process; nil if there is none (sd_watchdog_enabled checks WATCHDOG_PID).
  package static func interval() -> Duration? {
    var microseconds: UInt64 = 0
    guard sd_watchdog_enabled(0, &microseconds) > 0, microseconds > 0 else { return nil }
    return .microseconds(Int64(clamping: microseconds))
  }
}

/// Decides whether a watchdog ping is earned. Pure: the caller passes the time.
package struct WatchdogPolicy: Sendable {
  private struct Job {
    var beats: UInt64
    var movedAt: ContinuousClock.Instant
  }

  /// WatchdogSec= of the unit.
  package let interval: Duration
  private var jobs: [String: Job] = [:]
  private var lastPing: ContinuousClock.Instant
  private var hasMoved = false

  /// Starts at `now`, which counts as a ping: systemd starts its own clock at READY.
  package init(interval: Duration, now: ContinuousClock.Instant) {
    self.interval = interval
    lastPing = now
  }

  /// The interval at which to call `shouldPing`.
  package var tick: Duration { max(interval / 8, .milliseconds(10)) }

  /// Whether a ping is due (after half of the interval) and earned by progress since the last one.
  ///
  /// `beats` holds a counter for each running job that grows with its progress. A service without a job earns its ping
  /// by this call: a call from the loop that dispatches work shows that the loop runs. The caller must send the ping if
  /// this returns true.
  package mutating func shouldPing(now: ContinuousClock.Instant, beats: [String: UInt64]) -> Bool {
    for name in jobs.keys where beats[name] == nil {
      jobs[name] = nil
      hasMoved = true
    }
    for (name, count) in beats {
      if let job = jobs[name], job.beats == count { continue }
      jobs[name] = Job(beats: count, movedAt: now)
      hasMoved = true
    }
    guard !jobs.values.contains(where: { now - $0.movedAt >= interval }) else { return false }
    guard now - lastPing >= interval / 2, hasMoved || jobs.isEmpty else { return false }
    lastPing = now
    hasMoved = false
    return true
  }

  /// Jobs without a beat for a whole interval, for the log entry before the service ends.
  package func hungJobs(now: ContinuousClock.Instant) -> [String] {
    jobs.filter { now - $0.value.movedAt >= interval }.keys.sorted()
  }
}
