// How a run is asked to stop or to halt: set by others, read by the run between chunks and inside long statements.

import Synchronization

/// Asks running migrations to stop at the next chunk, where the checkpoint stays and the next start continues; or to
/// halt there for a while, and to continue where they stand.
package final class StopSignal: Sendable {
  private let flag = Atomic<Bool>(false)
  private let holds = Atomic<Bool>(false)
  private let parent: StopSignal?

  /// Makes a signal that is not set; one with a `parent` is set with that, too.
  package init(parent: StopSignal? = nil) { self.parent = parent }

  /// Asks to stop. Who halts stops at once.
  package func stop() { flag.store(true, ordering: .relaxed) }

  /// Was it asked to stop?
  package var isStopping: Bool { flag.load(ordering: .relaxed) || parent?.isStopping == true }

  /// Asks to halt, or to continue.
  package func hold(_ isHeld: Bool) { holds.store(isHeld, ordering: .relaxed) }

  /// Is it asked to halt, and not to stop?
  package var isHeld: Bool { !isStopping && (holds.load(ordering: .relaxed) || parent?.isHeld == true) }
}
