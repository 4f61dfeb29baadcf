// The copy of the model inside a store: a written copy is read again, and a foreign one never causes more than an
// error.

import BlockingTests
import Diagnostics
import PersistentStore
import SQLite
import SystemPackage
import Testing

@testable import ManagedObjectModel

@Suite(.blocking) struct ModelCacheTests {
  @Test func everythingComesOutAgain() throws {
    var random = SystemRandomNumberGenerator()
    for count in [0, 1, 2, 100, 65_535, 65_536, 65_537, 300_000] {
      for kind in 0..<3 {
        let bytes = (0..<count).map { index in
          kind == 0 ? 0 : kind == 1 ? UInt8(truncatingIfNeeded: index / 7) : UInt8.random(in: 0...255, using: &random)
        }
        #expect(try ModelCache.decompress(ModelCache.compress(bytes)) == bytes, "\(count) bytes of kind \(kind)")
      }
    }
  }

  /// Cut off at every position, and with a byte changed at every position: a result or an error, never more.
  @Test func damageIsAnError() throws {
    let text = Array(String(repeating: "NSEntityDescription NSPropertyName ", count: 20).utf8)
    let whole = try ModelCache.compress(text)
    for count in 0..<whole.count {
      #expect(throws: HopdError.self, "the first \(count) bytes") {
        try ModelCache.decompress(Array(whole.prefix(count)))
      }
    }
    for position in whole.indices {
      for change in [UInt8(1), 0x80, 0xff] {
        var copy = whole
        copy[position] ^= change
        _ = try? ModelCache.decompress(copy)
      }
    }
    #expect(throws: HopdError.self, "bytes behind the end") { try ModelCache.decompress(whole + [0]) }
    #expect(throws: HopdError.self, "zeros") { try ModelCache.decompress([UInt8](repeating: 0, count: 64)) }
    #expect(throws: HopdError.self, "noise") { try ModelCache.decompress(Array("SELECT 1".utf8)) }
  }

  /// Some kilobytes that claim many megabytes stop at the limit.
  @Test func bombsStopAtTheLimit() throws {
    let bomb = try ModelCache.compress([UInt8](repeating: 0, count: 40 << 20))
    #expect(bomb.count < 50_000)
    let error = try #require(throws: HopdError.self) { try ModelCache.decompress(bomb) }
    #expect(error.code == .modelCacheDamaged)
    #expect(error.message.contains("unpacks to more than"))
    let zeros = [UInt8](repeating: 0, count: 1000)
    #expect(try ModelCache.decompress(ModelCache.compress(zeros), maximumBytes: 1000) == zeros)
    #expect(throws: HopdError.self) { try ModelCache.decompress(ModelCache.compress(zeros), maximumBytes: 999) }
  }

  private func content(_ statements: String) throws -> [UInt8]? {
    let connection = try Connection(path: "", access: .memory)
    try connection.execute(statements)
    return try StoreReader(connection: connection).modelCache()
  }

  @Test func storesWithoutACopyHaveNone() throws {
    for statements in [
      "CREATE TABLE T (a)", "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)",
      "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB); INSERT INTO Z_MODELCACHE VALUES (NULL)",
      "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB); INSERT INTO Z_MODELCACHE VALUES (x'')",
      "CREATE VIEW Z_MODELCACHE AS SELECT zeroblob(9) AS Z_CONTENT",
    ] {
      #expect(try content(statements) == nil, "\(statements)")
    }
  }

  @Test func oddCopiesAreErrors() throws {
    let table = "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB); INSERT INTO Z_MODELCACHE VALUES "
    for values in ["('text')", "(1)", "(x'00')", "(x'0300'), (x'0300')", "(zeroblob(17000000))"] {
      let error = try #require(throws: HopdError.self, "\(values)") { try content(table + values) }
      #expect(error.code == .modelCacheDamaged, "\(values)")
      #expect(error.hint != nil)
    }
    // An empty stream is valid.
    #expect(try content(table + "(x'0300')") == [])
  }

  /// A hostile store may have a gigabyte there: it is refused by its length, before it is read.
  @Test func longCopiesAreNotRead() throws {
    let connection = try Connection(path: "", access: .memory)
    try connection.execute(
      "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB); INSERT INTO Z_MODELCACHE VALUES (zeroblob(17000000))")
    // Reading the value would fail with an error of SQLite.
    connection.limitValues(toBytes: 1 << 20)
    let error = #expect(throws: HopdError.self) { try StoreReader(connection: connection).modelCache() }
    #expect(error?.code == .modelCacheDamaged && error?.message.contains("17000000 bytes") == true, "\(error as Any)")
  }

  private static let note = Entity(
    name: "Note", attributes: [Attribute(name: "text", type: .string)],
    relationships: [Relationship(name: "next", destinationEntityName: "Note", inverseName: "previous")])

  /// From fw 637 on a store contains its model; before that it has no table for it.
  @Test(arguments: [Int64(419), 519, 637, 847, 1344]) func freshStoresCarryTheirModel(_ framework: Int64) throws {
    var note = Self.note
    note.relationships.append(Relationship(name: "previous", destinationEntityName: "Note", inverseName: "next"))
    let model = ManagedObjectModel(name: "Notes", entities: [note])
    let schema = StoreSchema(model: model, frameworkVersion: framework)
    #expect(ModelCache.remark(on: schema) == nil)
    let folder = try Folder()
    let path = folder.path.appending("notes.sqlite")
    try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: 1)).make(at: path, rows: 3)
    let cache = try StoreReader.withUnchangedStore(at: StoreLocation(database: path)) { try $0.modelCache() }
    #expect((cache != nil) == (framework >= 637))
    if let cache { #expect(try cache == model.archived(frameworkVersion: framework)) }
  }

  /// A model without a known archived form leaves the table empty; the note names entity and property.
  @Test func unknownFormsLeaveItEmpty() throws {
    var note = Self.note
    note.relationships = []
    let cases: [(Attribute?, FetchedProperty?, FetchIndex?)] = [
      (Attribute(name: "bad", type: .string, regularExpression: "a+"), nil, nil),
      (Attribute(name: "bad", type: .date, minimum: "0"), nil, nil),
      (Attribute(name: "bad", type: .decimal, minimum: "0"), nil, nil),
      (Attribute(name: "bad", type: .double, minimum: "many"), nil, nil),
      (Attribute(name: "bad", type: .integer64, derivationExpression: "a + b"), nil, nil),
      (Attribute(name: "bad", type: .objectID), nil, nil),
      (nil, FetchedProperty(name: "bad"), nil),
      (
        nil, nil,
        FetchIndex(
          name: "bad", elements: [FetchIndex.Element(propertyName: "text")], partialPredicate: "text BEGINSWITH 'a'")
      ),
      (nil, nil, FetchIndex(name: "bad", elements: [FetchIndex.Element(propertyName: nil, expression: "length")])),
    ]
    for (attribute, fetched, index) in cases {
      var entity = note
      if let attribute { entity.attributes.append(attribute) }
      if let fetched { entity.fetchedProperties.append(fetched) }
      if let index { entity.fetchIndexes.append(index) }
      let child = Entity(name: "Remark", parentName: "Note")
      let model = ManagedObjectModel(name: "Notes", entities: [entity, child])
      let remark = try #require(ModelCache.remark(on: StoreSchema(model: model, frameworkVersion: 1344)))
      #expect(remark.code == .modelCacheLeftEmpty)
      #expect(remark.place.entity == "Note")
      #expect(remark.place.property == "bad" || remark.message.contains("bad"))
      #expect(ModelCache.remark(on: StoreSchema(model: model, frameworkVersion: 519)) == nil)
    }
  }
}
