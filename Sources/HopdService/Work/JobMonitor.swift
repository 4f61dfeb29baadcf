// Where a job's thread leaves word of how far it is, and the service's loop reads it: the one thing both touch.

import Diagnostics
import MigrationPipeline
import Synchronization

/// The progress of one running job, behind a lock.
package final class JobMonitor: Sendable {
  /// What is known of the job at one moment.
  package struct Snapshot: Sendable {
    /// Grows with every sign of life.
    package var beats: UInt64 = 0
    /// The versions of the whole way, once the plan stands.
    package var from: String?
    package var to: String?
    /// The last progress within a hop.
    package var progress: MigrationProgress?
    /// What is done outside of the hops.
    package var activity: String?
  }

  private let state = Mutex(Snapshot())

  /// What is known now.
  package var snapshot: Snapshot { state.withLock { $0 } }

  /// A sign of life without news.
  package func beat() { state.withLock { $0.beats &+= 1 } }

  /// Notes what an event says of the progress; every event is a beat.
  package func note(_ event: MigrationEvent) {
    state.withLock { state in
      state.beats &+= 1
      switch event {
      case .identified(let facts): state.from = facts.version
      case .planned(let plan): (state.from, state.to) = (plan.from, plan.to)
      case .hopStarted: state.activity = nil
      case .progress: state.activity = nil
      case .advanced(let progress): state.progress = progress
      case .verifying: state.activity = "verifying"
      case .replacing: state.activity = "replacing"
      case .recovered, .resumed, .hopFinished, .verified, .alive, .note: break
      }
    }
  }
}
