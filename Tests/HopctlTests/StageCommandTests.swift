// Stages from outside: the example, in Python and in Swift; hooks beside mapping models; and every way in which a stage
// can be wrong, with the words that say so and a store that stays as it was.

import BlockingTests
import FoundationEssentials
import Glibc
import SystemPackage
import Testing

@Suite(
  .blocking, .enabled(if: Program.isBuilt, Program.absence),
  .enabled(if: access("/usr/bin/sqlite3", X_OK) == 0, "sqlite3 is not there"),
  .enabled(if: access("/usr/bin/python3", X_OK) == 0, "python3 is not there"))
struct StageCommandTests {
  // MARK: The example

  /// The example with a store of 1300 trips, of which most share their name with others, and 2000 stops.
  private func trips() throws -> (room: Room, store: String, words: [String]) {
    let room = try Room()
    let root = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
    try FileManager.default.copyItem(atPath: root.appending("Examples/Stages").string, toPath: room.path("trips"))
    let store = room.path("trips/a.sqlite")
    let made = try room.run(
      "create", store, "--models", room.path("trips"), "--model-version", "Trips", "--rows", "0")
    try #require(made.status == 0, "\(made.errors)")
    try room.sql(
      store,
      "WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < 1300) INSERT INTO ZTRIP"
        + " (Z_PK, Z_ENT, Z_OPT, ZNAME) SELECT v, 2, 1, "
        + "CASE WHEN v % 10 = 0 THEN NULL ELSE 'To ' || (v % 600) END FROM n;"
        + "WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < 2000) INSERT INTO ZSTOP"
        + " (Z_PK, Z_ENT, Z_OPT, ZTITLE, ZTRIP) SELECT v, 1, 1, 's' || v, 1 + v % 1300 FROM n;"
        + "UPDATE Z_PRIMARYKEY SET Z_MAX = 2000")
    return (room, store, [store, "--models", room.path("trips")])
  }

  private func bound(to command: String) -> [String] {
    ["--policy", "MergeTrips=\(command)", "--policy", "FillSlugs=\(command)"]
  }

