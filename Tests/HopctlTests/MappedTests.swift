// Chains with mapping models from the command line: the plan, the trial, the rehearsal, and what is asked for.

import BlockingTests
import FoundationEssentials
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
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

  @Test func eachObjectHasAFileOfItsOwn() throws {
    let (room, _) = try room([])
    let entity = { (name: String) in
      "<entity name='\(name)'><attribute name='data' optional='YES' attributeType='Binary'"
        + " allowsExternalBinaryDataStorage='YES'/></entity>"
    }
    let model = room.path("Files.xcdatamodeld")
    try room.file(
      "Files.xcdatamodeld/Files.xcdatamodel/contents", "<?xml version='1.0'?><model>\(entity("A"))</model>")
    try room.file(
      "Files.xcdatamodeld/Files 2.xcdatamodel/contents",
      "<?xml version='1.0'?><model>\(entity("A"))\(entity("B"))</model>")
    let map = room.path("maps/Files.hopmap.toml")
    try room.file(
      "maps/Files.hopmap.toml",
      """
      [mapping]
      source = "Files"
      destination = "Files 2"
      [[entity]]
      source = "A"
      destination = "A"
      [[entity]]
      source = "A"
      destination = "B"
      """)
    let store = room.path("stores/files.sqlite")
    let created = try room.run("create", store, "--models", model, "--model-version", "Files")
    try #require(created.status == 0, "\(created.errors)")
    let name = "01020304-0506-0708-090A-0B0C0D0E0F10"
    try room.file("stores/.files_SUPPORT/_EXTERNAL_DATA/\(name)", String(repeating: "x", count: 200_000))
    _ = try room.sql(
      store,
      "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZDATA) VALUES (1, 1, 1, CAST(X'02' || '\(name)' || X'00' AS BLOB)),"
        + " (2, 1, 1, X'0107'); UPDATE Z_PRIMARYKEY SET Z_MAX = 2")
    let output = room.path("stores/out.sqlite")
    let migrated = try room.run(
      "migrate", store, "--models", model, "--mappings", map, "--to", "Files 2", "--output", output)
    try #require(migrated.status == 0, "\(migrated.errors)")
    let values =
      "SELECT Z_PK, hex(substr(ZDATA, 1, 1)), length(ZDATA), CAST(substr(ZDATA, 2, 36) AS TEXT) = '\(name)' FROM"
    #expect(try room.sql(output, "\(values) ZA").split(separator: "\n") == ["1|02|38|1", "2|01|2|0"])
    #expect(try room.sql(output, "\(values) ZB").split(separator: "\n") == ["1|01|200001|0", "2|01|2|0"])
    #expect(
      try room.sql(
        output, "SELECT count(*) FROM ZB WHERE ZDATA = CAST(X'01' || replace(hex(zeroblob(100000)), '0', 'x') AS BLOB)")
        == "1")
    let verified = try room.run("verify", output, "--models", model)
    #expect(verified.status == 0, "\(verified.errors)")
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
