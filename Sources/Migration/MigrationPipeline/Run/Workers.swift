// Work that several threads share: each takes the next piece until none is left. Migrations block their thread, so they
// get threads of their own.

import Glibc
import Synchronization

/// Runs pieces of work on threads.
package enum Workers {
  private final class Queue: Sendable {
    private let next = Atomic<Int>(0)
    private let count: Int
    private let body: @Sendable (Int) -> Void

    init(count: Int, body: @escaping @Sendable (Int) -> Void) {
      self.count = count
      self.body = body
    }

    func work() {
      while true {
        let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
        guard index < count else { return }
        body(index)
      }
    }
  }

  /// Calls `body` once for each number below `count`, on up to `threads` threads, and returns when all are done.
  package static func run(_ count: Int, threads: Int, _ body: @escaping @Sendable (Int) -> Void) {
    let queue = Queue(count: count, body: body)
    var started: [pthread_t] = []
    // The caller's thread works too: where no other can be made it does everything.
    for _ in 1..<max(1, min(threads, count)) {
      var thread = pthread_t()
      let context = Unmanaged.passRetained(queue)
      let code = pthread_create(
        &thread, nil,
        { context in
          if let context { Unmanaged<Queue>.fromOpaque(context).takeRetainedValue().work() }
          return nil
        }, context.toOpaque())
      guard code == 0 else {
        context.release()
        break
      }
      started.append(thread)
    }
    queue.work()
    for thread in started { pthread_join(thread, nil) }
  }
}
