// Hours of the day, on days of 23, 24 and 25 hours. The system's own programs say which time it is in which zone.

import Glibc
import Synchronization
import Testing

@testable import HopdConfiguration

@Suite struct TimeWindowTests {
  /// Central Europe: the clock is set forward on 2026-03-29 at 01:00 UTC, and back on 2026-10-25 at 01:00 UTC.
  private let berlin = TimeZoneRules(name: nil, variable: "CET-1CEST,M3.5.0,M10.5.0/3")
  /// Seconds of 2026-03-28, 2026-07-01 and 2026-10-24 at 12:00 UTC.
  private let noons: [Int64] = [1_774_699_200, 1_782_907_200, 1_792_843_200]

  private func window(_ text: String) throws -> TimeWindow {
    try #require(TimeWindow(text, zone: berlin))
  }

  /// Minutes of the 24 hours from a moment on in which a window is open.
  private func open(_ window: TimeWindow, from moment: Int64) -> [Int64] {
    (0..<1440).map { moment + $0 * 60 }.filter { window.isOpen(at: $0) }
  }

  @Test func aNightHasSevenEightOrNineHours() throws {
    let night = try window("22:00-06:00")
    #expect(noons.map { open(night, from: $0).count } == [7 * 60, 8 * 60, 9 * 60])
    // 22:00 is 21:00 UTC in winter, 20:00 UTC in summer.
    #expect(
      noons.map { night.nextOpening(from: $0) } == [noons[0] + 9 * 3600, noons[1] + 8 * 3600, noons[2] + 8 * 3600])
    let opening = noons[0] + 9 * 3600
    #expect(!night.isOpen(at: opening - 1) && night.isOpen(at: opening))
    // Open is open now.
    #expect(night.nextOpening(from: opening + 5) == opening + 5)
  }

  @Test func anHourThatTheClockSkipsIsNotOpenAndOneThatItPassesTwiceIsOpenTwice() throws {
    let hour = try window("02:15-02:45")
    #expect(noons.map { open(hour, from: $0).count } == [0, 30, 60])
    // From the noon before the skipped one, it opens a day later: at 02:15 of summer time.
    #expect(hour.nextOpening(from: noons[0]) == noons[0] + (24 + 12) * 3600 + 15 * 60)
    // At its end on the day with 25 hours it opens again, half an hour later by the clock.
    let first = noons[2] + 12 * 3600 + 15 * 60
    #expect(hour.nextOpening(from: noons[2]) == first && hour.nextOpening(from: first + 1800) == first + 3600)
  }

  @Test func aWindowIsTwoTimesOfADay() throws {
    for text in ["00:00-06:00", "6:00-24:00", "23:59-0:00", "22:00-06:00"] {
      #expect(TimeWindow(text, zone: .utc) != nil, "\(text)")
    }
    for text in [
      "", "22:00", "22-06", "22:00-22:00", "00:00-24:00", "24:00-06:00", "22:00-24:01", "25:00-06:00", "22:60-06:00",
      "-1:00-06:00", "22:00-06:00-07:00", "22:0-06:00", "+2:00-06:00", " 22:00-06:00", "٢٢:00-06:00",
    ] { #expect(TimeWindow(text, zone: .utc) == nil, "\(text)") }
    #expect(try window("6:00-24:00").text == "06:00-00:00")
  }

  @Test(.enabled(if: access("/usr/share/zoneinfo/Europe/Berlin", R_OK) == 0, "the package tzdata is not there"))
  func theSystemSaysTheSameOfItsZones() throws {
    // Every half month of 80 years, and each hour of the two days in 2026.
    var moments = (0..<1920).map { Int64(0) + $0 * 1_314_000 }
    moments += (0..<48).flatMap { [noons[0] + $0 * 3600, noons[2] + $0 * 3600] }
    for name in [
      "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Europe/Dublin", "Asia/Kathmandu", "America/Nuuk",
      "Africa/Casablanca", "Pacific/Apia", "UTC",
    ] where access("/usr/share/zoneinfo/\(name)", R_OK) == 0 {
      let zone = try TimeZoneRules.named(name)
      #expect(moments.map { zone.offset(at: $0) } == (try offsets(name, moments)), "\(name)")
    }
  }

  @Test func aNameThatIsNoZoneIsRefused() {
    for name in ["Europe/Berlinn", "../../etc/passwd", "/etc/localtime", "Europe", "", "Europe/../UTC", "a b"] {
      #expect(throws: (any Error).self, "\(name)") { try TimeZoneRules.named(name) }
    }
    #expect(throws: Never.self) { try TimeZoneRules.named("UTC") }
  }

  @Test("Reading a zone changes neither TZ nor the offsets of other zones") func processZone() {
    // Other tests read zones at the same time.
    let own = { TimeZoneRules.variable.withLock { _ in getenv("TZ").map { String(cString: $0) } } ?? ":/etc/localtime" }
    let before = own()
    #expect(TimeZoneRules(name: nil, variable: "AAA-9").offset(at: noons[0]) == 9 * 3600)
    #expect(own() == before)
    #expect(berlin.offset(at: noons[0]) == 3600 && berlin.offset(at: noons[1]) == 7200)
    for moment in [Int64.min, -1, Int64.max] { _ = berlin.offset(at: moment) }
  }

  /// What date(1) says, which asks the C library.
  private func offsets(_ zone: String, _ moments: [Int64]) throws -> [Int64] {
    var template = Array("/tmp/hopd-dates-XXXXXX".utf8CString)
    let descriptor = mkstemp(&template)
    try #require(descriptor >= 0)
    let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer { unlink(path) }
    let text = moments.map { "@\($0)\n" }.joined()
    try #require(write(descriptor, text, text.utf8.count) == text.utf8.count)
    close(descriptor)
    let pipe = try #require(popen("TZ=\(zone) date -f \(path) +%::z", "r"))
    defer { pclose(pipe) }
    var offsets: [Int64] = []
    var line = [CChar](repeating: 0, count: 64)
    while fgets(&line, 64, pipe) != nil {
      let text = String(decoding: line.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      let parts = text.dropFirst().split(separator: ":").compactMap { Int64($0) }
      try #require(parts.count == 3)
      offsets.append((text.hasPrefix("-") ? -1 : 1) * (parts[0] * 3600 + parts[1] * 60 + parts[2]))
    }
    return offsets
  }
}
