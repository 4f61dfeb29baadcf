import Diagnostics
import MigrationEngine

/// The number of objects in the next call to a policy: few at first, then as many as the time and the memory for one
/// call allow. A pure value; the caller passes the time.
struct PolicyPace: Sendable, Hashable {
  /// The objects in the next call.
  private(set) var rows: Int64 = 50
  /// The bytes that the values of one call may take, beyond the first object.
  let bytes: Int
  private let target: Duration
  private let maximum: Int64
  init(options: EngineOptions) {
    target = max(options.chunkTime, .milliseconds(1))
    // Above some thousand objects a larger message is not faster, and a batch should fit into the pipe: then the engine
    // can work while the program reads.
    maximum = max(1, min(options.chunkRowsMax, 2_000))
    bytes = Int(clamping: min(512 << 10, max(256 << 10, options.memoryLimit / 32)))
    rows = min(rows, maximum)
  }

  /// Records a call that took `duration`.
  mutating func record(_ duration: Duration) {
    let seconds = max(duration.seconds, 0.000_001)
    let factor = min(4.0, max(0.1, target.seconds / seconds))
    rows = Int64(max(1, min(Double(rows) * factor, Double(maximum))))
  }
}

extension EngineOptions {
  /// The maximum number of bytes of values in one answer to a policy.
  var policyAnswerBytes: Int { Int(clamping: min(16 << 20, max(1 << 20, memoryLimit / 8))) }
  /// The maximum number of objects in one answer.
  var policyAnswerObjects: Int { policyAnswerBytes / 64 }
}
