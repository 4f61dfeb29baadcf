// Stores of a named configuration and of merged models, and versions given one by one, through the program.

import BlockingTests
import FoundationEssentials
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct PartialStoreTests {
  /// A model of two versions with a configuration that the second keeps and one that it loses.
  private func shelves(_ room: Room) throws -> String {
    func version(_ more: String, _ configurations: String) -> String {
      """
      <?xml version="1.0"?><model><entity name='Book'>\
      <attribute name='title' optional='YES' attributeType='String'/>\(more)
      <relationship name='shelf' optional='YES' maxCount='1' destinationEntity='Shelf' inverseName='books'
        inverseEntity='Shelf'/></entity>
      <entity name='Shelf'><relationship name='books' optional='YES' toMany='YES' destinationEntity='Book'
        inverseName='shelf' inverseEntity='Book'/></entity>
      <entity name='Account'><attribute name='login' optional='YES' attributeType='String'/></entity>
      \(configurations)</model>
      """
    }
    let books = "<configuration name='Books'><memberEntity name='Book'/><memberEntity name='Shelf'/></configuration>"
    let people = "<configuration name='People'><memberEntity name='Account'/></configuration>"
    let torn = "<configuration name='Torn'><memberEntity name='Book'/></configuration>"
    try room.file("Shelves.xcdatamodeld/Shelves.xcdatamodel/contents", version("", books + people + torn))
    try room.file(
      "Shelves.xcdatamodeld/Shelves 2.xcdatamodel/contents",
      version("<attribute name='isbn' optional='YES' attributeType='String'/>", books))
    try room.file(
      "Shelves.xcdatamodeld/.xccurrentversion",
      """
      <?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict><key>_XCCurrentVersionName</key>
      <string>Shelves 2.xcdatamodel</string></dict></plist>
      """)
    return room.path("Shelves.xcdatamodeld")
  }

  private func create(_ room: Room, _ name: String, model: String, _ words: String...) throws -> String {
    try room.file("stores/.keep", "")
    let store = room.path("stores/\(name)")
    let made = try room.run(words: ["create", store, "--models", model, "--rows", "40", "--seed", "5"] + words)
    try #require(made.status == 0, "\(made.errors)")
    return store
  }

  @Test func aStoreOfAConfigurationIsMadeIdentifiedAndMigrated() throws {
    let room = try Room()
    let model = try shelves(room)
    let store = try create(
      room, "books.sqlite", model: model, "--model-version", "Shelves", "--configuration", "Books")
    #expect(try room.sql(store, "SELECT group_concat(Z_NAME) FROM Z_PRIMARYKEY") == "Book,Shelf")
    let found = try room.run("identify", store, "--models", model, "--json").json()
    #expect(
      found.state?.text == "behind" && found.configuration?.text == "Books" && found.modelSource?.text == "models")
    #expect(found.version?.text == "Shelves" && found.targetVersion?.text == "Shelves 2")
    let reported = try room.run("identify", store, "--models", model)
    #expect(reported.output.contains("Shelves, configuration Books (behind; target Shelves 2)"))
    let plan = try room.run("plan", store, "--models", model, "--json").json()
    #expect(plan.configuration?.text == "Books" && plan.hops?.list.count == 1)
    let before = try room.run("dump", store, "--models", model).lines()
    let migrated = try room.run("migrate", store, "--models", model, "--verify", "full", "--json")
    #expect(migrated.status == 0, "\(migrated.errors)")
    #expect(try room.run("verify", store, "--models", model).status == 0)
    // A copy was altered: the new column comes last, as after Core Data's own migration in place, not as made from
    // nothing.
    let exact = try room.run("verify", store, "--models", model, "--exact")
    #expect(exact.status == 65 && exact.output.contains("the SQL of the table ZBOOK differs"), "\(exact.output)")
    let after = try room.run("dump", store, "--models", model).lines()
    #expect(!before.isEmpty && after.count == before.count)
    #expect(zip(before, after).allSatisfy { $0.id == $1.id && $0.relationships == $1.relationships })
    #expect(after.contains { $0.attributes?.isbn == .null })
    let again = try room.run("identify", store, "--models", model, "--json").json()
    #expect(again.state?.text == "current" && again.configuration?.text == "Books")
    let whole = try create(room, "whole.sqlite", model: model, "--model-version", "Shelves 2")
    #expect(try room.run("identify", whole, "--models", model, "--json").json().configuration == .null)
  }

  /// Stores of older frameworks get their rows carried, and with them the tables that Core Data makes from nothing.
  @Test func aStoreWhoseRowsAreCarriedIsAsMadeFromNothing() throws {
    let room = try Room()
    let model = try shelves(room)
    let store = try create(
      room, "old.sqlite", model: model, "--model-version", "Shelves", "--configuration", "Books", "--framework-version",
      "641")
    let before = try room.run("dump", store, "--models", model).lines()
    let migrated = try room.run("migrate", store, "--models", model, "--verify", "full", "--json")
    #expect(migrated.status == 0, "\(migrated.errors)")
    let exact = try room.run("verify", store, "--models", model, "--exact")
    #expect(exact.status == 0, "\(exact.output)")
    let after = try room.run("dump", store, "--models", model).lines()
    #expect(before.count == 40 && after.map(\.id) == before.map(\.id))
  }

  @Test func whatIsWrongWithAConfigurationIsSaid() throws {
    let room = try Room()
    let model = try shelves(room)
    let store = try create(
      room, "people.sqlite", model: model, "--model-version", "Shelves", "--configuration", "People")
    let refused = try room.run("migrate", store, "--models", model)
    #expect(refused.status == 65)
    #expect(
      refused.errors.contains("Shelves 2 has no configuration \"People\"") && refused.errors.contains("\"Books\""))
    // It can be looked at all the same.
    #expect(try room.run("dump", store, "--models", model).lines().count == 40)
    for (configuration, text) in [
      ("Torn", "Shelf is not in the configuration"), ("None", "\"Books\", \"People\", \"Torn\""),
    ] {
      let schema = try room.run(
        "model", "schema", model, "--model-version", "Shelves", "--configuration", configuration)
      #expect(schema.status == 65 && schema.output.isEmpty)
      #expect(schema.errors.contains(text), "\(schema.errors)")
    }
    let schema = try room.run(
      "model", "schema", model, "--model-version", "Shelves", "--configuration", "People", "--json"
    ).json()
    #expect(schema.primaryKeys?.list.map { $0.name?.text } == ["Account"])
    #expect(schema.primaryKeys?.list.map { $0.number?.int } == [1])
  }

  @Test func aPartThatIsNoConfigurationIsRefusedWithWhatIsMissing() throws {
    let room = try Room()
    _ = try shelves(room)
    try room.file(
      "Other.xcdatamodel/contents",
      """
      <?xml version="1.0"?><model><entity name='Account'><attribute name='login' optional='YES' attributeType='String'/>
      </entity></model>
      """)
    let store = try create(
      room, "part.sqlite", model: room.path("Other.xcdatamodel"), "--model-version", "Other",
      // No copy of its model is in the store of so old a framework.
      "--framework-version", "519")
    let only2 = room.path("Shelves.xcdatamodeld/Shelves 2.xcdatamodel")
    let found = try room.run("identify", store, "--models", only2, "--json")
    #expect(found.status == 65)
    let error = try found.json().error
    #expect(error?.code?.text == "unknown-version")
    #expect(error?.message?.text?.contains("1 of the 3 entities of Shelves 2") == true)
    #expect(error?.reasons?.list.map { $0.entity?.text } == ["Book", "Shelf"])
    #expect(try found.json().configuration == .null && found.json().modelSource == .null)
  }

  @Test func versionsGivenOneByOneAreAChain() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    func version(_ name: String) -> String { "\(room.model)/\(name).xcdatamodel" }
    let chain = ["--models", version("Zoo"), "--models", version("Zoo 2"), "--models", version("Zoo 10")]
    let plan = try room.run(words: ["plan", store, "--json"] + chain).json()
    #expect(plan.from?.text == "Zoo" && plan.to?.text == "Zoo 10" && plan.hops?.list.count == 2)
    // The order is the one given, and the last one is the target.
    let back = ["--models", version("Zoo 2"), "--models", version("Zoo")]
    #expect(try room.run(words: ["identify", store, "--json"] + back).json().state?.text == "current")
    #expect(try room.run(words: ["migrate", store] + chain).status == 0)
    #expect(try room.run(words: ["identify", store, "--json"] + chain).json().state?.text == "current")
  }

  @Test func aStoreIsAModelOfItsOwnVersion() throws {
    let room = try Room()
    let (old, new) = (try room.store("old.sqlite"), try room.store("new.sqlite", version: "Zoo 10"))
    // The model has no version identifier, so the version is called by the file.
    let hashes = try #require(try room.run("model", "hash", old, "--json").json().versions?.list)
    #expect(hashes.map { $0.name?.text } == ["old"])
    let model = try room.run("model", "hash", room.model, "--json").json().versions?.list.first
    #expect(hashes.first?.entityVersionHashes == model?.entityVersionHashes)
    #expect(hashes.first?.versionChecksum == model?.versionChecksum)
    let listed = try room.run("model", "list", old, room.model, "--json").json().models?.list
    #expect(listed?.map { $0.name?.text } == ["old", "Zoo"])
    let schema = try room.run("model", "schema", old, "--model-version", "old")
    #expect(schema.output == (try room.run("model", "schema", room.model, "--model-version", "Zoo")).output)
    // Two stores in order are a chain; what the hop drops was the operator's word.
    let chain = ["--models", old, "--models", new]
    let plan = try room.run(words: ["plan", old, "--json"] + chain).json()
    #expect(plan.from?.text == "old" && plan.to?.text == "new" && plan.modelSource?.text == "models")
    let copy = room.path("stores/copy.sqlite")
    #expect(try room.run(words: ["migrate", old, "--output", copy] + chain).status == 0)
    #expect(try room.run("verify", copy, "--models", new).status == 0)
  }

  @Test func aStoreOfNoKnownVersionIsOnlyTakenForOlderWhereNothingIsLost() throws {
    let room = try Room()
    func version(_ name: String) -> String { "\(room.model)/\(name).xcdatamodel" }
    let store = try room.store("a.sqlite")
    let found = try room.run("identify", store, "--models", version("Zoo 2"), "--json").json()
    #expect(found.state?.text == "behind" && found.modelSource?.text == "store")
    #expect(found.version?.text == "a" && found.targetVersion?.text == "Zoo 2")
    let plan = try room.run("plan", store, "--models", version("Zoo 2"), "--json").json()
    #expect(plan.modelSource?.text == "store")
    #expect(plan.warnings?.list.contains { $0.code?.text == "own-model-used" } == true)
    // Explained like any store of no version, with the way that it has.
    let explained = try room.run("explain", store, "--models", version("Zoo 2"))
    #expect(explained.output.contains("route: a → Zoo 2") && explained.output.contains("134130"))
    #expect(
      explained.output.contains("closest: Zoo 2 of") && explained.output.contains("Animal."), "\(explained.output)")
    // The way back, and a version that drops something, look the same.
    let newer = try room.store("b.sqlite", version: "Zoo 2")
    for (path, target, property) in [(newer, "Zoo", "born"), (store, "Zoo 10", "colour")] {
      let refused = try room.run("migrate", path, "--models", version(target))
      #expect(refused.status == 65)
      #expect(refused.errors.contains("Animal.\(property)") || refused.errors.contains(property), "\(refused.errors)")
      #expect(refused.errors.contains("--models STORE"))
    }
    let migrated = try room.run("migrate", store, "--models", version("Zoo 2"))
    #expect(migrated.status == 0, "\(migrated.errors)")
    #expect(try room.run("verify", store, "--models", version("Zoo 2")).status == 0)
    #expect(try room.run("dump", newer, "--models", version("Zoo 10")).status == 0)
  }

  @Test func aStoreWithoutACopyOfItsModelIsNoModel() throws {
    let room = try Room()
    let store = room.path("stores/ancient.sqlite")
    try room.store("a.sqlite")
    let made = try room.run(
      "create", store, "--models", room.model, "--model-version", "Zoo", "--framework-version", "419")
    try #require(made.status == 0, "\(made.errors)")
    let outcome = try room.run("model", "hash", store)
    #expect(outcome.status == 6)
    #expect(outcome.errors.contains("Z_MODELCACHE") && outcome.errors.contains(".momd"))
    #expect(try room.run("identify", store, "--models", store).status == 6)
  }
}
