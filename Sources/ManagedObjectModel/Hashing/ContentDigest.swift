// The digest of bytes of any origin. It stands here because this is the one target that links a cryptographic library.

import Crypto

/// SHA-256 of bytes.
package enum ContentDigest {
  /// The digest in lower-case hexadecimal, as `sha256sum` prints it.
  package static func sha256(_ bytes: some Sequence<UInt8>) -> String {
    var running = Running()
    running.add(Array(bytes))
    return running.sha256
  }

  /// A digest of bytes that come in portions.
  package struct Running {
    private var hasher = SHA256()

    /// Nothing digested yet.
    package init() {}

    /// Digests more bytes.
    package mutating func add(_ bytes: [UInt8]) { hasher.update(data: bytes) }

    /// The digest of all bytes so far, as `ContentDigest.sha256` gives it.
    package var sha256: String {
      hasher.finalize().map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
  }
}
