import Glibc

/// UTC times in the form that names of backups have.
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

  /// The seconds that the name of a generation's folder begins with; nil where it begins with no time of hopd's.
  static func seconds(ofName name: String) -> Int64? {
    let text = Array(name.utf8.prefix(16))
    guard text.count == 16, text[8] == UInt8(ascii: "T"), text[15] == UInt8(ascii: "Z") else { return nil }
    func number(_ range: Range<Int>) -> Int32? { Int32(String(decoding: text[range], as: UTF8.self)) }
    guard let year = number(0..<4), let month = number(4..<6), let day = number(6..<8), let hour = number(9..<11),
      let minute = number(11..<13), let second = number(13..<15)
    else { return nil }
    var parts = tm()
    parts.tm_year = year &- 1900
    parts.tm_mon = month &- 1
    parts.tm_mday = day
    parts.tm_hour = hour
    parts.tm_min = minute
    parts.tm_sec = second
    return Int64(timegm(&parts))
  }

  /// The same time in RFC 3339 form: `yyyy-mm-ddThh:mm:ssZ`.
  static func standardText(_ seconds: Int64) -> String {
    let text = text(seconds)
    guard text.utf8.count == 16 else { return text }
    let digits = Array(text)
    return String(digits[0..<4]) + "-" + String(digits[4..<6]) + "-" + String(digits[6..<11]) + ":"
      + String(digits[11..<13]) + ":" + String(digits[13...])
  }
}