  @Test("Trips of one name become one, and the new attribute has values", arguments: ["python", "swift"])
  func theExampleRuns(_ language: String) throws {
    let (room, store, words) = try trips()
    let command =
      language == "python"
      ? room.path("trips/trips.py")
      : try #require(Program.path).removingLastComponent().appending("TripStages").string
    let refused = try room.run(
      "plan", store, "--models", room.path("trips/Trips.xcdatamodeld"))
    #expect(refused.status == 65 && refused.errors.contains("uniqueness constraint"), "\(refused.errors)")
    let plan = try room.run(words: ["plan"] + words + bound(to: command))
    #expect(plan.status == 0, "\(plan.errors)")
    #expect(
      plan.output.contains("hop 1/3  willMigrate of Trips → Trips 2  (stage, declared in ")
        && plan.output.contains("Trips.hopstages.toml:3)")
        && plan.output.contains("then the program FillSlugs changes objects: bound"), "\(plan.output)")
    let stops =
      "SELECT group_concat(n || '=' || c, ' ') FROM (SELECT t.ZNAME AS n, count(*) AS c FROM ZSTOP s JOIN ZTRIP t"
      + " ON t.Z_PK = s.ZTRIP WHERE t.ZNAME IS NOT NULL GROUP BY 1 ORDER BY 1)"
    let before = try room.sql(store, stops)
    let first = try room.sql(
      store, "SELECT sum(k) FROM (SELECT min(Z_PK) AS k FROM ZTRIP WHERE ZNAME NOT NULL GROUP BY ZNAME)")
    let rehearsed = try room.run(words: ["rehearse"] + words + bound(to: command))
    #expect(rehearsed.status == 0, "\(rehearsed.errors)")
    let outcome = try room.run(words: ["migrate"] + words + bound(to: command) + ["--verify", "full", "--json"])
    try #require(outcome.status == 0, "\(outcome.errors)")
    #expect(try outcome.json().hops?.list.map { $0.kind?.text } == ["stage", "inferred", "stage"])
    #expect(try room.sql(store, stops) == before)
    #expect(
      try room.sql(
        store, "SELECT count(DISTINCT ZNAME), count(ZNAME), sum(Z_PK), count(ZSLUG) FROM ZTRIP WHERE ZNAME NOT NULL")
        == "540|540|\(first)|540", "the first of each name stays, under its key")
    #expect(try room.sql(store, "SELECT count(*) FROM ZTRIP WHERE ZNAME IS NULL AND ZSLUG IS NULL") == "130")
    #expect(try room.sql(store, "SELECT ZSLUG FROM ZTRIP WHERE ZNAME = 'To 7'") == "to-7")
    #expect(try room.sql(store, "SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_NAME = 'Trip'") == "2000")
    #expect(try room.run(words: ["migrate"] + words).status == 0, "there is nothing left to do")
  }

  // MARK: Others

  /// The zoo with a file of stages and a program for them.
  private func zoo(_ stages: String, _ program: String = "") throws -> (room: Room, store: String, words: [String]) {
    let room = try Room()
    let store = try room.store("a.sqlite")
    try room.file("maps/Zoo.hopstages.toml", stages)
    try room.file(
      "stage.py", "#!/usr/bin/python3\nfrom hopd_policy import CustomMigrationStage, run\n\(program)\nrun(Stage)\n")
    try #require(chmod(room.path("stage.py"), 0o755) == 0)
    return (
      room, store,
      [store, "--models", room.model, "--mappings", room.path("maps"), "--policy", "Stage=\(room.path("stage.py"))"]
    )
  }

  private static let second = "[[stage]]\nfrom = \"Zoo 2\"\nto = \"Zoo 10\"\n"

  @Test("Hooks run before and after a hop with a mapping model, in the middle of a chain")
  func besideMappingModels() throws {
    let (room, store, words) = try zoo(
      Self.second + "will_migrate = 'Stage'\ndid_migrate = 'Stage'\n",
      """
      class Stage(CustomMigrationStage):
          def will_migrate(self, stage, manager):
              assert (stage.hook, stage.source_version, stage.destination_version) == ("willMigrate", "Zoo 2", "Zoo 10")
              for animal in manager.each("Animal"):
                  manager.table("colours")[animal["name"]] = animal["colour"]
                  animal["name"] = animal["name"] + " w"
          def did_migrate(self, stage, manager):
              for animal in manager.fetch("Animal", sort="name"):
                  assert "colour" not in animal
                  assert animal["name"].endswith(" w m"), animal["name"]
                  old = animal["name"][:-4]
                  animal["name"] = old + "|" + str(manager.table("colours")[old])
      """)
    try room.file(
      "maps/Zoo 2 to Zoo 10.hopmap.toml",
      """
      [mapping]
      source = "Zoo 2"
      destination = "Zoo 10"
      [[entity]]
      source = "Animal"
      destination = "Animal"
      attributes = { name = "concat:($source.name, ' m')" }
      [[entity]]
      source = "Bird"
      destination = "Bird"
      attributes = { name = "concat:($source.name, ' m')" }
      [[entity]]
      source = "Keeper"
      destination = "Keeper"
      """)
    try room.sql(store, "UPDATE ZANIMAL SET ZNAME = 'n' || Z_PK")
    let wanted = try room.sql(
      store,
      "SELECT group_concat(t, ' ') FROM (SELECT ZNAME || '|' || coalesce(ZCOLOUR, 'None') AS t FROM ZANIMAL ORDER BY 1)"
    )
    let outcome = try room.run(words: ["migrate"] + words + ["--json"])
    try #require(outcome.status == 0, "\(outcome.errors)")
    #expect(try outcome.json().hops?.list.map { $0.kind?.text } == ["inferred", "stage", "mapping", "stage"])
    #expect(
      try room.sql(store, "SELECT group_concat(t, ' ') FROM (SELECT ZNAME AS t FROM ZANIMAL ORDER BY 1)") == wanted)
    #expect(try room.sql(store, "SELECT count(ZKEEPER) > 0 FROM ZANIMAL") == "1")
  }

  @Test(
    "A hook that fails, or leaves what the version forbids, costs the migration and not the store",
    arguments: [
      ("raise PolicyError('12 animals without keeper')", "failed in willMigrate: 12 animals without keeper"),
      ("manager.fetch('Animal')[0]['name'] = None", "name"),
      ("manager.insert_new_object('Animal')", "name"),
      ("manager.insert_new_object('Dodo')", "no entity Dodo"),
      ("manager.fetch('Animal')[0]['legs'] = 4", "no property legs"),
      ("manager.fetch('Animal')[0]['name'] = 4", "of type String"),
      ("manager.fetch('Animal', side='source')", "no entity Animal"),
      ("manager.destination_instances('AnimalToAnimal')", "a stage has no entity mappings"),
      ("manager.table('t')[1] = manager.fetch('Animal')[0]", "a table of a stage keeps values and no objects"),
      ("import os; os._exit(3)", "exit status 3"),
      ("return False", "returned False"),
    ])
  func failures(_ line: String, _ words: String) throws {
    let (room, store, arguments) = try zoo(
      Self.second + "will_migrate = 'Stage'\n",
      """
      from hopd_policy import PolicyError
      class Stage(CustomMigrationStage):
          def will_migrate(self, stage, manager):
              \(line)
      """)
    let before = try room.snapshot()
    let outcome = try room.run(words: ["migrate"] + arguments)
    #expect(outcome.status == 65, "\(outcome.output)")
    #expect(outcome.errors.contains(words), "\(outcome.errors)")
    #expect(outcome.errors.contains("Zoo 2 → Zoo 10"), "\(outcome.errors)")
    #expect(try room.snapshot().filter { $0.hasPrefix("a.sqlite") } == before)
    try room.file(
      "stage.py",
      """
      #!/usr/bin/python3
      from hopd_policy import CustomMigrationStage, run
      class Stage(CustomMigrationStage):
          def will_migrate(self, stage, manager): manager.log(f"{len(manager.fetch('Animal'))} animals")
      run(Stage)
      """)
    try #require(chmod(room.path("stage.py"), 0o755) == 0)
    let again = try room.run(words: ["migrate"] + arguments)
    #expect(again.status == 0, "\(again.errors)")
    #expect(try room.sql(store, "SELECT count(*) = count(ZLEGS) FROM ZANIMAL") == "1")
  }

  @Test(
    "A file of stages that is wrong says where, and what to write",
    arguments: [
      ("[[stage]]\nfrom = 'Zoo'\nto = 'Zoo 3'\n", "Zoo.hopstages.toml:1:1, stage.to", "use 'Zoo 2'"),
      ("model = 'Zo'\n[[stage]]\nfrom = 'Zoo'\nto = 'Zoo 2'\n", "no model “Zo”", "use 'Zoo'"),
      ("[[stage]]\nfrom = 'Zoo'\nto = 'Zoo 2'\nwil_migrate = 'A'\n", "unknown key `wil_migrate`", "use `will_migrate`"),
      ("[[stage]]\nfrom = 'Zoo'\n", "`to` is not set", "write to = "),
      ("[[stage]]\nfrom = 'Zoo'\nto = 'Zoo'\n", "from one version to another", "after Zoo"),
      ("[[stage]]\nfrom = 'Zoo'\nto = 2\n", "must be a string", "write to = "),
      ("", "no [[stage]]", "write one [[stage]]"),
      (
        "[[stage]]\nfrom = 'Zoo'\nto = 'Zoo 2'\n[[stage]]\nfrom = 'Zoo'\nto = 'Zoo 2'\n",
        "declared twice, first in line 1",
        "into one [[stage]]"
      ),
      (
        "[[stage]]\nfrom = 'Zoo'\nto = 'Zoo 2'\n[[stage]]\nfrom = 'Zoo 2'\nto = 'Zoo'\n", "lead in a circle",
        "from the oldest version"
      ),
    ])
  func mistakes(_ stages: String, _ place: String, _ hint: String) throws {
    let (room, _, words) = try zoo(stages, "Stage = None")
    let outcome = try room.run(words: ["plan"] + words)
    #expect(outcome.status == 65, "\(outcome.output)")
    #expect(outcome.errors.contains(place) && outcome.errors.contains(hint), "\(outcome.errors)")
    // The daemon reads the same file.
    try room.file(
      "hopd.toml",
      "[[watch]]\nname = 'zoo'\ndirectory = '\(room.path("stores"))'\nmodels = ['\(room.model)']\n"
        + "mappings = ['\(room.path("maps"))']\n")
    let checked = try room.run("check-config", room.path("hopd.toml"))
    // There the place is the watch's.
    let message = place.replacing(", stage.to", with: "")
    #expect(checked.status != 0 && (checked.output + checked.errors).contains(message), "\(checked)")
  }

  @Test("No route leads over a stage, and a store that begins within one gets a warning")
  func routes() throws {
    let program = "class Stage(CustomMigrationStage):\n    def did_migrate(self, stage, manager): pass"
    let (room, store, words) = try zoo(Self.second + "did_migrate = 'Stage'\n", program)
    for route in ["direct", "shortest"] {
      let outcome = try room.run(words: ["plan"] + words + ["--route", route])
      if route == "direct" {
        #expect(
          outcome.status == 65 && outcome.errors.contains("would leave out the stage Zoo 2 → Zoo 10"), "\(outcome)")
      } else {
        #expect(outcome.output.contains("didMigrate of Zoo 2 → Zoo 10"), "\(outcome)")
      }
    }
    // A stage over a version is one hop.
    try room.file("maps/Zoo.hopstages.toml", "[[stage]]\nfrom = 'Zoo'\nto = 'Zoo 10'\ndid_migrate = 'Stage'\n")
    let whole = try room.run(words: ["plan"] + words)
    #expect(whole.output.contains("hop 1/2  Zoo → Zoo 10  (inferred)"), "\(whole)")
    let inner = try room.store("b.sqlite", version: "Zoo 2")
    let within = try room.run(words: ["plan", inner] + words.dropFirst())
    #expect(within.output.contains("the store begins within the stage Zoo → Zoo 10"), "\(within)")
    #expect(!within.output.contains("didMigrate"), "\(within.output)")
    _ = store
  }

  @Test(
    "After a hook the version's rules hold: required relationships and constraints",
    arguments: [
      ("will_migrate", "manager.delete(manager.fetch('Owner')[0])", "pets.sqlite", "owner"),
      ("did_migrate", "manager.delete(manager.fetch('Owner')[0])", "pets.sqlite", "owner"),
      ("did_migrate", "[p.set_value_for_key('same', 'tag') for p in manager.fetch('Pet')]", "must be unique", "tag"),
      ("will_migrate", "[p.set_value_for_key('same', 'tag') for p in manager.fetch('Pet')]", "must be unique", "tag"),
    ])
  func rules(_ hook: String, _ line: String, _ words: String, _ property: String) throws {
    let (room, _, _) = try zoo(
      "[[stage]]\nfrom = 'Pets'\nto = 'Pets 2'\n\(hook) = 'Stage'\n",
      "class Stage(CustomMigrationStage):\n    def \(hook)(self, stage, manager):\n        \(line)")
    func version(_ more: String) -> String {
      """
      <?xml version="1.0"?><model><entity name='Owner'>
      <relationship name='pets' optional='YES' toMany='YES' destinationEntity='Pet' inverseName='owner'
        inverseEntity='Pet'/></entity>
      <entity name='Pet'><attribute name='tag' optional='YES' attributeType='String'/>\(more)
      <relationship name='owner' maxCount='1' destinationEntity='Owner' inverseName='pets' inverseEntity='Owner'/>
      <uniquenessConstraints><uniquenessConstraint><constraint value='tag'/></uniquenessConstraint>
      </uniquenessConstraints></entity></model>
      """
    }
    try room.file("Pets.xcdatamodeld/Pets.xcdatamodel/contents", version(""))
    try room.file(
      "Pets.xcdatamodeld/Pets 2.xcdatamodel/contents",
      version("<attribute name='born' optional='YES' attributeType='Date'/>"))
    try room.file(
      "Pets.xcdatamodeld/.xccurrentversion",
      "<?xml version=\"1.0\"?><plist version=\"1.0\"><dict><key>_XCCurrentVersionName</key>"
        + "<string>Pets 2.xcdatamodel</string></dict></plist>")
    let (model, store) = (room.path("Pets.xcdatamodeld"), room.path("pets.sqlite"))
    let made = try room.run("create", store, "--models", model, "--model-version", "Pets", "--rows", "0")
    try #require(made.status == 0, "\(made.errors)")
    try room.sql(
      store,
      "INSERT INTO ZOWNER (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1); INSERT INTO ZPET (Z_PK, Z_ENT, Z_OPT, ZTAG,"
        + " ZOWNER) VALUES (1, 2, 1, 'a', 1), (2, 2, 1, 'b', 2); UPDATE Z_PRIMARYKEY SET Z_MAX = 2")
    let before = try Data(contentsOf: URL(filePath: store))
    let arguments = [
      store, "--models", model, "--mappings", room.path("maps"), "--policy", "Stage=\(room.path("stage.py"))",
    ]
    let outcome = try room.run(words: ["migrate"] + arguments)
    #expect(outcome.status == 65, "\(outcome)")
    #expect(outcome.errors.contains(words) && outcome.errors.contains(property), "\(outcome.errors)")
    #expect(outcome.errors.contains("Pets → Pets 2"), "\(outcome.errors)")
    #expect(try Data(contentsOf: URL(filePath: store)) == before)
    // A rule for such rows leaves them out, as of any hop with a mapping model.
    if property == "owner" {
      let skipped = try room.run(words: ["migrate"] + arguments + ["--invalid-rows", "skip"])
      #expect(skipped.status == 0, "\(skipped)")
      #expect(try room.sql(store, "SELECT group_concat(ZTAG) FROM ZPET") == "b")
    }
  }

  @Test("A policy and a stage know path and metadata of the store, and fetch from an offset on")
  func storeAndOffset() throws {
    let (room, store, words) = try zoo(
      Self.second + "did_migrate = 'Stage'\n",
      """
      class Stage(CustomMigrationStage):
          def did_migrate(self, stage, manager):
              metadata = manager.store_metadata
              assert manager.store_path.endswith("/stores/a.sqlite"), manager.store_path
              assert metadata["NSStoreType"] == "SQLite" and "NSStoreModelVersionHashes" not in metadata
              assert metadata["owner"] == "zoo" and list(metadata["tags"]) == ["a", 1], metadata
              metadata["owner"] = "nobody"
              assert manager.store_metadata["owner"] == "zoo"
              keepers = manager.fetch("Keeper")
              assert manager.fetch("Keeper", offset=3, limit=2) == keepers[3:5]
              assert manager.fetch("Keeper", offset=len(keepers)) == []
              animals = manager.fetch("Animal", "name != %@", "x", sort=["-name"], offset=4)
              assert animals == manager.fetch("Animal", "name != %@", "x", sort=["-name"])[4:]
              assert list(manager.each("Animal")) == manager.fetch("Animal")
              assert manager.root_entity_names == ["Animal", "Keeper"]
              assert animals[0].destination_entity_name("keeper") == "Keeper"
              animals[0]["name"] = "uuid " + metadata["NSStoreUUID"]
      """)
    try room.file(
      "keys.py",
      """
      import plistlib, sqlite3, sys
      store = sqlite3.connect(sys.argv[1])
      metadata = plistlib.loads(store.execute("SELECT Z_PLIST FROM Z_METADATA").fetchone()[0])
      metadata.update({"owner": "zoo", "tags": ["a", 1]})
      store.execute("UPDATE Z_METADATA SET Z_PLIST = ?", [plistlib.dumps(metadata, fmt=plistlib.FMT_BINARY)])
      store.commit()
      """)
    let edited = try room.wait(room.start(program: "/usr/bin/python3", [room.path("keys.py"), store]))
    try #require(edited.status == 0, "\(edited.errors)")
    let uuid = try room.sql(store, "SELECT Z_UUID FROM Z_METADATA")
    let outcome = try room.run(words: ["migrate"] + words)
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(try room.sql(store, "SELECT count(*) FROM ZANIMAL WHERE ZNAME = 'uuid \(uuid)'") == "1")
  }

  @Test("Stages put the versions in order, unless an order is declared")
  func orders() throws {
    let (room, _, words) = try zoo("[[stage]]\nfrom = 'Zoo 10'\nto = 'Zoo 2'\n", "Stage = None")
    let older = try room.store("b.sqlite", version: "Zoo 10")
    let outcome = try room.run(words: ["plan", older] + words.dropFirst() + ["--to", "Zoo 2"])
    #expect(outcome.status == 0 && outcome.output.contains("Zoo 10 → Zoo 2, 1 hop"), "\(outcome)")
    let listed = try room.run("model", "list", room.path(""))
    #expect(listed.output.contains("  Zoo\n  Zoo 10  (current)\n  Zoo 2\n"), "\(listed)")
    let declared = try room.run(
      words: ["plan", older] + words.dropFirst()
        + ["--to", "Zoo 2", "--order", "Zoo", "Zoo 2", "Zoo 10"])
    #expect(declared.errors.contains("leads back in the declared order of versions: Zoo, Zoo 2, Zoo 10"), "\(declared)")
  }
}
