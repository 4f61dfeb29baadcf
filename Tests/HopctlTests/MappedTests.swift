// Chains with mapping models from the command line: the plan, the trial, the rehearsal, and what is asked for.

import FoundationEssentials
import SystemPackage
import Testing

@Suite(.enabled(if: Program.isBuilt, Program.absence))
struct MappedTests {
  /// A room with a store of the first version and text mappings from each version to the next in `maps`.
  private func room(_ steps: [(String, String)]) throws -> (room: Room, store: String) {
    let room = try Room()
    let store = try room.store("a.sqlite")
    try room.file("maps/.keep", "")
    for (from, to) in steps {
      let file = room.path("maps/\(from)-\(to).hopmap.toml")
      let inferred = try room.run("mapping", "infer", room.model, from, to, "--output", file)
      try #require(inferred.status == 0, "\(inferred.errors)")
    }
    return (room, store)
  }

  @Test func mappingModelsServeTheirHopsAndTheRestIsInferred() throws {
    let (room, store) = try room([("Zoo 2", "Zoo 10")])
    let before = try room.snapshot()
    let options = ["--models", room.model, "--mappings", room.path("maps"), "--scratch", room.path("stores")]
    let plan = try room.run(words: ["plan", store] + options + ["--json"])
    try #require(plan.status == 0, "\(plan.errors)")
    let hops = try #require(try plan.json().hops?.list)
    #expect(hops.map { $0.kind?.text } == ["inferred", "mapping"])
    #expect(hops.last?.mappings?.list.map(\.text) == ["Zoo 2-Zoo 10"])
    #expect(hops.last?.policies?.list.isEmpty == true)
    let animal = try #require(hops.last?.entities?.list.first { $0.source?.text == "Animal" })
    #expect(animal.rows?.int == 10)
    #expect(animal.mapping?.text != nil)
    #expect(["sql", "instances"].contains(animal.execution?.text))
    // Folders of models are searched too.
    try FileManager.default.copyItem(atPath: room.model, toPath: room.path("maps/Zoo.xcdatamodeld"))
    let beside = try room.run("plan", store, "--models", room.path("maps"), "--no-scan", "--json")
    #expect(try beside.json().hops?.list.map { $0.kind?.text } == ["inferred", "mapping"])
    let rehearsal = try room.run(words: ["rehearse", store] + options + ["--json"])
    try #require(rehearsal.status == 0, "\(rehearsal.errors)")
    let report = try rehearsal.json()
    #expect(report.result?.text == "migrated")
    #expect(report.store?.text == store)
    #expect(report.backup == .null)
    #expect(report.hops?.list.map { $0.kind?.text } == ["inferred", "mapping"])
    #expect(report.rows?.Animal?.int == 10)
    #expect(report.verified?.checks?.list.allSatisfy { $0.passed == .boolean(true) } == true)
    // Nothing was changed, nothing was left, also not where the scratch folder was.
    #expect(try room.snapshot() == before)
    // And the migration itself makes the same.
    let migrated = try room.run(
      "migrate", store, "--models", room.model, "--mappings", room.path("maps"), "--json")
    try #require(migrated.status == 0, "\(migrated.errors)")
    #expect(try migrated.json().rows == report.rows)
    #expect(try migrated.json().hops?.list.last?.mappings?.list.map(\.text) == ["Zoo 2-Zoo 10"])
  }

  @Test func whatIsLeftBehindIsRefusedUntilSaid() throws {
    let (room, store) = try room([])
    // A mapping that forgets the keepers.
    let file = room.path("maps/Forgets.hopmap.toml")
    try room.file(
      "maps/Forgets.hopmap.toml",
      """
      [mapping]
      source = "Zoo"
      destination = "Zoo 2"
      [[entity]]
      source = "Animal"
      destination = "Animal"
      [[entity]]
      source = "Bird"
      destination = "Bird"
      """)
    let options = ["--models", room.model, "--mappings", file, "--to", "Zoo 2"]
    let refused = try room.run(words: ["migrate", store] + options + ["--json"])
    #expect(refused.status == 65)
    #expect(try refused.json().error?.code?.text == "unmapped-entities", "\(refused.errors)")
    #expect(refused.errors.contains("Keeper") && refused.errors.contains("--unmapped-entities"))
    let dropped = try room.run(words: ["migrate", store] + options + ["--unmapped-entities", "drop", "--json"])
    #expect(dropped.status == 0, "\(dropped.errors)")
    #expect(try dropped.json().rows?.Keeper?.int == 0)
    #expect(dropped.errors.contains("Keeper"))
  }

  @Test func statementsAndDecisionsAreShownWhenAskedFor() throws {
    let (room, store) = try room([("Zoo 2", "Zoo 10")])
    let options = ["--models", room.model, "--mappings", room.path("maps")]
    let plain = try room.run(words: ["rehearse", store] + options)
    #expect(!plain.errors.contains("debug:") && !plain.errors.contains("trace:"))
    let verbose = try room.run(words: ["rehearse", store] + options + ["--verbose"])
    #expect(verbose.errors.contains("debug:") && verbose.errors.contains("INSERT INTO"))
    #expect(!verbose.errors.contains("trace:"))
    let traced = try room.run(words: ["rehearse", store] + options, variables: ["HOPD_LOG=trace"])
    #expect(traced.errors.contains("trace: hop 2 of 2, Zoo 2 → Zoo 10: follows Zoo 2-Zoo 10"))
    // No value of the store is among them.
    let names = try room.sql(store, "SELECT DISTINCT ZNAME FROM ZANIMAL WHERE length(ZNAME) > 6")
    for name in names.split(separator: "\n") { #expect(!traced.errors.contains(name), "\(name)") }
  }

  @Test func wrongWordsAreRefused() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    for wrong in [
      ["--policy", "Class"], ["--policy", "=x"], ["--policy", "C='open"], ["--invalid-rows", "ignore"],
      ["--invalid-rows", "=skip"], ["--unmapped-entities", "keep"], ["--policy", "C=a", "--policy", "C=b"],
    ] {
      let outcome = try room.run(words: ["plan", store, "--models", room.model] + wrong)
      #expect(outcome.status == 64, "\(wrong): \(outcome.errors)")
    }
    let fine = try room.run(
      "plan", store, "--models", room.model, "--policy", "M.C=/bin/x 'a b' \"c\\\"d\"", "--invalid-rows", "skip",
      "--invalid-rows", "Animal=quarantine")
    #expect(fine.status == 0, "\(fine.errors)")
  }
}
