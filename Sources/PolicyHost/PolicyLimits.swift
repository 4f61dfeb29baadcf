// What a policy program may use. A policy is somebody else's program: it gets time, memory and output in measure, and
// whatever it does, the store it was asked about stays as it is.

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
