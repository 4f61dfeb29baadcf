// Parses sizes and times in a configuration. Units are required, and ambiguous ones are refused: "64M" may mean two
// numbers, and an operator may notice a wrong limit only at night.

/// Sizes and times as text.
package enum Quantity {
  /// Parses a size such as "64MiB", "512 KiB" or "4096B" into bytes.
  package static func bytes(_ text: String) -> Int64? {
    guard let parts = parse(text), parts.count == 1, let (number, unit) = parts.first else { return nil }
    let factor: Int64? =
      switch unit {
      case "B": 1
      case "KiB": 1 << 10
      case "MiB": 1 << 20
      case "GiB": 1 << 30
      case "TiB": 1 << 40
      default: nil
      }
    guard let factor else { return nil }
    let (product, overflow) = number.multipliedReportingOverflow(by: factor)
    return overflow ? nil : product
  }

  /// Parses a duration such as "250ms", "2s", "5min", "1h 30min" or "30d", of at most a hundred years.
  package static func duration(_ text: String) -> Duration? {
    guard let parts = parse(text), !parts.isEmpty else { return nil }
    var total: Int64 = 0
    for (number, unit) in parts {
      let factor: Int64? =
        switch unit {
        case "ms": 1
        case "s": 1000
        case "min": 60_000
        case "h": 3_600_000
        case "d": 86_400_000
        case "w": 604_800_000
        default: nil
        }
      guard let factor else { return nil }
      let (product, overflow) = number.multipliedReportingOverflow(by: factor)
      let (sum, overflow2) = total.addingReportingOverflow(product)
      guard !overflow, !overflow2, sum <= 100 * 366 * 86_400_000 else { return nil }
      total = sum
    }
    return .milliseconds(total)
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
