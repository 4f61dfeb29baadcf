// Most tests of stores block for seconds: they wait for the disk, for locks and for other programs. On the threads that
// all Swift tasks share, they would delay the daemon's tests until these time out, so that a plain `swift test` failed.
// With this trait the body of a test runs on separate threads.

import Dispatch
import Synchronization
import Testing

/// Runs the bodies of blocking tests on separate threads.
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

/// A few threads; each job is given to the thread with the fewest jobs.
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
