// Where the state of hopd is, by the environment: one rule for both programs, which find each other's locks and records
// only in the same directory.

import Glibc
import SystemPackage

/// The state directory by the environment.
package enum StateDirectory {
  /// The directory if nothing names another one.
  package static let standard: FilePath = "/var/lib/hopd"

  /// Returns the directory in $HOPD_STATE_DIRECTORY, otherwise the first one in $STATE_DIRECTORY, in which systemd
  /// separates several with colons; nil if neither is set.
  package static var ofEnvironment: FilePath? {
    if let own = value(of: "HOPD_STATE_DIRECTORY") { return FilePath(own) }
    return value(of: "STATE_DIRECTORY")?.split(separator: ":").first.map { FilePath(String($0)) }
  }

  private static func value(of name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
  }
}
