// What --dry-run prints, and that it changes nothing: not a store, not a folder beside it, no state directory.

import BlockingTests
import Glibc
import SystemPackage
import Testing

@Suite("--dry-run", .blocking, .enabled(if: Program.isBuilt, Program.absence))
struct DryRunTests {
  @Test("migrate --dry-run prints what plan prints, with its statuses")
  func migrate() throws {
    let room = try Room()
    let (old, new) = (try room.store("a.sqlite"), try room.store("b.sqlite", version: "Zoo 10"))
    try room.file("stores/noise.sqlite", "no store")
    let noise = room.path("stores/noise.sqlite")
    let before = try room.snapshot()
    for store in [old, new, noise] {
      for more in [[], ["--json"], ["--to", "Zoo 2"], ["--to", "Zoo 3"], ["--replace", "in-place"]] {
        let words = [store, "--models", room.model] + more
        let (plan, dry) = try (room.run(words: ["plan"] + words), room.run(words: ["migrate", "--dry-run"] + words))
        #expect(plan.status == dry.status && plan.output == dry.output && plan.errors == dry.errors, "\(words): \(dry)")
      }
    }
    #expect(try room.run("migrate", old, "--models", room.model, "--dry-run").status == 0)
    #expect(try room.run("migrate", noise, "--models", room.model, "--dry-run").status == 65)
    // As a migration, it is told its models.
    #expect(try room.run("migrate", old, "--dry-run").status == 6)
    let copy = room.path("stores/copy.sqlite")
    #expect(try room.run("migrate", old, "--models", room.model, "--output", copy, "--dry-run").status == 0)
    #expect(try room.snapshot() == before)
    #expect(access(room.path("state"), F_OK) != 0)
  }

  @Test("fleet run --dry-run lists the stores; with --json it prints what a scan prints")
  func fleet() throws {
    let room = try Room()
    let old = try room.store("a.sqlite")
    try room.store("b.sqlite", version: "Zoo 10")
    let words = ["fleet", "run", room.path("stores"), "--models", room.model, "--dry-run"]
    let before = try room.snapshot()
    let dry = try room.run(words: words + ["--results", room.path("results.ndjson")])
    #expect(dry.status == 0 && dry.output.hasPrefix("would migrate 1 store, "), "\(dry)")
    #expect(dry.output.contains(old) && dry.output.contains("Zoo → Zoo 10"), "\(dry)")
    let lines = try room.run(words: words + ["--json"]).lines()
    #expect(lines.count == 3 && lines.last?.summary?.stores?.int == 2, "\(lines)")
    #expect(Set(lines.compactMap { $0.state?.text }) == ["behind", "current"])
    for name in ["results.ndjson", "state"] { #expect(access(room.path(name), F_OK) != 0, "\(name)") }
    #expect(try room.snapshot() == before)
    let current = try room.run("fleet", "run", room.path("stores/b.sqlite"), "--models", room.model, "--dry-run")
    #expect(current.status == 0 && current.output.hasPrefix("nothing to migrate\n"), "\(current)")
    try room.file("stores/broken.sqlite", "SQLite format 3\0" + String(repeating: "x", count: 5000))
    let refused = try room.run(words: words)
    #expect(refused.status == 65 && refused.output.contains("cannot be migrated: "), "\(refused)")
  }

  @Test("Many stores are summarized by their version")
  func manyStores() throws {
    let room = try Room()
    try room.store("0.sqlite")
    for number in 1...22 { try room.store("\(number).sqlite", version: number == 1 ? "Zoo" : "Zoo 2", rows: 3) }
    let dry = try room.run("fleet", "run", room.path("stores"), "--models", room.model, "--dry-run")
    #expect(dry.status == 0 && dry.output.hasPrefix("would migrate 23 stores, "), "\(dry)")
    #expect(dry.output.contains("2 stores") && dry.output.contains("21 stores"), "\(dry)")
    #expect(!dry.output.contains(".sqlite"), "\(dry)")
  }

  @Test("restore --dry-run names the backup that would be restored")
  func restore() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    #expect(try room.run("restore", store, "--dry-run").status == 66)
    try #require(try room.run("migrate", store, "--models", room.model).status == 0)
    let before = try room.snapshot()
    let dry = try room.run("restore", store, "--dry-run")
    #expect(dry.status == 0 && dry.output.hasPrefix("would restore \(store): Zoo, from "), "\(dry)")
    let json = try room.run("restore", store, "--dry-run", "--json").json()
    #expect(json.dryRun == .boolean(true) && json.version?.text == "Zoo")
    #expect(try room.run("restore", store, "--dry-run", "--yes").status == 64)
    #expect(try room.snapshot() == before)
    let done = try room.run("restore", store, "--yes", "--json").json()
    #expect(done.restored == json.restored)
  }
}
