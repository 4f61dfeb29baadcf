// Lists of stores: one bad store does not stop the others, and each follows the watch around it.

import BlockingTests
import FoundationEssentials
import Glibc
import SystemPackage
import Testing

@Suite(
  .blocking, .enabled(if: Program.isBuilt, Program.absence),
  .enabled(if: access("/usr/bin/sqlite3", X_OK) == 0, "sqlite3 is not there"))
struct BatchTests {
  private func list(_ room: Room, _ text: String) throws -> String {
    let path = room.path.appending("list").string
    let file = try #require(fopen(path, "w"))
    fputs(text, file)
    fclose(file)
    return path
  }

  @Test func theStoresOfAListAreMigrated() throws {
    let room = try Room()
    let stores = try ["a.sqlite", "b.sqlite"].map { try room.store($0) }
    let list = try list(room, "# a remark\n\n\(stores[0])\r\n\(stores[1])")
    let words = ["fleet", "run", "--manifest", list, "--models", room.model]
    let first = try room.run(words: words)
    #expect(first.status == 0 && first.output.contains("2 migrated, 0 already current"), "\(first.errors)")
    let again = try room.run(words: words)
    #expect(again.status == 0 && again.output.contains("0 migrated, 2 already current"))
  }

  @Test func oneThatIsNoStoreDoesNotStopTheOthers() throws {
    let room = try Room()
    let (good, late) = (try room.store("good.sqlite"), try room.store("late.sqlite"))
    let missing = room.path.appending("missing.sqlite").string
    let bad = room.path("stores/bad.sqlite")
    try room.file("stores/bad.sqlite", "this is no store")
    let list = try list(room, [good, bad, missing, late].joined(separator: "\n"))
    let mixed = try room.run(words: ["fleet", "run", "--manifest", list, "--models", room.model])
    #expect(mixed.status == 65 && mixed.output.contains("2 migrated, 0 already current, 2 failed"))
    #expect(mixed.errors.contains("bad.sqlite") && mixed.errors.contains("missing.sqlite"))
    let found = try room.run("identify", late, "--models", room.model, "--json").json()
    #expect(found.state?.text == "current")
  }

  /// Each store by the rules of the watch around it; one that lies in none fails alone.
  @Test func aConfigurationWithSeveralWatchesDecidesForEachStore() throws {
    let room = try Room()
    let (all, half, outside) = (room.path("all"), room.path("half"), room.path("outside"))
    let seed = try room.store("seed.sqlite")
    for folder in [all, half, outside] {
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      try FileManager.default.copyItem(atPath: seed, toPath: "\(folder)/a.sqlite")
    }
    try room.file(
      "hopd.toml",
      """
      [[watch]]
      name = "all"
      directory = "\(all)"
      models = ["\(room.model)"]
      [[watch]]
      name = "half"
      directory = "\(half)"
      models = ["\(room.model)"]
      target = "Zoo 2"
      """)
    let list = try list(room, [all, half, outside].map { "\($0)/a.sqlite" }.joined(separator: "\n"))
    let outcome = try room.run("fleet", "run", "--manifest", list, "--config", room.path("hopd.toml"))
    #expect(outcome.status == 65 && outcome.output.contains("2 migrated"), "\(outcome.errors)")
    #expect(outcome.errors.contains("outside/a.sqlite") && outcome.errors.contains("is in none or several watches"))
    for (folder, version) in [(all, "Zoo 10"), (half, "Zoo 2"), (outside, "Zoo")] {
      let found = try room.run("identify", "\(folder)/a.sqlite", "--models", room.model, "--json").json()
      #expect(found.version?.text == version, "\(folder)")
    }
  }
}
