// Exports of stores with hostile values and names, in every form.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite
import SystemPackage
import Testing

@testable import StoreExchange

struct ExportTests {
  /// A garden with a value of every kind that formats get wrong.
  private func hostileGarden() throws -> Room {
    let room = try Room(gardenModel)
    let data = try room.file(
      "garden.ndjson",
      #"""
      {"entity":"Family","id":"Family/p1","attributes":{"name":"=HYPERLINK(\"x\")"},"relationships":{"plants":[]}}
      {"entity":"Garden","id":"Garden/p1","attributes":{"name":"a,\"b\"\r\nc"},\#
      "relationships":{"plants":["Tree/p2","Plant/p1"]}}
      {"entity":"Plant","id":"Plant/p1","attributes":{"hardy":true,"height":1e300,"name":"nul\u0000nul",\#
      "notes":null,"picture":"AQID","seen":-1e-12,"tag":"00010203-0405-0607-0809-0A0B0C0D0E0F",\#
      "year":-32768},"relationships":{"family":"Family/p1","gardens":["Garden/p1"],"label":null}}
      {"entity":"Tree","id":"Tree/p2","attributes":{"hardy":false,"height":"-Infinity",\#
      "name":{"invalidText":"gP8="},"notes":null,"picture":null,"rings":2147483647,\#
      "seen":"4001-01-01T00:00:00.0Z","tag":null,"year":null},"relationships":{"family":null,\#
      "gardens":["Garden/p1"],"label":null}}
      """#)
    try room.load(data, rows: .keep)
    return room
  }

  @Test("JSON lines come back with every bit") func lines() throws {
    let room = try hostileGarden()
    let lines = try room.lines()
    let copy = try room.file("copy.ndjson", lines.joined(separator: "\n") + "\n")
    try room.load(copy, as: "copy.sqlite", rows: .keep)
    #expect(try room.lines("copy.sqlite") == lines)
    #expect(lines.contains { $0.contains(#""seen":-1e-12"#) } && lines.contains { $0.contains("gP8=") })
  }

  @Test("CSV quotes what needs quotes, and escapes formulas on request") func csv() throws {
    let room = try hostileGarden()
    let (folder, written) = try room.csv()
    #expect(written.objects == ["Family": 1, "Garden": 1, "Plant": 1, "Tree": 1] && written.pairs == 2)
    #expect(written.warnings.map(\.code.name) == ["texts-changed", "texts-changed"])
    #expect(
      try room.text(folder.appending("Garden.csv")) == "id,name\r\n1,\"a,\"\"b\"\"\r\nc\"\r\n")
    #expect(
      try room.text(folder.appending("Family.csv")) == "id,name\r\n1,\"=HYPERLINK(\"\"x\"\")\"\r\n")
    #expect(
      try room.text(folder.appending("Plant.csv")).hasPrefix("id,hardy,height,name,notes,picture,seen,tag,year,"))
    var options = ExportOptions()
    options.formulas = .escape
    options.dates = .unix
    let (escaped, changed) = try room.csv(options: options)
    #expect(changed.warnings.last?.message.contains("with an apostrophe in front") == true)
    #expect(try room.text(escaped.appending("Family.csv")).contains("\"'=HYPERLINK"))
    #expect(try room.text(escaped.appending("Tree.csv")).contains("64092211200"))
  }

  @Test("The database has the objects under the model's names, and its keys and constraints hold") func database()
    throws
  {
    let room = try hostileGarden()
    let (connection, written) = try room.database()
    #expect(written.objects == ["Family": 1, "Garden": 1, "Plant": 1, "Tree": 1] && written.pairs == 2)
    #expect(written.warnings.isEmpty, "\(written.warnings)")
    #expect(
      try connection.rows(
        "SELECT id, entity, hex(name), height, seen, tag, hex(picture), hardy FROM Plant ORDER BY id"
      ) { row in (0..<8).map { row.value(at: Int32($0)) } } == [
        [
          .integer(1), .text("Plant"), .text("6E756C006E756C"), .real(1e300), .text("2001-01-01T00:00:00.0Z"),
          .text("00010203-0405-0607-0809-0A0B0C0D0E0F"), .text("010203"), .integer(1),
        ],
        [
          .integer(2), .text("Tree"), .text("80FF"), .real(-.infinity), .text("4001-01-01T00:00:00.0Z"), .null,
          .text(""), .integer(0),
        ],
      ])
    #expect(
      try connection.rows("SELECT id, rings FROM Tree") { [$0.integer(at: 0), $0.integer(at: 1)] } == [
        [2, 2_147_483_647]
      ])
    #expect(
      try connection.rows("SELECT Plant, gardens FROM Plant_gardens ORDER BY plants_position") { $0.integer(at: 0) }
        == [2, 1])
    #expect(throws: SQLiteError.self) { try connection.run("INSERT INTO Family (name) VALUES (NULL)") }
    #expect(throws: SQLiteError.self) { try connection.run("INSERT INTO Plant (entity, name) VALUES ('Shrub', 'xx')") }
    #expect(throws: SQLiteError.self) { try connection.run("INSERT INTO Plant (entity, name) VALUES ('Tree', 'xx')") }
    #expect(throws: SQLiteError.self) { try connection.run("INSERT INTO Plant (entity, name) VALUES ('Plant', 'x')") }
    #expect(throws: SQLiteError.self) {
      try connection.run("INSERT INTO Family (name) SELECT name FROM Family")
    }
  }

  @Test("An exported database becomes the same store again") func databaseComesBack() throws {
    let room = try hostileGarden()
    for (number, change) in [ExportOptions(), options(.unix, .blob)].enumerated() {
      let (connection, _) = try room.database(options: change)
      let copy = try room.file("database-\(number).db", "")
      try connection.copy("main", to: copy) { _, _ in true }
      try room.load(copy, as: "again-\(number).sqlite", rows: .keep)
      let (found, wanted) = (try room.lines("again-\(number).sqlite"), try room.lines())
      // Neither RFC 3339 nor Unix seconds have a number as small as this one.
      let rounded = wanted.map { $0.replacing(#""seen":-1e-12"#, with: #""seen":"2001-01-01T00:00:00.0Z""#) }
      #expect(found == rounded)
    }
  }

  private func options(_ dates: DateForm, _ uuids: UUIDForm) -> ExportOptions {
    var options = ExportOptions()
    (options.dates, options.uuids) = (dates, uuids)
    return options
  }

  @Test("Names that are words of SQL, or those of an export itself, are safe") func hostileNames() throws {
    let room = try Room(
      """
      <entity name='Order'><attribute name='id' attributeType='Integer 32'/>
        <attribute name='select' optional='YES' attributeType='String'/>
        <attribute name='entity' optional='YES' attributeType='String'/>
        <relationship name='group' optional='YES' maxCount='1' destinationEntity='sqlite_table' inverseName='where'
          inverseEntity='sqlite_table'/></entity>
      <entity name='Values' parentEntity='Order'/>
      <entity name='sqlite_table'><relationship name='where' optional='YES' toMany='YES' destinationEntity='Order'
        inverseName='group' inverseEntity='Order'/></entity>
      """)
    let data = try room.file(
      "o.ndjson",
      #"""
      {"entity":"Values","id":"Values/p1","attributes":{"id":7,"select":"a","entity":"b"},\#
      "relationships":{"group":"sqlite_table/p1"}}
      {"entity":"sqlite_table","id":"sqlite_table/p1","attributes":{},"relationships":{"where":["Values/p1"]}}
      """#)
    try room.load(data)
    let (connection, written) = try room.database()
    #expect(written.objects == ["Values": 1, "sqlite_table": 1])
    #expect(
      try connection.rows("SELECT pk, entity_name, id, \"select\", entity, \"group\" FROM \"Values\"") { row in
        (0..<6).map { row.value(at: Int32($0)) }
      } == [[.integer(1), .text("Values"), .integer(7), .text("a"), .text("b"), .integer(1)]])
    #expect(try connection.integer("SELECT count(*) FROM \"_sqlite_table\"") == 1)
    let (folder, _) = try room.csv()
    try room.load(folder, as: "again.sqlite")
    #expect(try room.lines("again.sqlite") == room.lines())
  }

  @Test("A name is given once, whatever its case, and no name leads out of a folder") func uniqueNames() {
    var names = UniqueNames(["id"])
    #expect(names.take("ID", "Plant_ID") == "Plant_ID")
    #expect(names.take("name") == "name" && names.take("Name", "NAME") == "NAME_2")
    var files = FileNames()
    #expect(files.take("../x", extension: ".csv") == "%2E.%2Fx.csv")
    #expect(files.take(".hidden", extension: ".csv") == "%2Ehidden.csv")
    #expect(
      files.take("a/b\n", extension: ".csv") == "a%2Fb%0A.csv" && files.take("Über", extension: ".csv") == "Über.csv")
    #expect(files.take(String(repeating: "x", count: 300), extension: ".csv").utf8.count < 255)
  }

  @Test("A selection exports its objects, and no reference to others") func selection() throws {
    let room = try hostileGarden()
    let (connection, written) = try room.database(entities: ["Plant"], predicate: "height > 0 AND family.name != 'x'")
    #expect(written.objects == ["Plant": 1])
    #expect(
      try connection.rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'hopctl%'") {
        $0.text(at: 0) ?? ""
      } == ["Plant"])
    let all = try room.database(entities: ["Plant", "Garden"]).written
    #expect(all.objects == ["Garden": 1, "Plant": 1, "Tree": 1] && all.pairs == 2)
    #expect(throws: HopdError.self) { _ = try room.database(entities: ["Plnt"]) }
    #expect(throws: HopdError.self) { _ = try room.database(entities: ["Plant"], predicate: "heigt > 0") }
  }

  @Test("Since a transaction, only changed objects are exported, and deleted ones are named") func increments() throws {
    let room = try hostileGarden()
    let location = room.location("store.sqlite")
    do {
      let connection = try Connection(path: location.database, access: .exclusive(keepsLog: false))
      try connection.execute(
        """
        CREATE TABLE ATRANSACTION (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, ZTIMESTAMP TIMESTAMP);
        CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, ZCHANGETYPE INTEGER, ZENTITY INTEGER,
          ZENTITYPK INTEGER, ZTRANSACTIONID INTEGER);
        INSERT INTO ATRANSACTION VALUES (5, 16002, 0), (6, 16002, 1);
        INSERT INTO ACHANGE VALUES (1, 16001, 0, 1, 1, 5), (2, 16001, 1, 4, 1, 6), (3, 16001, 2, 4, 9, 6),
          (4, 16001, 2, 4, 1, 6)
        """)
    }
    let (lines, last, warning) = try StoreReader.withUnchangedStore(at: location, attachedAs: "source") { reader in
      final class Sink { var bytes: [UInt8] = [] }
      let sink = Sink()
      let history = try HistorySelection(since: 5, in: reader, schema: room.schema)
      let selection = try StoreSelection(
        entities: [], predicate: nil, history: history, in: reader, schema: room.schema)
      _ = try StoreDump(reader: reader, schema: room.schema, selection: selection, isExact: true)
        .write { sink.bytes += $0 }
      #expect(try history.writeDeleted(of: selection) { sink.bytes += $0 } == 1)
      let lines = String(decoding: sink.bytes, as: UTF8.self).split(separator: "\n").map(String.init)
      return (lines, history.last, history.warning)
    }
    #expect(last == 6 && warning == nil)
    #expect(lines.count == 2, "\(lines)")
    // What a changed object refers to stays, although it is not exported.
    #expect(lines[0].contains(#""id":"Plant/p1""#) && lines[0].contains(#""family":"Family/p1""#), "\(lines[0])")
    #expect(lines[1] == #"{"entity":"Plant","id":"Plant/p9","deleted":true}"#)
  }

  @Test("A rule that objects break is left out, and no object is") func brokenRules() throws {
    let room = try Room(gardenModel)
    let data = try room.file(
      "p.ndjson", #"{"entity":"Plant","id":"Plant/p1","attributes":{"name":"X"},"relationships":{}}"# + "\n")
    try room.load(data, rows: .keep)
    let (connection, written) = try room.database()
    #expect(written.count == 1 && written.warnings.map(\.code.name) == ["constraint-left-out"])
    #expect(throws: Never.self) { try connection.run("INSERT INTO Plant (entity, name) VALUES ('Plant', 'Y')") }
  }

  @Test("Archives give their plain values, others stay archives with their class") func archives() throws {
    func exported(_ value: SQLiteValue) throws -> SQLiteValue {
      guard case .blob(let bytes) = value else { return .null }
      return try ArchivedContent(dates: .iso).exported(bytes)
    }
    let attribute = Attribute(name: "a", type: .transformable)
    let values = ImportedValue()
    #expect(try exported(values.stored(.text("plain"), as: attribute)) == .text("plain"))
    #expect(try exported(values.stored(.integer(.max), as: attribute)) == .integer(.max))
    #expect(try exported(.blob([1, 2, 3])) == .text(#"{"class":null,"base64":"AQID"}"#))
    let back = try values.stored(.text(#"{"class":null,"base64":"AQID"}"#), as: attribute)
    #expect(back == .blob([1, 2, 3]))
  }

  @Test("Large content of external storage goes into a file and comes back") func externalContent() throws {
    let room = try Room(gardenModel)
    let content = String(repeating: "QUJD", count: 50_000)
    let data = try room.file(
      "p.ndjson",
      #"{"entity":"Plant","id":"Plant/p1","attributes":{"name":"Oak","picture":""# + content
        + #""},"relationships":{}}"#)
    try room.load(data)
    #expect(try ExternalDataDirectory(of: room.location("store.sqlite")).isThere)
    #expect(try room.lines()[0].contains(content))
    let (connection, _) = try room.database()
    #expect(try connection.integer("SELECT length(picture) FROM Plant") == 150_000)
  }
}

struct SchemaCodeTests {
  private func code(
    _ language: SchemaLanguage, _ room: Room, options: ExportOptions = ExportOptions()
  ) throws -> String {
    try StoreReader.withUnchangedStore(at: room.location("store.sqlite"), attachedAs: "source") { reader in
      let clean = try CleanSchema(of: room.schema, in: reader, selection: .all, options: options)
      return try SchemaCode(of: clean, in: reader, options: options, external: nil).text(in: language)
    }
  }

  private func garden() throws -> Room {
    let room = try Room(gardenModel)
    try room.load(
      try room.file("g.ndjson", #"{"entity":"Garden","id":"Garden/p1","attributes":{"name":"G"}}"# + "\n"))
    return room
  }

  @Test("The statements make the schema of the exported database") func statements() throws {
    let room = try garden()
    let connection = try Connection(path: "", access: .memory)
    try connection.execute(try code(.sql, room))
    func objects(_ connection: Connection) throws -> [String] {
      try connection.rows(
        "SELECT type || ' ' || name || ' ' || sql FROM sqlite_master WHERE name <> 'hopctl_import' ORDER BY name"
      ) {
        $0.text(at: 0) ?? ""
      }
    }
    #expect(try objects(connection) == objects(room.database().connection))
  }

  @Test("Code has no rule that objects of the store break") func brokenRules() throws {
    let room = try Room(gardenModel)
    try room.load(
      try room.file("g.ndjson", #"{"entity":"Garden","id":"Garden/p1","attributes":{"name":null}}"# + "\n"),
      rows: .keep)
    #expect(try code(.sql, room).contains("TABLE \"Garden\" (\n  \"id\" INTEGER PRIMARY KEY,\n  \"name\" TEXT\n)"))
    let swift = try code(.grdbSwift, room)
    #expect(swift.contains("\"Garden\"\n\n  var id: Int64?\n  var name: String?\n"), "\(swift)")
  }

  @Test("Records of GRDB write dates and UUIDs in the forms of the export") func forms() throws {
    let room = try garden()
    let swift = try code(.grdbSwift, room)
    #expect(swift.contains("    .custom(StoredDate.text(of:))\n") && swift.contains("\nenum StoredDate {\n"))
    #expect(swift.contains("    .uppercaseString\n"))
    var options = ExportOptions()
    (options.dates, options.uuids) = (.unix, .blob)
    let other = try code(.grdbSwift, room, options: options)
    #expect(other.contains("    .timeIntervalSince1970\n") && !other.contains("StoredDate"))
    #expect(!other.contains("uppercaseString"))
  }

  @Test("Records of GRDB and entities of Room name every table and column") func records() throws {
    let room = try garden()
    let swift = try code(.grdbSwift, room)
    #expect(swift.contains("struct Plant: Codable, Identifiable, FetchableRecord, MutablePersistableRecord {"))
    #expect(swift.contains("  var height: Double?\n") && swift.contains("  var name: String\n"))
    #expect(swift.contains("struct Tree: Codable, Identifiable, FetchableRecord, TableRecord {"))
    #expect(swift.contains("    case plants_position = \"plants_position\"\n"))
    let kotlin = try code(.roomKotlin, room)
    #expect(kotlin.contains("data class Plant(\n  @PrimaryKey @ColumnInfo(name = \"id\") val id: Long?,\n"))
    #expect(kotlin.contains("onDelete = ForeignKey.SET_NULL, deferred = true)"))
    #expect(kotlin.contains("primaryKeys = [\"Plant\", \"gardens\"]"))
    #expect(kotlin.contains("Index(value = [\"name\"], name = \"Family_name_unique\", unique = true)"))
  }
}
