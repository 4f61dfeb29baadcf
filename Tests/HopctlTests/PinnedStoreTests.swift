// A store that a restore has pinned: the restore can be repeated, and a run over a fleet says why it leaves the store
// alone, and what to type.

import BlockingTests
import FoundationEssentials
import Glibc
import SystemPackage
import Testing

@Suite(
  .blocking, .enabled(if: Program.isBuilt, Program.absence),
  .enabled(if: access("/usr/bin/sqlite3", X_OK) == 0, "sqlite3 is not there"))
struct PinnedStoreTests {
  /// A room with a store that was migrated and restored.
  private func restored() throws -> (room: Room, store: String, first: JSON) {
    let room = try Room()
    let store = try room.store("a.sqlite")
    try #require(room.run("migrate", store, "--models", room.model).status == 0)
    let first = try room.run("restore", store, "--yes", "--json")
    try #require(first.status == 0, "\(first.errors)")
    return (room, store, try first.json())
  }

  private func version(_ room: Room, _ store: String) throws -> String? {
    try room.run("identify", store, "--models", room.model, "--json").json().version?.text
  }

  @Test("A second restore leaves the restored store as it is, and names the commands for both backups")
  func repeated() throws {
    let (room, store, first) = try restored()
    try room.sql(store, "UPDATE ZANIMAL SET ZNAME = 'WRITTEN SINCE' WHERE Z_PK = 1")
    let (from, undone) = (try #require(first.restored?.text), try #require(first.backup?.text))
    for words in [["--yes"], ["--dry-run"], []] {
      let again = try room.run(words: ["restore", store] + words)
      #expect(again.status == 0 && again.output.contains("was already restored"), "\(words): \(again)")
      #expect(again.output.contains("--backup \(from)`") && again.output.contains("--backup \(undone)`"), "\(again)")
    }
    let json = try room.run("restore", store, "--yes", "--json").json()
    #expect(json.restored == .null && json.backup == .null && json.version?.text == "Zoo", "\(json)")
    #expect(try version(room, store) == "Zoo")
    #expect(try room.sql(store, "SELECT ZNAME FROM ZANIMAL WHERE Z_PK = 1") == "WRITTEN SINCE")
    // By name either of them is restored, and a plain restore then brings the old version back.
    #expect(try room.run("restore", store, "--yes", "--backup", undone).status == 0)
    #expect(try version(room, store) == "Zoo 10")
    #expect(try room.run("restore", store, "--yes").output.contains("restored \(store): Zoo,"))
    #expect(try version(room, store) == "Zoo")
  }

  @Test("A restore without a pin is repeated, because hopd may have migrated the store since")
  func unpinned() throws {
    let (room, store, _) = try restored()
    #expect(try room.run("resume", store).status == 0)
    let again = try room.run("restore", store, "--yes")
    #expect(again.status == 0 && again.output.contains("pinned: restored to Zoo "), "\(again)")
    #expect(try version(room, store) == "Zoo")
  }

  @Test("A migration after the restore makes the backup that the next restore takes")
  func migratedSince() throws {
    let (room, store, _) = try restored()
    #expect(try room.run("migrate", store, "--models", room.model).status == 0)
    let again = try room.run("restore", store, "--yes")
    #expect(again.status == 0 && again.output.contains("restored \(store): Zoo,"), "\(again)")
    #expect(try version(room, store) == "Zoo")
  }

  @Test("Where only backups of restores are left, a plain restore is refused with the command that names one")
  func onlyRestores() throws {
    let (room, store, first) = try restored()
    #expect(try room.run("prune", store, "--yes", "--keep", "0").status == 0)
    let refused = try room.run("restore", store, "--yes")
    let command = "hopctl restore \(store) --backup \(try #require(first.backup?.text))"
    #expect(refused.status == 66 && refused.errors.contains("`\(command)` to restore Zoo 10"), "\(refused)")
    #expect(try version(room, store) == "Zoo")
  }

  @Test("The backup of an import has its own name in backups, and a restore brings it back")
  func imported() throws {
    let room = try Room()
    let store = try room.store("a.sqlite", version: "Zoo 10")
    try room.file("more.csv", "name\nMORE\n")
    try room.file(
      "more.hopimport.toml", "[[import]]\nentity = \"Animal\"\nfrom = \"more.csv\"\n[import.columns]\nname = \"name\"\n"
    )
    let words = [
      "import", room.path("more.csv"), "--mapping", room.path("more.hopimport.toml"), "--models", room.model, "--into",
      store,
    ]
    let count = { try room.sql(store, "SELECT count(*) FROM ZANIMAL WHERE ZNAME = 'MORE'") }
    let added = try room.run(words: words)
    try #require(added.status == 0, "\(added.errors)")
    #expect(try count() == "1")
    let listed = try room.run("backups", store, "--json").json().stores?.list.first?.backups?.list.first
    #expect(listed?.createdBy?.text == "import" && listed?.removal?.text == "keep")
    #expect(try room.run("restore", store, "--yes").status == 0)
    #expect(try count() == "0")
    // The store is pinned now, and what is added later is newer than the pin.
    try #require(room.run(words: words).status == 0)
    #expect(try room.run("restore", store, "--yes").output.contains("restored \(store)"))
    #expect(try count() == "0")
  }

  @Test("explain of a pinned store names the pin and the command that ends it")
  func explained() throws {
    let (room, store, _) = try restored()
    let told = try room.run("explain", store, "--models", room.model)
    #expect(told.status == 0 && told.output.contains("hint: unpin the store, which was restored to Zoo"), "\(told)")
    #expect(told.output.contains("next: hopctl resume \(store)"), "\(told)")
  }

  @Test("restore takes one store by name, and refuses several and a folder with the command for a set")
  func several() throws {
    let room = try Room()
    let (a, b) = (try room.store("a.sqlite"), try room.store("b.sqlite"))
    for words in [[a, b], [room.path("stores")]] {
      let told = try room.run(words: ["restore"] + words + ["--yes"])
      #expect(told.status != 0 && told.errors.contains("hopctl restore --watch "), "\(told)")
    }
    try #require(room.run("migrate", a, "--models", room.model).status == 0)
    let near = try room.run("restore", "--watch", room.path("stores"), "--to-version", "zoo10", "--dry-run")
    #expect(near.status == 66 && near.errors.contains("pass \"Zoo 10\""), "\(near)")
  }

  @Test("A fleet run names a pinned store, since when, and the command, and ends with 65, as the dry run does")
  func fleet() throws {
    let (room, store, first) = try restored()
    let other = try room.store("b.sqlite")
    let since = try #require(first.pin?.restoredAt?.text)
    let words = ["fleet", "run", room.path("stores"), "--models", room.model]
    let dry = try room.run(words: words + ["--dry-run"])
    #expect(dry.status == 65, "\(dry.errors)")
    #expect(dry.output.contains("would migrate 1 store"), "\(dry.output)")
    #expect(dry.output.contains("pinned: \(store): the store was restored to Zoo at \(since)"), "\(dry.output)")
    #expect(dry.output.contains("`hopctl resume \(store)`"), "\(dry.output)")
    let lines = try room.run(words: words + ["--dry-run", "--json"]).lines()
    #expect(lines.first { $0.store?.text == store }?.error?.code?.text == "pinned", "\(lines)")
    let run = try room.run(words: words + ["--yes", "--results", room.path("results.ndjson")])
    #expect(run.status == 65 && run.output.contains("1 migrated, 0 already current, 1 failed"), "\(run)")
    #expect(run.errors.contains("\(store): the store was restored to Zoo at \(since)"), "\(run.errors)")
    #expect(run.errors.contains("hint: run `hopctl resume \(store)`"), "\(run.errors)")
    let report = try room.run("fleet", "report", room.path("results.ndjson"))
    #expect(report.status == 65 && report.output.contains("next: hopctl resume \(store)"), "\(report)")
    #expect(try version(room, store) == "Zoo" && version(room, other) == "Zoo 10")
  }
}
