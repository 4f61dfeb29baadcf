// When a store is tried again, in the words of the journal: an entry is read hours later, so it names the time and not
// only the pause.

import Diagnostics
import DurableFiles
import Glibc
import SystemPackage

/// The time of the next attempt.
enum NextAttempt {
  /// In UTC, as RFC 3339 writes it.
  static func text(_ until: ContinuousClock.Instant, now: ContinuousClock.Instant) -> String {
    let pause = (until - now).components.seconds
    var moment = time(nil) &+ time_t(clamping: max(0, pause))
    var parts = tm()
    gmtime_r(&moment, &parts)
    func padded(_ number: Int32, _ digits: Int = 2) -> String {
      let text = String(number)
      return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
    }
    return "\(padded(parts.tm_year &+ 1900, 4))-\(padded(parts.tm_mon &+ 1))-\(padded(parts.tm_mday))T"
      + "\(padded(parts.tm_hour)):\(padded(parts.tm_min)):\(padded(parts.tm_sec))Z"
  }
}

extension HopdError {
  /// Did the kernel refuse because everything there is read-only, as all is that the unit does not name?
  var isReadOnlyFileSystem: Bool {
    errno == .readOnlyFileSystem || (cause as? HopdError)?.isReadOnlyFileSystem == true
      || reasons.contains(where: \.isReadOnlyFileSystem)
  }
}
