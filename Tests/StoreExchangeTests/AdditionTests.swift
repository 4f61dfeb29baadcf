// Data added to a store that has objects: it takes the store's place whole, or not at all.

import Diagnostics
import FoundationEssentials
import PersistentStore
import SQLite
import StoreReplacement
import SystemPackage
import Testing

@testable import StoreExchange

struct AdditionTests {
  private static let mapping = """
    [[existing]]
    entity = "Family"
    key = "name"
    [[import]]
    entity = "Plant"
    from = "new.csv"
    key = "name"
    [import.columns]
    name = "name"
    [import.relationships]
    family = "family"
    [[pairs]]
    relationship = "Garden.plants"
    from = "new.csv"
    owner = "garden"
    target = "name"
    [[existing]]
    entity = "Garden"
    key = "name"
    """

  private func garden() throws -> Room {
    let room = try Room(gardenModel)
    let data = try room.file(
      "old.ndjson",
      """
      {"entity":"Family","id":"Family/p5","attributes":{"name":"Rose family"},"relationships":{"plants":["Plant/p3"]}}
      {"entity":"Garden","id":"Garden/p2","attributes":{"name":"South"},"relationships":{"plants":["Plant/p3"]}}
      {"entity":"Plant","id":"Plant/p3","attributes":{"name":"Rose"},"relationships":{}}
      """)
    try room.load(data)
    return room
  }

  private func add(
    _ data: FilePath, to room: Room, mapping: FilePath?, again: Bool = false
  ) throws -> ReplacedStore? {
    var work = StoreImport(data: data)
    work.mapping = mapping
    let state = room.path.appending("state")
    try FileManager.default.createDirectory(atPath: state.string, withIntermediateDirectories: true)
    let job = String(UInt32.random(in: 0...UInt32.max), radix: 16)
    return try StoreAddition(stateDirectory: state, mode: nil).add(
      work, again: again, to: CanonicalStoreLocation(resolving: room.path.appending("store.sqlite")), job: job,
      backup: BackupRule(), now: 1_700_000_000,
      identify: { reader in
        StoreAddition.Identified(schema: room.schema, metadata: try reader.metadata(), version: "Test")
      }, progress: { _ in }
    )?.replaced
  }

  @Test("New rows refer to objects of the store by their keys, and the old store is kept") func rows() throws {
    let room = try garden()
    let before = try room.lines()
    let data = try room.file("new.csv", "name,family,garden\nBlackberry,Rose family,South\nOak,,South\n")
    let added = try add(data, to: room, mapping: try room.file("m.hopimport.toml", Self.mapping))
    let replaced = try #require(added)
    let lines = try room.lines()
    #expect(lines.count == 5)
    #expect(lines[0].contains(#""plants":["Plant/p3","Plant/p4"]"#), "\(lines[0])")
    // In the garden's order the new ones follow those that it had.
    #expect(lines[1].contains(#""plants":["Plant/p3","Plant/p4","Plant/p5"]"#), "\(lines[1])")
    #expect(lines[2].contains(#""id":"Plant/p3""#) && lines[3].contains("Blackberry") && lines[4].contains("Oak"))
    let connection = try Connection(path: room.path.appending("store.sqlite"), access: .immutable)
    #expect(try connection.integer("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_NAME = 'Plant'") == 5)
    let backup = try #require(replaced.backup)
    try FileManager.default.copyItem(
      atPath: backup.string, toPath: room.path.appending("kept.sqlite").string)
    #expect(try room.lines("kept.sqlite") == before)
    // By this number recovery tells the two stores of one version apart.
    let kept = try Connection(path: room.path.appending("kept.sqlite"), access: .immutable)
    let number = "PRAGMA schema_version"
    #expect(try kept.integer(number) != connection.integer(number))
    #expect(!room.names.contains { $0.hasSuffix(".tmp") }, "\(room.names)")
  }

  @Test("hopctl's own lines get keys after those of the store") func ownLines() throws {
    let room = try garden()
    let data = try room.file(
      "more.ndjson",
      """
      {"entity":"Plant","id":"Plant/p1","attributes":{"name":"Fern"},"relationships":{"family":"Family/p1"}}
      {"entity":"Family","id":"Family/p1","attributes":{"name":"Fern family"},"relationships":{}}
      """)
    _ = try add(data, to: room, mapping: nil)
    let lines = try room.lines()
    #expect(lines.count == 5)
    #expect(lines[1].contains(#""id":"Family/p6""#) && lines[1].contains(#""plants":["Plant/p4"]"#), "\(lines[1])")
    #expect(lines[4].contains(#""family":"Family/p6""#), "\(lines[4])")
  }

