// The digest of bytes of any origin. It is here because this target alone links a cryptographic library.

import Diagnostics

/// SHA-256 of bytes.
package enum ContentDigest {
  /// The digest in lower-case hexadecimal, as `sha256sum` prints it.
  package static func sha256(_ bytes: some Sequence<UInt8>) -> String {
    var running = Running()
    running.add(bytes)
    return running.sha256()
  }

  /// A digest of bytes that come in portions.
  package struct Running: ~Copyable {
    private var digest = MessageDigest(.sha256)

    /// Nothing digested yet.
    package init() {}

    /// Digests more bytes.
    package mutating func add(_ bytes: some Sequence<UInt8>) { digest.add(bytes) }

    /// The digest of all bytes so far, as `ContentDigest.sha256` gives it.
    package consuming func sha256() -> String { digest.finish().hexadecimal }
  }
}
