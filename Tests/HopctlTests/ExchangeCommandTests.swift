// `hopctl export` and `hopctl import`: what leaves a store comes back, and data of other programs becomes a store.

import BlockingTests
import FoundationEssentials
import Glibc
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct ExchangeCommandTests {
  private static let example: String = {
    var path = FilePath(#filePath)
    for _ in 0..<3 { path.removeLastComponent() }
    return path.appending("Examples").appending("Seed").string
  }()

  @Test("A store of JSON lines has the objects of the store that they are from") func lines() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    let exported = try room.run(
      "export", store, "--models", room.model, "--to", "ndjson", "--output", room.path("a.ndjson"), "--json",
      "--read-only")
    #expect(exported.status == 0, "\(exported.errors)")
    let report = try exported.json()
    #expect(
      report.objects?.int == 30 && report.format?.text == "ndjson" && report.readOnly?.unchanged == .boolean(true))
    let lines = try room.run("export", store, "--models", room.model, "--to", "ndjson")
    #expect(lines.output == (try String(contentsOf: URL(filePath: room.path("a.ndjson")), encoding: .utf8)))
    let imported = try room.run(
      "import", room.path("a.ndjson"), "--models", room.model, "--model-version", "Zoo", "--output",
      room.path("b.sqlite"), "--invalid-rows", "keep", "--json")
    #expect(imported.status == 0, "\(imported.errors)")
    #expect(try imported.json().objects?.int == 30)
    let again = try room.run("export", room.path("b.sqlite"), "--models", room.model, "--to", "ndjson")
    #expect(again.output == lines.output)
    #expect(try room.run("verify", room.path("b.sqlite"), "--models", room.model, "--exact").status == 0)
    // A name that exists is never overwritten.
    let taken = try room.run(
      "import", room.path("a.ndjson"), "--models", room.model, "--model-version", "Zoo", "--output",
      room.path("b.sqlite"))
    #expect(taken.status == 73, "\(taken.errors)")
  }

  @Test("A folder of CSV brings its own mapping") func csv() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    let folder = room.path("csv")
    let exported = try room.run("export", store, "--models", room.model, "--to", "csv", "--output", folder)
    #expect(exported.status == 0, "\(exported.errors)")
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == [
        "Animal.csv", "Bird.csv", "Keeper.csv", "import.hopimport.toml",
      ])
    let imported = try room.run(
      "import", folder, "--models", room.model, "--model-version", "Zoo", "--output", room.path("b.sqlite"),
      "--invalid-rows", "keep")
    #expect(imported.status == 0, "\(imported.errors)")
    let dumps = try [store, room.path("b.sqlite")].map { try room.run("dump", $0, "--models", room.model).output }
    #expect(dumps[0] == dumps[1] && !dumps[0].isEmpty)
  }

  @Test("Large values come back, in the lines and in files beside them") func largeValues() throws {
    let room = try Room()
    try room.file(
      "Album.xcdatamodeld/Album.xcdatamodel/contents",
      """
      <?xml version='1.0'?><model><entity name='Photo'>
      <attribute name='data' optional='YES' attributeType='Binary' allowsExternalBinaryDataStorage='YES'/>
      <attribute name='frame' optional='YES' attributeType='Transformable'/>
      <attribute name='taken' optional='YES' attributeType='Date'/>
      </entity></model>
      """)
    let (model, store) = (room.path("Album.xcdatamodeld"), room.path("album.sqlite"))
    let made = try room.run(
      "create", store, "--models", model, "--model-version", "Album", "--rows", "60", "--seed", "5")
    try #require(made.status == 0, "\(made.errors)")
    #expect(FileManager.default.fileExists(atPath: room.path(".album_SUPPORT/_EXTERNAL_DATA")))
    let whole = try room.run(
      "export", store, "--models", model, "--to", "ndjson", "--output", room.path("whole.ndjson"))
    #expect(whole.status == 0, "\(whole.errors)")
    let short = try room.run(
      "export", store, "--models", model, "--to", "ndjson", "--output", room.path("short.ndjson"), "--files",
      room.path("values"))
    #expect(short.status == 0, "\(short.errors)")
    for (data, words) in [("whole", []), ("short", ["--files", room.path("values")])] {
      let copy = room.path("\(data).sqlite")
      let imported = try room.run(
        words: ["import", room.path("\(data).ndjson"), "--models", model, "--output", copy] + words)
      #expect(imported.status == 0, "\(imported.errors)")
      #expect(FileManager.default.fileExists(atPath: room.path(".\(data)_SUPPORT/_EXTERNAL_DATA")))
      let again = try room.run("export", copy, "--models", model, "--to", "ndjson")
      #expect(again.output == (try String(contentsOf: URL(filePath: room.path("whole.ndjson")), encoding: .utf8)))
    }
    let without = try room.run("import", room.path("short.ndjson"), "--models", model, "--dry-run")
    #expect(without.status == 65 && without.errors.contains("pass the --files DIRECTORY"), "\(without)")
  }

  @Test("The database of an export is whole for SQLite") func database() throws {
    let room = try Room()
    let store = try room.store("a.sqlite", version: "Zoo 10")
    let database = room.path("zoo.db")
    let exported = try room.run("export", store, "--models", room.model, "--to", "sqlite", "--output", database)
    #expect(exported.status == 0, "\(exported.errors)")
    #expect(try room.sql(database, "PRAGMA foreign_key_check; PRAGMA integrity_check") == "ok")
    #expect(try room.sql(database, "SELECT count(*) FROM Animal") == "20")
    #expect(try room.sql(database, "SELECT count(*) FROM Bird") == "10")
    for format in ["sql", "grdb-swift", "room-kotlin"] {
      let code = try room.run("export", store, "--models", room.model, "--to", format)
      #expect(code.status == 0 && code.output.contains("Keeper"), "\(code)")
    }
  }

  @Test("The example makes a store, and --into adds to it and keeps a backup") func example() throws {
    let room = try Room()
    let (model, store) = ("\(Self.example)/Garden.xcdatamodeld", room.path("Garden.sqlite"))
    let words = [
      "import", "\(Self.example)/data", "--mapping", "\(Self.example)/garden.hopimport.toml", "--models", model,
    ]
    let tried = try room.run(words: words + ["--dry-run"])
    #expect(tried.status == 0 && tried.output.contains("22 objects"), "\(tried)")
    #expect(!FileManager.default.fileExists(atPath: store))
    let made = try room.run(words: words + ["--output", store])
    #expect(made.status == 0 && made.errors.isEmpty, "\(made)")
    #expect(try room.run("verify", store, "--models", model, "--verify", "full", "--exact").status == 0)
    try room.file("more.csv", "Name,Botanical name,Family\nMint,Mentha spicata,Lamiaceae\n")
    let added = try room.run(
      "import", room.path("more.csv"), "--mapping", "\(Self.example)/more.hopimport.toml", "--models", model, "--into",
      store, "--json")
    #expect(added.status == 0, "\(added.errors)")
    let report = try added.json()
    #expect(report.objects?.int == 1)
    let backup = try #require(report.backup?.text)
    #expect(FileManager.default.fileExists(atPath: backup))
    #expect(try room.sql(store, "SELECT count(*) FROM ZPLANT") == "13")
    #expect(try room.run("verify", store, "--models", model, "--verify", "full").status == 0)
    // The same data again is in the store already. Asked for once more, its names must be unique.
    let more = [
      "import", room.path("more.csv"), "--mapping", "\(Self.example)/more.hopimport.toml", "--models", model, "--into",
      store,
    ]
    let same = try room.run(words: more + ["--json"])
    #expect(same.status == 0, "\(same)")
    #expect(try same.json().alreadyImported == .boolean(true) && same.errors.contains("--again"), "\(same)")
    let again = try room.run(words: more + ["--again"])
    #expect(again.status == 65 && again.errors.contains("more.csv:2"), "\(again)")
    #expect(try room.sql(store, "SELECT count(*) FROM ZPLANT") == "13")
  }

  @Test("A killed import leaves the old store or the new one, and the next one succeeds") func killed() throws {
    let room = try Room()
    let store = try room.store("a.sqlite", version: "Zoo 10", rows: 30)
    let names = (1...2000).map { "animal \($0)" }.joined(separator: "\n")
    try room.file("more.csv", "name\n\(names)\n")
    try room.file(
      "more.hopimport.toml", "[[import]]\nentity = \"Animal\"\nfrom = \"more.csv\"\n[import.columns]\nname = \"name\"\n"
    )
    let words = [
      "import", room.path("more.csv"), "--mapping", room.path("more.hopimport.toml"), "--models", room.model, "--into",
      store,
    ]
    func count() throws -> Int {
      try #require(Int(try room.sql(store, "SELECT count(*) FROM ZANIMAL")))
    }
    var before = try count()
    for pause in stride(from: 20_000, through: 420_000, by: 50_000) {
      let started = try room.start(words + ["--again"])
      usleep(useconds_t(pause))
      kill(started.process, SIGKILL)
      _ = try room.wait(started)
      #expect(try room.sql(store, "PRAGMA quick_check") == "ok", "\(pause)")
      let found = try count()
      #expect([before, before + 2000].contains(found), "\(pause): \(found)")
      before = found
    }
    let finished = try room.run(words: words)
    #expect(finished.status == 0, "\(finished)")
    // Once is enough, and a killed run that had come to the exchange of the files is completed first.
    let after = try count()
    #expect((before == 30 ? [2030] : [before, before + 2000]).contains(after), "\(before): \(after)")
    #expect(try room.run("verify", store, "--models", room.model, "--verify", "full").status == 0)
    let left = try FileManager.default.contentsOfDirectory(atPath: room.path("stores")).filter { $0.contains(".hop-") }
    #expect(left.isEmpty, "\(left)")
  }

  @Test("hopctl recover removes the external files of a killed import") func killedFiles() throws {
    let room = try Room()
    try room.file(
      "Album.xcdatamodeld/Album.xcdatamodel/contents",
      """
      <?xml version='1.0'?><model><entity name='Photo'>
      <attribute name='data' optional='YES' attributeType='Binary' allowsExternalBinaryDataStorage='YES'/>
      </entity></model>
      """)
    let (model, store) = (room.path("Album.xcdatamodeld"), room.path("stores/album.sqlite"))
    try FileManager.default.createDirectory(atPath: room.path("stores"), withIntermediateDirectories: true)
    let made = try room.run("create", store, "--models", model, "--model-version", "Album")
    try #require(made.status == 0, "\(made.errors)")
    let content = String(repeating: "QUJD", count: 40_000)
    try room.file(
      "more.ndjson",
      (1...300).map {
        #"{"entity":"Photo","id":"Photo/p\#($0)","attributes":{"data":"\#(content)"},"relationships":{}}"# + "\n"
      }.joined())
    let words = ["import", room.path("more.ndjson"), "--models", model, "--into", store]
    let folder = room.path("stores/.album_SUPPORT/_EXTERNAL_DATA")
    var killed = 0
    for pause in stride(from: 20_000, through: 420_000, by: 80_000) {
      let started = try room.start(words)
      usleep(useconds_t(pause))
      kill(started.process, SIGKILL)
      _ = try room.wait(started)
      let repaired = try room.run("recover", store, "--yes")
      #expect([0, 10].contains(repaired.status), "\(repaired)")
      let files = (try? FileManager.default.contentsOfDirectory(atPath: folder).count) ?? 0
      let rows = try room.sql(store, "SELECT count(*) FROM ZPHOTO")
      #expect(rows == String(files), "\(pause): \(rows) rows, \(files) files")
      killed += rows == "0" ? 1 : 0
    }
    #expect(killed > 0)
    #expect(try room.run(words: words).status == 0)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder).count == 300)
  }

  @Test(
    "What makes no sense is a usage error",
    arguments: [
      ["export", "x.sqlite", "--to", "csv"], ["export", "x.sqlite", "--to", "sqlite"], ["export", "x.sqlite"],
      ["export", "x.sqlite", "--to", "xml"], ["export", "x.sqlite", "--to", "ndjson", "--where", "a == 1"],
      ["export", "x.sqlite", "--to", "ndjson", "--json"], ["export", "x.sqlite", "--to", "csv", "--files", "f"],
      ["import", "x.csv"], ["import", "x.csv", "--output", "a", "--into", "b"],
    ])
  func usage(words: [String]) throws {
    #expect(try Room().run(words: words).status == 64)
  }
}
