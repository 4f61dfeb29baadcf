import FoundationEssentials
import Glibc

/// A moment in milliseconds since 1970; in JSON as RFC 3339 in UTC.
package struct Moment: Codable, Sendable, Hashable, Comparable {
  /// Milliseconds since 1970.
  package let milliseconds: Int64

  private static let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)

  /// A moment by its milliseconds since 1970.
  package init(milliseconds: Int64) { self.milliseconds = milliseconds }

  /// The time of the machine's clock.
  package static var now: Moment {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Moment(milliseconds: Int64(time.tv_sec) &* 1000 &+ Int64(time.tv_nsec / 1_000_000))
  }

  package init(from decoder: any Decoder) throws {
    let text = try decoder.singleValueContainer().decode(String.self)
    let date = try Self.style.parse(text)
    let (seconds, most) = (date.timeIntervalSince1970, 253_402_300_800.0)
    guard abs(seconds) < most else {
      throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: "no time of this era"))
    }
    milliseconds = Int64((seconds * 1000).rounded())
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(Self.style.format(Date(timeIntervalSince1970: Double(milliseconds) / 1000)))
  }

  package static func < (a: Self, b: Self) -> Bool { a.milliseconds < b.milliseconds }
}
