// The digest of any bytes. It is in this target because no other target links a cryptographic library.

import Diagnostics

/// SHA-256 of bytes.
package enum ContentDigest {
  /// The digest in lower-case hexadecimal, as `sha256sum` prints it.
  package static func sha256(_ bytes: some Sequence<UInt8>) -> String {
    var running = Running()
    running.add(bytes)
    return running.sha256()
  }

  /// A digest of bytes that arrive in portions.
  package struct Running: ~Copyable {
    private var digest = MessageDigest(.sha256)

    /// Creates a digest without bytes.
    package init() {}

    /// Digests more bytes.
    package mutating func add(_ bytes: some Sequence<UInt8>) { digest.add(bytes) }

    /// Returns the digest of all bytes so far, as `ContentDigest.sha256` does.
    package consuming func sha256() -> String { digest.finish().hexadecimal }
  }
}
