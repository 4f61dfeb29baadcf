// What the commands say is what they have looked at: verify finds what is not there, a typo is told, a copy is as
// private as its store, and names of strangers reach no terminal as they are.

import BlockingTests
import FoundationEssentials
import Glibc
import SystemPackage
import Testing

@Suite(
  .blocking, .enabled(if: Program.isBuilt, Program.absence),
  .enabled(if: access("/usr/bin/sqlite3", X_OK) == 0, "sqlite3 is not there"))
struct PlainWordsTests {
  private func mode(_ path: String) -> UInt32? {
    var status = stat()
    return lstat(path, &status) == 0 ? status.st_mode & 0o7777 : nil
  }

  /// A model with a unique constraint and an index.
  private func shop(_ room: Room, _ more: String = "") throws -> (model: String, store: String) {
    try room.file(
      "Shop.xcdatamodeld/Shop.xcdatamodel/contents",
      """
      <?xml version="1.0"?><model><entity name='Ware'><attribute name='code' attributeType='String'/>
      <attribute name='price' optional='YES' attributeType='Integer 32'/>
      <relationship name='shelf' optional='YES' maxCount='1' destinationEntity='Shelf' inverseName='wares' \
      inverseEntity='Shelf'/>
      <attribute name='image' optional='YES' attributeType='Binary' allowsExternalBinaryDataStorage='YES'/>
      <fetchIndex name='byPrice'><fetchIndexElement property='price' type='Binary' order='ascending'/></fetchIndex>
      \(more)
      <uniquenessConstraints><uniquenessConstraint><constraint value='code'/></uniquenessConstraint>\
      </uniquenessConstraints>
      </entity><entity name='Shelf'><relationship name='wares' optional='YES' toMany='YES' destinationEntity='Ware'
        inverseName='shelf' inverseEntity='Ware'/></entity></model>
      """)
    let (model, store) = (room.path("Shop.xcdatamodeld"), room.path("shop.sqlite"))
    let made = try room.run(
      "create", store, "--models", model, "--model-version", "Shop", "--rows", "40", "--seed", "3")
    try #require(made.status == 0, "\(made.errors)")
    return (model, store)
  }

