import Diagnostics
import ManagedObjectModel
import SQLite
import SystemPackage
import Testing

@testable import PersistentStore

struct StoreDumpTests {
  /// The dump of one row of an entity with one attribute.
  private func dumped(_ type: String, _ value: SQLiteValue, attributes: String = "") throws -> String {
    let model = try sampleModel(
      "<entity name='T'><attribute name='a' optional='YES' attributeType='\(type)' \(attributes)/></entity>")
    let schema = StoreSchema(model: model, frameworkVersion: 1344)
    let connection = try Connection(path: "", access: .memory)
    try StoreWriter(connection: connection, schema: "main").createTables(schema)
    try connection.run("INSERT INTO ZT (Z_PK, Z_ENT, Z_OPT, ZA) VALUES (5, 1, 1, ?)", [value])
    let line = try PersistentStoreTests.dumped(StoreReader(connection: connection), schema)
    let start = #"{"entity":"T","id":"T/p5","attributes":{"a":"#
    let end = "},\"relationships\":{}}\n"
    try #require(line.hasPrefix(start) && line.hasSuffix(end), "\(line)")
    return String(line.dropFirst(start.count).dropLast(end.count))
  }

  @Test(
    arguments: [
      ("Integer 16", .integer(-32_768), "-32768"), ("Integer 64", .integer(.max), "9223372036854775807"),
      ("Boolean", .integer(0), "false"), ("Boolean", .integer(1), "true"), ("Boolean", .integer(2), "2"),
      ("Double", .real(0.1), "0.1"), ("Double", .real(1e300), "1e+300"), ("Double", .real(.infinity), "\"Infinity\""),
      ("Double", .real(-.infinity), "\"-Infinity\""), ("Float", .real(1.5), "1.5"),
      ("Decimal", .real(19.99), "\"19.99\""), ("Decimal", .integer(20), "\"20\""),
      ("Decimal", .real(1e20), "\"1e+20\""),
      ("String", .text("a\"b\\c\n\u{1}\u{7f}\u{2028}é"), #""a\"b\\c\n\u0001\u007f\u2028é""#), ("String", .null, "null"),
      ("String", .text("a\u{0}b"), #""a\u0000b""#), ("URI", .text("x:y"), "\"x:y\""),
      ("Date", .real(0), "\"2001-01-01T00:00:00.0Z\""), ("Date", .integer(86_400), "\"2001-01-02T00:00:00.0Z\""),
      ("Date", .real(0.25), "\"2001-01-01T00:00:00.25Z\""), ("Date", .real(1e18), "1e+18"),
      (
        "UUID", .blob(Array(0..<16)), "\"00010203-0405-0607-0809-0A0B0C0D0E0F\""
      ), ("UUID", .blob([1, 2]), "\"AQI=\""), ("String", .blob([1, 2]), #"{"blob":"AQI="}"#),
      ("Binary", .blob([]), "\"\""), ("Binary", .blob([1, 2, 3]), "\"AQID\""),
      ("Transformable", .blob([0xff]), "\"/w==\""),
      (
        "Binary", .blob([UInt8](repeating: 0, count: 65)),
        #"{"bytes":65,"digest":"98ce42deef51d40269d542f5314bef2c7468d401ad5d85168bfab4c0108f75f7"}"#
      ),
    ] as [(String, SQLiteValue, String)])
  func everyTypeHasItsForm(type: String, value: SQLiteValue, expected: String) throws {
    #expect(try dumped(type, value) == expected)
  }

  @Test func externalStorageIsReadThroughItsPrefix() throws {
    let flag = "allowsExternalBinaryDataStorage='YES'"
    #expect(try dumped("Binary", .blob([1, 7]), attributes: flag) == "\"Bw==\"")
    #expect(try dumped("Binary", .blob([1]), attributes: flag) == "\"\"")
    let reference: [UInt8] = [2] + Array("0A0B0C0D-0000-0000-0000-000000000000".utf8) + [0]
    #expect(
      try dumped("Binary", .blob(reference), attributes: flag)
        == #"{"external":"0A0B0C0D-0000-0000-0000-000000000000"}"#)
    #expect(try dumped("Binary", .blob([2, 7])) == "\"Agc=\"", "without the flag there is no prefix")
  }

  @Test func datesKeepEveryDigitThatCounts() throws {
    for (seconds, text) in [
      (-978_307_200, "1970-01-01T00:00:00.0Z"), (63_113_904_000, "4001-01-01T00:00:00.0Z"),
      (-63_114_076_800, "0001-01-01T00:00:00.0Z"), (-0.25, "2000-12-31T23:59:59.75Z"),
      (94_607_999.5, "2003-12-31T23:59:59.5Z"), (99_705_600, "2004-02-29T00:00:00.0Z"),
      (0.999_999_999_9, "2001-01-01T00:00:01.0Z"), (252_423_993_599, "9999-12-31T23:59:59.0Z"),
      (-63_145_526_400, "0000-01-01T00:00:00.0Z"),
    ] as [(Double, String)] {
      #expect(DateText.rfc3339(secondsSince2001: seconds) == text)
    }
    for seconds in [252_423_993_600, -63_145_526_401, .infinity, .nan, 1e300] as [Double] {
      #expect(DateText.rfc3339(secondsSince2001: seconds) == nil)
    }
  }

  @Test("Dates are read back as they are written, and in the other forms of RFC 3339") func datesAreReadBack() {
    for seconds in [
      -978_307_200, 63_113_904_000, -63_114_076_800, -0.25, 94_607_999.5, 99_705_600, 252_423_993_599, -63_145_526_400,
      785_430_123.456_789, -1.5, 86_399.999,
    ] as [Double] {
      let text = DateText.rfc3339(secondsSince2001: seconds)
      #expect(text.flatMap { DateText.secondsSince2001(rfc3339: $0) } == seconds, "\(seconds)")
    }
    for (text, seconds) in [
      ("2001-01-02", 86_400), ("2001-01-01 00:00:01", 1), ("2001-01-01T02:00+02:00", 0), ("2001-01-01t00:00:00z", 0),
      ("2000-12-31T23:00:00-0100", 0), ("2001-01-01T00:00:00,5Z", 0.5), ("2004-02-29", 99_705_600),
    ] as [(String, Double)] {
      #expect(DateText.secondsSince2001(rfc3339: text) == seconds, "\(text)")
    }
    for text in [
      "", "2001", "2001-1-1", "2001-13-01", "2001-02-29", "2001-01-01T24:00", "2001-01-01T00:60",
      "2001-01-01T00:00:60Z", "2001-01-01T00:00:00.Z", "2001-01-01T00:00:00+1", "2001-01-01T00:00:00Zx", "01.02.2001",
      "2001-01-01T",
    ] {
      #expect(DateText.secondsSince2001(rfc3339: text) == nil, "\(text)")
    }
  }

  @Test func relationshipsHaveTheirTargetsInOrder() throws {
    let model = try sampleModel(
      """
      <entity name='Animal'><relationship name='owner' optional='YES' maxCount='1' destinationEntity='Person'
        inverseName='pets' inverseEntity='Person'/></entity>
      <entity name='Cat' parentEntity='Animal'/>
      <entity name='Group'><relationship name='members' optional='YES' toMany='YES' ordered='YES'
        destinationEntity='Person' inverseName='groups' inverseEntity='Person'/></entity>
      <entity name='Person'>
        <relationship name='best' optional='YES' maxCount='1' destinationEntity='Animal'/>
        <relationship name='groups' optional='YES' toMany='YES' destinationEntity='Group' inverseName='members'
          inverseEntity='Group'/>
        <relationship name='pets' optional='YES' toMany='YES' ordered='YES' destinationEntity='Animal'
          inverseName='owner' inverseEntity='Animal'/>
      </entity>
      """)
    let schema = StoreSchema(model: model, frameworkVersion: 1344)
    let connection = try Connection(path: "", access: .memory)
    try StoreWriter(connection: connection, schema: "main").createTables(schema)
    let join = try #require(schema.joinTables.first)
    let order = try #require(join.orderColumn)
    try connection.execute(
      """
      INSERT INTO ZPERSON (Z_PK, Z_ENT, ZBEST, Z1_BEST) VALUES (1, 4, 3, 2), (2, 4, NULL, NULL), (3, 4, 2, 1);
      INSERT INTO ZANIMAL (Z_PK, Z_ENT, ZOWNER, Z_FOK_OWNER) VALUES (1, 1, 3, 3072), (2, 1, 1, 2048), (3, 2, 3, 2048);
      INSERT INTO ZGROUP (Z_PK, Z_ENT) VALUES (7, 3), (8, 3);
      INSERT INTO \(join.name) (\(join.ownerColumn), \(join.targetColumn), \(order))
        VALUES (7, 1, 9), (7, 3, 4), (8, 3, 1);
      """)
    let text = try PersistentStoreTests.dumped(StoreReader(connection: connection), schema)
    #expect(
      text == """
        {"entity":"Animal","id":"Animal/p1","attributes":{},"relationships":{"owner":"Person/p3"}}
        {"entity":"Animal","id":"Animal/p2","attributes":{},"relationships":{"owner":"Person/p1"}}
        {"entity":"Cat","id":"Cat/p3","attributes":{},"relationships":{"owner":"Person/p3"}}
        {"entity":"Group","id":"Group/p7","attributes":{},"relationships":{"members":["Person/p3","Person/p1"]}}
        {"entity":"Group","id":"Group/p8","attributes":{},"relationships":{"members":["Person/p3"]}}
        {"entity":"Person","id":"Person/p1","attributes":{},"relationships":{"best":"Cat/p3",\
        "groups":["Group/p7"],"pets":["Animal/p2"]}}
        {"entity":"Person","id":"Person/p2","attributes":{},"relationships":{"best":null,"groups":[],"pets":[]}}
        {"entity":"Person","id":"Person/p3","attributes":{},"relationships":{"best":"Animal/p2",\
        "groups":["Group/p7","Group/p8"],"pets":["Cat/p3","Animal/p1"]}}

        """)
  }

  @Test func aDumpComesInPortions() throws {
    let folder = try Folder()
    let model = try everythingModel()
    let location = try folder.store(model, rows: 2000)
    var largest = 0
    var portions = 0
    _ = try StoreReader.withUnchangedStore(at: location) { reader in
      try StoreDump(reader: reader, schema: StoreSchema(model: model, frameworkVersion: 1344)).write {
        largest = max(largest, $0.count)
        portions += 1
      }
    }
    #expect(portions > 5)
    #expect(largest < 80 << 10)
  }
}
