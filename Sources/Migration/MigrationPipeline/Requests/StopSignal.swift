// The signal that makes a run stop or pause: other threads set it, the run reads it between chunks and inside long
// statements.

import Synchronization

/// Makes running migrations stop at the next chunk, where the checkpoint stays and the next start continues; or pause
/// there, and continue from there.
package final class StopSignal: Sendable {
  private let flag = Atomic<Bool>(false)
  private let pauses = Atomic<Bool>(false)
  private let parent: StopSignal?

  /// Creates a signal that is not set; one with a `parent` is set with that, too.
  package init(parent: StopSignal? = nil) { self.parent = parent }

  /// Stops the run. A paused run stops at once.
  package func stop() { flag.store(true, ordering: .relaxed) }

  /// Whether the run is to stop.
  package var isStopping: Bool { flag.load(ordering: .relaxed) || parent?.isStopping == true }

  /// Pauses the run, or lets it continue.
  package func pause(_ isPaused: Bool) { pauses.store(isPaused, ordering: .relaxed) }

  /// Whether the run is to pause, and not to stop.
  package var isPaused: Bool { !isStopping && (pauses.load(ordering: .relaxed) || parent?.isPaused == true) }
}
