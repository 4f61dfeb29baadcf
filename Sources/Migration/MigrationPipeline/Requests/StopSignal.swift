// The signal that makes a run stop or halt: other threads set it, the run reads it between chunks and inside long
// statements.

import Synchronization

/// Makes running migrations stop at the next chunk, where the checkpoint stays and the next start continues; or halt
/// there for a while, and continue from there.
package final class StopSignal: Sendable {
  private let flag = Atomic<Bool>(false)
  private let holds = Atomic<Bool>(false)
  private let parent: StopSignal?

  /// Makes a signal that is not set; one with a `parent` is set with that, too.
  package init(parent: StopSignal? = nil) { self.parent = parent }

  /// Stops the run. A halted run stops at once.
  package func stop() { flag.store(true, ordering: .relaxed) }

  /// Whether the run is to stop.
  package var isStopping: Bool { flag.load(ordering: .relaxed) || parent?.isStopping == true }

  /// Halts the run, or lets it continue.
  package func hold(_ isHeld: Bool) { holds.store(isHeld, ordering: .relaxed) }

  /// Whether the run is to halt, and not to stop.
  package var isHeld: Bool { !isStopping && (holds.load(ordering: .relaxed) || parent?.isHeld == true) }
}
