// A store that was sent in two parts: its log arrives when the database was migrated already. SQLite would play it into
// the new store.

import BlockingTests
import FoundationEssentials
import Glibc
import SystemPackage
import Testing

@Suite(
  .blocking, .enabled(if: Program.isBuilt, Program.absence),
  .enabled(if: access("/usr/bin/sqlite3", X_OK) == 0, "sqlite3 is not there"))
struct LateLogTests {
  /// A log of the store's, kept aside as a copying program has not sent it yet.
  private func logApart(_ room: Room, _ store: String) throws {
    let outcome = try room.shell(
      """
      python3 - "$S" <<'PY'
      import os, sqlite3, sys
      c = sqlite3.connect(sys.argv[1], isolation_level=None)
      c.execute('PRAGMA journal_mode=WAL')
      c.execute('PRAGMA wal_autocheckpoint=0')
      c.execute("UPDATE ZANIMAL SET ZNAME = 'ONLY IN THE LOG'")
      os._exit(0)
      PY
      mv "$S-wal" "$S.sent-later"; rm -f "$S-shm"
      """, ["S=\(store)"])
    #expect(outcome.status == 0, "\(outcome.errors)")
  }

  @Test func aLogThatComesLateIsSetAsideAndNotPlayed() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    let models = ["--models", room.model]
    try logApart(room, store)
    #expect(try room.run(words: ["migrate", store] + models).status == 0)
    let names = try room.sql("\(store)", "SELECT group_concat(ZNAME) FROM ZANIMAL")
    #expect(try room.shell("mv \"$S.sent-later\" \"$S-wal\"", ["S=\(store)"]).status == 0)

    let again = try room.run(words: ["migrate", store] + models)
    #expect(again.status == 0, "\(again.errors)")
    let reported = again.output + again.errors
    #expect(reported.contains("arrived after the store was migrated and was set aside"), "\(reported)")
    #expect(reported.contains("may contain committed rows"), "\(reported)")
    let folder = FilePath(store).removingLastComponent().string
    let left = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
    #expect(left.contains { $0.hasPrefix("a.sqlite.late-") && $0.hasSuffix("-wal") }, "\(left)")
    #expect(!left.contains("a.sqlite-wal"), "\(left)")
    #expect(try room.run(words: ["verify", store] + models).status == 0)
    #expect(try room.sql("\(store)", "SELECT group_concat(ZNAME) FROM ZANIMAL") == names)
    // No store, for a look at the folder.
    #expect(try room.run(words: ["identify", store, "--json"] + models).json().state?.text == "current")
  }
}
