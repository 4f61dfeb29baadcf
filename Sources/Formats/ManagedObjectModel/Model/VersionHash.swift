import Diagnostics

/// The 32-byte hash by which Core Data names one version of an entity.
package struct VersionHash: Sendable, Hashable, CustomStringConvertible {
  /// Exactly 32 bytes (SHA-256).
  package let bytes: [UInt8]

  /// Takes 32 bytes; nil for any other count.
  package init?(bytes: [UInt8]) {
    guard bytes.count == 32 else { return nil }
    self.bytes = bytes
  }

  /// Lower-case hexadecimal, 64 digits.
  package var description: String { bytes.hexadecimal }
}