  @Test("The same data is added once, and once more only on request") func again() throws {
    let room = try garden()
    let text = #"{"entity":"Plant","id":"Plant/p1","attributes":{"name":"Fern"},"relationships":{}}"# + "\n"
    let data = try room.file("more.ndjson", text)
    #expect(try add(data, to: room, mapping: nil) != nil)
    #expect(try add(data, to: room, mapping: nil) == nil)
    // The name of the file says nothing.
    #expect(try add(try room.file("other.ndjson", text), to: room, mapping: nil) == nil)
    #expect(try room.lines().count == 4)
    #expect(try add(data, to: room, mapping: nil, again: true) != nil)
    #expect(try room.lines().count == 5)
    #expect(try add(data, to: room, mapping: nil) == nil)
    #expect(try add(try room.file("more.ndjson", text + "\n"), to: room, mapping: nil) != nil)
    #expect(try room.lines().count == 6)
  }

  @Test("Files that a crash left are used by the next run, and one that is half written is written again")
  func externalFiles() throws {
    let room = try garden()
    let content = String(repeating: "QUJD", count: 50_000)
    let data = try room.file(
      "more.ndjson",
      (1...2).map { number in
        #"{"entity":"Plant","id":"Plant/p\#(number)","attributes":{"name":"Fern \#(number)","picture":"\#(content)"},"#
          + #""relationships":{}}"# + "\n"
      }.joined())
    let store = room.path.appending("store.sqlite")
    let before = try Data(contentsOf: URL(filePath: store.string))
    _ = try add(data, to: room, mapping: nil)
    let folder = room.location("store.sqlite").externalDataDirectory
    func files() throws -> [String: Int] {
      var found: [String: Int] = [:]
      for name in try FileManager.default.contentsOfDirectory(atPath: folder.string) {
        found[name] = try Data(contentsOf: URL(filePath: folder.appending(name).string)).count
      }
      return found
    }
    let wanted = try files()
    #expect(wanted.count == 2 && wanted.values.allSatisfy { $0 == 150_000 })
    // As a crash before the replacement leaves it: the old store, and files, one of them torn.
    try before.write(to: URL(filePath: store.string))
    let torn = folder.appending(try #require(wanted.keys.min()))
    try Data([1, 2, 3]).write(to: URL(filePath: torn.string))
    _ = try add(data, to: room, mapping: nil)
    #expect(try files() == wanted)
    #expect(try room.lines().filter { $0.contains(content) }.count == 2)
  }

  @Test("A row that breaks a rule leaves the store as it was") func brokenRow() throws {
    let room = try garden()
    let store = room.path.appending("store.sqlite")
    let before = try Data(contentsOf: URL(filePath: store.string))
    let data = try room.file(
      "more.ndjson",
      #"{"entity":"Family","id":"Family/p1","attributes":{"name":"Rose family"},"relationships":{}}"# + "\n")
    #expect(throws: HopdError.self) { _ = try add(data, to: room, mapping: nil) }
    #expect(try Data(contentsOf: URL(filePath: store.string)) == before)
    #expect(!room.names.contains { $0.contains(".hop") }, "\(room.names)")
  }

  @Test("An import that fails removes the external files that it wrote") func failedFiles() throws {
    let room = try garden()
    let content = String(repeating: "QUJD", count: 50_000)
    let data = try room.file(
      "more.ndjson",
      #"{"entity":"Plant","id":"Plant/p1","attributes":{"name":"Fern","picture":"\#(content)"},"relationships":{}}"#
        + "\n" + #"{"entity":"Family","id":"Family/p1","attributes":{"name":"Rose family"},"relationships":{}}"# + "\n")
    #expect(throws: HopdError.self) { _ = try add(data, to: room, mapping: nil) }
    #expect(!room.names.contains { $0.contains("_SUPPORT") || $0.contains(".hop") }, "\(room.names)")
  }
}
