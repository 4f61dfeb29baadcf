// Commands that change something, and the table of exit statuses.

import BlockingTests
import FoundationEssentials
import Glibc
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct ActingTests {
  @Test func exitStatusesAreThoseOfTheTable() throws {
    let room = try Room()
    let old = try room.store("old.sqlite")
    let new = try room.store("new.sqlite", version: "Zoo 10")
    try room.file("stores/noise.sqlite", String(repeating: "no database ", count: 500))
    try room.file("nothing/readme", "")
    try room.file("Broken.xcdatamodel/contents", "<model")
    let noise = room.path("stores/noise.sqlite")
    let missing = room.path("stores/missing.sqlite")
    let before = try room.snapshot()
    let table: [(Int32, [String])] = [
      (0, []), (64, ["no-such-command"]), (64, ["identify"]), (64, ["identify", old, "--no-such-option"]),
      (64, ["migrate", old, "--models", room.model, "--verify", "perhaps"]),
      (64, ["migrate", old, "--models", room.model, "--backup", "-1"]),
      (64, ["migrate", old, "--models", room.model, "--replace", "exchange"]),
      (64, ["migrate", old, "--models", room.model, "--join-table", "x"]),
      (64, ["create", room.path("stores/x.sqlite"), "--models", room.model, "--model-version", "Zoo 3"]),
      (64, ["identify", old, "--models", room.model, "--config", "/x"]),
      (73, ["create", old, "--models", room.model, "--model-version", "Zoo"]),
      (0, ["identify", old]), (6, ["identify", old, "--models", room.path("nothing")]),
      (65, ["identify", old, "--models", room.path("Broken.xcdatamodel")]),
      (66, ["identify", old, "--models", room.path("no-such-folder")]),
      (0, ["identify", old, "--models", room.model]), (65, ["identify", noise, "--models", room.model]),
      (66, ["identify", missing, "--models", room.model]),
      (66, ["identify", room.path("no/such/folder.sqlite"), "--models", room.model]),
      (0, ["plan", old, "--models", room.model]), (10, ["plan", old, "--models", room.model, "--check"]),
      (0, ["plan", new, "--models", room.model, "--check"]), (65, ["plan", noise, "--models", room.model, "--check"]),
      (65, ["plan", new, "--models", room.model, "--to", "Zoo"]),
      (64, ["plan", old, "--models", room.model, "--to", "Zoo 3"]), (66, ["plan", missing, "--models", room.model]),
      (0, ["migrate", new, "--models", room.model]), (65, ["migrate", noise, "--models", room.model]),
      (66, ["migrate", missing, "--models", room.model]),
      (73, ["migrate", old, "--models", room.model, "--output", new]), (66, ["restore", old, "--yes"]),
      (65, ["verify", noise, "--models", room.model]), (66, ["check-config", room.path("no.toml")]),
      (66, ["dump", missing, "--models", room.model]),
    ]
    for (status, arguments) in table {
      // Without a subcommand the help is shown, and that is not an error.
      let outcome = try room.run(words: arguments + (arguments.isEmpty ? [] : ["--json"]))
      #expect(outcome.status == status, "\(arguments): \(outcome.errors)")
      guard status != 0, status != 10 else { continue }
      #expect(!outcome.errors.isEmpty, "\(arguments) says nothing on standard error")
      let error = try outcome.json().error
      #expect(error?.code?.text?.isEmpty == false, "\(arguments)")
      #expect(error?.message?.text?.isEmpty == false, "\(arguments)")
      #expect(error?.keys.contains("hint") == true, "\(arguments)")
    }
    #expect(try room.snapshot().filter { !$0.hasPrefix("new.sqlite") } == before.filter { !$0.hasPrefix("new.sqlite") })
  }

  @Test(.enabled(if: access("/usr/bin/sqlite3", X_OK) == 0, "sqlite3 is not there"))
  func theLeastAndTheLargestKeyAreCarried() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    let largest = Int64.max
    for (old, new) in [(1, Int64.min), (2, -1), (3, 0), (4, largest)] {
      try room.sql(store, "UPDATE ZKEEPER SET Z_PK = \(new) WHERE Z_PK = \(old)")
      try room.sql(store, "UPDATE ZANIMAL SET ZKEEPER = \(new) WHERE ZKEEPER = \(old)")
    }
    try room.sql(store, "UPDATE Z_PRIMARYKEY SET Z_MAX = \(largest) WHERE Z_NAME = 'Keeper'")
    let copy = room.path("stores/b.sqlite")
    let outcome = try room.run("migrate", store, "--models", room.model, "--output", copy)
    #expect(outcome.status == 0, "\(outcome.errors)")
    let keys = "SELECT group_concat(Z_PK) FROM (SELECT Z_PK FROM ZKEEPER ORDER BY Z_PK)"
    let before = try room.sql(store, keys)
    #expect(before.hasPrefix("\(Int64.min),") && before.contains("\(largest)"))
    #expect(try room.sql(copy, keys) == before)
    #expect(try room.run("verify", copy, "--models", room.model).status == 0)
  }

  @Test(.enabled(if: access("/usr/bin/sqlite3", X_OK) == 0, "sqlite3 is not there"))
  func aDamagedStoreThatIsCurrentIsNotCopied() throws {
    let room = try Room()
    let store = try room.store("a.sqlite", version: "Zoo 10", rows: 300)
    // A page that only a check of the whole file reads: the root of an index, emptied.
    let page = try #require(
      Int(try room.sql(store, "SELECT max(rootpage) FROM sqlite_master WHERE name = 'ZANIMAL_ZKEEPER_INDEX'")))
    let size = try #require(Int(try room.sql(store, "PRAGMA page_size")))
    let descriptor = open(store, O_WRONLY)
    #expect(pwrite(descriptor, [UInt8](repeating: 0, count: size), size, (page - 1) * size) == size)
    close(descriptor)
    let copy = room.path("stores/b.sqlite")
    let outcome = try room.run("migrate", store, "--models", room.model, "--output", copy)
    #expect(outcome.status == 65, "\(outcome.output) \(outcome.errors)")
    #expect(outcome.errors.contains("hint:"))
    #expect(access(copy, F_OK) != 0)
  }

  @Test func migrateThereAndRestoreBack() throws {
    let room = try Room()
    let store = try room.store("a.sqlite", rows: 300)
    let before = try room.run("dump", store, "--models", room.model).output
    let outcome = try room.run("migrate", store, "--models", room.model, "--json")
    try #require(outcome.status == 0, "\(outcome.errors)")
    let report = try outcome.json()
    for key in [
      "store", "result", "from", "to", "hops", "rows", "dropped", "backup", "prunedBackups", "seconds", "stages",
      "peakMemory",
      "verified",
    ] {
      #expect(report.keys.contains(key), "\(key)")
    }
    let stages: Set<String> = ["recover", "identify", "lock", "plan", "migrate", "verify", "replace", "report"]
    #expect(stages.isSubset(of: report.stages?.keys ?? []), "\(report.stages?.keys ?? [])")
    #expect(report.result?.text == "migrated")
    #expect(report.from?.text == "Zoo")
    #expect(report.to?.text == "Zoo 10")
    #expect(report.rows?.Animal?.int == 100)
    #expect(
      report.hops?.list.first?.keys
        == [
          "source", "destination", "kind", "mappings", "rowsRead", "rowsWritten", "chunks", "seconds", "merged",
          "leftOut", "invalidRows",
        ])
    #expect(report.verified?.checks?.list.allSatisfy { $0.passed == .boolean(true) } == true)
    let backup = try #require(report.backup?.text)
    #expect(access(backup, R_OK) == 0)
    let after = try room.run("dump", store, "--models", room.model).lines()
    #expect(after.count == 300)
    #expect(after.first?.attributes?.keys == ["name", "legs"])

    let second = try room.run("migrate", store, "--models", room.model)
    #expect(second.status == 0)
    #expect(second.output.hasPrefix("current "))
    let copy = room.path("current.sqlite")
    #expect(try room.run("migrate", store, "--models", room.model, "--output", copy).status == 0)
    #expect(try room.run("dump", copy, "--models", room.model).lines().count == 300)

    let unasked = try room.run("restore", store)
    #expect(unasked.status == 64)
    #expect(unasked.errors.contains("--yes"))
    let restored = try room.run("restore", store, "--yes", "--json")
    try #require(restored.status == 0, "\(restored.errors)")
    #expect(
      try restored.json().keys == [
        "store", "restored", "version", "backup", "pin", "differingExternalFiles", "warnings",
      ])
    #expect(try restored.json().version?.text == "Zoo")
    #expect(try room.run("dump", store, "--models", room.model).output == before)
    // Also where the store is gone altogether.
    try #require(unlink(store) == 0)
    for side in ["-wal", "-shm"] { unlink(store + side) }
    #expect(try room.run("migrate", store, "--models", room.model).status == 66)
    #expect(try room.run("restore", store, "--yes").status == 0)
    #expect(try room.run("identify", store, "--models", room.model).status == 0)
    // And forth again: the restored store is a store like any other.
    let again = try room.run("migrate", store, "--models", room.model, "--to", "Zoo 10", "--backup", "none")
    #expect(again.status == 0, "\(again.errors)")
  }

  @Test func outputOnlyReadsTheSource() throws {
    let room = try Room()
    let store = try room.store("a.sqlite", rows: 90)
    let before = try room.snapshot()
    let copy = room.path("copy.sqlite")
    let outcome = try room.run("migrate", store, "--models", room.model, "--output", copy, "--backup", "none")
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.output.hasPrefix("migrated "))
    #expect(try room.snapshot() == before)
    let found = try room.run("identify", copy, "--models", room.model, "--json").json()
    #expect(found.state?.text == "current")
    let near = room.path("near.sqlite")
    #expect(try room.run("migrate", store, "--models", room.model, "--output", near, "--to", "Zoo 2").status == 0)
    #expect(try room.run("identify", near, "--models", room.model, "--json").json().version?.text == "Zoo 2")
  }

  @Test func mappingModelsAreNeverPassedOverInSilence() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    // One that was named, or lies in a named folder or beside the models, and cannot be read: nothing is inferred.
    try room.file("maps/V1toV2.xcmappingmodel/xcmapping.xml", "<database/>")
    try room.file("both/V1toV2.cdm", "x")
    try FileManager.default.copyItem(atPath: room.model, toPath: room.path("both/Zoo.xcdatamodeld"))
    for arguments in [
      ["--models", room.model, "--mappings", room.path("maps")],
      ["--models", room.model, "--mappings", room.path("both/V1toV2.cdm")], ["--models", room.path("both")],
    ] {
      let asked = try room.run(words: ["plan", store] + arguments + ["--json"])
      #expect(asked.status != 0, "\(arguments)")
      #expect(try asked.json().error?.code?.text != nil, "\(arguments)")
      #expect(asked.errors.contains("V1toV2"), "\(arguments): \(asked.errors)")
    }
    // The model's own files are not searched, and a folder without mapping models changes nothing.
    #expect(try room.run("plan", store, "--models", room.model).status == 0)
  }

  @Test func quietSaysOnlyErrors() throws {
    let room = try Room()
    let store = try room.store("a.sqlite", rows: 90)
    for arguments in [
      ["identify", store], ["plan", store], ["verify", store], ["migrate", store], ["migrate", store],
    ] {
      let outcome = try room.run(words: arguments + ["--models", room.model, "--quiet"])
      #expect(outcome.status == 0)
      #expect(outcome.output.isEmpty && outcome.errors.isEmpty, "\(arguments[0])")
    }
    #expect(try !room.run("identify", room.path("none"), "--models", room.model, "-q").errors.isEmpty)
  }

  @Test func stopLeavesNothingHalfMade() throws {
    let room = try Room()
    try room.store("a.sqlite")
    let before = try room.snapshot()
    let outcome = try room.run(
      "create", room.path("stores/huge.sqlite"), "--models", room.model, "--model-version", "Zoo", "--rows", "50000000",
      signal: SIGTERM, after: 700)
    #expect(outcome.status == 75)
    #expect(outcome.errors.contains("stopped"))
    #expect(try room.snapshot() == before)
  }

  @Test func aPlanSaysWhatEachHopDoes() throws {
    let room = try Room()
    let store = try room.store("a.sqlite", rows: 3000)
    let options = [store, "--models", room.model]
    let plan = try room.run(words: ["plan"] + options + ["--json"]).json()
    #expect(plan.hops?.list.count == 2)
    let steps = try #require(plan.execution?.list)
    #expect(steps.map { $0.hop?.int } == [1, 2])
    for step in steps {
      let alters = step.action?.text == "alter"
      #expect(alters || step.action?.text == "write")
      #expect((step.tables?.list.isEmpty == false) == alters && step.reason?.text?.isEmpty == false)
    }
    let text = try room.run(words: ["plan"] + options).output
    for (index, step) in steps.enumerated() {
      let words = step.action?.text == "alter" ? (index == 0 ? "copies the file" : "the") : "writes all rows"
      #expect(text.contains("hop \(index + 1)/2  ") && text.contains(words), "\(text)")
    }
    let copy = room.path("stores/copy.sqlite")
    let report = try room.run(words: ["migrate"] + options + ["--output", copy, "--json"]).json()
    #expect(report.hops?.list.map { $0.destination?.text } == ["Zoo 2", "Zoo 10"])
    #expect(try room.run("dump", copy, "--models", room.model).output.split(separator: "\n").count == 3000)
  }

  @Test func aMigrationThatIsStoppedGoesOn() throws {
    let room = try Room()
    let store = try room.store("a.sqlite", rows: 60_000)
    let before = try room.run("identify", store, "--models", room.model, "--json").output
    let stopped = try room.run("migrate", store, "--models", room.model, "--json", signal: SIGINT, after: 150)
    // A machine that is fast enough has done all in that time; then there is nothing to go on with.
    if stopped.status == 75 {
      #expect(try stopped.json().error?.code?.text == "interrupted")
      #expect(try stopped.json().result?.text == "failed")
      #expect(try room.run("identify", store, "--models", room.model, "--json").output == before)
    } else {
      #expect(stopped.status == 0, "\(stopped.errors)")
    }
    let done = try room.run("migrate", store, "--models", room.model)
    #expect(done.status == 0, "\(done.errors)")
    #expect(try room.run("identify", store, "--models", room.model, "--json").json().state?.text == "current")
  }

  /// Where a rename would part two names of one file it is refused, in the plan too, and in place it is done and taken
  /// back.
  @Test(arguments: [30, 30_000])
  func aStoreWithTwoNamesIsReplacedInPlace(_ rows: Int) throws {
    let room = try Room()
    let store = try room.store("a.sqlite", rows: rows)
    let other = room.path("other name")
    #expect(link(store, other) == 0)
    let before = try room.snapshot()
    func version(_ path: String) throws -> String? {
      try room.run("identify", path, "--models", room.model, "--json").json().version?.text
    }
    for words in [
      ["plan", store, "--check"], ["plan", store], ["migrate", store], ["migrate", store, "--replace", "rename"],
    ] {
      let refused = try room.run(words: words + ["--models", room.model, "--json"])
      #expect(refused.status == 73, "\(words): \(refused.errors)")
      #expect(refused.errors.contains("hard links") && refused.errors.contains("--replace in-place"), "\(words)")
      #expect(try refused.json().error?.code?.text == "cannot-replace", "\(words)")
    }
    let rename = try #require(
      try room.run("plan", store, "--models", room.model, "--json").json().estimate?.diskNeeded?.int)
    let plan = try room.run("plan", store, "--check", "--replace", "in-place", "--models", room.model, "--json")
    #expect(plan.status == 10)
    #expect(try #require(try plan.json().estimate?.diskNeeded?.int) >= rename)
    #expect(try room.snapshot() == before)

    var file = stat()
    #expect(stat(store, &file) == 0)
    let inode = file.st_ino
    let done = try room.run("migrate", store, "--models", room.model, "--replace", "in-place", "--json")
    #expect(done.status == 0, "\(done.errors)")
    #expect(try version(other) == "Zoo 10")
    let backup = try #require(try done.json().backup?.text)
    #expect(try version(backup) == "Zoo")
    let restored = try room.run("restore", store, "--yes", "--replace", "in-place", "--json")
    #expect(restored.status == 0, "\(restored.errors)")
    #expect(try version(other) == "Zoo")
    #expect(stat(store, &file) == 0)
    #expect(file.st_ino == inode && file.st_nlink == 2)
    // A rename back is refused as well.
    let kept = try #require(try restored.json().backup?.text)
    #expect(try room.run("restore", store, "--yes", "--backup", kept).status == 73)
    #expect(try version(store) == "Zoo")
  }
}
