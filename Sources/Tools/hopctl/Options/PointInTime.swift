// Moments as journalctl --since accepts them, in the time zone of this machine.

import Glibc
import HopdConfiguration

/// A moment on the command line.
enum PointInTime {
  /// The forms, for messages.
  static let forms = "\"2026-11-27 05:32\", 05:32, today, yesterday, \"5 minutes ago\", -1h, 2026-11-27T04:32:00Z"

  /// Returns the seconds since 1970 of a text; nil if it is not a point in time. `now` is seconds since 1970.
  static func seconds(_ text: String, now: Int64) -> Int64? {
    let text = text.filter { $0 != "\"" }
    switch text {
    case "now": return now
    case "today": return midnight(of: now, days: 0)
    case "yesterday": return midnight(of: now, days: -1)
    default: break
    }
    if text.hasPrefix("@") { return Int64(text.dropFirst()).flatMap { $0 >= 0 ? $0 : nil } }
    if text.hasPrefix("-") { return before(String(text.dropFirst()), now) }
    if text.hasSuffix(" ago") { return before(String(text.dropLast(4)), now) }
    return stamp(text, now)
  }

  private static func before(_ text: String, _ now: Int64) -> Int64? {
    Quantity.duration(text).map { now - $0.components.seconds }
  }

  private static func midnight(of now: Int64, days: Int32) -> Int64? {
    var parts = local(now)
    (parts.tm_hour, parts.tm_min, parts.tm_sec) = (0, 0, 0)
    parts.tm_mday += days
    return seconds(&parts)
  }

  private static func local(_ seconds: Int64) -> tm {
    var (time, parts) = (time_t(seconds), tm())
    localtime_r(&time, &parts)
    return parts
  }

  /// The seconds of a local time. The time zone decides whether summer time applies.
  private static func seconds(_ parts: inout tm) -> Int64? {
    parts.tm_isdst = -1
    let time = mktime(&parts)
    return time == -1 ? nil : Int64(time)
  }

  /// "DATE", "TIME", "DATE TIME" or "DATE TIME ZONE"; a T or a space is between date and time. Without a date it is
  /// today, and without a time midnight.
  private static func stamp(_ text: String, _ now: Int64) -> Int64? {
    let (plain, offset) = withoutZone(text)
    let words = plain.split(whereSeparator: { $0 == " " || $0 == "T" }).map { String($0) }
    var parts = local(now)
    (parts.tm_hour, parts.tm_min, parts.tm_sec) = (0, 0, 0)
    guard let first = words.first, words.count <= 2 else { return nil }
    let hasDate = first.contains("-")
    if hasDate {
      guard let date = numbers(first, "-", of: [4, 2, 2]), date[1] > 0, date[2] > 0 else { return nil }
      (parts.tm_year, parts.tm_mon, parts.tm_mday) = (date[0] - 1900, date[1] - 1, date[2])
    }
    if words.count == 2 || !hasDate {
      guard words.count == 1 || hasDate, let last = words.last,
        let time = numbers(last, ":", of: [2, 2]) ?? numbers(last, ":", of: [2, 2, 2]), time[0] < 24, time[1] < 60,
        time.count == 2 || time[2] < 60
      else { return nil }
      (parts.tm_hour, parts.tm_min, parts.tm_sec) = (time[0], time[1], time.count == 3 ? time[2] : 0)
    }
    // A day that the month does not have becomes one of the next month.
    let (month, day) = (parts.tm_mon, parts.tm_mday)
    guard let offset else {
      let result = seconds(&parts)
      return parts.tm_mon == month && parts.tm_mday == day ? result : nil
    }
    guard hasDate else { return nil }
    let result = Int64(timegm(&parts))
    return parts.tm_mon == month && parts.tm_mday == day ? result - offset : nil
  }

  /// Splits "Z", "UTC" or "+01:00" off; the offset is in seconds, nil for local time.
  private static func withoutZone(_ text: String) -> (text: String, offset: Int64?) {
    for zone in ["Z", "UTC"] where text.hasSuffix(zone) { return (String(text.dropLast(zone.count)), 0) }
    guard let colon = text.firstIndex(of: ":"), let sign = text[colon...].lastIndex(where: { $0 == "+" || $0 == "-" }),
      let zone = numbers(String(text[text.index(after: sign)...]), ":", of: [2, 2]), zone[0] < 24, zone[1] < 60
    else { return (text, nil) }
    let offset = Int64(zone[0]) * 3600 + Int64(zone[1]) * 60
    return (String(text[..<sign]), text[sign] == "+" ? offset : -offset)
  }

  /// The numbers of a text, with exactly so many digits each; nil for any other text.
  private static func numbers(_ text: String, _ separator: Character, of digits: [Int]) -> [Int32]? {
    let parts = text.split(separator: separator, omittingEmptySubsequences: false)
    guard parts.map(\.utf8.count) == digits else { return nil }
    let numbers = parts.compactMap { part in
      part.utf8.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") } ? Int32(part) : nil
    }
    return numbers.count == digits.count ? numbers : nil
  }
}
