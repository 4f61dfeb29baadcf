// A value of hundreds of megabytes in one store: the daemon refuses that store before it reads the value, because all
// stores share the daemon's memory.

import BlockingTests
import FoundationEssentials
import Glibc
import SystemPackage
import Testing

@Suite(
  .blocking, .enabled(if: Program.isBuilt, Program.absence),
  .enabled(if: access("/usr/bin/sqlite3", X_OK) == 0, "sqlite3 is not there"))
struct LargeValueTests {
  @Test func theDaemonRefusesAValueThatWouldFillItsMemory() throws {
    let room = try Room()
    // A column goes, so the rows are written anew.
    let note = "<attribute name='note' optional='YES' attributeType='String'/>"
    for (version, more) in [("Album", note), ("Album 2", "")] {
      try room.file(
        "Album.xcdatamodeld/\(version).xcdatamodel/contents",
        """
        <?xml version="1.0"?><model><entity name='Photo'>
        <attribute name='image' optional='YES' attributeType='Binary'/>\(more)</entity></model>
        """)
    }
    try room.file(
      "Album.xcdatamodeld/.xccurrentversion",
      """
      <?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict><key>_XCCurrentVersionName</key>
      <string>Album 2.xcdatamodel</string></dict></plist>
      """)
    let models = room.path("Album.xcdatamodeld")
    try room.file(
      "hopd.toml",
      """
      [daemon]
      memory_limit = "64MiB"
      [[watch]]
      name = "w"
      directory = "\(room.path("stores"))"
      models = ["\(models)"]
      settle = "50ms"
      """)
    try room.file("stores/.none", "")
    let store = room.path("stores/a.sqlite")
    let made = try room.run("create", store, "--models", models, "--model-version", "Album", "--rows", "3")
    try #require(made.status == 0, "\(made.errors)")
    try room.sql(store, "UPDATE ZPHOTO SET ZIMAGE = zeroblob(280000000) WHERE Z_PK = 1")
    let hopd = try #require(Program.path).removingLastComponent().appending("hopd")
    let outcome = try room.shell(
      #"""
      mkdir -p "$STATE"
      "$HOPD" --config "$CONFIG" --state-directory "$STATE" >"$LOG" 2>&1 & daemon=$!
      for i in $(seq 600); do
        grep -q -e HOPD_ERROR=value-too-large -e HOPD_RESULT=migrated "$LOG" && break
        sleep 0.1
      done
      kill $daemon; wait $daemon || true
      cat "$LOG"
      """#,
      [
        "HOPD=\(hopd)", "CONFIG=\(room.path("hopd.toml"))", "STATE=\(room.path("state"))", "LOG=\(room.path("log"))",
      ])
    #expect(outcome.output.contains("HOPD_ERROR=value-too-large"), "\(outcome.output)")
    #expect(outcome.output.contains("HOPD_HINT="), "\(outcome.output)")
    #expect(try room.run("identify", store, "--models", models).output.contains("Album"))
    #expect(try room.sql(store, "SELECT length(ZIMAGE) FROM ZPHOTO WHERE Z_PK = 1") == "280000000")
  }
}
