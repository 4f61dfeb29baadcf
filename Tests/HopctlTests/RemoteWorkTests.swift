// work with --fetch and --store: the storage is a folder, and the commands are small scripts that do to it what
// networks and other programs do.

import BlockingTests
import FoundationEssentials
import Glibc
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct RemoteWorkTests {
  /// A storage with stores of two versions that are behind, and one that is current.
  private struct Storage {
    let room: Room

    init(keys: [String] = ["a/one.sqlite", "b/two.sqlite", "done.sqlite"]) throws {
      room = try Room()
      let seeds = try ["Zoo", "Zoo 2", "Zoo 10"].map { try room.store("seed \($0)", version: $0) }
      for (number, key) in keys.enumerated() {
        let object = room.path("objects/\(key)")
        let folder = FilePath(object).removingLastComponent().string
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: seeds[number % 3], toPath: object)
      }
      try room.file("keys", keys.joined(separator: "\n"))
      try script(
        "get", "o=$D/objects/$1; [ -e \"$o\" ] || exit 66; cp \"$o\" \"$2\"; sha256sum <\"$o\" | cut -c1-64")
      try script("put", Self.put)
      try FileManager.default.createDirectory(atPath: room.path("work"), withIntermediateDirectories: true)
    }

    /// Puts a file in place of the object if that has the version.
    static let put = """
      o=$D/objects/$2; echo "$2" >>$D/puts
      [ "$(sha256sum <"$o" | cut -c1-64)" = "$3" ] || exit 76
      cp "$1" "$o.new" && mv "$o.new" "$o"
      """

    func script(_ name: String, _ text: String) throws {
      try room.file(name, "#!/bin/sh\nD=\(room.path.string)\n\(text)\n")
      #expect(chmod(room.path(name), 0o755) == 0)
    }

    func words(_ more: [String] = []) -> [String] {
      [
        "work", "--manifest", room.path("keys"), "--models", room.model, "--fetch",
        "\(room.path("get")) {key} {path}", "--store", "\(room.path("put")) {path} {key} {version}",
        "--work-directory", room.path("work"), "--tries", "3", "--retry-after", "10ms",
      ] + more
    }

    func work(_ more: String...) throws -> Outcome { try room.run(words: words(more)) }

    func state(_ key: String) throws -> String? {
      try room.run("identify", room.path("objects/\(key)"), "--models", room.model, "--json").json().state?.text
    }

    var puts: [Substring] {
      ((try? String(contentsOfFile: room.path("puts"), encoding: .utf8)) ?? "").split(separator: "\n")
    }

    var left: [String] { (try? FileManager.default.contentsOfDirectory(atPath: room.path("work"))) ?? ["?"] }
  }

  @Test func objectsAreMigratedAndCurrentOnesAreNotStored() throws {
    let storage = try Storage(keys: ["a/one.sqlite", "b/t $(touch x) 'wo.sqlite", "done.sqlite"])
    let outcome = try storage.work("--json")
    #expect(outcome.status == 0, "\(outcome.errors)")
    let lines = try outcome.lines().filter { $0.store != nil }
    #expect(Set(lines.compactMap { $0.result?.text }) == ["migrated", "current"] && lines.count == 3)
    #expect(lines.allSatisfy { $0.isRemote == .boolean(true) && $0.backup == nil && ($0.size?.int ?? 0) > 0 })
    #expect(storage.puts.count == 2 && !storage.puts.contains("done.sqlite"))
    for key in ["a/one.sqlite", "b/t $(touch x) 'wo.sqlite"] { #expect(try storage.state(key) == "current") }
    #expect(storage.left.isEmpty)
    #expect(try storage.work().output.contains("3 current already"))
  }

  /// The first upload goes through and its answer is lost; the second finds another version, its own.
  @Test func aLostAnswerIsNoChange() throws {
    let storage = try Storage(keys: ["one.sqlite"])
    try storage.script(
      "put", "\(Storage.put)\nif ! [ -e $D/lost ]; then touch $D/lost; exit 1; fi")
    let outcome = try storage.work("--json")
    #expect(outcome.status == 0 && storage.puts.count == 2)
    #expect(try outcome.lines().first { $0.store != nil }?.result?.text == "migrated")
    #expect(try storage.state("one.sqlite") == "current")
  }

  /// An app writes the object between fetch and store: its value is in the migrated store.
  @Test func whatOthersWroteIsMigratedInTurn() throws {
    let storage = try Storage(keys: ["one.sqlite"])
    try storage.script(
      "put",
      """
      [ -e $D/rival ] || sqlite3 "$D/objects/$2" "UPDATE ZANIMAL SET ZNAME = 'rival'" && touch $D/rival
      \(Storage.put)
      """)
    #expect(try storage.work().status == 0 && storage.puts.count == 2)
    #expect(try storage.state("one.sqlite") == "current")
    let dump = try storage.room.run("dump", storage.room.path("objects/one.sqlite"), "--models", storage.room.model)
    #expect(dump.output.contains("rival"))
  }

  /// Somebody writes each time: the store waits, and what was written last is there.
  @Test func endlessRivalsAreNotFought() throws {
    let storage = try Storage(keys: ["one.sqlite"])
    try storage.script(
      "put",
      """
      sqlite3 "$D/objects/$2" "UPDATE ZANIMAL SET ZNAME = ZNAME || '!'"
      \(Storage.put)
      """)
    let outcome = try storage.work("--json")
    #expect(outcome.status == 75)
    #expect(try outcome.lines().first { $0.store != nil }?.error?.code?.text == "object-changed")
    #expect(try storage.state("one.sqlite") == "behind" && storage.left.isEmpty)
  }

  @Test(arguments: [
    ("exit 66", 65, "not-found"), ("echo no >&2; exit 77", 65, "object-refused"), ("exit 65", 65, "object-refused"),
    ("exit 0", 65, "object-refused"), ("cp $D/objects/$1 $2", 65, "object-refused"),
    ("echo version", 65, "object-refused"), ("cp $D/objects/$1 $2; echo a; echo b", 65, "object-refused"),
    ("echo broken >&2; exit 1", 75, "fetch-failed"), ("kill -9 $$", 75, "fetch-failed"),
    ("echo nothing >$2; echo v", 65, "not-a-store"),
    ("cp $D/objects/$1 $2; echo log >$2-wal; echo v", 65, "object-refused"),
    ("ln -s $D/objects/$1 $2; echo v", 65, "object-refused"),
  ])
  func fetchesThatFailChangeNothing(_ text: String, _ status: Int, _ code: String) throws {
    let storage = try Storage(keys: ["one.sqlite"])
    try storage.script("get", text)
    let before = try Data(contentsOf: URL(filePath: storage.room.path("objects/one.sqlite")))
    let outcome = try storage.work("--json")
    #expect(outcome.status == Int32(status), "\(text): \(outcome.output)")
    let line = try outcome.lines().first { $0.store != nil }
    #expect(line?.error?.code?.text == code, "\(text): \(outcome.output)")
    #expect(line?.error?.message?.text?.contains("/work/") == false && storage.puts.isEmpty && storage.left.isEmpty)
    #expect(try Data(contentsOf: URL(filePath: storage.room.path("objects/one.sqlite"))) == before)
  }

  @Test(arguments: [("echo no >&2; exit 77", 65, "object-refused"), ("echo x; exit 3", 75, "store-failed")])
  func uploadsThatFailChangeNothing(_ text: String, _ status: Int, _ code: String) throws {
    let storage = try Storage(keys: ["one.sqlite"])
    try storage.script("put", text)
    let outcome = try storage.work("--results", storage.room.path("results"), "--json")
    let line = try outcome.lines().first { $0.store != nil }
    #expect(outcome.status == Int32(status) && line?.error?.code?.text == code && line?.rows == nil)
    #expect(try storage.state("one.sqlite") == "behind" && storage.left.isEmpty)
    let report = try storage.room.run("report", storage.room.path("results"))
    #expect(report.output.contains(status == 65 ? "fetch it into FILE" : "start the workers again"))
  }

  /// SIGTERM and --deadline end a command that hangs, with all its children; --command-timeout makes it a failed try.
  @Test func hangingCommandsAreEnded() throws {
    let storage = try Storage(keys: ["one.sqlite"])
    try storage.script("get", "sleep 300 & echo $! >$D/child; sleep 300")
    let clock = ContinuousClock.now
    #expect(try storage.work("--deadline", "500ms").status == 75)
    #expect(try storage.work("--tries", "1", "--command-timeout", "200ms").status == 75)
    let started = try storage.room.start(storage.words())
    usleep(700_000)
    kill(started.process, SIGTERM)
    #expect(try storage.room.wait(started).status == 75)
    #expect(ContinuousClock.now - clock < .seconds(60) && storage.left.isEmpty)
    let child = try String(contentsOfFile: storage.room.path("child"), encoding: .utf8)
    let number = try #require(pid_t(child.filter(\.isNumber)))
    // It was killed; when it is gone is up to the kernel and to init.
    var looks = 0
    while kill(number, 0) == 0, looks < 500 {
      usleep(20_000)
      looks += 1
    }
    #expect(looks < 500, "a child of the command still runs")
  }

  /// A worker that was killed leaves its folder; the next one begins with the object, and removes it.
  @Test func whatAKillLeavesIsRemovedAndNotUsed() throws {
    let storage = try Storage(keys: ["one.sqlite"])
    let put = Storage.put
    try storage.script("put", "touch $D/uploading; sleep 300")
    let started = try storage.room.start(storage.words())
    for _ in 0..<200 where access(storage.room.path("uploading"), F_OK) != 0 { usleep(50_000) }
    kill(started.process, SIGKILL)
    _ = try storage.room.wait(started)
    #expect(storage.left.count == 2)
    try FileManager.default.createDirectory(
      atPath: storage.room.path("work/hopctl-work-notours"), withIntermediateDirectories: true)
    try storage.script("put", put)
    #expect(try storage.work().status == 0)
    #expect(try storage.state("one.sqlite") == "current" && storage.left == ["hopctl-work-notours"])
  }

  /// One object is an archive of the store's folder, with a log: the log's changes are in the migrated store.
  @Test func anArchiveMayHaveALog() throws {
    let storage = try Storage(keys: ["one.sqlite"])
    let room = storage.room
    let folder = room.path("packed")
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    // A copy of an open store: the change is in its log alone.
    try storage.script(
      "pack",
      """
      cd \(folder); cp $D/objects/one.sqlite live.sqlite
      { echo "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; UPDATE ZANIMAL SET ZNAME = 'logged';"
        echo ".system cp live.sqlite one.sqlite; cp live.sqlite-wal one.sqlite-wal"; } | sqlite3 live.sqlite
      tar -cf $D/objects/one.sqlite one.sqlite one.sqlite-wal
      """)
    #expect(try room.wait(room.start(program: FilePath(room.path("pack")), [])).status == 0)
    try storage.script("get", "tar -xf $D/objects/$1 -C $2 && sha256sum <$D/objects/$1 | cut -c1-64")
    try storage.script(
      "put",
      """
      o=$D/objects/$2; [ "$(sha256sum <$o | cut -c1-64)" = "$3" ] || exit 76
      tar -cf $o.new -C $1 $(ls -A $1) && mv $o.new $o
      """)
    var words = storage.words()
    for (place, word) in words.enumerated() { words[place] = word.replacing("{path}", with: "{directory}") }
    let outcome = try room.run(words: words)
    #expect(outcome.status == 0, "\(outcome.output) \(outcome.errors)")
    try storage.script("unpack", "cd \(folder) && rm -f * && tar -xf $D/objects/one.sqlite && ls -A")
    let unpacked = try room.wait(room.start(program: FilePath(room.path("unpack")), []))
    #expect(unpacked.output == "one.sqlite\n")
    let dump = try room.run("dump", "\(folder)/one.sqlite", "--models", room.model)
    #expect(dump.status == 0 && dump.output.contains("logged"))
  }

  @Test func theCanaryStoresItsSampleOnly() throws {
    let storage = try Storage(keys: (0..<6).map { "\($0).sqlite" })
    #expect(try storage.work("--canary", "2").status == 10)
    #expect(storage.puts.count <= 2)
    #expect(try storage.work("--canary", "2", "--continue").status == 0)
    for number in 0..<6 { #expect(try storage.state("\(number).sqlite") == "current") }
  }

  /// A slash with a combining mark behind it is a slash; a dash with one begins an option.
  @Test func keysAreReadByBytes() throws {
    let storage = try Storage(keys: ["one.sqlite"])
    let keys = ["a/\u{301}x.sqlite", "../\u{301}..", "b/..", "-\u{301}one.sqlite"]
    try storage.room.file("keys", keys.joined(separator: "\n"))
    try storage.script("get", "echo \"$2\" >>$D/paths; exit 66")
    let outcome = try storage.work("--json")
    let errors = try outcome.lines().compactMap { $0.store == nil ? nil : $0.error?.code?.text }
    #expect(outcome.status == 65 && errors.count == 4 && Set(errors).isSubset(of: ["not-found", "object-refused"]))
    let paths = try String(contentsOfFile: storage.room.path("paths"), encoding: .utf8).split(separator: "\n")
    #expect(paths.allSatisfy { $0.utf8.split(separator: UInt8(ascii: "/")).dropLast().last?.count ?? 0 > 8 })
    #expect(paths.count == 2 && storage.left.isEmpty, "\(paths)")
  }

  @Test func wrongCommandLinesAreRefusedBeforeAnyStore() throws {
    let storage = try Storage(keys: ["one.sqlite"])
    let room = storage.room
    let get = "\(room.path("get")) {key} {path}"
    let put = "\(room.path("put")) {path} {key} {version}"
    let start = ["work", "--manifest", room.path("keys"), "--models", room.model]
    for words in [
      ["--fetch", get], ["--store", put], ["--fetch", get, "--store", "\(room.path("put")) {path} {key}"],
      ["--fetch", "no-such-program {key} {path}", "--store", put], ["--fetch", "'\(get)", "--store", put],
      ["--fetch", get, "--store", put, "--backup", "3"], ["--fetch", get, "--store", put, "--tries", "0"],
      ["--fetch", get, "--store", put, "--retry-after", "soon"], ["--work-directory", room.path("work")],
      ["--fetch", get, "--store", put, "--lease", "2min"],
    ] {
      let outcome = try room.run(words: start + words)
      #expect(outcome.status == 64, "\(words): \(outcome.status) \(outcome.errors)")
    }
    let nowhere = try storage.work("--work-directory", room.path("nowhere"))
    #expect(nowhere.status == 66 && nowhere.errors.contains("--work-directory"))
    #expect(storage.puts.isEmpty)
  }
}
