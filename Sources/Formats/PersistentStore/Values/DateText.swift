// Core Data's dates as text: seconds since 2001-01-01 00:00 UTC become RFC 3339, and back. It uses no calendar of the
// platform: those depend on time zones and locales, which must never matter.

/// Dates of stores as RFC 3339 UTC.
package enum DateText {
  /// NSDate.distantPast. Foundation's calendar, which has the Julian one before 1582, calls it 0001-01-01.
  private static let distantPast = -63_114_076_800.0

  /// `2026-11-21T13:48:35.5Z` with as many digits of the second as it has, at most nine; nil outside the years 0…9999,
  /// which RFC 3339 cannot write.
  package static func rfc3339(secondsSince2001 seconds: Double) -> String? {
    if seconds == distantPast { return "0001-01-01T00:00:00.0Z" }
    // Year 0 begins 63 145 526 400 s before 2001, year 10000 begins 252 423 993 600 s after.
    guard seconds >= -63_145_526_400, seconds < 252_423_993_600 else { return nil }
    var whole = Int64(seconds.rounded(.down))
    var nanoseconds = Int64(((seconds - seconds.rounded(.down)) * 1e9).rounded())
    if nanoseconds >= 1_000_000_000 {
      nanoseconds = 0
      whole += 1
    }
    guard let (day, time) = parts(secondsSince2001: whole) else { return nil }
    let fraction = nanoseconds == 0 ? "0" : trimmed(padded(nanoseconds, 9))
    return "\(day)T\(time).\(fraction)Z"
  }

  /// `2026-11-21` and `13:48:35` of a whole number of seconds; nil outside the years 0…9999.
  package static func parts(secondsSince2001 whole: Int64) -> (day: String, time: String)? {
    // Days since 1970-01-01, floored.
    let unix = whole + secondsFrom1970
    let day = unix >= 0 ? unix / 86_400 : -((86_399 - unix) / 86_400)
    let second = unix - day * 86_400
    let (year, month, date) = civil(day)
    guard (0...9999).contains(year) else { return nil }
    return (
      "\(padded(year, 4))-\(padded(month, 2))-\(padded(date, 2))",
      "\(padded(second / 3600, 2)):\(padded(second / 60 % 60, 2)):\(padded(second % 60, 2))"
    )
  }

  /// Seconds from 1970 to 2001.
  package static let secondsFrom1970: Int64 = 978_307_200

  /// Year, month and day of a day number, in the proleptic Gregorian calendar (Hinnant, "chrono-compatible low-level
  /// date algorithms": eras of 400 years that begin in March).
  private static func civil(_ day: Int64) -> (Int64, Int64, Int64) {
    let shifted = day + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let date = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, date)
  }

  /// Returns the seconds of a date in RFC 3339's form, also with a space in place of T, without a zone (UTC), or
  /// without a time (midnight); nil for any other text.
  package static func secondsSince2001(rfc3339 text: String) -> Double? {
    // Foundation's calendar calls distantPast so; `rfc3339` writes it in this form.
    if text == "0001-01-01T00:00:00.0Z" { return distantPast }
    var rest = text.utf8[...]
    func number(_ count: Int) -> Int64? {
      let digits = rest.prefix(count)
      guard digits.count == count, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
      rest = rest.dropFirst(count)
      return digits.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
    }
    func taken(_ bytes: String) -> Bool {
      guard let first = rest.first, bytes.utf8.contains(first) else { return false }
      rest = rest.dropFirst()
      return true
    }
    guard let year = number(4), taken("-"), let month = number(2), taken("-"), let date = number(2),
      (1...12).contains(month), date >= 1, date <= days(in: month, of: year)
    else { return nil }
    let midnight = Double(day(year, month, date) * 86_400 - secondsFrom1970)
    if rest.isEmpty { return midnight }
    guard taken("Tt "), let hour = number(2), taken(":"), let minute = number(2), hour < 24, minute < 60 else {
      return nil
    }
    var second: Int64 = 0
    var fraction = 0.0
    if taken(":") {
      // 60 is a leap second, which no date of Core Data has.
      guard let whole = number(2), whole < 60 else { return nil }
      second = whole
      if taken(".,") {
        let digits = rest.prefix { (0x30...0x39).contains($0) }
        guard !digits.isEmpty, let value = Double("0." + String(decoding: digits, as: UTF8.self)) else { return nil }
        fraction = value
        rest = rest.dropFirst(digits.count)
      }
    }
    guard let offset = zone(rest) else { return nil }
    return midnight + Double(hour * 3600 + minute * 60 + second - offset) + fraction
  }

  /// The seconds of a zone's offset from UTC: "", "Z", "+hh:mm", "-hhmm"; nil for any other text.
  private static func zone(_ text: Substring.UTF8View) -> Int64? {
    if text.isEmpty || text.elementsEqual("Z".utf8) || text.elementsEqual("z".utf8) { return 0 }
    guard let sign = text.first, sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") else { return nil }
    let digits = text.dropFirst().filter { $0 != UInt8(ascii: ":") }
    guard digits.count == 4, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    let parts = digits.map { Int64($0) - 0x30 }
    let (hours, minutes) = (parts[0] * 10 + parts[1], parts[2] * 10 + parts[3])
    guard hours < 24, minutes < 60 else { return nil }
    let offset = hours * 3600 + minutes * 60
    return sign == UInt8(ascii: "-") ? -offset : offset
  }

  private static func days(in month: Int64, of year: Int64) -> Int64 {
    let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    return switch month {
    case 2: isLeap ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  /// The day number of a date, the inverse of `civil`.
  private static func day(_ year: Int64, _ month: Int64, _ date: Int64) -> Int64 {
    let shifted = month <= 2 ? year - 1 : year
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + date - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    return era * 146_097 + dayOfEra - 719_468
  }

  private static func padded(_ number: Int64, _ count: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, count - digits.utf8.count)) + digits
  }

  private static func trimmed(_ digits: String) -> String {
    var text = Substring(digits)
    while text.hasSuffix("0") { text.removeLast() }
    return String(text)
  }
}
