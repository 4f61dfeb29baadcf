// Passes lines that policy programs write to the thread of the run: events are reported there and nowhere else.

import MigrationEngine
import MigrationPolicy
import Synchronization

/// Creates the policies of one run: `isStopped` ends waiting for them, `output` gets each line that they write, with
/// the names of the class and of the entity mapping.
package typealias PolicyMaker =
  @Sendable (
    _ isStopped: @escaping @Sendable () -> Bool,
    _ output: @escaping @Sendable (_ policy: String, _ mapping: String, _ line: String) -> Void
  ) -> any PolicyProvider

/// Lines that wait to be reported.
final class PolicyLines: Sendable {
  private let lines = Mutex<[HopNote]>([])

  /// Lines that wait at most: a program that writes without end must not fill the memory.
  private static let most = 1000

  func add(_ policy: String, _ mapping: String, _ line: String) {
    lines.withLock { lines in
      if lines.count < PolicyLines.most { lines.append(.policyOutput(policy: policy, mapping: mapping, line: line)) }
    }
  }

  /// The lines since the last call.
  func take() -> [HopNote] {
    lines.withLock { lines in
      defer { lines = [] }
      return lines
    }
  }
}
