// `model calibrate` from outside: hashes that the tests of an app pin, the source of releases, and rows of a store.

import BlockingTests
import FoundationEssentials
import Glibc
import SystemPackage
import Testing

@Suite(
  .blocking, .enabled(if: Program.isBuilt, Program.absence),
  .enabled(if: access(SwiftDataRoom.reader.string, X_OK) == 0, "the reader of Swift source is not built"),
  .enabled(if: access("/usr/bin/sqlite3", X_OK) == 0, "sqlite3 is not there"))
struct CalibrateCommandTests {
  private static let source = """
    struct Step: Codable { var x: Int }
    @Model final class Item { var name: String; var steps: [Step]; var site: URL? }
    let container = try ModelContainer(for: Item.self)
    """
  private static let truth = """
    [[form]]
    name = "URL"
    model = "string"
    [[form]]
    name = "array of a struct"
    model = "binary"
    """

  /// A room with the source, and with a store and pinned hashes of the model as it would be with these forms.
  private func room() throws -> Room {
    let room = try Room()
    try room.file("True/Models.swift", Self.source)
    try room.file("True/hop.calibration.toml", Self.truth)
    try room.file("App/Models.swift", Self.source)
    let hashes = try room.run("model", "hash", room.path("True"), "--json")
    try #require(hashes.status == 0, "\(hashes.errors)")
    let item = try #require(hashes.json().versions?.list.first?.entityVersionHashes?.Item?.text)
    try room.file("App/AppTests/PinTests.swift", "import Testing\n\nlet pinned = [\"Item\": \"\(item)\"]\n")
    let made = try room.run("create", room.path("a.store"), "--models", room.path("True"), "--rows", "0")
    try #require(made.status == 0, "\(made.errors)")
    return room
  }

  private func calibration(_ room: Room) throws -> String {
    String(
      decoding: try Data(contentsOf: URL(filePath: room.path("App/hop.calibration.toml"))), as: UTF8.self)
  }

  @Test("Hashes in a folder of tests settle the forms, and the file has the line of the hash")
  func pinnedHashes() throws {
    let room = try room()
    #expect(try room.run("model", "hash", room.path("App")).status == 65)
    let outcome = try room.run(
      "model", "calibrate", room.path("App"), "--pinned", room.path("App/AppTests"), "--json")
    try #require(outcome.status == 0, "\(outcome.errors)")
    let json = try outcome.json()
    #expect(json.version == .string("1.0.0") && json.open == .array([]))
    #expect(json.forms?.keys == ["URL", "array of a struct"] && json.evidence?.keys == json.forms?.keys)
    let text = try calibration(room)
    #expect(text.contains("name = \"URL\"\nmodel = \"string\"\nevidence = \"the version hash of Item in "))
    #expect(text.contains("PinTests.swift:3, version 1.0.0"))
    #expect(try room.run("model", "hash", room.path("App")).status == 0)
    let again = try room.run("model", "calibrate", room.path("App"), "--pinned", room.path("App/AppTests"))
    #expect(again.status == 0 && again.output.hasSuffix("nothing had to be settled\n"), "\(again.output)")
    #expect(try calibration(room) == text)
  }

  @Test("A store of a release settles the forms by the source at its tag")
  func sourceOfReleases() throws {
    let room = try room()
    for words in [["init", "-q"], ["add", "."], ["commit", "-qm", "v1"], ["tag", "v1"]] {
      let git = try room.wait(
        room.start(
          program: "/usr/bin/git",
          ["-C", room.path("App"), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
            + words))
      try #require(git.status == 0, "\(git.errors)")
    }
    try room.file("App/Models.swift", Self.source.replacing("var name", with: "var count: Int; var name"))
    let words = ["model", "calibrate", room.path("App"), "--store", room.path("a.store")]
    let refused = try room.run(words: words)
    #expect(refused.status == 65 && refused.errors.contains("add --tags 'v*'"), "\(refused.errors)")
    let outcome = try room.run(words: words + ["--tags", "v*"])
    try #require(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.output.contains("the hashes are those of 1.0.0 of v1\n"), "\(outcome.output)")
    #expect(try calibration(room).contains("the version hashes of a.store, version 1.0.0 of v1"))
  }

  @Test(
    "Where no hash decides, rows show whether a collection is text or an archive",
    arguments: [
      ("X'5B7B2278223A317D5D'", "binary"), ("X'\(archive)'", "transformable"), ("X'5B5D'", nil), ("NULL", nil),
    ])
  func rows(_ value: String, _ expected: String?) throws {
    let room = try room()
    try room.file("App/Models.swift", Self.source.replacing("var name", with: "var count: Int; var name"))
    try room.sql(
      room.path("a.store"), "INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZNAME, ZSTEPS) VALUES (1, 1, 1, 'a', \(value))")
    let outcome = try room.run("model", "calibrate", room.path("App"), "--store", room.path("a.store"))
    guard let expected else {
      #expect(outcome.status == 65 && outcome.errors.contains("no version in the source"), "\(outcome.errors)")
      return
    }
    try #require(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.output.contains("  URL: not settled"), "\(outcome.output)")
    let text = try calibration(room)
    #expect(text.contains("model = \"\(expected)\"\nevidence = \"no hash, but rows of a.store: Item.steps\""))
    #expect(!text.contains("URL"))
  }

  /// A keyed archive of data with the text `[{"x":1}]`.
  private static let archive =
    "62706C6973743030D4010203040506090C5924617263686976657258246F626A656374735424746F70582476657273696F6E5F100F4E534B65"
    + "7965644172636869766572A2070855246E756C6C495B7B2278223A317D5DD10A0B54726F6F74800112000186A008111B24293244474D575A"
    + "5F610000000000000101000000000000000D00000000000000000000000000000066"

  @Test("One source of hashes is given, and it has some")
  func usage() throws {
    let room = try room()
    let app = room.path("App")
    #expect(try room.run("model", "calibrate", app).status == 64)
    #expect(try room.run("model", "calibrate", app, "--checksum", "x", "--pinned", app).status == 64)
    let short = try room.run("model", "calibrate", app, "--checksum", "x")
    #expect(short.status == 64 && short.errors.contains("44 characters"), "\(short.errors)")
    let empty = try room.run("model", "calibrate", app, "--pinned", room.path("App/Models.swift"))
    #expect(empty.status != 0 && empty.errors.contains("no version hash is written here"), "\(empty.errors)")
  }
}

/// The reader of Swift source, for suites that need it.
enum SwiftDataRoom {
  static let root = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
  static let reader = root.appending(".build-reader/release/hopctl-swiftdata-reader")
}
