// `hopctl verify` and `hopctl migrate --repair` on a store that lacks objects of its version.

import BlockingTests
import FoundationEssentials
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct RepairCommandTests {
  @Test("verify names what is missing, and its hint repairs the store")
  func currentStore() throws {
    let room = try Room()
    let store = try room.store("a.sqlite", version: "Zoo 10")
    try room.sql(store, "ALTER TABLE ZANIMAL DROP COLUMN ZLEGS; DROP TABLE ZKEEPER;")
    let before = try room.snapshot()
    let text = try room.run("verify", store, "--models", room.model)
    #expect(text.status == 65 && text.output.contains("missing: the table ZKEEPER (Keeper)"), "\(text.output)")
    #expect(text.errors.contains("hopctl migrate \(store) --models \(room.model) --repair"), "\(text.errors)")
    let found = try room.run("verify", store, "--models", room.model, "--json").json()
    #expect(found.missing?.list.compactMap { $0.name?.text } == ["ZLEGS", "ZKEEPER"])
    #expect(found.missing?.list.first?.property?.text == "legs" && found.missing?.list.first?.kind?.text == "column")
    #expect(try room.run("migrate", store, "--models", room.model).output.contains("nothing to do"))
    let dry = try room.run("migrate", store, "--models", room.model, "--repair", "--dry-run", "--json").json()
    #expect(dry.repaired?.list.count == 2 && dry.repaired?.list.first?.rows?.int == 20, "\(dry)")
    #expect(try room.snapshot() == before)
    let done = try room.run("migrate", store, "--models", room.model, "--repair")
    #expect(done.status == 0 && done.output.hasPrefix("repaired "), "\(done.output)\(done.errors)")
    #expect(done.output.contains("created the column ZANIMAL.ZLEGS (Animal.legs), with the default in 20 rows"))
    #expect(done.errors.contains("point to rows that do not exist"), "\(done.errors)")
    #expect(try room.sql(store, "SELECT count(*), min(ZLEGS), max(ZLEGS) FROM ZANIMAL") == "20|4|4")
    let again = try room.run("migrate", store, "--models", room.model, "--repair", "--json").json()
    #expect(again.result?.text == "current" && again.repaired == nil)
  }

  @Test("A Z_MAX that is too low is wrong, not missing, and is corrected")
  func lowMark() throws {
    let room = try Room()
    let store = try room.store("a.sqlite", version: "Zoo 10")
    try room.sql(store, "UPDATE Z_PRIMARYKEY SET Z_MAX = 1 WHERE Z_NAME = 'Animal';")
    let text = try room.run("verify", store, "--models", room.model)
    #expect(text.status == 65 && text.output.contains("wrong: the Z_MAX of Animal in Z_PRIMARYKEY"), "\(text.output)")
    #expect(text.errors.contains("hopctl migrate \(store) --models \(room.model) --repair"), "\(text.errors)")
    let done = try room.run("migrate", store, "--models", room.model, "--repair")
    #expect(done.output.contains("  corrected the Z_MAX of Animal in Z_PRIMARYKEY"), "\(done.output)\(done.errors)")
    #expect(try room.run("verify", store, "--models", room.model).status == 0)
  }

  @Test("The refusal of a store that is behind names the repair, which migrates it too")
  func storeBehind() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    try room.sql(store, "ALTER TABLE ZANIMAL DROP COLUMN ZCOLOUR;")
    let refused = try room.run("migrate", store, "--models", room.model, "--json")
    let error = try refused.json().error
    #expect(refused.status == 65 && error?.code?.text == "schema-mismatch")
    #expect(error?.hint?.text?.contains("hopctl migrate \(store) --repair") == true, "\(refused.output)")
    let dry = try room.run("migrate", store, "--models", room.model, "--repair", "--dry-run")
    #expect(
      dry.status == 0 && dry.output.contains("would create the column ZANIMAL.ZCOLOUR"), "\(dry.output)\(dry.errors)")
    let done = try room.run("migrate", store, "--models", room.model, "--repair", "--json").json()
    #expect(done.result?.text == "migrated" && done.hops?.list.count == 2 && done.repaired?.list.count == 1)
    #expect(try room.run("verify", store, "--models", room.model, "--verify", "full").status == 0)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: room.path("stores")).sorted() == [
        ".a.sqlite.hopd-backups", "a.sqlite",
      ])
  }
}
