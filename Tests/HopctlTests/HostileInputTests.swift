// Files of strangers: whatever is in them, the answer is an error about the file, in lines that stay what they are, and
// never a crash or an internal error.

import BlockingTests
import FoundationEssentials
import Glibc
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct HostileInputTests {
  /// A compiled bundle whose VersionInfo.plist names one version, of which there is no `.mom`.
  private func bundle(_ room: Room, naming version: String) throws -> String {
    try room.file(
      "Odd.momd/VersionInfo.plist",
      """
      <?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict><key>NSManagedObjectModel_VersionHashes</key>
      <dict><key>\(version)</key><dict/></dict></dict></plist>
      """)
    return room.path("Odd.momd")
  }

  /// A name can neither begin a line of its own nor send the terminal a command.
  @Test func namesOfStrangersStayWithinTheirLine() throws {
    let room = try Room()
    let outcome = try room.run(
      "model", "list", try bundle(room, naming: "a&#x9b;31m&#10;hopctl: all is well&#x2028;&#x202e;"))
    #expect(outcome.status == 65)
    #expect(outcome.errors.contains("“a\\x9b31m\\x0ahopctl: all is well\\u{2028}\\u{202e}”"))
    let lines = outcome.errors.split(separator: "\n")
    #expect(lines.dropFirst().allSatisfy { $0.hasPrefix("  ") } && lines.count > 1, "\(outcome.errors)")
    // The same of names in a store.
    let store = try room.store("a.sqlite")
    try room.sql(
      store,
      "INSERT INTO Z_PRIMARYKEY VALUES (16500, 'X' || char(27, 10) || 'hopctl: fine', 0, 0); "
        + "CREATE TABLE \"Y\u{1b}[31m\" (a)")
    let plan = try room.run("plan", store, "--models", room.model)
    #expect(plan.status == 65)
    #expect(plan.errors.contains("X\\x1b\\x0ahopctl: fine") && plan.errors.contains("Y\\x1b[31m"), "\(plan.errors)")
    #expect(!plan.errors.contains("\u{1b}"))
  }

  /// A name that is not a text would be told as another one: every command says so, and leaves the file alone.
  @Test(arguments: ["identify", "plan", "migrate", "verify", "dump", "restore"])
  func aNameThatIsNoTextIsRefused(_ command: String) throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    let hopctl = try #require(Program.path)
    let script = #"""
      cd "$(dirname "$STORE")"; odd=$'odd\xff.sqlite'; mv "$STORE" "$odd"; before=$(sha256sum <"$odd")
      "$HOPCTL" "$COMMAND" "$odd" --json && status=0 || status=$?
      [ "$(sha256sum <"$odd")" = "$before" ] || exit 1
      exit $status
      """#
    let outcome = try room.shell(script, ["STORE=\(store)", "HOPCTL=\(hopctl.string)", "COMMAND=\(command)"])
    #expect(outcome.status == 65, "\(outcome.errors)")
    #expect(try outcome.json().error?.code?.text == "not-a-store")
    #expect(outcome.errors.contains("odd\\xff.sqlite") && outcome.errors.contains("hint: rename the store together"))
  }

  /// What helps stands at the end, and is not buried under a name.
  @Test func longNamesAreShortened() throws {
    let room = try Room()
    let outcome = try room.run("model", "list", try bundle(room, naming: String(repeating: "V", count: 100_000)))
    #expect(outcome.status == 65)
    #expect(outcome.errors.utf8.count < 8000)
    #expect(outcome.errors.contains("characters omitted") && outcome.errors.contains("hint: copy the whole .momd"))
  }

  @Test func linksThatLeadNowhereHideNoModelBesideThem() throws {
    let room = try Room()
    for name in ["loop", "loop.mom", "loop.xcdatamodeld"] {
      try #require(symlink(name, room.path(name)) == 0)
    }
    let list = try room.run("model", "list", room.path.string, "--json")
    #expect(list.status == 0, "\(list.errors)")
    #expect(try list.json().models?.list.count == 1)
    for arguments in [["model", "hash"], ["model", "list"]] {
      let outcome = try room.run(words: arguments + [room.path("loop.mom"), "--json"])
      #expect([64, 66, 6].contains(outcome.status))
      #expect(outcome.errors.contains("loop.mom") && outcome.errors.contains("hint: "))
    }
  }

  @Test func modelsBeyondAllSizeAreReportedWithAWayOut() throws {
    let room = try Room()
    try room.file("Huge.mom", "")
    try #require(truncate(room.path("Huge.mom"), 20 << 30) == 0)
    for path in [room.path("Huge.mom"), room.path("none.mom"), room.path("none.momd")] {
      let store = try room.run("identify", room.path("none.sqlite"), "--models", path)
      #expect(store.status == (path.hasSuffix("Huge.mom") ? 65 : 66), "\(store.errors)")
      #expect(store.errors.contains(path) && store.errors.contains("hint: "), "\(store.errors)")
    }
  }

  /// Tables that need an extension of SQLite are the file's fault, not the program's.
  @Test func tablesThatNeedAnExtensionAreRefused() throws {
    let room = try Room()
    let schemas = [
      "DROP TABLE ZKEEPER; INSERT INTO sqlite_master VALUES ('table', 'ZKEEPER', 'ZKEEPER', 0, "
        + "'CREATE VIRTUAL TABLE ZKEEPER USING nonsense (a)')",
      "UPDATE sqlite_master SET sql = replace(sql, 'ZNAME VARCHAR', 'ZNAME VARCHAR AS (nonsense(1))') "
        + "WHERE name = 'ZANIMAL'",
      "UPDATE sqlite_master SET sql = replace(sql, 'ZNAME VARCHAR', 'ZNAME VARCHAR CHECK (nonsense(1))') "
        + "WHERE name = 'ZANIMAL'",
      "UPDATE sqlite_master SET sql = replace(sql, 'ZKEEPER INTEGER', 'ZKEEPER INTEGER COLLATE nonsense') "
        + "WHERE name = 'ZANIMAL'",
    ]
    for (number, sql) in schemas.enumerated() {
      let store = try room.store("\(number).sqlite")
      try room.sql(store, "PRAGMA writable_schema = ON; " + sql)
      let before = try room.snapshot()
      var refusals = 0
      for command in ["identify", "plan", "verify", "dump", "migrate"] {
        let outcome = try room.run(command, store, "--models", room.model)
        #expect([0, 65].contains(outcome.status), "\(command), \(sql): \(outcome.errors)")
        if outcome.status == 65 {
          refusals += 1
          #expect(outcome.errors.contains("\(number).sqlite") && outcome.errors.contains("hint: "))
        } else if command == "migrate" {
          refusals += 1
          #expect(try room.run("verify", store, "--models", room.model, "--quiet").status == 0)
        } else {
          #expect(try room.snapshot() == before)
        }
      }
      #expect(refusals > 0)
    }
  }
}
