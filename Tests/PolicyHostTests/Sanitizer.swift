// Swift programs that are built with a sanitizer cannot run as policies.

import Glibc
import Testing

/// Whether this was built with a sanitizer; `tools/sanitize` sets it.
enum Sanitizer {
  static let isOn = getenv("HOPD_SANITIZER") != nil
  /// Why policies in Swift are left out then.
  static let reason: Comment = "a sanitizer's shadow memory does not fit into the memory that a policy may have"
}
