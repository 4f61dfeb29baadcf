// The limits of a policy program. It is another author's program: its time, memory and output are bounded, and whatever
// it does, the store does not change.

/// Limits of a policy program.
package struct PolicyLimits: Sendable, Hashable {
  /// Longest time that one call may take.
  package var timeout: Duration
  /// Bytes of private memory (RLIMIT_DATA).
  package var memory: Int64
  /// Largest message in bytes, both ways.
  package var messageBytes: Int

  /// Makes limits; the defaults are those of the configuration.
  package init(timeout: Duration = .seconds(30), memory: Int64 = 256 << 20, messageBytes: Int = 32 << 20) {
    self.timeout = timeout
    self.memory = memory
    self.messageBytes = messageBytes
  }
}
