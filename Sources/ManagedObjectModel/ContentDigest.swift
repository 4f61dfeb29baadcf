// The digest of bytes of any origin. It stands here because this is the one target that links a cryptographic library.

import Crypto

/// SHA-256 of bytes.
package enum ContentDigest {
  /// The digest in lower-case hexadecimal, as `sha256sum` prints it.
  package static func sha256(_ bytes: some Sequence<UInt8>) -> String {
    var hasher = SHA256()
    hasher.update(data: Array(bytes))
    return hasher.finalize().map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
