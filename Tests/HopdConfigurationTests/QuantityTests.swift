import Testing

@testable import HopdConfiguration

@Suite struct QuantityTests {
  @Test(arguments: [
    ("0B", 0), ("1B", 1), ("64MiB", 64 << 20), ("64 MiB", 64 << 20), ("1_000KiB", 1_024_000),
    ("8388607TiB", 8_388_607 << 40),
  ])
  func readsSizes(_ text: String, _ bytes: Int) {
    #expect(Quantity.bytes(text) == Int64(bytes))
  }

  @Test(arguments: [
    "", "64", "64M", "64MB", "MiB", "-1B", "1.5MiB", "1MiB 2KiB", "64MiBx", "99999999999TiB", "9999999999999999999B",
  ])
  func refusesSizes(_ text: String) {
    #expect(Quantity.bytes(text) == nil)
  }

  @Test func readsTimes() {
    #expect(Quantity.duration("250ms") == .milliseconds(250))
    #expect(Quantity.duration("5min") == .seconds(300))
    #expect(Quantity.duration("1h 30min") == .seconds(5400))
    #expect(Quantity.duration("1h30min5s") == .seconds(5405))
    #expect(Quantity.duration("30d") == .seconds(30 * 86_400))
    #expect(Quantity.duration("2w") == .seconds(14 * 86_400))
  }

  @Test(
    "A duration may have the longer unit names of systemd.time",
    arguments: [
      ("5 minutes", 300), ("1 minute", 60), ("1 hour 30 minutes", 5400), ("2hr", 7200), ("2 hours", 7200),
      ("1 day", 86_400), ("3days", 3 * 86_400), ("1 week", 604_800), ("2 weeks", 2 * 604_800), ("90sec", 90),
      ("1 second", 1), ("10 seconds", 10), ("2000msec", 2),
    ])
  func readsLongUnits(_ text: String, _ seconds: Int) {
    #expect(Quantity.duration(text) == .seconds(seconds))
  }

  @Test(arguments: [
    "", "5", "5m", "min", "5 parsecs", "1.5s", "-1s", "9999999999999999999s", "101d 99999999d", "1s2", "5M", "minutes",
    "5 Minutes",
  ])
  func refusesTimes(_ text: String) {
    #expect(Quantity.duration(text) == nil)
  }
}
