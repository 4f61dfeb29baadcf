import Glibc

/// UTC times as they stand in the names of backups.
enum BackupTime {
  /// Seconds since 1970 as `yyyymmddThhmmssZ`.
  static func text(_ seconds: Int64) -> String {
    var time = time_t(seconds)
    var parts = tm()
    gmtime_r(&time, &parts)
    func padded(_ number: Int32, _ digits: Int) -> String {
      let text = String(number)
      return String(repeating: "0", count: max(0, digits - text.count)) + text
    }
    let date = padded(parts.tm_year &+ 1900, 4) + padded(parts.tm_mon &+ 1, 2) + padded(parts.tm_mday, 2)
    return date + "T" + padded(parts.tm_hour, 2) + padded(parts.tm_min, 2) + padded(parts.tm_sec, 2) + "Z"
  }
}
