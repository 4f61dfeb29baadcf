// Examples/fleet/s3/migrate-objects: the storage is a folder, and the tool is a small script that does to it what
// networks and other programs do. tools/fleet-s3 runs it on an S3 with trouble.

import BlockingTests
import FoundationEssentials
import Glibc
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct MigrateObjectsTests {
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
      try tool()
      try FileManager.default.createDirectory(atPath: room.path("work"), withIntermediateDirectories: true)
    }

    static let get = "cp \"$o\" \"$3\"; sha256sum <\"$o\" | cut -c1-64"
    /// Puts a file in place of the object if that has the version.
    static let put = """
      echo "$3" >>$D/puts
      [ "$(sha256sum <"$o" | cut -c1-64)" = "$4" ] || exit 76
      cp "$2" "$o.new" && mv "$o.new" "$o"
      """

    func tool(get: String = Self.get, put: String = Self.put) throws {
      let text = """
        #!/bin/sh
        D=\(room.path.string)
        case $1 in
        get) o=$D/objects/$2; [ -e "$o" ] || exit 66
          \(get)
          ;;
        put) o=$D/objects/$3
          \(put)
          ;;
        esac
        """
      try room.file("tool.text", text)
      // Written by another process: a program that another test starts may inherit the descriptor that wrote
      // `tool.text`, and the kernel runs no file that is open for writing.
      let made = try room.wait(
        room.start(program: "/usr/bin/install", ["-m", "755", room.path("tool.text"), room.path("tool")]))
      #expect(made.status == 0, "\(made.errors)")
    }

    /// Starts the script; it finds programs in `bin` of the room first.
    func start() throws -> (process: pid_t, output: String, errors: String) {
      let script = CheckCase.root.removingLastComponent().removingLastComponent()
        .appending("Examples/fleet/s3/migrate-objects")
      // The threads of tests block signals, which a shell script cannot undo.
      return try room.start(
        program: "/usr/bin/env",
        [
          "--default-signal=TERM", "PATH=\(room.path("bin")):/usr/bin:/bin", script.string, room.path("keys"),
          room.path("tool"), "--models", room.model,
        ],
        variables: [
          "HOPCTL=\(try #require(Program.path))", "WORK=\(room.path("work"))", "TRIES=3", "PAUSE=0.01",
        ])
    }

    func migrate() throws -> Outcome { try room.wait(start()) }

    func state(_ key: String) throws -> String? {
      try room.run("identify", room.path("objects/\(key)"), "--models", room.model, "--json").json().state?.text
    }

    var puts: [Substring] {
      ((try? String(contentsOfFile: room.path("puts"), encoding: .utf8)) ?? "").split(separator: "\n")
    }

    var left: [String] { (try? FileManager.default.contentsOfDirectory(atPath: room.path("work"))) ?? ["?"] }
  }

  @Test("The script migrates and uploads old stores, and leaves current ones alone")
  func migration() throws {
    let storage = try Storage(keys: ["a/one.sqlite", "b/t $(touch x) 'wo.sqlite", "done.sqlite"])
    let outcome = try storage.migrate()
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(
      Set(outcome.output.split(separator: "\n"))
        == ["migrated\ta/one.sqlite", "migrated\tb/t $(touch x) 'wo.sqlite", "current\tdone.sqlite"])
    #expect(storage.puts.count == 2 && !storage.puts.contains("done.sqlite"))
    for key in ["a/one.sqlite", "b/t $(touch x) 'wo.sqlite"] { #expect(try storage.state(key) == "current") }
    #expect(storage.left.isEmpty)
    #expect(try storage.migrate().output.split(separator: "\n").allSatisfy { $0.hasPrefix("current\t") })
  }

  @Test("An upload whose answer is lost is not repeated") func lostAnswer() throws {
    let storage = try Storage(keys: ["one.sqlite"])
    try storage.tool(put: "\(Storage.put)\nif ! [ -e $D/lost ]; then touch $D/lost; exit 1; fi")
    let outcome = try storage.migrate()
    #expect(outcome.status == 0 && outcome.output == "current\tone.sqlite\n" && storage.puts.count == 1)
    #expect(try storage.state("one.sqlite") == "current")
  }

  @Test("A change between fetch and upload is migrated, not overwritten") func rival() throws {
    let storage = try Storage(keys: ["one.sqlite"])
    try storage.tool(
      put: """
        [ -e $D/rival ] || sqlite3 "$o" "UPDATE ZANIMAL SET ZNAME = 'rival'" && touch $D/rival
        \(Storage.put)
        """)
    #expect(try storage.migrate().status == 0 && storage.puts.count == 2)
    #expect(try storage.state("one.sqlite") == "current")
    let dump = try storage.room.run("dump", storage.room.path("objects/one.sqlite"), "--models", storage.room.model)
    #expect(dump.output.contains("rival"))
  }

  @Test("An object that changes before each upload waits, and keeps the last change") func endlessRivals() throws {
    let storage = try Storage(keys: ["one.sqlite"])
    try storage.tool(put: "sqlite3 \"$o\" \"UPDATE ZANIMAL SET ZNAME = ZNAME || '!'\"\n\(Storage.put)")
    let outcome = try storage.migrate()
    #expect(outcome.status == 75 && outcome.output == "waiting\tone.sqlite\n")
    #expect(try storage.state("one.sqlite") == "behind" && storage.left.isEmpty && storage.puts.count == 3)
  }

  @Test(
    "A fetch that fails changes no object",
    arguments: [
      ("exit 66", 65), ("exit 77", 65), ("exit 65", 65), ("exit 0", 65), ("cp $o $3", 65), ("echo version", 65),
      ("cp $o $3; echo a; echo b", 65), ("exit 1", 75), ("exit 76", 75), ("kill -9 $$", 75),
      ("echo nothing >$3; echo v", 65), ("cp $o $3; echo log >$3-wal; echo v", 65), ("ln -s $o $3; echo v", 65),
    ])
  func failedFetch(_ get: String, _ status: Int) throws {
    let storage = try Storage(keys: ["one.sqlite"])
    try storage.tool(get: get)
    let before = try Data(contentsOf: URL(filePath: storage.room.path("objects/one.sqlite")))
    let outcome = try storage.migrate()
    #expect(outcome.status == Int32(status), "\(get): \(outcome.output) \(outcome.errors)")
    #expect(outcome.output == "\(status == 65 ? "failed" : "waiting")\tone.sqlite\n")
    #expect(storage.puts.isEmpty && storage.left.isEmpty)
    #expect(try Data(contentsOf: URL(filePath: storage.room.path("objects/one.sqlite"))) == before)
  }

  @Test("An upload that fails changes no object", arguments: [("exit 77", 65), ("echo x; exit 3", 75)])
  func failedUpload(_ put: String, _ status: Int) throws {
    let storage = try Storage(keys: ["one.sqlite"])
    try storage.tool(put: put)
    #expect(try storage.migrate().status == Int32(status))
    #expect(try storage.state("one.sqlite") == "behind" && storage.left.isEmpty)
  }

  @Test("The next run removes the folder of a killed one, and no other") func kill() throws {
    let storage = try Storage(keys: ["one.sqlite"])
    try storage.tool(put: "touch $D/uploading; while ! [ -e $D/go ]; do sleep 0.05; done; exit 75")
    let started = try storage.start()
    for _ in 0..<200 where access(storage.room.path("uploading"), F_OK) != 0 { usleep(50_000) }
    Glibc.kill(started.process, SIGKILL)
    _ = try storage.room.wait(started)
    #expect(storage.left.count == 1)
    try FileManager.default.createDirectory(
      atPath: storage.room.path("work/other"), withIntermediateDirectories: true)
    // What the killed script started still works in its folder; it ends by itself.
    try storage.tool()
    #expect(try storage.migrate().status == 0 && storage.left.count == 2)
    try storage.room.file("go", "")
    for _ in 0..<200 where storage.left != ["other"] {
      _ = try storage.migrate()
      usleep(50_000)
    }
    #expect(try storage.state("one.sqlite") == "current" && storage.left == ["other"])
  }

  @Test("A kill before a run has locked its folder leaves nothing after the next run") func earlyKill() throws {
    let storage = try Storage(keys: ["one.sqlite"])
    let (room, text) = (storage.room, "#!/bin/sh\n/usr/bin/mktemp \"$@\"\nkill -9 $PPID\n")
    try room.file("mktemp.text", text)
    // By another process, as the tool is.
    let install = ["-D", "-m", "755", room.path("mktemp.text"), room.path("bin/mktemp")]
    #expect(try room.wait(room.start(program: "/usr/bin/install", install)).status == 0)
    #expect(try storage.migrate().status == 128 + SIGKILL && storage.left.count == 1)
    try FileManager.default.removeItem(atPath: room.path("bin"))
    #expect(try storage.migrate().status == 0 && storage.left.isEmpty)
  }

  @Test("SIGTERM ends the script after the store at work, with status 75") func stop() throws {
    let storage = try Storage(keys: (0..<6).map { "\($0).sqlite" })
    try storage.tool(put: "touch $D/uploading; sleep 0.5\n\(Storage.put)")
    let started = try storage.start()
    for _ in 0..<200 where access(storage.room.path("uploading"), F_OK) != 0 { usleep(50_000) }
    Glibc.kill(started.process, SIGTERM)
    let outcome = try storage.room.wait(started)
    #expect(outcome.status == 75 && (1...4).contains(outcome.output.split(separator: "\n").count))
    #expect(storage.left.isEmpty)
  }

  @Test("Keys that are options or no file names fail without a fetch") func keys() throws {
    let storage = try Storage(keys: ["one.sqlite"])
    try storage.room.file("keys", "-rf\na/..\nb/\n..\n")
    let outcome = try storage.migrate()
    #expect(outcome.status == 65 && outcome.output.split(separator: "\n").allSatisfy { $0.hasPrefix("failed\t") })
    try storage.room.file("keys", "")
    #expect(try storage.migrate().status == 65)
  }
}
