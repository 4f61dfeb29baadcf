// The rule at the end of a time zone file, such as "CET-1CEST,M3.5.0,M10.5.0/3". It defines the offsets of all future
// years and when they change (POSIX.1-2017, "TZ"; RFC 9636, 3.3).

/// A rule for the offset of local time.
struct PosixTimeZone: Sendable, Hashable {
  /// A day of each year, and the local second of that day at which the offset changes.
  private struct Change: Hashable {
    enum Day: Hashable {
      /// Day 1 to 365; there is no 29 February.
      case julian(Int64)
      /// Day 0 to 365.
      case ordinal(Int64)
      /// Weekday (0 is Sunday) of a week (5 is the last one) of a month.
      case month(Int64, week: Int64, weekday: Int64)
    }
    var day: Day
    var second: Int64

    /// The local time of the change in a year, in seconds since 1970 as if local time were UTC.
    func moment(in year: Int64) -> Int64 {
      let first = PosixTimeZone.days(to: year, month: 1)
      let days: Int64
      switch day {
      case .ordinal(let number): days = first + number
      case .julian(let number):
        let isLeap = PosixTimeZone.days(to: year + 1, month: 1) - first == 366
        days = first + number - 1 + (isLeap && number > 59 ? 1 : 0)
      case .month(let month, let week, let weekday):
        let start = PosixTimeZone.days(to: year, month: month)
        let next =
          month == 12 ? PosixTimeZone.days(to: year + 1, month: 1) : PosixTimeZone.days(to: year, month: month + 1)
        // 1970-01-01 was a Thursday.
        let startsOn = ((start + 4) % 7 + 7) % 7
        var found = start + (weekday - startsOn + 7) % 7 + (week - 1) * 7
        while found >= next { found -= 7 }
        days = found
      }
      return days * 86_400 + second
    }
  }

  private let standard: Int64
  private let summer: Int64
  /// When summer time begins and ends; nil without summer time.
  private var changes: (begins: Change, ends: Change)? {
    guard let begins, let ends else { return nil }
    return (begins, ends)
  }
  private let begins: Change?
  private let ends: Change?

  /// Seconds east of UTC at a time in seconds since 1970.
  func offset(at moment: Int64) -> Int64 {
    guard let changes else { return standard }
    // In the far past or future, the sums below would overflow.
    guard moment.magnitude < 1 << 42 else { return standard }
    let year = Self.year(of: moment + standard)
    let begin = changes.begins.moment(in: year) - standard
    let end = changes.ends.moment(in: year) - summer
    let isSummer = begin < end ? moment >= begin && moment < end : !(moment >= end && moment < begin)
    return isSummer ? summer : standard
  }

  // MARK: Days

  /// Days from 1970-01-01 to the first day of a month. Years are counted from March, so that the leap day is the last.
  private static func days(to year: Int64, month: Int64) -> Int64 {
    let shifted = month <= 2 ? year - 1 : year
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  private static func year(of moment: Int64) -> Int64 {
    let day = (moment >= 0 ? moment : moment - 86_399) / 86_400
    // With the mean length of a year, the estimate is off by at most one.
    var year = 1970 + day * 400 / 146_097
    while days(to: year, month: 1) > day { year -= 1 }
    while days(to: year + 1, month: 1) <= day { year += 1 }
    return year
  }

  // MARK: Reading

  /// Parses a rule; nil if the text is not a rule.
  init?(_ text: String) {
    var reader = Reader(rest: Array(text.utf8)[...])
    guard reader.name(), let west = reader.time(most: 24) else { return nil }
    standard = -west
    guard !reader.isAtEnd else {
      (summer, begins, ends) = (standard, nil, nil)
      return
    }
    guard reader.name() else { return nil }
    if reader.isAtEnd || reader.peek == UInt8(ascii: ",") {
      summer = standard + 3600
    } else {
      guard let west = reader.time(most: 24) else { return nil }
      summer = -west
    }
    guard !reader.isAtEnd else {
      // POSIX leaves this case open; implementations use the rule of the United States.
      begins = Change(day: .month(3, week: 2, weekday: 0), second: 7200)
      ends = Change(day: .month(11, week: 1, weekday: 0), second: 7200)
      return
    }
    guard let begin = reader.change(), let end = reader.change(), reader.isAtEnd else { return nil }
    (begins, ends) = (begin, end)
  }

  private struct Reader {
    var rest: ArraySlice<UInt8>

    var isAtEnd: Bool { rest.isEmpty }
    var peek: UInt8? { rest.first }

    mutating func take(_ byte: UInt8) -> Bool {
      guard rest.first == byte else { return false }
      rest.removeFirst()
      return true
    }

    /// Skips a name such as "CET" or "<+03>"; false if there is none.
    mutating func name() -> Bool {
      if take(UInt8(ascii: "<")) {
        guard let end = rest.firstIndex(of: UInt8(ascii: ">")) else { return false }
        rest = rest[(end + 1)...]
        return true
      }
      let letters = rest.prefix { ($0 | 0x20) >= UInt8(ascii: "a") && ($0 | 0x20) <= UInt8(ascii: "z") }
      rest = rest.dropFirst(letters.count)
      return letters.count >= 3
    }

    mutating func number(most: Int64) -> Int64? {
      let digits = rest.prefix { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
      guard (1...3).contains(digits.count) else { return nil }
      rest = rest.dropFirst(digits.count)
      let value = digits.reduce(Int64(0)) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
      return value <= most ? value : nil
    }

    /// Parses a time such as "-1", "2", "3:30" or "-167" into seconds.
    mutating func time(most hours: Int64) -> Int64? {
      let isNegative = take(UInt8(ascii: "-"))
      if !isNegative { _ = take(UInt8(ascii: "+")) }
      guard let hour = number(most: hours) else { return nil }
      var total = hour * 3600
      for unit: Int64 in [60, 1] where take(UInt8(ascii: ":")) {
        guard let part = number(most: 59) else { return nil }
        total += part * unit
      }
      return isNegative ? -total : total
    }

    /// Parses a change such as ",M3.5.0/2".
    mutating func change() -> Change? {
      guard take(UInt8(ascii: ",")) else { return nil }
      let day: Change.Day
      if take(UInt8(ascii: "M")) {
        guard let month = number(most: 12), month > 0, take(UInt8(ascii: ".")), let week = number(most: 5), week > 0,
          take(UInt8(ascii: ".")), let weekday = number(most: 6)
        else { return nil }
        day = .month(month, week: week, weekday: weekday)
      } else if take(UInt8(ascii: "J")) {
        guard let number = number(most: 365), number > 0 else { return nil }
        day = .julian(number)
      } else {
        guard let number = number(most: 365) else { return nil }
        day = .ordinal(number)
      }
      guard take(UInt8(ascii: "/")) else { return Change(day: day, second: 7200) }
      return time(most: 167).map { Change(day: day, second: $0) }
    }
  }
}