  @Test(
    """
    verify finds a missing index, a changed one and a key that leads nowhere, \
    and claims nothing of what it did not see
    """
  )
  func verifyFindsWhatIsMissing() throws {
    let unique = "Z_Ware_UNIQUE_code"
    let cases: [(sql: String, check: String, words: [String])] = [
      ("DROP INDEX \(unique)", "indexes", ["unique index \(unique)", "is missing"]),
      ("DROP INDEX \(unique); CREATE INDEX \(unique) ON ZWARE (ZCODE)", "indexes", [unique]),
      ("DROP INDEX \(unique); CREATE UNIQUE INDEX \(unique) ON ZWARE (ZPRICE, ZCODE)", "indexes", [unique]),
      ("DROP INDEX \(unique); CREATE UNIQUE INDEX \(unique) ON ZWARE (ZCODE) WHERE ZPRICE > 3", "indexes", [unique]),
      ("DROP INDEX ZWARE_ZSHELF_INDEX", "indexes", ["ZWARE_ZSHELF_INDEX", "is missing"]),
      ("DROP INDEX Z_Ware_byPrice; DROP INDEX IF EXISTS Z_Ware_price", "indexes", ["is missing"]),
      (
        "UPDATE ZWARE SET ZSHELF = 4711 WHERE Z_PK = 1", "relationships",
        ["1 reference to rows that do not exist"]
      ),
    ]
    for (sql, check, words) in cases {
      let room = try Room()
      let (model, store) = try shop(room)
      let good = try room.run("verify", store, "--models", model)
      #expect(good.status == 0, "\(good.errors)")
      #expect(good.output.contains("indexes of Shop exist (1 unique)"))
      #expect(good.output.contains("quick check; --verify full"))
      try room.sql(store, sql)
      let bad = try room.run("verify", store, "--models", model)
      #expect(bad.status == 65, "\(sql)")
      let line = try #require(bad.output.split(separator: "\n").first { $0.contains("FAILED") }, "\(bad.output)")
      #expect(line.contains(check))
      for word in words { #expect(line.contains(word), "\(line)") }
      #expect(!bad.output.contains("exist (1 unique)") || check != "indexes")
    }
  }

  @Test("verify says of each check no more than it looked at, and calls nothing ok that it found")
  func verifyIsTrueInEverySentence() throws {
    let cases: [(sql: String, line: String, words: [String])] = [
      ("", "ok indexes", ["unique); 1 more of the model was not checked"]),
      ("", "ok schema", ["by name and type"]),
      ("", "ok integrity", ["quick_check passed (does not compare index entries with rows)"]),
      ("", "ok relationships", ["every reference has a target"]),
      (
        "UPDATE Z_PRIMARYKEY SET Z_NAME = CASE Z_NAME WHEN 'Ware' THEN 'Shelf' ELSE 'Ware' END "
          + "WHERE Z_NAME IN ('Ware', 'Shelf')", "note entity-numbers",
        ["is Ware instead of Shelf", "is Shelf instead of Ware"]
      ),
      ("UPDATE Z_MODELCACHE SET Z_CONTENT = x'0300'", "note model-cache", ["copy of the model"]),
      (
        "UPDATE ZWARE SET ZIMAGE = CAST(x'02' || '5D0E0A1C-7B3F-4E59-9C55-0A6E4B1F2D33' || x'00' AS BLOB) "
          + "WHERE Z_PK = 1", "note external-data", ["1 in files that are missing"]
      ),
    ]
    let partial =
      "<fetchIndex name='dear' partialIndexPredicate='price &lt; 9'>"
      + "<fetchIndexElement property='price' type='Binary' order='ascending'/></fetchIndex>"
    for (sql, start, words) in cases {
      let room = try Room()
      // A store with an index whose form is not known carries no copy of its model.
      let (model, store) = try shop(room, sql.contains("CACHE") ? "" : partial)
      if !sql.isEmpty { try room.sql(store, sql) }
      let outcome = try room.run("verify", store, "--models", model)
      #expect(outcome.status == 0, "\(outcome.errors)")
      let lines = outcome.output.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
      let line = try #require(lines.first { $0.hasPrefix(start) }, "\(start): \(outcome.output)")
      for word in words { #expect(line.contains(word), "\(line)") }
      #expect(outcome.output.contains("with notes") == !sql.isEmpty)
      let json = try room.run("verify", store, "--models", model, "--verify", "full", "--json").json()
      #expect(json.depth?.text == "full")
      #expect(json.checks?.list.contains { $0.noted == .boolean(true) } == !sql.isEmpty)
      #expect(json.checks?.list.last?.detail?.text == "integrity_check passed")
    }
  }

  @Test("An index under another name, and one more of them, are as good")
  func verifyTakesOtherNames() throws {
    let room = try Room()
    let (model, store) = try shop(room)
    try room.sql(
      store,
      "DROP INDEX ZWARE_ZSHELF_INDEX; CREATE INDEX \"old name\" ON ZWARE (zshelf COLLATE BINARY ASC); "
        + "CREATE INDEX more ON ZWARE (ZPRICE, ZCODE)")
    let outcome = try room.run("verify", store, "--models", model)
    #expect(outcome.status == 0, "\(outcome.output)")
  }

  @Test("A copy by --output has the mode of its store, with its external files")
  func copiesKeepTheMode() throws {
    for wanted in [0o644, 0o640, 0o600] as [UInt32] {
      for version in ["Zoo", "Zoo 10"] {
        let room = try Room()
        let store = try room.store("a.sqlite", version: version)
        try #require(chmod(store, wanted) == 0)
        if getuid() == 0 { try #require(chown(store, 4321, 4322) == 0) }
        let output = room.path("copy.sqlite")
        let outcome = try room.run("migrate", store, "--models", room.model, "--output", output)
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(mode(output) == wanted, "\(version)")
        var status = stat()
        #expect(lstat(output, &status) == 0 && (getuid() != 0 || status.st_uid == 4321 && status.st_gid == 4322))
      }
    }
  }

  @Test("An output that is the store itself is told as that, however it is spelt")
  func outputIsTheStore() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    let linked = room.path("stores/linked.sqlite")
    try #require(link(store, linked) == 0)
    let soft = room.path("stores/soft.sqlite")
    try #require(symlink("a.sqlite", soft) == 0)
    for output in [store, room.path("stores/../stores/./a.sqlite"), linked, soft] {
      let outcome = try room.run("migrate", store, "--models", room.model, "--output", output)
      #expect(outcome.status == 73, "\(output)")
      #expect(outcome.errors.contains("the two are one file"), "\(outcome.errors)")
    }
    let other = try room.store("b.sqlite")
    let outcome = try room.run("migrate", store, "--models", room.model, "--output", other)
    #expect(outcome.status == 73 && outcome.errors.contains("already exists"))
  }

  @Test("recover of a path that is not there is no success")
  func recoverOfNothing() throws {
    let room = try Room()
    for path in [room.path("nope"), "/nope-\(getpid())", room.path("nope/deeper")] {
      for more in [[], ["--yes"]] {
        let outcome = try room.run(words: ["recover", path] + more)
        #expect(outcome.status == 66, "\(path): \(outcome.output)\(outcome.errors)")
      }
    }
    let store = try room.store("a.sqlite")
    #expect(try room.run("recover", store).status == 0)
    #expect(try room.run("recover", room.path("stores")).status == 0)
  }

  @Test("A rule for an entity that no version has is an error, with the name that it looks like")
  func rulesOfNobody() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    for command in [["plan"], ["migrate"], ["rehearse"]] {
      let words = command + [store, "--models", room.model, "--invalid-rows"]
      let outcome = try room.run(words: words + ["Animals=skip"])
      #expect(outcome.status == 64, "\(command)")
      #expect(outcome.errors.contains("use 'Animal'"), "\(outcome.errors)")
      let far = try room.run(words: words + ["Tag=skip"])
      #expect(far.status == 64 && far.errors.contains("Animal, Bird, Keeper"), "\(far.errors)")
    }
    // A rule that no row needs is no reason to say anything, and changes nothing.
    let plan = try room.run("plan", store, "--models", room.model, "--invalid-rows", "Animal=skip")
    #expect(plan.status == 0 && plan.output.contains("inferred"), "\(plan.output)\(plan.errors)")
    // Likewise in a configuration, with the line.
    try room.file(
      "rules.toml",
      """
      [[watch]]
      name = "zoo"
      directory = "\(room.path("stores"))"
      models = ["\(room.model)"]
      [watch.migration]
      invalid_rows = { Animals = "skip", "*" = "fail" }
      """)
    for command in [["plan", store, "--config"], ["explain", store, "--config"], ["check-config"]] {
      let outcome = try room.run(words: command + [room.path("rules.toml")])
      #expect(outcome.status == 78, "\(command): \(outcome.output)\(outcome.errors)")
      for words in ["rules.toml:6", "watch zoo", "use 'Animal'"] {
        #expect(outcome.errors.contains(words), "\(command): \(outcome.errors)")
      }
    }
    let migrated = try room.run("migrate", store, "--models", room.model, "--invalid-rows", "quarantine")
    #expect(migrated.status == 0, "\(migrated.errors)")
  }

  @Test("Without a home a folder for the record is found, or named")
  func withoutHome() throws {
    let room = try Room()
    let store = try room.store("a.sqlite", version: "Zoo 10")
    func run(_ variables: [String]) throws -> Outcome {
      let program = try #require(Program.path).string
      return try room.wait(
        room.start(
          program: "/usr/bin/env",
          ["-i"] + variables + [program, "migrate", store, "--models", room.model]))
    }
    // Where the state directory of the service is there, nothing is asked of HOME.
    guard access("/var/lib/hopd", W_OK) != 0 else { return }
    let none = try run([])
    if let home = getpwuid(geteuid())?.pointee.pw_dir, access(home, W_OK | X_OK) == 0 {
      #expect(none.status == 0, "\(none.errors)")
    } else {
      #expect(none.status == 64 && none.errors.contains("--state-directory DIR"), "\(none.errors)")
    }
    let unusable = try run(["HOME=/proc/nowhere"])
    #expect(unusable.status != 0 && unusable.errors.contains("--state-directory DIR"), "\(unusable.errors)")
  }

  @Test("Names that hold control characters are escaped by every command")
  func namesAreEscaped() throws {
    let room = try Room()
    let bad = "Ba\u{1b}[31md"
    for (name, more) in [("\(bad) 1", ""), ("\(bad) 2", "<attribute name='b' optional='YES' attributeType='Date'/>")] {
      try room.file(
        "\(bad).xcdatamodeld/\(name).xcdatamodel/contents",
        """
        <?xml version="1.0"?><model><entity name='Plain'><attribute name='a' attributeType='String' optional='YES'/>
        \(more)</entity></model>
        """)
    }
    let model = room.path("\(bad).xcdatamodeld")
    let store = room.path("\(bad)\nstore.sqlite")
    let commands: [[String]] = [
      ["create", store, "--models", model, "--model-version", "\(bad) 1", "--rows", "3"],
      ["model", "list", model], ["model", "list", room.path.string], ["model", "hash", model],
      ["identify", store, "--models", model], ["plan", store, "--models", model, "--to", "\(bad) 2"],
      ["mapping", "infer", model, "\(bad) 1", "\(bad) 2"], ["verify", store, "--models", model],
      ["migrate", store, "--models", model, "--to", "\(bad) 2"],
      ["migrate", store, "--models", model, "--to", "\(bad) 3"],
      ["identify", store, "--models", room.model], ["recover", store],
    ]
    for command in commands {
      let outcome = try room.run(words: command)
      let text = outcome.output + outcome.errors
      #expect(!text.utf8.contains(0x1b), "\(command.prefix(2)): \(text.debugDescription)")
      #expect(text.contains("\\x1b"), "\(command.prefix(2)): \(text)")
    }
  }
}
