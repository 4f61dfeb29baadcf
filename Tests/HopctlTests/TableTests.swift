// The tables of status, list, history, backups and scan, from a record that no daemon needs to have written.

import BlockingTests
import FoundationEssentials
import Glibc
import ServiceState
import SystemPackage
import Testing

@Suite("Tables", .blocking, .enabled(if: Program.isBuilt, Program.absence))
struct TableTests {
  private static let folder = "/srv/library/stores"

  /// A room with a record: 34 stores that failed for one cause, one that failed for another, and three current ones.
  private func recorded() throws -> Room {
    let room = try Room()
    try room.file("state/none", "")
    let database = try StateDatabase(stateDirectory: room.path.appending("state"))
    var changes: [StateChange] = (0..<34).map { number in
      .store(
        StoreRecord(
          path: "\(Self.folder)/customer-\(number + 10).sqlite", watch: "library", condition: .failed, since: 1_000_000,
          failure: StoreFailure(
            code: "unknown-version", reason: "its hashes match no version", command: "hopctl explain X", attempts: 1,
            since: 1_000_000)))
    }
    changes.append(
      .store(
        StoreRecord(
          path: "\(Self.folder)/full.sqlite", watch: "library", condition: .failed, since: 1_000_000,
          failure: StoreFailure(
            code: "no-space", reason: "the disk is full", hint: "free some", command: "df", since: 1_000_000))))
    changes += ["a.sqlite", "é\u{301}.sqlite", "蔵書.sqlite"].map {
      .store(
        StoreRecord(
          path: "\(Self.folder)/\($0)", watch: "other", condition: .current, since: 1_000_000, version: "写真 5",
          target: "写真 5"))
    }
    changes.append(
      .job(
        JobRecord(
          job: "ab12", path: "\(Self.folder)/a.sqlite", watch: "other", began: 1_000_000, ended: 1_000_002, from: "写真",
          to: "写真 5", rows: 1_234_567, microseconds: 1_500_000, result: "migrated")))
    _ = try database.write(changes, now: 1_000_010)
    return room
  }

  @Test("Stores that failed for one cause are one entry with one command, which lists them")
  func causes() throws {
    let room = try recorded()
    let status = try room.run("status")
    let lines = status.output.split(separator: "\n").map { String($0) }
    #expect(status.status == 7 && lines.contains("38 stores: 3 current, 35 failed"), "\(status)")
    #expect(lines.contains("failed  34 stores: unknown-version: its hashes match no version"), "\(lines)")
    #expect(lines.contains { $0.hasPrefix("  for example \(Self.folder)/customer-10.sqlite, since 1970-") })
    #expect(lines.contains("  next: hopctl list --state failed --code unknown-version"), "\(lines)")
    #expect(lines.contains("failed  \(Self.folder)/full.sqlite") && lines.contains("  next: df"), "\(lines)")
    #expect(lines.count < 20)
    let listed = try room.run("list", "--state", "failed", "--code", "unknown-version", "--json")
    #expect(try listed.json().stores?.list.count == 34)
    let json = try room.run("status", "--json").json()
    #expect(json.attention?.list.count == 35 && json.causes?.list.count == 2)
    let first = json.causes?.list.first
    #expect(first?.stores?.int == 34 && first?.code?.text == "unknown-version" && first?.state?.text == "failed")
    #expect(first?.example?.text == "\(Self.folder)/customer-10.sqlite")
  }

