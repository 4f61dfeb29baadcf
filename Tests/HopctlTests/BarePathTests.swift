// Commands that get a store and nothing else: where they find the model, and that they say so.

import BlockingTests
import FoundationEssentials
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct BarePathTests {
  /// Makes a link to the model beside the stores of a room.
  private func placeModel(in room: Room, _ name: String = "Zoo.xcdatamodeld") throws {
    try FileManager.default.copyItem(atPath: room.model, toPath: room.path("stores/\(name)"))
  }

  @Test func theStoresOwnModelIsTakenLast() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    let before = try room.snapshot()
    for command in ["identify", "verify", "dump", "plan"] {
      let outcome = try room.run(command, store)
      #expect(outcome.status == 0, "\(command): \(outcome.errors)")
      #expect(outcome.errors.contains("using the model in the store"), "\(command): \(outcome)")
      #expect(try room.run(command, store, "--quiet").errors == "", "\(command)")
    }
    let dumped = try room.run("dump", store)
    #expect(dumped.output == (try room.run("dump", store, "--models", room.model)).output)
    let json = try room.run("identify", store, "--json").json()
    #expect(json.models?.from?.text == "store" && json.models?.paths?.list == [.string(store)])
    #expect(json.state?.text == "current" && json.version?.text == "a")
    #expect(try room.run("verify", store, "--json").json().models?.from?.text == "store")
    #expect(try room.run("plan", store, "--json").json().models?.from?.text == "store")
    // A named model is no finding.
    #expect(try room.run("identify", store, "--models", room.model, "--json").json().models == nil)
    #expect(try room.snapshot() == before)
    // What writes is told its models.
    #expect(try room.run("migrate", store).status == 6)
  }

  @Test func theModelBesideItComesFirst() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    try placeModel(in: room)
    let json = try room.run("identify", store, "--json").json()
    #expect(json.models?.from?.text == "beside" && json.state?.text == "behind")
    #expect(json.models?.paths?.list == [.string(room.path("stores/Zoo.xcdatamodeld"))])
    let plan = try room.run("plan", store)
    #expect(plan.errors.contains("using the models next to the store") && plan.errors.contains("Zoo.xcdatamodeld"))
    #expect(plan.output == (try room.run("plan", store, "--models", room.model)).output)
    #expect(try room.run("plan", store, "--stable", "--json").json().models?.keys == ["from"])
    #expect(
      try room.run("explain", store).output.contains("hopctl migrate \(store) --models \(room.path("stores/Zoo"))"))
  }

  @Test func aModelOfAnotherAppIsPassedOver() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    let other =
      "<model><entity name='Other'><attribute name='x' optional='YES' attributeType='String'/></entity></model>"
    try room.file("stores/Other.xcdatamodeld/Other.xcdatamodel/contents", other)
    #expect(try room.run("identify", store, "--json").json().models?.from?.text == "store")
    // Without a copy of its own, the reasons against the model beside it are what is to be told.
    _ = try room.sql(store, "DELETE FROM Z_MODELCACHE")
    let refused = try room.run("identify", store)
    #expect(refused.status == 65 && refused.errors.contains("Other"), "\(refused)")
    // One that cannot be read is told and passed over.
    let whole = try room.store("b.sqlite")
    try room.file("stores/Other.xcdatamodeld/Other.xcdatamodel/contents", "<model")
    let passed = try room.run("identify", whole)
    #expect(passed.status == 0 && passed.errors.contains("the models next to the store are not used"), "\(passed)")
  }

  @Test func withoutAnyModelTheHintSaysWhatToType() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    _ = try room.sql(store, "DELETE FROM Z_MODELCACHE")
    let refused = try room.run("dump", store)
    #expect(refused.status == 6 && refused.errors.contains("--models PATH"), "\(refused)")
    try room.file("stores/note.txt", "not a store")
    let file = try room.run("identify", room.path("stores/note.txt"), "--json")
    #expect(file.status == 65)
    #expect(try file.json().state?.text == "not-a-store")
    #expect(try room.run("identify", room.path("stores/none.sqlite")).status == 66)
  }

  @Test func modelCommandsTakeWhatModelsTakes() throws {
    let room = try Room()
    let (old, new) = (try room.store("a.sqlite"), try room.store("b.sqlite", version: "Zoo 10"))
    let listed = try room.run("model", "list", room.path("stores"), "--json")
    #expect(listed.status == 0, "\(listed.errors)")
    #expect(try listed.json().models?.list.first?.versions?.list.count == 2)
    #expect(try room.run("model", "hash", room.path("stores"), "--json").json().versions?.list.count == 2)
    let schema = try room.run("model", "schema", new)
    #expect(schema.status == 0 && schema.output.contains("CREATE TABLE ZANIMAL"), "\(schema)")
    #expect(schema.output == (try room.run("model", "schema", room.model)).output)
    #expect(try room.run("model", "diff", old, new).status == 0)
    #expect(try room.run("model", "list", room.path("state")).status != 0)
  }

  @Test func aFolderCalledDotMayBeABundle() throws {
    let room = try Room()
    let inside = ["-c", "cd \"$1\" && shift && exec \"$@\"", "sh", room.model, try #require(Program.path).string]
    let hash = try room.wait(room.start(program: "/bin/sh", inside + ["model", "hash", ".", "--json"]))
    #expect(hash.status == 0, "\(hash.errors)")
    #expect(try hash.json() == (try room.run("model", "hash", room.model, "--json")).json())
  }
}
