// The hours of a day in which migrations begin. Local time decides: when clocks are set back, a window that they pass
// twice is open twice; when they are set forward, a window that they skip does not open.

/// A window of local time, the same each day; it may cross midnight.
package struct TimeWindow: Sendable, Hashable {
  /// Minutes of the day.
  private let from: Int64
  private let to: Int64
  /// The time zone of the window.
  package let zone: TimeZoneRules

  private static let day: Int64 = 1440

  /// Parses "22:00-06:00"; nil for any other format, and for a window that is never or always open.
  package init?(_ text: String, zone: TimeZoneRules) {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, let from = Self.minutes(parts[0]), let to = Self.minutes(parts[1]), from < Self.day,
      from != to, !(from == 0 && to == Self.day)
    else { return nil }
    (self.from, self.to, self.zone) = (from, to % Self.day, zone)
  }

  /// Parses "06:00", "6:00" or "24:00" into minutes of the day.
  private static func minutes(_ text: Substring) -> Int64? {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, (1...2).contains(parts[0].utf8.count), parts[1].utf8.count == 2,
      text.utf8.allSatisfy({ $0 == UInt8(ascii: ":") || ($0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9")) }),
      let hours = Int64(parts[0]), let minutes = Int64(parts[1]), minutes < 60, hours * 60 + minutes <= day
    else { return nil }
    return hours * 60 + minutes
  }

  /// Whether the window is open at a time in seconds since 1970.
  package func isOpen(at moment: Int64) -> Bool {
    let second = (moment &+ zone.offset(at: moment)) % 86_400
    let minute = (second < 0 ? second &+ 86_400 : second) / 60
    return from < to ? minute >= from && minute < to : minute >= from || minute < to
  }

  /// The next time at which the window is open, in seconds since 1970: `moment` itself if it is open then; nil if it
  /// does not open for eight days.
  package func nextOpening(from moment: Int64) -> Int64? {
    if isOpen(at: moment) { return moment }
    // Offsets are whole minutes, so windows open at whole minutes. To try each minute is simpler than rules for days of
    // 23 or 25 hours.
    var next = moment &- moment % 60
    for _ in 0..<(8 * Self.day) {
      next &+= 60
      if isOpen(at: next) { return next }
    }
    return nil
  }

  /// Start of the window, as "22:00".
  package var opensAt: String { Self.text(from) }

  /// The window as "22:00-06:00".
  package var text: String { "\(Self.text(from))-\(Self.text(to))" }

  private static func text(_ minutes: Int64) -> String {
    func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(two(minutes / 60)):\(two(minutes % 60))"
  }
}
