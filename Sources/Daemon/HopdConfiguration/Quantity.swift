// Parses sizes and times in a configuration. Units are required, and ambiguous ones are refused: "64M" may mean two
// numbers, and an operator may notice a wrong limit only at night.

/// Sizes and times as text.
package enum Quantity {
  private static let sizes: [(unit: String, factor: Int64)] = [
    ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1),
  ]
  /// In milliseconds.
  private static let times: [(unit: String, factor: Int64)] = [
    ("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1),
  ]
  /// Other names of the units, as systemd.time(7) has them. Its "m" and "M" are left out: months or minutes?
  private static let otherNames: [String: String] = [
    "week": "w", "weeks": "w", "day": "d", "days": "d", "hr": "h", "hour": "h", "hours": "h", "minute": "min",
    "minutes": "min", "sec": "s", "second": "s", "seconds": "s", "msec": "ms",
  ]

  /// Parses a size such as "64MiB", "512 KiB" or "4096B" into bytes.
  package static func bytes(_ text: String) -> Int64? {
    guard let parts = parse(text), parts.count == 1 else { return nil }
    return sum(parts, sizes)
  }

  /// Parses a duration such as "250ms", "2s", "5min", "1h 30min", "30d" or "5 minutes", of at most a hundred years.
  package static func duration(_ text: String) -> Duration? {
    guard let parts = parse(text)?.map({ ($0.0, otherNames[$0.1] ?? $0.1) }), let total = sum(parts, times),
      total <= 100 * 366 * 86_400_000
    else { return nil }
    return .milliseconds(total)
  }

  /// Returns the text of a size, in the largest unit without a fraction.
  package static func text(_ bytes: Int64) -> String { text(bytes, sizes) ?? "0B" }

  /// Returns the text of whole milliseconds, in the largest unit without a fraction.
  static func text(_ time: Duration) -> String { text(Int64(time / .milliseconds(1)), times) ?? "0s" }

  private static func text(_ number: Int64, _ units: [(unit: String, factor: Int64)]) -> String? {
    units.first { number != 0 && number % $0.factor == 0 }.map { "\(number / $0.factor)\($0.unit)" }
  }

  private static func sum(_ parts: [(Int64, String)], _ units: [(unit: String, factor: Int64)]) -> Int64? {
    var total: Int64 = 0
    for (number, unit) in parts {
      guard let factor = units.first(where: { $0.unit == unit })?.factor else { return nil }
      let (product, overflow) = number.multipliedReportingOverflow(by: factor)
      let (sum, overflow2) = total.addingReportingOverflow(product)
      guard !overflow, !overflow2 else { return nil }
      total = sum
    }
    return parts.isEmpty ? nil : total
  }

  /// Splits the text into numbers, each with the letters that follow it; spaces are allowed anywhere.
  private static func parse(_ text: String) -> [(Int64, String)]? {
    var parts: [(Int64, String)] = []
    var digits = ""
    var unit = ""
    for byte in text.utf8 + [UInt8(ascii: "0")] {
      let character = String(UnicodeScalar(byte))
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"):
        if !unit.isEmpty {
          guard let number = Int64(digits) else { return nil }
          parts.append((number, unit))
          digits = ""
          unit = ""
        }
        digits += character
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"):
        guard !digits.isEmpty else { return nil }
        unit += character
      case UInt8(ascii: "_") where !digits.isEmpty && unit.isEmpty: break
      case UInt8(ascii: " "): break
      default: return nil
      }
    }
    // The appended digit ends the last pair; after a number without a unit, more than this digit is left.
    return digits == "0" ? parts : nil
  }
}
