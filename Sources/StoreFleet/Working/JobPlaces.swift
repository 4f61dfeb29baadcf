// The places of a worker's jobs. A small store is built in memory in a few milliseconds and then waits about as long
// for the disk. Meanwhile the job's place is free for another store.

import Dispatch

/// As many places as there are jobs.
final class JobPlaces: Sendable {
  private let free: DispatchSemaphore

  /// Makes places for `jobs` jobs.
  init(jobs: Int) { free = DispatchSemaphore(value: max(1, jobs)) }

  /// Threads that keep the places of `jobs` jobs taken: for each place one more, which waits for the disk. A single job
  /// is one store at a time.
  static func threads(jobs: Int) -> Int { jobs > 1 ? jobs * 2 : 1 }

  /// Waits for a place and takes it.
  func take() -> JobPlace {
    free.wait()
    return JobPlace(free)
  }
}

/// A place that is taken. It belongs to one thread.
package final class JobPlace {
  private let free: DispatchSemaphore
  private var isTaken = true

  fileprivate init(_ free: DispatchSemaphore) { self.free = free }

  /// Gives the place back, if that has not been done.
  package func giveBack() {
    guard isTaken else { return }
    isTaken = false
    free.signal()
  }

  deinit { giveBack() }
}
