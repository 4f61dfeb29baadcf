// The hours of a day in which migrations begin. The clock on the wall decides: a window that the clock passes twice on
// the day when it is set back is open twice, and one that it skips on the day when it is set forward is not open.

/// A window of local time, the same each day; it may reach across midnight.
package struct TimeWindow: Sendable, Hashable {
  /// Minutes of the day.
  private let from: Int64
  private let to: Int64
  /// Where the clock is.
  package let zone: TimeZoneRules

  private static let day: Int64 = 1440

  /// Reads "22:00-06:00"; nil for anything else, and for a window that is never or always open.
  package init?(_ text: String, zone: TimeZoneRules) {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, let from = Self.minutes(parts[0]), let to = Self.minutes(parts[1]), from < Self.day,
      from != to, !(from == 0 && to == Self.day)
    else { return nil }
    (self.from, self.to, self.zone) = (from, to % Self.day, zone)
  }

  /// "06:00", "6:00" or "24:00".
  private static func minutes(_ text: Substring) -> Int64? {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, (1...2).contains(parts[0].utf8.count), parts[1].utf8.count == 2,
      text.utf8.allSatisfy({ $0 == UInt8(ascii: ":") || ($0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9")) }),
      let hours = Int64(parts[0]), let minutes = Int64(parts[1]), minutes < 60, hours * 60 + minutes <= day
    else { return nil }
    return hours * 60 + minutes
  }

  /// Is it open at a moment, in seconds since 1970?
  package func isOpen(at moment: Int64) -> Bool {
    let second = (moment &+ zone.offset(at: moment)) % 86_400
    let minute = (second < 0 ? second &+ 86_400 : second) / 60
    return from < to ? minute >= from && minute < to : minute >= from || minute < to
  }

  /// When it is open next, in seconds since 1970: the moment itself where it is open then; nil where it is not open for
  /// a week.
  package func nextOpening(from moment: Int64) -> Int64? {
    if isOpen(at: moment) { return moment }
    // Offsets are whole minutes, so windows open at whole minutes. A minute costs less than a page of rules for days
    // that have 23 or 25 hours.
    var next = moment &- moment % 60
    for _ in 0..<(8 * Self.day) {
      next &+= 60
      if isOpen(at: next) { return next }
    }
    return nil
  }

  /// "22:00".
  package var opensAt: String { Self.text(from) }

  /// "22:00-06:00".
  package var text: String { "\(Self.text(from))-\(Self.text(to))" }

  private static func text(_ minutes: Int64) -> String {
    func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(two(minutes / 60)):\(two(minutes % 60))"
  }
}
