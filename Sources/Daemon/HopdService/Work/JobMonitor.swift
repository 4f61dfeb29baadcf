// The progress of a job, which its thread writes and the service's loop reads. The two share nothing else.

import Diagnostics
import MigrationEngine
import MigrationPipeline
import Synchronization

/// The progress of one running job, behind a lock.
package final class JobMonitor: Sendable {
  /// The state of the job at one moment.
  package struct Snapshot: Sendable {
    /// Grows with every event or beat.
    package var beats: UInt64 = 0
    /// The first and last version of the chain, as soon as they are known.
    package var from: String?
    package var to: String?
    /// The last progress within a hop.
    package var progress: MigrationProgress?
    /// The activity outside of hops, such as "verifying".
    package var activity: String?
    /// The last lines that policies wrote, more than an error quotes.
    package var policyLines: [String] = []
  }

  private let state = Mutex(Snapshot())

  /// The current state.
  package var snapshot: Snapshot { state.withLock { $0 } }

  /// Counts a beat without an event.
  package func beat() { state.withLock { $0.beats &+= 1 } }

  /// Takes the progress from an event; every event is a beat.
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
      case .note(let note):
        if case .policyOutput(_, _, let line) = note { state.policyLines = state.policyLines.suffix(49) + [line] }
      case .recovered, .resumed, .hopFinished, .verified, .alive: break
      }
    }
  }
}
