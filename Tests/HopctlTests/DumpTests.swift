// `hopctl dump`: people leave with everything, binary values whole.

import BlockingTests
import FoundationEssentials
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct DumpTests {
  private static let file = "01020304-0506-0708-090A-0B0C0D0E0F10"
  private static let absent = "11121314-1516-1718-191A-1B1C1D1E1F20"
  /// No multiple of three, and longer than the portions in which a file is read.
  private static let long = String(repeating: "0123456789", count: 60_001) + "x"

  /// Four photos: 3 bytes, 200 bytes in the column, a file, and a file that is missing.
  private func album() throws -> (room: Room, store: String, model: String) {
    let room = try Room()
    try room.file(
      "Album.xcdatamodeld/Album.xcdatamodel/contents",
      """
      <?xml version='1.0'?><model><entity name='Photo'>
      <attribute name='data' optional='YES' attributeType='Binary' allowsExternalBinaryDataStorage='YES'/>
      <attribute name='frame' optional='YES' attributeType='Transformable'/>
      </entity></model>
      """)
    let (store, model) = (room.path("album.sqlite"), room.path("Album.xcdatamodeld"))
    let created = try room.run("create", store, "--models", model, "--model-version", "Album")
    try #require(created.status == 0, "\(created.errors)")
    try room.file(".album_SUPPORT/_EXTERNAL_DATA/\(Self.file)", Self.long)
    func reference(_ name: String) -> String { "CAST(X'02' || '\(name)' || X'00' AS BLOB)" }
    _ = try room.sql(
      store,
      "INSERT INTO ZPHOTO (Z_PK, Z_ENT, Z_OPT, ZDATA, ZFRAME) VALUES (1, 1, 1, X'01616263', zeroblob(65)),"
        + " (2, 1, 1, CAST(X'01' || zeroblob(200) AS BLOB), X'616263'), (3, 1, 1, \(reference(Self.file)), NULL),"
        + " (4, 1, 1, \(reference(Self.absent)), NULL); UPDATE Z_PRIMARYKEY SET Z_MAX = 4")
    return (room, store, model)
  }

  @Test func base64HasEveryByte() throws {
    let (room, store, model) = try album()
    let dumped = try room.run("dump", store, "--models", model, "--binary", "base64")
    #expect(dumped.status == 0)
    let values = try dumped.lines().map(\.attributes)
    let data = values.map { $0?.data?.text.flatMap { Data(base64Encoded: $0) } }
    #expect(data == [Data("abc".utf8), Data(count: 200), Data(Self.long.utf8), nil])
    #expect(values.first??.frame?.text == Data(count: 65).base64EncodedString())
    #expect(values.last??.data?.external?.text == Self.absent)
    // A value that nobody has is told, not passed over.
    #expect(dumped.errors.contains("the external data of 1 value is missing"), "\(dumped.errors)")
  }

  @Test func filesHaveEveryByteUnderTheirDigest() throws {
    let (room, store, model) = try album()
    let folder = room.path("bytes")
    let dumped = try room.run("dump", store, "--models", model, "--binary", "files", "--files", folder)
    #expect(dumped.status == 0)
    let short = try room.run("dump", store, "--models", model)
    #expect(short.errors.contains("3 binary values of more than 64 bytes") && short.errors.contains("--binary base64"))
    #expect(!dumped.errors.contains("--binary base64"))
    let digests = try short.lines().map { $0.attributes?.data?.digest?.text }
    let objects = try dumped.lines()
    #expect(objects.first?.attributes?.data?.text == "YWJj")
    #expect(objects.map { $0.attributes?.data?.file?.text } == digests)
    #expect(digests.compactMap(\.self).count == 2)
    let long = try #require(digests[2])
    #expect(try Data(contentsOf: URL(filePath: folder + "/" + long)) == Data(Self.long.utf8))
    let names = try FileManager.default.contentsOfDirectory(atPath: folder)
    #expect(names.count == 3, "a file for each long value and nothing else: \(names)")
    for name in names { #expect(name.count == 64 && name.allSatisfy(\.isHexDigit), "\(name)") }
    // Again into the same directory: the same files.
    let program = try #require(Program.path).string
    let words = "'\(program)' dump '\(store)' --models '\(model)' --binary files --files here"
    let command = "cd '\(room.path.string)' && \(words)"
    let relative = try room.wait(room.start(program: "/bin/sh", ["-c", command]))
    #expect(relative.status == 0 && FileManager.default.fileExists(atPath: room.path("here")), "\(relative.errors)")
    let again = try room.run("dump", store, "--models", model, "--binary", "files", "--files", folder)
    #expect(again.output == dumped.output)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == names.sorted())
  }

  @Test func badDirectoriesAreNamed() throws {
    let (room, store, model) = try album()
    try room.file("plain", "")
    for (words, status) in [
      (["--binary", "files"], 64), (["--files", room.path("bytes")], 64), (["--binary", "hex"], 64),
      (["--binary", "files", "--files", room.path("plain")], 65),
      (["--binary", "files", "--files", room.path("no/where")], 66),
    ] {
      let outcome = try room.run(words: ["dump", store, "--models", model] + words)
      #expect(outcome.status == Int32(status), "\(words): \(outcome.errors)")
      #expect(status == 64 || outcome.errors.contains(room.path(status == 65 ? "plain" : "no")), "\(outcome.errors)")
    }
  }
}
