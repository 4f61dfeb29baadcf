// Manifests and results as files: whole lines, half lines, and lines that are none.

import Diagnostics
import DurableFiles
import FoundationEssentials
import StoreFleet
import SystemPackage
import Testing

@Suite struct LineTests {
  @Test func aManifestIsALineOfJSONOrAPath() throws {
    let file = try Scratch().file(
      """
      {"store":"/srv/a b.sqlite","size":4096,"storeUUID":"U","unknown":[1]}

      # a comment
      /srv/plain.sqlite\r
      {"summary":{"stores":2}}
      /srv/no newline.sqlite
      """)
    var manifest = try Manifest(path: file.path)
    let first = try #require(try manifest.next())
    #expect(first.store == "/srv/a b.sqlite" && first.size == 4096 && first.shardKey == "U")
    #expect(try manifest.next()?.store == "/srv/plain.sqlite")
    #expect(try manifest.next()?.store == "/srv/no newline.sqlite")
    #expect(try manifest.next() == nil)
    #expect(try manifest.next() == nil)
    let hasSummary = manifest.hasSummary
    #expect(hasSummary)
  }

  /// Only what a scan wrote shows that a fleet has no stores.
  @Test(arguments: [("", false), ("# none\n\n", false), ("{}\n", false), ("{\"summary\":{\"stores\":0}}\n", true)])
  func anEmptyFleetHasASummary(_ text: String, _ expected: Bool) throws {
    let file = try Scratch().file(text)
    var manifest = try Manifest(path: file.path)
    #expect(try manifest.next() == nil)
    let hasSummary = manifest.hasSummary
    #expect(hasSummary == expected)
  }

