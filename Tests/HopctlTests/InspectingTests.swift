// Commands that only look: models, identify, plan, verify, dump, check-config.

import BlockingTests
import FoundationEssentials
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct InspectingTests {
  @Test func versionNamesItsParts() throws {
    let outcome = try Room().run("--version")
    #expect(outcome.status == 0)
    #expect(
      outcome.output.contains(
        /^hopctl \d+\.\d+\.\d+(, commit [0-9a-f]{12}(-dirty)?)?, Swift \d+\.\d+, SQLite 3\.\d+\.\d+/))
  }

  @Test func modelListIsInNaturalOrder() throws {
    let room = try Room()
    let json = try room.run("model", "list", room.path.string, "--json").json()
    #expect(json.keys == ["models"])
    let model = try #require(json.models?.list.first)
    #expect(model.keys == ["name", "path", "currentVersion", "order", "versions", "omitted"])
    #expect(model.name?.text == "Zoo")
    #expect(model.path?.text == room.model)
    #expect(model.currentVersion?.text == "Zoo 10")
    #expect(model.versions?.list == [.string("Zoo"), .string("Zoo 2"), .string("Zoo 10")])
    #expect(model.order?.text == "names" && model.omitted?.list == [])
    let text = try room.run("model", "list", room.model)
    #expect(text.output.contains("Zoo 10  (current)"))
  }

  @Test func oneOddVersionBlocksNobodyElse() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    try room.file("Zoo.xcdatamodeld/Zoo 3.xcdatamodel/contents", "<model/>")
    let list = try room.run("model", "list", room.model)
    #expect(list.status == 0 && list.output.contains("Zoo 3  (left out)"))
    #expect(list.errors.contains("“Zoo 3” is ignored") && list.errors.contains("no entities"))
    let plan = try room.run("plan", store, "--models", room.model)
    #expect(plan.status == 0 && (plan.output + plan.errors).contains("“Zoo 3” is ignored"))
    for words in [["create", room.path("b.sqlite"), "--model-version", "Zoo 3"], ["plan", store, "--to", "Zoo 3"]] {
      let refused = try room.run(words: words + ["--models", room.model])
      #expect(refused.status == 65 && refused.errors.contains("“Zoo 3”") && refused.errors.contains("no entities"))
    }
  }

  @Test func anOrderCanBeDeclaredAndAWayBackAllowed() throws {
    let room = try Room()
    let store = try room.store("a.sqlite", version: "Zoo 10")
    let older = ["--models", room.model, "--to", "Zoo"]
    let refused = try room.run(words: ["plan", store] + older)
    #expect(refused.status == 65 && refused.errors.contains("--allow-older"))
    #expect(try room.run(words: ["identify", store, "--allow-older"] + older).output.contains("behind"))
    let plan = try room.run(words: ["plan", store, "--json", "--allow-older"] + older).json()
    #expect(plan.hops?.list.count == 2)
    let direct = try room.run(
      words: ["plan", store, "--json"] + older + ["--order", "Zoo 2", "Zoo 10", "Zoo"]
    ).json()
    #expect(direct.hops?.list.count == 1)
    let wrong = try room.run(words: ["plan", store] + older + ["--order", "Zoo 2", "Zoo"])
    #expect(wrong.status == 78 && wrong.errors.contains("Zoo 10"))
    let migrated = try room.run(words: ["migrate", store, "--allow-older"] + older)
    #expect(migrated.status == 0, "\(migrated.errors)")
    #expect(try room.run(words: ["identify", store] + older).output.contains("Zoo (current)"))
  }

  @Test func modelHashHasEveryKey() throws {
    let room = try Room()
    let versions = try #require(try room.run("model", "hash", room.model, "--json").json().versions?.list)
    #expect(versions.count == 3)
    for version in versions {
      #expect(
        version.keys == [
          "name", "current", "identifiers", "entityVersionHashes", "versionHashesDigest", "versionChecksum",
        ])
      #expect(version.entityVersionHashes?.keys == ["Animal", "Bird", "Keeper"])
      #expect(version.entityVersionHashes?.Animal?.text?.wholeMatch(of: /[0-9a-f]{64}/) != nil)
      #expect(version.versionChecksum?.text?.count == 44)
      #expect(version.versionHashesDigest?.text?.count == 88)
    }
    #expect(versions.last?.current == .boolean(true))
    #expect(versions[0].entityVersionHashes?.Animal != versions[1].entityVersionHashes?.Animal)
    #expect(versions[0].entityVersionHashes?.Keeper == versions[1].entityVersionHashes?.Keeper)
  }

  @Test func modelSchemaIsWhatCreateMakes() throws {
    let room = try Room()
    let json = try room.run("model", "schema", room.model, "--model-version", "Zoo 2", "--json").json()
    #expect(json.keys == ["statements", "primaryKeys"])
    let keys = try #require(json.primaryKeys?.list)
    #expect(keys.map { $0.name?.text } == ["Animal", "Bird", "Keeper"])
    #expect(keys.map { $0.number?.int } == [1, 2, 3])
    #expect(keys.map { $0.super?.int } == [0, 1, 0])
    let script = try room.run("model", "schema", room.model, "--model-version", "Zoo 2").output
    for statement in json.statements?.list ?? [] {
      #expect(script.contains((statement.text ?? "?") + ";\n"))
    }
    #expect(script.contains("INSERT INTO Z_PRIMARYKEY VALUES (2, 'Bird', 1, 0);"))
    let old = try room.run("model", "schema", room.model, "--model-version", "Zoo 2", "--framework-version", "419")
    #expect(!old.output.contains("Z_MODELCACHE"))
    #expect(script.contains("Z_MODELCACHE"))
    #expect(try room.run("model", "schema", room.model, "--model-version", "Zoo 9").status == 64)
  }

  @Test func identifySaysVersionAndState() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    let text = try room.run("identify", store, "--models", room.model)
    #expect(text.status == 0)
    #expect(text.output.hasPrefix("\(store): Zoo (behind; target Zoo 10)\n"))
    let json = try room.run("identify", store, "--models", room.model, "--json").json()
    #expect(
      json.keys == [
        "store", "state", "model", "version", "targetVersion", "configuration", "modelSource", "storeUUID",
        "frameworkVersion", "swiftData", "entities", "sideFiles", "notChecked", "pin",
      ])
    #expect(json.state?.text == "behind")
    #expect(json.model?.text == "Zoo")
    #expect(json.version?.text == "Zoo")
    #expect(json.targetVersion?.text == "Zoo 10")
    #expect(json.frameworkVersion?.int == 1344 && json.swiftData == .boolean(false))
    #expect(json.entities?.list.map { $0.rows?.int } == [10, 10, 10])
    #expect(json.entities?.list.first?.keys == ["name", "number", "rows"])
    let newer = try room.run("identify", store, "--models", room.model, "--to", "Zoo")
    #expect(newer.output.contains("Zoo (current)"))
  }

  @Test func identifyOfOtherFilesStillSaysTheState() throws {
    let room = try Room()
    try room.file("stores/empty.sqlite", "")
    try room.file("stores/text.sqlite", String(repeating: "no database ", count: 500))
    for name in ["empty.sqlite", "text.sqlite"] {
      let outcome = try room.run("identify", room.path("stores/\(name)"), "--models", room.model, "--json")
      #expect(outcome.status == 65)
      let json = try outcome.json()
      #expect(json.state?.text == "not-a-store")
      #expect(json.version == .null)
      #expect(json.error?.code?.text == "not-a-store")
      #expect(!outcome.errors.isEmpty)
    }
    let ahead = try room.store("ahead.sqlite", version: "Zoo 10")
    let newer = try room.run("identify", ahead, "--models", room.model, "--to", "Zoo 2", "--json")
    #expect(newer.status == 65)
    #expect(try newer.json().state?.text == "newer")
    try room.file(
      "Other.xcdatamodel/contents",
      "<?xml version='1.0'?><model><entity name='Stone'><attribute name='x' attributeType='String'/></entity></model>")
    let unknown = try room.run("identify", ahead, "--models", room.path("Other.xcdatamodel"), "--json")
    #expect(unknown.status == 65)
    #expect(try unknown.json().state?.text == "unknown")
  }

  @Test func inspectingChangesNothing() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    let before = try room.snapshot()
    for arguments in [["identify"], ["plan"], ["verify"], ["verify", "--verify", "full"], ["dump"]] {
      let command = arguments[0]
      let outcome =
        arguments.count == 3
        ? try room.run(command, store, "--models", room.model, arguments[1], arguments[2])
        : try room.run(command, store, "--models", room.model)
      #expect(outcome.status == 0, "\(command): \(outcome.errors)")
      #expect(try room.snapshot() == before, "\(command)")
    }
  }

  @Test func planSaysEverythingAhead() throws {
    let room = try Room()
    let store = try room.store("a.sqlite", rows: 300)
    let json = try room.run("plan", store, "--models", room.model, "--json").json()
    #expect(
      json.keys == [
        "store", "from", "to", "configuration", "modelSource", "hops", "execution", "estimate", "pin", "warnings",
      ])
    #expect(json.from?.text == "Zoo")
    #expect(json.to?.text == "Zoo 10")
    let hops = try #require(json.hops?.list)
    #expect(hops.count == 2)
    #expect(hops[0].keys == ["source", "destination", "kind", "mappings", "policies", "entities"])
    #expect(hops[0].kind?.text == "inferred")
    let entity = try #require(hops[1].entities?.list.first { $0.source?.text == "Animal" })
    #expect(entity.keys == ["source", "destination", "type", "mapping", "rows", "execution", "reasons", "drops"])
    #expect(entity.rows?.int == 100)
    #expect(entity.execution?.text == "sql")
    let drops = try #require(entity.drops?.list)
    #expect(Set(drops.compactMap { $0.column?.text }) == ["ZCOLOUR"])
    #expect(drops.first?.nonNull?.int ?? 0 > 0)
    #expect(json.estimate?.keys == ["rows", "bytes", "diskNeeded", "memory", "seconds"])
    // Every hop makes every object.
    #expect(json.estimate?.rows?.int == 600)
    #expect(json.warnings?.list.contains { $0.property?.text == "colour" } == true)
    let text = try room.run("plan", store, "--models", room.model).output
    for part in ["Zoo → Zoo 10, 2 hops", "hop 1/2", "drops Animal.colour", "warning:", "estimate: 600 rows in 2 hops"] {
      #expect(text.contains(part), "\(part)")
    }
    let near = try room.run("plan", store, "--models", room.model, "--to", "Zoo 2", "--json").json()
    #expect(near.hops?.list.count == 1)
  }

  @Test func verifyTellsEveryCheck() throws {
    let room = try Room()
    let store = try room.store("a.sqlite", rows: 40)
    let good = try room.run("verify", store, "--models", room.model, "--exact", "--json")
    #expect(good.status == 0)
    let json = try good.json()
    #expect(json.passed == .boolean(true))
    #expect(json.checks?.list.count ?? 0 > 5)
    #expect(json.checks?.list.first?.keys == ["name", "passed", "noted", "detail"])
    // The same store with a table of its own: fine as such, but not as Core Data makes it.
    var bytes = try Data(contentsOf: URL(filePath: store))
    let name = Data("ZKEEPER".utf8)
    var place = bytes.startIndex
    while let found = bytes[place...].firstRange(of: name) {
      bytes.replaceSubrange(found, with: Data("ZKEEPXR".utf8))
      place = found.upperBound
    }
    let broken = room.path("stores/b.sqlite")
    try bytes.write(to: URL(filePath: broken))
    let bad = try room.run("verify", broken, "--models", room.model, "--json")
    #expect(bad.status == 65)
    #expect(try bad.json().error?.code?.text != nil)
    #expect(!bad.errors.isEmpty)
  }

  @Test func dumpIsStableLinesOfObjects() throws {
    let room = try Room()
    let store = try room.store("a.sqlite", rows: 60)
    let first = try room.run("dump", store, "--models", room.model)
    let again = try room.run("dump", try room.store("b.sqlite", rows: 60), "--models", room.model)
    #expect(first.output == again.output)
    let objects = try first.lines()
    #expect(objects.count == 60)
    #expect(objects.allSatisfy { $0.keys == ["entity", "id", "attributes", "relationships"] })
    #expect(
      objects.map { $0.entity?.text } == ["Animal", "Bird", "Keeper"].flatMap { Array(repeating: $0, count: 20) })
    // Both ends of a relationship tell the same.
    for keeper in objects where keeper.entity?.text == "Keeper" {
      let id = try #require(keeper.id?.text)
      let claimed = Set(keeper.relationships?.animals?.list.compactMap(\.text) ?? [])
      let owned = Set(objects.filter { $0.relationships?.keeper?.text == id }.compactMap { $0.id?.text })
      #expect(claimed == owned)
    }
  }

  @Test func checkConfigNamesFileAndLine() throws {
    let room = try Room()
    try room.file(
      "good.toml", "[[watch]]\nname = \"x\"\ndirectory = \"/tmp\"\nmodels = [\"\(room.model)\"]\n")
    let good = try room.run("check-config", room.path("good.toml"), "--json")
    #expect(good.status == 0, "\(good.errors)")
    let json = try good.json()
    #expect(json.configured == .boolean(true))
    #expect(json.watches?.list.first?.name?.text == "x")
    try room.file("bad.toml", "[[watch]]\nname = \"x\"\ndirectory = 7\n")
    let bad = try room.run("check-config", room.path("bad.toml"), "--json")
    #expect(bad.status == 78)
    #expect(bad.errors.contains("bad.toml:3"))
    #expect(try bad.json().error?.code?.text != nil)
    // What it names is opened: it was green for models that do not exist, and the daemon then did not start.
    try room.file(
      "named.toml",
      """
      [[watch]]
      name = "x"
      directory = "/tmp"
      models = ["/nowhere/A.momd"]
      [[watch]]
      name = "y"
      directory = "/tmp"
      models = ["\(room.model)"]
      [policies]
      P = { command = ["/nowhere/program"] }
      """)
    let named = try room.run("check-config", room.path("named.toml"))
    #expect(named.status == 78)
    for line in ["named.toml:4", "named.toml:7", "named.toml:10", "named.toml:3)"] {
      #expect(named.errors.contains(line), "\(line): \(named.errors)")
    }
    let store = try room.store("a.sqlite")
    let plan = try room.run("plan", store, "--config", room.path("good.toml"), "--json")
    #expect(plan.status == 0, "\(plan.errors)")
    #expect(try plan.json().hops?.list.count == 2)
  }
}
