// Most tests of stores run for seconds without a pause: they wait for the disk, for locks and for other programs. On
// the threads that all of Swift's tasks share they would keep the daemon's tests waiting until these run out of time,
// so that a plain `swift test` failed. With this trait the body of a test runs on threads of its own.

import Dispatch
import Synchronization
import Testing

/// Runs the bodies of tests that block on threads of their own.
package struct BlockingTrait: SuiteTrait, TestTrait, TestScoping {
  package var isRecursive: Bool { true }

  package func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? { testCase == nil ? nil : self }

  package func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    try await withTaskExecutorPreference(BlockingThreads.shared) { try await function() }
  }
}

extension Trait where Self == BlockingTrait {
  /// The test blocks its thread.
  package static var blocking: Self { Self() }
}

/// A few threads; a job goes to the one that has the fewest.
private final class BlockingThreads: TaskExecutor {
  static let shared = BlockingThreads()

  private let queues = (0..<4).map { DispatchQueue(label: "tests that block \($0)") }
  private let jobs = Mutex([0, 0, 0, 0])

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let index = jobs.withLock { jobs in
      let index = jobs.indices.min { jobs[$0] < jobs[$1] } ?? 0
      jobs[index] += 1
      return index
    }
    queues[index].async {
      job.runSynchronously(on: self.asUnownedTaskExecutor())
      self.jobs.withLock { $0[index] -= 1 }
    }
  }
}
