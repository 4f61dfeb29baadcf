// The time of a store's next attempt, for the journal: an entry may be read hours later, so it names the time and not
// only the pause.

import Diagnostics
import DurableFiles
import Glibc
import StoreReplacement
import SystemPackage

/// The time of the next attempt.
enum NextAttempt {
  /// The time in UTC, as in RFC 3339.
  static func text(_ until: ContinuousClock.Instant, now: ContinuousClock.Instant) -> String {
    BackupRecord.time(Int64(time(nil)) &+ max(0, (until - now).components.seconds))
  }
}

extension HopdError {
  /// Whether the kernel refused because the file system is read-only, as it is for every path that the unit does not
  /// name.
  var isReadOnlyFileSystem: Bool {
    errno == .readOnlyFileSystem || (cause as? HopdError)?.isReadOnlyFileSystem == true
      || reasons.contains(where: \.isReadOnlyFileSystem)
  }
}
