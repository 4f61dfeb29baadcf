import Glibc
import Logging
import Testing

@testable import SystemdSupport

@Suite struct LogFormatTests {
  @Test func withoutAJournalEachLineHasItsPriorityAndItsFields() throws {
    let output = try logged(.standardErrorWithPriorities) { logger in
      logger.event(
        .storeMigrated, "migrated", fields: [.store: "/srv/a b.sqlite", .from: "v2", .to: "v4", .hops: "2"])
      logger.debug("three")
      logger.error("disk \"full\"", metadata: ["path": "x=\"1\""])
    }
    #expect(
      output == """
        <5>migrated HOPD_STORE="/srv/a b.sqlite" HOPD_FROM=v2 HOPD_TO=v4 HOPD_HOPS=2
        <7>three
        <3>disk "full" path="x=\\"1\\""

        """)
  }

  @Test func everyLevelHasAPriorityFromThreeToSeven() throws {
    let output = try logged(.standardErrorWithPriorities) { logger in
      for level in Logger.Level.allCases { logger.log(level: level, "x") }
    }
    #expect(output == "<7>x\n<7>x\n<6>x\n<5>x\n<4>x\n<3>x\n<3>x\n")
  }

  @Test func noTextCanForgeAnEntry() throws {
    let output = try logged(.standardErrorWithPriorities) { logger in
      logger.event(
        .storeDeferred, "a\n<0>forged\r\u{1b}[2J", fields: [.store: "/srv/x\n<0>forged\u{2028}y"])
    }
    #expect(
      output == "<6>a\n<6>    <0>forged\\x0d\\x1b[2J HOPD_STORE=/srv/x\\x0a<0>forged\\u{2028}y\n")
  }

  @Test func aTerminalGetsWordsAndColourOnlyWhenAsked() throws {
    let body: (Logger) -> Void = { logger in
      logger.info("fine")
      logger.warning("careful")
    }
    #expect(try logged(.terminal(colored: false), body) == "fine\nwarning: careful\n")
    #expect(try logged(.terminal(colored: true), body) == "fine\n\u{1b}[1;33mwarning: \u{1b}[0mcareful\n")
  }

  @Test func theJournalGetsFieldsAndTheOtherMetadataInTheMessage() {
    let handler = JournalLogHandler(identifier: "hopd", threshold: LogThreshold(.info), destination: .journal)
    let entry = LogEntry(
      level: .warning, message: "line one\nline two\u{7}",
      metadata: [["HOPD_STORE": "/srv/a\nb", "other": "1"], ["HOPD_STORE": "/srv/c\nd", "MESSAGE_ID": "00"]])
    #expect(
      handler.assignments(entry) == [
        "MESSAGE=line one\nline two\\x07 other=1", "PRIORITY=4", "SYSLOG_IDENTIFIER=hopd", "HOPD_STORE=/srv/c\\x0ad",
        "MESSAGE_ID=00",
      ])
  }

  /// A store may say that its UUID has three million characters: not in each entry about it.
  @Test func fieldsHaveALongestLength() throws {
    let handler = JournalLogHandler(identifier: "hopd", threshold: LogThreshold(.info), destination: .journal)
    let path = "/" + String(repeating: "p", count: 4000)
    let entry = LogEntry(
      level: .info, message: "m",
      metadata: [["HOPD_STORE_UUID": .string(String(repeating: "u", count: 3_000_000)), "HOPD_STORE": .string(path)]])
    let fields = handler.assignments(entry)
    #expect(fields.allSatisfy { $0.utf8.count < 5000 })
    #expect(fields.contains("HOPD_STORE=\(path)"))
    #expect(fields.contains { $0.hasPrefix("HOPD_STORE_UUID=uuu") && $0.contains("characters omitted") })
  }

  @Test func theThresholdChangesAllLoggersAtOnce() throws {
    let threshold = LogThreshold(.warning)
    let output = try logged(.standardErrorWithPriorities, threshold: threshold) { logger in
      logger.info("not yet")
      threshold.level = .info
      logger.info("now")
      logger.event(.storeCurrent, "below the level")
    }
    #expect(output == "<6>now\n")
  }

  @Test func theJournalIsUsedOnlyForItsOwnStream() {
    #expect(LogDestination.names("8:12345", device: 8, inode: 12345))
    for other in ["8:1234", "9:12345", "", ":", "8:", "8:12345:1", "x:y", "-8:12345", "8 12345"] {
      #expect(!LogDestination.names(other, device: 8, inode: 12345), "\(other)")
    }
  }

  /// What a logger with our handler writes.
  private func logged(
    _ destination: LogDestination, threshold: LogThreshold = LogThreshold(.trace), _ body: (Logger) -> Void
  ) throws -> String {
    var ends: [Int32] = [0, 0]
    try #require(pipe(&ends) == 0)
    let writing = ends[1]
    let logger = Logger(label: "test") { _ in
      JournalLogHandler(identifier: "hopd", threshold: threshold, destination: destination, descriptor: writing)
    }
    body(logger)
    close(writing)
    defer { close(ends[0]) }
    var buffer = [UInt8](repeating: 0, count: 65536)
    let count = read(ends[0], &buffer, buffer.count)
    return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
  }
}
