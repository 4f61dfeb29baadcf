// When a store is tried again, in the words of the journal: an entry is read hours later, so it names the time and not
// only the pause.

import Diagnostics
import DurableFiles
import Glibc
import StoreReplacement
import SystemPackage

/// The time of the next attempt.
enum NextAttempt {
  /// In UTC, as RFC 3339 writes it.
  static func text(_ until: ContinuousClock.Instant, now: ContinuousClock.Instant) -> String {
    BackupRecord.time(Int64(time(nil)) &+ max(0, (until - now).components.seconds))
  }
}

extension HopdError {
  /// Did the kernel refuse because everything there is read-only, as all is that the unit does not name?
  var isReadOnlyFileSystem: Bool {
    errno == .readOnlyFileSystem || (cause as? HopdError)?.isReadOnlyFileSystem == true
      || reasons.contains(where: \.isReadOnlyFileSystem)
  }
}
