// Keys that a running daemon can change, by the rows that the files are read with.

import Testing

@testable import HopdConfiguration

@Suite struct SettingTests {
  @Test func aValueIsSetAsAFileSetsIt() {
    var configuration = Configuration()
    #expect(configuration.set("jobs", "4") && configuration.daemon.jobs == 4 && configuration.setting("jobs") == "4")
    #expect(configuration.set("memory_limit", "96MiB") && configuration.setting("memory_limit") == "100663296B")
    #expect(configuration.set("log_level", "debug") && configuration.daemon.logLevel == .debug)
    #expect(configuration.set("io_pressure", "40") && configuration.throttle == .init(ioPressure: 40))
    #expect(configuration.daemon.jobs == 4, "a key changes no other")
  }

  @Test(arguments: [
    ("jobs", "0"), ("jobs", "many"), ("jobs", "257"), ("memory_limit", "96"), ("memory_limit", "1B"),
    ("log_level", "loud"), ("log_level", "3"), ("io_pressure", "101"), ("metrics_file", "/tmp/a"), ("settle", "3s"),
    ("daemon", "4"), ("", ""),
  ])
  func aWrongValueAndAnyOtherKeyChangeNothing(_ key: String, _ value: String) {
    var configuration = Configuration()
    #expect(!configuration.set(key, value) && configuration == Configuration())
  }

  @Test func everySettableKeyHasItsDefault() {
    #expect(
      ConfigurationKey.settable.map { Configuration().setting($0) }
        == ["2", "67108864B", "info", "0", "0", "0"], "\(ConfigurationKey.settable)")
  }

  @Test(arguments: [
    ("250ms", Duration.milliseconds(250)), ("2s", .seconds(2)), ("90s", .seconds(90)), ("10min", .seconds(600)),
    ("1h", .seconds(3600)), ("30d", .seconds(30 * 86_400)), ("1w", .seconds(604_800)), ("0s", .zero),
  ])
  func aDurationIsWrittenAsItIsRead(_ text: String, _ time: Duration) {
    #expect(Quantity.text(time) == text && Quantity.duration(text) == time)
  }

  @Test(arguments: [("64MiB", 64 << 20), ("1TiB", 1 << 40), ("1025B", 1025), ("0B", 0)] as [(String, Int64)])
  func aSizeIsWrittenAsItIsRead(_ text: String, _ bytes: Int64) {
    #expect(Quantity.text(bytes) == text && Quantity.bytes(text) == bytes)
  }
}
