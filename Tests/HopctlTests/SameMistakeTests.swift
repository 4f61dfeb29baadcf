// The same mistake has the same exit status in every command, and a refusal without a model says where models were
// looked for.

import BlockingTests
import FoundationEssentials
import SystemPackage
import Testing

@Suite("The same mistake in every command", .blocking, .enabled(if: Program.isBuilt, Program.absence))
struct SameMistakeTests {
  @Test("No model is status 6")
  func noModel() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    try room.sql(store, "DELETE FROM Z_MODELCACHE")
    try room.file("maps/x.hopmap.toml", "format = 1\n")
    for words in [
      ["identify", store], ["plan", store], ["migrate", store], ["rehearse", store],
      ["migrate", store, "--dry-run"], ["verify", store], ["dump", store], ["explain", store],
      ["create", room.path("stores/new.sqlite")], ["fleet", "scan", room.path("stores")],
      ["fleet", "run", room.path("stores")], ["check"], ["mapping", "show", room.path("maps/x.hopmap.toml")],
      ["mapping", "lint", room.path("maps/x.hopmap.toml")],
    ] {
      let refused = try room.run(words: words)
      #expect(refused.status == 6, "\(words): \(refused)")
      #expect(refused.errors.contains("no model specified"), "\(words): \(refused.errors)")
    }
    let everywhere = try room.run("identify", store).errors
    #expect(
      everywhere.contains(
        "none found next to the store, no watch of hopd includes it, and it contains no copy of its model"),
      "\(everywhere)")
  }

  @Test("A store that does not exist is status 66, with or without models")
  func noSuchStore() throws {
    let room = try Room()
    let store = room.path("stores/none.sqlite")
    for command in ["identify", "plan", "migrate", "rehearse", "verify", "dump"] {
      for words in [[command, store], [command, store, "--models", room.model]] {
        let refused = try room.run(words: words)
        #expect(refused.status == 66 && refused.errors.contains("hint: check the path"), "\(words): \(refused)")
      }
    }
  }

  @Test("A version that no model has is status 64")
  func noSuchVersion() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    let models = ["--models", room.model]
    for words in [
      ["identify", store, "--to", "Zoo 3"] + models, ["plan", store, "--to", "Zoo 3"] + models,
      ["migrate", store, "--to", "Zoo 3"] + models, ["explain", store, "--to", "Zoo 3"] + models,
      ["explain", room.model, "--to", "Zoo 3"], ["fleet", "scan", room.path("stores"), "--to", "Zoo 3"] + models,
      ["fleet", "run", room.path("stores"), "--to", "Zoo 3"] + models, ["check", room.model, "--to", "Zoo 3"],
      ["check", room.model, "--only", "Zoo 3"], ["check", room.model, "--since", "Zoo 3"],
      ["create", room.path("stores/new.sqlite"), "--model-version", "Zoo 3"] + models,
      ["model", "schema", room.model, "--model-version", "Zoo 3"], ["model", "diff", room.model, "Zoo 3", "Zoo"],
      ["mapping", "infer", room.model, "Zoo 3", "Zoo 10"],
    ] {
      let refused = try room.run(words: words)
      #expect(refused.status == 64, "\(words): \(refused)")
      #expect(refused.errors.contains("Zoo 3"), "\(words): \(refused.errors)")
    }
    // In a configuration it is a mistake of the configuration.
    try room.file(
      "hopd.toml",
      """
      [[watch]]
      name = "zoo"
      directory = "\(room.path("stores"))"
      models = ["\(room.model)"]
      target = "Zoo 3"
      """)
    for command in ["identify", "plan", "migrate"] {
      let refused = try room.run(command, store, "--config", room.path("hopd.toml"))
      #expect(refused.status == 78, "\(command): \(refused)")
    }
  }

  @Test("A model that does not exist is status 66")
  func missingModel() throws {
    let room = try Room()
    let (store, none) = (try room.store("a.sqlite"), room.path("none.xcdatamodeld"))
    for words in [
      ["identify", store, "--models", none], ["plan", store, "--models", none], ["migrate", store, "--models", none],
      ["dump", store, "--models", none], ["fleet", "scan", room.path("stores"), "--models", none], ["check", none],
    ] { #expect(try room.run(words: words).status == 66, "\(words)") }
  }

  @Test("A refusal names the model that lies beside the store, with the option to paste")
  func modelBeside() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    let beside = room.path("stores/Zoo.xcdatamodeld")
    try FileManager.default.copyItem(atPath: room.model, toPath: beside)
    let refused = try room.run("migrate", store)
    #expect(refused.status == 6 && refused.errors.contains("next to the store: Zoo.xcdatamodeld"), "\(refused)")
    #expect(refused.errors.contains("hint: pass --models \(beside)"), "\(refused)")
    #expect(try room.run("migrate", store, "--models", beside).status == 0)
    let fleet = try room.run("fleet", "scan", room.path("stores"))
    #expect(fleet.status == 6 && fleet.errors.contains("pass --models \(beside)"), "\(fleet)")
  }

  @Test("create takes the current version, or the only one")
  func createWithoutVersion() throws {
    let room = try Room()
    let store = room.path("current.sqlite")
    let created = try room.run("create", store, "--models", room.model, "--json")
    #expect(created.status == 0, "\(created.errors)")
    #expect(try created.json().version?.text == "Zoo 10")
    let single = room.path("Zoo.xcdatamodeld/Zoo 2.xcdatamodel")
    let only = try room.run("create", room.path("only.sqlite"), "--models", single, "--json")
    #expect(only.status == 0, "\(only.errors)")
    #expect(try only.json().version?.text == "Zoo 2")
    try FileManager.default.removeItem(atPath: room.path("Zoo.xcdatamodeld/.xccurrentversion"))
    let unclear = try room.run("create", room.path("unclear.sqlite"), "--models", room.model)
    #expect(unclear.status == 64 && unclear.errors.contains("pass --model-version"), "\(unclear)")
  }

  @Test(
    "A mistake in the command line of hopd has the form and status of hopctl's",
    arguments: [
      (["--bogus"], "hopd: unknown option '--bogus'\n", "run `hopd --help`"),
      (["--chek"], "hopd: unknown option '--chek'\n", "pass --check, or run `hopd --help`"),
      (["--config"], "hopd: missing value for '--config <config>'\n", "run `hopd --help`"),
      (["extra"], "hopd: unexpected argument 'extra'\n", "run `hopd --help`"),
    ])
  func argumentsOfHopd(_ words: [String], _ message: String, _ hint: String) throws {
    let room = try Room()
    let hopd = try #require(Program.path).removingLastComponent().appending("hopd")
    let refused = try room.wait(room.start(program: hopd, words))
    #expect(refused.status == 64 && refused.output.isEmpty, "\(refused)")
    #expect(refused.errors.hasPrefix(message + "  hint: " + hint), "\(refused.errors)")
    #expect(try room.wait(room.start(program: hopd, ["--help"])).status == 0)
  }

  @Test("An option with a wrong value lists the values on the same line")
  func wrongValue() throws {
    let refused = try Room().run("export", "a.sqlite", "--to", "xml")
    #expect(refused.status == 64, "\(refused)")
    #expect(refused.errors.contains("is invalid for '--to <to>': expected ndjson, csv, sqlite"), "\(refused.errors)")
  }

  @Test("doctor names the distribution, also where os-release is a symbolic link")
  func distribution() throws {
    let text = try String(contentsOfFile: "/etc/os-release", encoding: .utf8)
    let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("PRETTY_NAME=") })
    let name = line.dropFirst(12).filter { $0 != "\"" }
    let room = try Room()
    let doctor = try room.run("doctor")
    #expect(doctor.output.contains(name), "\(doctor.output)")
  }
}
