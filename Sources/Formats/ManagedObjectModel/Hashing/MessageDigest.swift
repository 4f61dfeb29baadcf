// SHA-2 by libcrypto, which every distribution keeps patched. Only this file calls it, and only through its EVP
// interface.

import CCrypto
import Glibc

/// A SHA-2 digest of bytes that arrive in pieces.
///
/// After the first digest, libcrypto can fail only for lack of memory. A wrong or missing digest could make two
/// different models look equal, so the process then ends, as it does when a Swift allocation fails.
struct MessageDigest: ~Copyable {
  /// The length of the digest.
  enum Algorithm {
    case sha256
    case sha512

    /// Number of bytes of the digest.
    var count: Int {
      switch self {
      case .sha256: 32
      case .sha512: 64
      }
    }

    /// The implementation, looked up once per process.
    fileprivate var implementation: OpaquePointer? {
      switch self {
      case .sha256: Self.implementations.sha256
      case .sha512: Self.implementations.sha512
      }
    }

    /// Fetched objects are immutable and live as long as the process.
    private nonisolated(unsafe) static let implementations: (sha256: OpaquePointer?, sha512: OpaquePointer?) = {
      // No configuration file may choose the implementation that computes a version hash.
      _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_LOAD_CONFIG), nil)
      return (EVP_MD_fetch(nil, "SHA256", nil), EVP_MD_fetch(nil, "SHA512", nil))
    }()
  }

  private let algorithm: Algorithm
  private let context: OpaquePointer?

  /// Starts a digest without bytes.
  init(_ algorithm: Algorithm) {
    self.algorithm = algorithm
    context = EVP_MD_CTX_new()
    Self.require(EVP_DigestInit_ex2(context, algorithm.implementation, nil))
  }

  deinit { EVP_MD_CTX_free(context) }

  /// Digests more bytes.
  mutating func add(_ bytes: some Sequence<UInt8>) {
    let isDone: Void? = bytes.withContiguousStorageIfAvailable {
      Self.require(EVP_DigestUpdate(context, $0.baseAddress, $0.count))
    }
    if isDone == nil { add(Array(bytes)) }
  }

  /// Returns the digest of all bytes so far.
  consuming func finish() -> [UInt8] {
    var length: UInt32 = 0
    let digest = [UInt8](unsafeUninitializedCapacity: algorithm.count) { buffer, count in
      Self.require(EVP_DigestFinal_ex(context, buffer.baseAddress, &length))
      count = min(Int(length), buffer.count)
    }
    return digest
  }

  private static func require(_ status: CInt) { if status != 1 { abort() } }
}
