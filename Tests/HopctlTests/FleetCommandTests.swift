// scan, work and report: a small fleet from the first look to the last report, with workers that are killed.

import BlockingTests
import FoundationEssentials
import Glibc
import SeededRandom
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct FleetCommandTests {
  private static let versions = ["Zoo", "Zoo 2", "Zoo 10"]

  /// `count` stores of three versions in folders of tenants.
  private func fleet(_ room: Room, _ count: Int) throws {
    let seeds = try Self.versions.map { try room.store("seed \($0)", version: $0) }
    for number in 0..<count {
      let folder = room.path("fleet/\(number % 5)")
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      let store = "\(folder)/tenant \(number).sqlite"
      try FileManager.default.copyItem(atPath: seeds[number % 3], toPath: store)
      try room.sql(store, "UPDATE Z_METADATA SET Z_UUID = '00000000-0000-0000-0000-\(100_000_000_000 + number)'")
    }
  }

  private func scan(_ room: Room, _ more: String...) throws -> Outcome {
    try room.run(
      words: ["fleet", "scan", room.path("fleet"), "--models", room.model, "--output", room.path("manifest.ndjson")]
        + more)
  }

  private func text(_ path: String) throws -> String { try String(contentsOfFile: path, encoding: .utf8) }

  @Test func aScanCountsVersionsAndChangesNothing() throws {
    let room = try Room()
    try fleet(room, 9)
    try room.file("fleet/notes.txt", String(repeating: "no store ", count: 40))
    try room.file("fleet/.hidden/a.sqlite", "SQLite format 3\0" + String(repeating: "x", count: 200))
    try room.sql(room.path("fleet/other.db"), "CREATE TABLE a(b)")
    try room.file("fleet/broken.sqlite", "SQLite format 3\0" + String(repeating: "x", count: 5000))
    let html = room.path("scan.html")
    let outcome = try scan(room, "--html", html)
    #expect(outcome.status == 0)
    for words in ["10 stores", "Zoo 2 ", "1 hop", "2 hops", "current", "1 other database", "broken.sqlite", "next:"] {
      #expect(outcome.output.contains(words), "\(words) is missing in:\n\(outcome.output)")
    }
    let lines = try text(room.path("manifest.ndjson")).split(separator: "\n")
    #expect(lines.count == 10)
    let first = try JSONDecoder().decode(JSON.self, from: Data((lines.first { $0.contains("tenant 0.") } ?? "").utf8))
    #expect(first.state?.text == "behind" && first.version?.text == "Zoo" && first.targetVersion?.text == "Zoo 10")
    #expect(first.hops?.list.count == 2 && first.storeUUID?.text?.hasSuffix("100000000000") == true)
    #expect((first.need?.disk?.int ?? 0) > (first.size?.int ?? 0))
    #expect(try text(html).contains("<h1>hopctl fleet scan</h1>"))
    #expect(
      try FileManager.default.subpathsOfDirectory(atPath: room.path("fleet")).allSatisfy { !$0.hasSuffix("-wal") })
  }

  @Test func aKilledScanGoesOn() throws {
    let room = try Room()
    try fleet(room, 6)
    #expect(try scan(room).status == 0)
    #expect(try scan(room).status == 73, "a manifest was written over")
    let manifest = room.path("manifest.ndjson")
    let whole = try text(manifest)
    try Data(whole.prefix(whole.count / 2).utf8).write(to: URL(filePath: manifest))
    let outcome = try scan(room, "--resume", "--json")
    let lines = try outcome.lines()
    #expect(lines.last?.summary?.stores?.int == 6)
    #expect((2...5).contains(lines.count), "all stores were looked at again")
    #expect(Set(try text(manifest).split(separator: "\n")) == Set(whole.split(separator: "\n")))
  }

  /// A store that changed has one line, the new one; one whose line lacks its end is not lost.
  @Test func aScanThatGoesOnHasOneLineForEachStore() throws {
    let room = try Room()
    try fleet(room, 6)
    #expect(try scan(room).status == 0)
    let manifest = room.path("manifest.ndjson")
    for round in 1...2 {
      let changed = room.path("fleet/1/tenant 1.sqlite")
      try room.sql(changed, "CREATE TABLE more\(round)(a); INSERT INTO more\(round) VALUES (zeroblob(20000))")
      // The last line is whole but for its newline.
      try Data(try text(manifest).dropLast().utf8).write(to: URL(filePath: manifest))
      let outcome = try scan(room, "--resume", "--json")
      #expect(outcome.status == 0, "\(outcome.errors)")
      let lines = try text(manifest).split(separator: "\n")
        .map { try JSONDecoder().decode(JSON.self, from: Data($0.utf8)) }
      #expect(lines.count == 6 && Set(lines.compactMap { $0.store?.text }).count == 6)
      #expect(try outcome.lines().last?.summary?.stores?.int == 6)
      var status = stat()
      #expect(lstat(changed, &status) == 0)
      #expect(lines.first { $0.store?.text?.hasSuffix("tenant 1.sqlite") == true }?.size?.int == Int(status.st_size))
    }
    // Nothing changed: no store is looked at again.
    #expect(try scan(room, "--resume", "--json").lines().count == 1)
    #expect(try FileManager.default.contentsOfDirectory(atPath: room.path("")).allSatisfy { !$0.contains(".hop-") })
  }

  @Test func resultsAreNotWrittenIntoFilesOfAnotherKind() throws {
    let room = try Room()
    try fleet(room, 1)
    let store = room.path("fleet/0/tenant 0.sqlite")
    try room.file("list", store)
    for file in [store, room.path("list")] {
      let before = try Data(contentsOf: URL(filePath: file))
      let outcome = try room.run(
        "fleet", "run", "--manifest", room.path("list"), "--models", room.model, "--results", file)
      #expect(outcome.status == 73 && outcome.errors.contains("another kind"), "\(outcome.errors)")
      #expect(try Data(contentsOf: URL(filePath: file)) == before)
    }
  }

  @Test func theCanaryStopsForAPerson() throws {
    let room = try Room()
    try fleet(room, 12)
    #expect(try scan(room).status == 0)
    let words = [
      "fleet", "run", "--manifest", room.path("manifest.ndjson"), "--models", room.model, "--canary", "3", "--results",
      room.path("results.ndjson"),
    ]
    let first = try room.run(words: words)
    #expect(first.status == 10 && first.output.contains("3 migrated") && first.output.contains("--continue"))
    let second = try room.run(words: words + ["--continue"])
    #expect(second.status == 0)
    let report = try room.run("fleet", "report", room.path("results.ndjson"), "--json").json()
    #expect(report.migrated?.int == 8 && report.current?.int == 4 && report.migratedTwice?.int == 0)
    #expect(try room.run("fleet", "scan", room.path("fleet"), "--models", room.model).output.contains("100%"))
  }

  @Test func whatGoesIsToldOnceForAllStores() throws {
    let room = try Room()
    try fleet(room, 6)
    let scanned = try scan(room)
    // What a hop adds and a later one drops is no loss of the stores before it.
    for words in ["drops Animal.born in 2 stores", "drops Animal.colour in 4 stores"] {
      #expect(scanned.output.contains(words), "\(scanned.output)")
    }
    let worked = try room.run(
      "fleet", "run", "--manifest", room.path("manifest.ndjson"), "--models", room.model, "--results",
      room.path("results.ndjson"))
    #expect(worked.status == 0)
    let lines = worked.output.split(separator: "\n").filter { $0.hasPrefix("  dropped ") }
    #expect(lines.count == 2 && lines.last?.hasPrefix("  dropped Animal.colour: ") == true, "\(worked.output)")
    let results = try text(room.path("results.ndjson")).split(separator: "\n").map {
      try JSONDecoder().decode(JSON.self, from: Data($0.utf8))
    }
    let sum = results.compactMap { $0.dropped?.int }.reduce(0, +)
    #expect(sum > 0 && results.last?.outcome?.drops != nil)
    #expect(try !room.run("fleet", "scan", room.path("fleet"), "--models", room.model).output.contains("drops"))
  }

  @Test func exitStatusesAreAContract() throws {
    let room = try Room()
    try fleet(room, 6)
    try room.sql(room.path("fleet/2/tenant 2.sqlite"), "DELETE FROM Z_METADATA")
    func work(_ more: String...) throws -> Outcome {
      try room.run(words: ["fleet", "run", room.path("fleet"), "--models", room.model] + more)
    }
    // Busy: the same command again may migrate it.
    let holder = try room.start(
      program: "/bin/sh",
      ["-c", "{ echo 'BEGIN IMMEDIATE;'; sleep 20; } | sqlite3 '\(room.path("fleet/0/tenant 0.sqlite"))'"])
    usleep(300_000)
    let busy = try work("--results", room.path("results.ndjson"))
    kill(holder.process, SIGKILL)
    #expect(busy.status == 75 && busy.output.contains("1 waiting") && busy.output.contains("1 failed"))
    #expect(busy.errors.contains("tenant 0.sqlite: "), "\(busy.errors)")
    let report = try room.run("fleet", "report", room.path("results.ndjson"))
    #expect(report.status == 75 && report.output.contains("1 store waiting"), "\(report.output)")
    try room.sql(room.path("fleet/1/tenant 1.sqlite"), "DELETE FROM Z_METADATA")
    try #require(try wait(until: { try work().status == 65 }))
    let gate = try work("--max-failures", "0", "--jobs", "1")
    #expect(gate.status == 65 && gate.output.contains("--max-failures"))
    for words in [["--deadline", "soon"], ["--shard", "3/2"], ["--max-failures", "-1"], ["--canary", "0"]] {
      #expect(try room.run(words: ["fleet", "run", room.path("fleet"), "--models", room.model] + words).status == 64)
    }
    #expect(try room.run("fleet", "run", "--models", room.model).status == 64)
    #expect(try work("--shard", "auto").status == 64)
  }

  /// A list that a failed command left empty is no fleet that is done, and results without a run are no report.
  @Test func nothingIsNotSuccess() throws {
    let room = try Room()
    for text in ["", "# nothing\n"] {
      try room.file("list", text)
      let outcome = try room.run("fleet", "run", "--manifest", room.path("list"), "--models", room.model)
      #expect(outcome.status == 65 && outcome.errors.contains("the manifest is empty"), "\(outcome.errors)")
    }
    try FileManager.default.createDirectory(atPath: room.path("fleet"), withIntermediateDirectories: true)
    let scan = try room.run("fleet", "scan", room.path("fleet"), "--models", room.model, "--json")
    try room.file("list", scan.output)
    #expect(try room.run("fleet", "run", "--manifest", room.path("list"), "--models", room.model).status == 0)
    #expect(
      try room.run("fleet", "scan", room.path("fleet"), "--models", room.model, "--output", room.path("list of a scan"))
        .status
        == 0)
    #expect(try room.run("fleet", "run", "--manifest", room.path("list of a scan"), "--models", room.model).status == 0)
    for text in ["", "{\"event\":\"begin\",\"run\":\"a"] {
      try room.file("results.ndjson", text)
      let report = try room.run("fleet", "report", room.path("results.ndjson"))
      #expect(report.status == 75 && report.output.contains("no worker has reported"), "\(report.output)")
      #expect(try room.run("fleet", "report", room.path("results.ndjson"), "--json").json().runs?.int == 0)
    }
  }

  /// A store whose own name or whose folder's name is not UTF-8 is counted, and fails with the reason.
  @Test func aNameThatIsNotTextIsReported() throws {
    let room = try Room()
    try fleet(room, 3)
    let script =
      #"cd -- "$0" && cp 0/*.sqlite "$(printf 'caf\351.sqlite')" && mkdir "$(printf 'd\351')" && "#
      + #"cp 0/*.sqlite "$(printf 'd\351/x.sqlite')""#
    let made = try room.wait(room.start(program: "/bin/sh", ["-c", script, room.path("fleet")]))
    try #require(made.status == 0, "\(made.errors)")
    let outcome = try scan(room)
    #expect(outcome.status == 0)
    for words in ["5 stores", "unreadable", "not UTF-8", "xe9", "hint: rename"] {
      #expect(outcome.output.contains(words), "\(words) is missing in:\n\(outcome.output)")
    }
    #expect(try text(room.path("manifest.ndjson")).split(separator: "\n").count == 5)
    #expect(try scan(room, "--resume", "--json").lines().count == 1, "a store that did not change was looked at again")
    for source in [[room.path("fleet")], ["--manifest", room.path("manifest.ndjson")]] {
      let work = try room.run(words: ["fleet", "run"] + source + ["--models", room.model])
      #expect(work.status == 65 && work.output.contains("2 failed"), "\(work.output)")
      #expect(work.errors.contains("not UTF-8"), "\(work.errors)")
    }
    // Foundation may be unable to remove such names with the room.
    _ = try room.wait(room.start(program: "/bin/sh", ["-c", "rm -r -- \"$0\"", room.path("fleet")]))
  }

  private func wait(until isTrue: () throws -> Bool) throws -> Bool {
    for _ in 0..<40 {
      if try isTrue() { return true }
      usleep(500_000)
    }
    return false
  }

  /// Workers with separate state directories, as on separate machines, are killed at random moments and started again.
  /// In the end every store is current, none was migrated twice, and the report adds up.
  @Test(arguments: [1, 2])
  func killedWorkersLoseNothing(_ seed: Int) throws {
    let room = try Room()
    let count = 18
    try fleet(room, count)
    #expect(try scan(room).status == 0)
    try FileManager.default.createDirectory(atPath: room.path("results"), withIntermediateDirectories: true)
    var dice = Dice(seed: UInt64(seed))
    var open: Set<Int> = [1, 2, 3]
    var rounds = 0
    while !open.isEmpty {
      rounds += 1
      try #require(rounds < 60, "seed \(seed): the workers never end")
      let workers = try open.sorted().map { shard in
        let words = [
          "fleet", "run", "--manifest", room.path("manifest.ndjson"), "--models", room.model, "--shard", "\(shard)/3",
          "--jobs",
          "2", "--results", room.path("results"), "--state-directory", room.path("state-\(shard)"), "-q",
        ]
        return (shard, try room.start(words))
      }
      // The kills stop after a while: a worker must then come to its end.
      for (_, started) in workers where rounds < 12 && dice.chance(70) {
        usleep(UInt32(20_000 + dice.below(250_000)))
        kill(started.process, SIGKILL)
      }
      for (shard, started) in workers where try room.wait(started).status == 0 { open.remove(shard) }
    }
    let report = try room.run("fleet", "report", room.path("results"), "--json").json()
    #expect(report.migratedTwice?.int == 0 && report.withoutResult?.int == 0 && report.failed?.int == 0, "seed \(seed)")
    #expect((report.migrated?.int ?? 0) + (report.current?.int ?? 0) == count, "seed \(seed)")
    let found = try room.run("fleet", "scan", room.path("fleet"), "--models", room.model, "--json").lines()
    #expect(found.last?.summary?.stores?.int == count)
    #expect(found.dropLast().allSatisfy { $0.state?.text == "current" }, "seed \(seed)")
  }
}
