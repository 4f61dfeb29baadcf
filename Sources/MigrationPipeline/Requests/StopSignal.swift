// How a run is asked to stop: set from a signal handler's task, read by the engine between chunks.

import Synchronization

/// A flag that asks running migrations to stop at the next chunk. The checkpoint stays, so the next start goes on.
package final class StopSignal: Sendable {
  private let flag = Atomic<Bool>(false)
  private let parent: StopSignal?

  /// Makes a signal that is not set; one with a `parent` is set with that, too.
  package init(parent: StopSignal? = nil) { self.parent = parent }

  /// Asks to stop.
  package func stop() { flag.store(true, ordering: .relaxed) }

  /// Was it asked to stop?
  package var isStopping: Bool { flag.load(ordering: .relaxed) || parent?.isStopping == true }
}