  @Test(
    arguments: [
      ("{\"store\":7}\n", 1, "not a JSON object"), ("/a\n{\"store\":\"/b\"", 2, "truncated"),
      ("/a\n\u{0}\n", 2, "UTF-8"),
      ("{\"store\":\"\"}\n", 1, "not what"), ("{\"store\":\"/a\",\"size\":\"big\"}\n", 1, "not what"),
      ("{}x\n", 1, "not a JSON object"),
    ])
  func aMistakeNamesItsLine(_ text: String, _ line: Int, _ words: String) throws {
    let file = try Scratch().file(text)
    let error = #expect(throws: HopdError.self) {
      var manifest = try Manifest(path: file.path)
      while try manifest.next() != nil {}
    }
    #expect(error?.place.line == line && error?.message.contains(words) == true, "\(error.debugDescription)")
  }

  /// Results are added up. Numbers that no worker writes are refused with their line, and never overflow a sum.
  @Test(
    arguments: [
      ("\"rows\":9223372036854775807", false), ("\"rows\":-1", false), ("\"size\":-9223372036854775808", false),
      ("\"dropped\":-1", false), ("\"drops\":{\"A.b\":-1}", false), ("\"rows\":1125899906842624", true),
    ])
  func numbersThatNoWorkerWritesAreRefused(_ member: String, _ isFine: Bool) throws {
    func line(_ seconds: String) -> String {
      #"{"store":"/a","result":"migrated","seconds":\#(seconds),"time":"2026-01-01T00:00:00.000Z","run":"r","#
        + member + "}"
    }
    for (seconds, isTime) in [("1e-300", true), ("1", true), ("-1", false), ("1e308", false)] {
      let file = try Scratch().file("\n" + String(repeating: line(seconds) + "\n", count: 3))
      var builder = FleetReportBuilder()
      if isFine, isTime {
        try builder.read(file.path)
        #expect(builder.made().rowsPerSecond >= 0)
      } else {
        let error = #expect(throws: HopdError.self) { try builder.read(file.path) }
        #expect(error?.place.line == 2 && error?.place.file == file.path)
      }
    }
  }

  @Test func aRunWithoutMeasureIsRefused() throws {
    let limits = ["9223372036854775807", "-9223372036854775808"]
    for (shards, stores) in [(limits[0], "1"), (limits[1], "1"), ("1", limits[0]), ("1", limits[1])] {
      let line =
        #"{"event":"begin","run":"r","shard":1,"shards":\#(shards),"stores":\#(stores),"fleet":\#(stores),"#
        + #""host":"h","time":"2026-01-01T00:00:00.000Z","canary":false,"options":""}"#
      let file = try Scratch().file(line + "\n")
      var builder = FleetReportBuilder()
      #expect(throws: HopdError.self) { try builder.read(file.path) }
    }
  }

  @Test func aLineWithoutEndIsRefusedBeforeItFillsTheMemory() throws {
    let file = try Scratch().file(String(repeating: "x", count: 3 << 20))
    #expect(throws: HopdError.self) {
      var manifest = try Manifest(path: file.path)
      _ = try manifest.next()
    }
  }

  /// A killed writer leaves a prefix of what it wrote: whatever its length, the next one continues with whole lines.
  @Test func everyCutIsMended() throws {
    let text = "{\"store\":\"/a\"}\n{\"store\":\"/b\"}\n"
    for length in 0...text.utf8.count {
      let scratch = try Scratch()
      let file = try scratch.file(String(text.prefix(length)))
      do {
        let lines = try LineFile(path: file.path)
        try lines.append(StoreLine(store: "/c"))
      }
      let whole = text.prefix(length).split(separator: "\n", omittingEmptySubsequences: false).dropLast()
      let found = try String(contentsOfFile: file.path.string, encoding: .utf8)
      #expect(found == whole.map { $0 + "\n" }.joined() + "{\"store\":\"/c\"}\n", "cut at \(length)")
    }
  }

  /// After a power cut pages that were not synced are zeros: the lines on them are lost, and the next writer continues.
  @Test func linesThatAPowerCutTookAreLost() throws {
    let line = "{\"store\":\"/a\"}\n"
    let zeros = String(repeating: "\0", count: 70_000)
    for (text, kept) in [
      (zeros, ""), (line + zeros, line), (zeros + line, zeros + line), (zeros + "re\":\"/a\"}\n" + line + "{\"st", nil),
      (line + zeros + "re\":\"/a\"}\n" + line, nil), (line + line + zeros + "torn", line + line),
      // The second of two power cuts mixed sectors of before and after the first.
      (line + "re\":\"/a\"}\n:\"/b\"", line + "re\":\"/a\"}\n"),
    ] as [(String, String?)] {
      let file = try Scratch().file(text)
      try LineFile(path: file.path).append(StoreLine(store: "/c"))
      let found = try String(contentsOfFile: file.path.string, encoding: .utf8)
      #expect(found.hasSuffix("\n{\"store\":\"/c\"}\n") || found == "{\"store\":\"/c\"}\n")
      if let kept { #expect(found == kept + "{\"store\":\"/c\"}\n") }
    }
    for text in [zeros + "no line\nnor this\n", "\0\0 no line\nnor this\n", "{\n  \"a\": 1\n}"] {
      let file = try Scratch().file(text)
      let error = #expect(throws: HopdError.self) { _ = try LineFile(path: file.path) }
      #expect(error?.code == .otherKindOfFile)
    }
  }

  @Test func twoWritersDoNotMeetInOneFile() throws {
    let file = try Scratch().file("")
    let first = try LineFile(path: file.path)
    let error = #expect(throws: HopdError.self) { _ = try LineFile(path: file.path) }
    #expect(error?.code == .appendedFileInUse && error?.code.exit == .unavailable)
    try first.append(StoreLine(store: "/a"))
  }
}

/// A folder that goes with the test.
final class Scratch {
  let path: FilePath

  init() throws {
    path = FilePath(FileManager.default.temporaryDirectory.path).appending("store-fleet-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path.string) }

  /// A file, which keeps the folder alive.
  func file(_ text: String) throws -> (path: FilePath, scratch: Scratch) {
    let file = path.appending("lines.ndjson")
    try Data(text.utf8).write(to: URL(filePath: file.string))
    return (file, self)
  }
}