  @Test("Tables have headers, and columns stand below them also with names from Japan")
  func aligned() throws {
    let room = try recorded()
    let lines = try room.run("list", "--state", "current").output.split(separator: "\n").map { String($0) }
    #expect(lines.count == 4 && lines[0] == "STATE    VERSION  SINCE                 NEXT ATTEMPT  STORE", "\(lines)")
    #expect(
      lines.contains("current  写真 5   1970-01-12T13:46:40Z  -             \(Self.folder)/蔵書.sqlite"), "\(lines)")
    let history = try room.run("history").output.split(separator: "\n").map { String($0) }
    #expect(
      history == [
        "ENDED                 RESULT    VERSIONS            ROWS   TIME  REQUESTED BY  STORE",
        "1970-01-12T13:46:42Z  migrated  写真 → 写真 5  1,234,567  1.5 s  hopd          \(Self.folder)/a.sqlite",
      ], "\(history)")
    let status = try room.run("status").output.split(separator: "\n").map { String($0) }
    #expect(
      status.contains("  WATCH    STORES  CURRENT  FAILED") && status.contains("  library      35        0      35"),
      "\(status)")
  }

  @Test("--columns chooses columns alike everywhere, and a wrong name lists the right ones")
  func columns() throws {
    let room = try recorded()
    #expect(
      try room.run("list", "--code", "no-space", "--columns", "code,store,reason").output
        == "CODE      STORE                            REASON\n"
        + "no-space  /srv/library/stores/full.sqlite  the disk is full\n")
    #expect(try room.run("history", "--columns", "rows,job").output == "     ROWS  JOB\n1,234,567  ab12\n")
    #expect(
      try room.run("status", "--columns", "watch,failed").output
        == "WATCH    FAILED\nlibrary      35\nother         0\n")
    let store = try room.store("old.sqlite")
    #expect(try room.run("migrate", store, "--models", room.model).status == 0)
    #expect(
      try room.run("backups", store, "--columns", "versions,created-by").output
        == "VERSIONS      CREATED BY\nZoo → Zoo 10  migration\n")
    #expect(
      try room.run("fleet", "scan", room.path("stores"), "--models", room.model, "--columns", "version,stores").output
        == "VERSION  STORES\nZoo 10        1\n")
    for words in [["list"], ["history"], ["status"], ["backups", store]] {
      let wrong = try room.run(words: words + ["--columns", "stor"])
      #expect(wrong.status == 64 && wrong.errors.contains("unknown column 'stor'"), "\(wrong)")
      #expect(wrong.errors.contains("one of: "), "\(wrong)")
    }
    #expect(try room.run("list", "--columns", "stor").errors.contains("use 'store'"))
  }

  @Test("A table whose rows end is as wide as the terminal", .enabled(if: Terminal.isThere, Terminal.absence))
  func fitted() throws {
    let room = try recorded()
    let program = try #require(Program.path).string
    for columns in [40, 80, 200] {
      let terminal = try Terminal(room, columns: columns)
      try terminal.run("'\(program)' list --state current 2>/dev/null; echo en''ded")
      try terminal.waits("the end") { try terminal.lines().contains("ended") }
      let lines = try terminal.lines()
      let first = try #require(lines.firstIndex { $0.hasPrefix("STATE ") }, "\(lines)")
      #expect(lines.firstIndex(of: "ended") == first + 4, "\(lines)")
      #expect(lines[first].hasSuffix("STORE") && lines[first].contains("SINCE") == (columns > 40), "\(lines)")
      for name in ["a.sqlite", "蔵書.sqlite"] { #expect(lines.count { $0.hasSuffix(name) } == 1, "\(lines)") }
    }
  }
  @Test(
    "A narrow terminal cuts the file name of a path in front of its end",
    .enabled(if: Terminal.isThere, Terminal.absence),
    arguments: [(40, "custome…"), (60, "customer-with-a-lo…18.sqlite")])
  func longNames(_ columns: Int, _ shown: String) throws {
    let room = try Room()
    try room.file("state/none", "")
    let database = try StateDatabase(stateDirectory: room.path.appending("state"))
    let path = "\(Self.folder)/customer-with-a-long-name-for-a-store-of-2018.sqlite"
    let job = JobRecord(
      job: "ab12", path: path, watch: "library", began: 1_000_000, ended: 1_000_002, from: "A", to: "B", rows: 10,
      microseconds: 1_500_000, result: "migrated")
    _ = try database.write([.job(job)], now: 1_000_010)
    let terminal = try Terminal(room, columns: columns)
    try terminal.run("'\(try #require(Program.path).string)' history 2>/dev/null; echo en''ded")
    try terminal.waits("the end") { try terminal.lines().contains("ended") }
    let lines = try terminal.lines()
    #expect(lines.contains { $0.hasPrefix("1970-") && $0.hasSuffix("  \(shown)") }, "\(lines)")
  }
}
