// Derived counts: their triggers, their place in the schema, and their values.

import BlockingTests
import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import OtherPrograms
import SQLite
import SystemPackage
import Testing

@testable import PersistentStore

@Suite(.blocking) struct DerivedAttributeTests {
  private func model(_ expression: String = "pages.@count") throws -> ManagedObjectModel {
    try sampleModel(
      """
      <entity name='Book'>
        <attribute name='pagesCount' optional='YES' attributeType='Integer 64' derived='YES'
          derivationExpression='\(expression)'/>
        <attribute name='title' optional='YES' attributeType='String'/>
        <relationship name='pages' optional='YES' toMany='YES' destinationEntity='Page' inverseName='book'
          inverseEntity='Page'/>
      </entity>
      <entity name='Novel' parentEntity='Book'>
        <attribute name='leaves' optional='YES' attributeType='Integer 64' derived='YES'
          derivationExpression='pages.@count'/>
      </entity>
      <entity name='Page'>
        <relationship name='book' optional='YES' maxCount='1' destinationEntity='Book' inverseName='pages'
          inverseEntity='Book'/>
      </entity>
      <entity name='Shelf'>
        <attribute name='stock' optional='YES' attributeType='Integer 64' derived='YES'
          derivationExpression='books.@count'/>
        <relationship name='books' optional='YES' toMany='YES' destinationEntity='Book'/>
      </entity>
      """)
  }

  @Test(arguments: ["pages.@count", "count:(pages)"])
  func bothWaysToWriteACountAreRead(_ expression: String) throws {
    let schema = StoreSchema(model: try model(expression), frameworkVersion: 1344)
    #expect(schema.unsupported.isEmpty)
    let triggers = schema.triggers.filter { $0.name.contains("_Book_pagesCount_") }
    #expect(
      triggers.map(\.name) == [
        "Z_DA_ZPAGE_Book_pagesCount_PARAMETER_INSERT", "Z_DA_ZPAGE_Book_pagesCount_PARAMETER_UPDATE_INCREMENT",
        "Z_DA_ZPAGE_Book_pagesCount_PARAMETER_UPDATE_DECREMENT", "Z_DA_ZPAGE_Book_pagesCount_PARAMETER_DELETE",
        "Z_DA_ZBOOK_Book_pagesCount_SOURCE_INSERT",
      ])
    // A to-one inverse and a root entity: no test of Z_ENT; all others have one.
    #expect(triggers.allSatisfy { !$0.text.contains("<= Z_ENT") })
    let others = schema.triggers.filter { !$0.name.contains("_Book_pagesCount_") }
    #expect(others.count == 10)
    #expect(others.allSatisfy { $0.text.contains("<= Z_ENT") || $0.text.contains("<= NEW.Z_ENT") })
  }

  @Test func triggersStandBehindTheIndexes() throws {
    let statements = StoreSchema(model: try model(), frameworkVersion: 1344).createStatements
    let kinds = statements.map { text in text.split(separator: " ").prefix(2).joined(separator: " ") }
    let firstTrigger = try #require(kinds.firstIndex(of: "CREATE TRIGGER"))
    let lastIndex = try #require(kinds.lastIndex(of: "CREATE INDEX"))
    #expect(lastIndex + 1 == firstTrigger)
    #expect(statements[firstTrigger + 15].hasPrefix("CREATE TABLE Z_PRIMARYKEY"))
  }

  @Test(arguments: [
    "canonical:(title)", "now()", "pages.@sum.number", "title", "lowercase:(title)", "title.@count", "nobody.@count",
  ])
  func otherDerivationsAreReportedAndNotInvented(_ expression: String) throws {
    let schema = StoreSchema(model: try model(expression), frameworkVersion: 1344)
    #expect(schema.unsupported.map(\.code) == [.derivationUnsupported])
    #expect(schema.unsupported.first?.place.property == "pagesCount")
    #expect(schema.triggers.count == 10)
    #expect(throws: HopdError.self) { try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: 1)) }
  }

  /// A new store has the right counts, and its triggers keep them when rows are inserted, moved and deleted.
  @Test func madeStoresCountAndGoOnCounting() throws {
    let schema = StoreSchema(model: try model(), frameworkVersion: 1344)
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-derived-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    let path = folder.appending("store.sqlite")
    try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: 5)).make(at: path, rows: 400, seed: 5)
    let connection = try Connection.ofApp(path)
    let wrong = """
      SELECT (SELECT count(*) FROM ZBOOK b WHERE ZPAGESCOUNT IS NOT (SELECT count(*) FROM ZPAGE WHERE ZBOOK = b.Z_PK))
        + (SELECT count(*) FROM ZBOOK b WHERE ZLEAVES IS NOT
            CASE Z_ENT WHEN 2 THEN (SELECT count(*) FROM ZPAGE WHERE ZBOOK = b.Z_PK) END)
        + (SELECT count(*) FROM ZSHELF s WHERE ZSTOCK IS NOT (SELECT count(*) FROM ZBOOK WHERE Z4BOOKS = s.Z_PK))
      """
    #expect(try connection.integer(wrong) == 0)
    #expect(try connection.integer("SELECT sum(ZPAGESCOUNT) > 20 AND sum(ZLEAVES) > 5 FROM ZBOOK") == 1)
    // Without Core Data's functions nothing can be written, with them the triggers count.
    let insert =
      "INSERT INTO ZPAGE (Z_PK, Z_ENT, Z_OPT, ZBOOK) VALUES (9001, 3, 1, 1), (9002, 3, 1, 2), (9003, 3, 1, 2)"
    #expect(throws: SQLiteError.self) { try connection.execute(insert) }
    try SchemaTrigger.registerFunctions(on: connection)
    try connection.execute(insert)
    try connection.execute("UPDATE ZPAGE SET ZBOOK = 1 WHERE Z_PK = 9002; DELETE FROM ZPAGE WHERE Z_PK = 9003")
    try connection.execute("UPDATE ZPAGE SET ZBOOK = NULL WHERE Z_PK = 9001; DELETE FROM ZBOOK WHERE Z_PK = 8")
    try connection.execute("INSERT INTO ZBOOK (Z_PK, Z_ENT, Z_OPT) VALUES (9001, 2, 1), (9002, 1, 1)")
    #expect(try connection.integer(wrong) == 0)
    #expect(try connection.integer("SELECT ZPAGESCOUNT FROM ZBOOK WHERE Z_PK = 9001") == 0)
  }

  /// The value of a to-one's target: only in an entity without parent, and only as its target has it.
  @Test func valuesOfTargetsAreMadeInTheFormOfStores() throws {
    func schema(_ expression: String, type: String = "String", attributes: String = "") throws -> StoreSchema {
      StoreSchema(
        model: try sampleModel(
          """
          <entity name='Book'>
            <attribute name='title' optional='YES' attributeType='String'/>
            <attribute name='seal' optional='YES' attributeType='Binary' allowsExternalBinaryDataStorage='YES'/>
            <attribute name='echo' optional='YES' attributeType='String' derived='YES'
              derivationExpression='next.title'/>
            <relationship name='next' optional='YES' maxCount='1' destinationEntity='Book'/>
          </entity>
          <entity name='Page'>
            <attribute name='v' optional='YES' attributeType='\(type)' \(attributes) derived='YES'
              derivationExpression='\(expression)'/>
            <relationship name='book' optional='YES' maxCount='1' destinationEntity='Book'/>
          </entity>
          <entity name='Cover' parentEntity='Page'/>
          """), frameworkVersion: 1344)
    }
    let good = try schema("book.title")
    #expect(good.unsupported.isEmpty)
    #expect(
      good.triggers.map(\.name) == [
        "Z_DA_ZBOOK_Book_echo_SOURCE_INSERT", "Z_DA_ZBOOK_Book_echo_SOURCE_UPDATE",
        "Z_DA_ZBOOK_Book_echo_PARAMETER_INSERT", "Z_DA_ZBOOK_Book_echo_PARAMETER_UPDATE",
        "Z_DA_ZPAGE_Page_v_SOURCE_INSERT", "Z_DA_ZPAGE_Page_v_SOURCE_UPDATE", "Z_DA_ZBOOK_Page_v_PARAMETER_INSERT",
        "Z_DA_ZBOOK_Page_v_PARAMETER_UPDATE",
      ])
    #expect(
      good.triggers.last?.text == "CREATE TRIGGER Z_DA_ZBOOK_Page_v_PARAMETER_UPDATE AFTER UPDATE OF ZTITLE ON ZBOOK "
        + "FOR EACH ROW BEGIN UPDATE ZPAGE SET ZV = NEW.ZTITLE WHERE ZBOOK = NEW.Z_PK; SELECT "
        + "NSCoreDataDATriggerUpdatedAffectedObjectValue('ZPAGE', Z_ENT, Z_PK, 'v', ZV) FROM ZPAGE WHERE ZBOOK = "
        + "NEW.Z_PK; END")
    let others = [
      try schema("book.title", type: "Integer 16"), try schema("book.echo"), try schema("book.next.title"),
      try schema("book.nothing"), try schema("nothing.title"), try schema("book.seal", type: "Binary"),
      try schema("book.seal", type: "Binary", attributes: "allowsExternalBinaryDataStorage='YES'"),
    ]
    for schema in others {
      #expect(schema.unsupported.map(\.code) == [.derivationUnsupported])
      #expect(schema.triggers.count == 4)
    }
    let folder = try Folder()
    let path = folder.path.appending("store.sqlite")
    try FreshStore(schema: good, uuid: FreshStore.uuid(seed: 5)).make(at: path, rows: 200, seed: 5)
    let connection = try Connection.ofApp(path)
    let wrong =
      "SELECT (SELECT count(*) FROM ZPAGE p WHERE ZV IS NOT (SELECT ZTITLE FROM ZBOOK b WHERE b.Z_PK = p.ZBOOK)) + "
      + "(SELECT count(*) FROM ZBOOK p WHERE ZECHO IS NOT (SELECT ZTITLE FROM ZBOOK b WHERE b.Z_PK = p.ZNEXT))"
    #expect(try connection.integer(wrong) == 0)
    #expect(try connection.integer("SELECT count(ZV) > 20 FROM ZPAGE") == 1)
    try SchemaTrigger.registerFunctions(on: connection)
    try connection.execute("UPDATE ZBOOK SET ZTITLE = 'x' || Z_PK, ZNEXT = Z_PK; UPDATE ZPAGE SET ZBOOK = NULL")
    #expect(try connection.integer(wrong) == 0)
    #expect(try connection.integer("SELECT count(ZV) FROM ZPAGE") == 0)
  }

  /// An entity with a parent has no such derivation in any store.
  @Test func valuesOfTargetsOfSubentitiesAreReported() throws {
    let model = try sampleModel(
      """
      <entity name='Book'><attribute name='title' optional='YES' attributeType='String'/></entity>
      <entity name='Page'><relationship name='book' optional='YES' maxCount='1' destinationEntity='Book'/></entity>
      <entity name='Cover' parentEntity='Page'>
        <attribute name='v' optional='YES' attributeType='String' derived='YES' derivationExpression='book.title'/>
      </entity>
      """)
    let schema = StoreSchema(model: model, frameworkVersion: 1344)
    #expect(schema.unsupported.map(\.place.entity) == ["Cover"] && schema.triggers.isEmpty)
  }

  /// A trigger's text as SQLite keeps it is accepted, whatever its body; one that SQLite would read only in part is
  /// not.
  @Test func textsOfTriggersAreOneStatement() throws {
    let bodies = [
      "UPDATE ZA SET ZX = CASE WHEN 1 THEN 'it''s; END' ELSE \"ZX\" END; SELECT 1; ",
      "SELECT [ZX] FROM ZA; -- ; END\n SELECT 2; /* ; END; */ ", "DELETE FROM ZA WHERE `ZX` = 'END'; ",
    ]
    for (name, body) in bodies.flatMap({ body in ["t", "\"t\""].map { ($0, body) } }) {
      let connection = try Connection(path: "unused", access: .memory)
      try connection.execute(
        "CREATE TABLE ZA (ZX); CREATE TRIGGER IF NOT EXISTS main.\(name) AFTER INSERT ON ZA BEGIN \(body)end; ")
      let text = try #require(try connection.text("SELECT sql FROM sqlite_schema WHERE name = 't'"))
      #expect(SchemaTrigger(name: "t", table: "ZA", text: text)?.text == text, "\(text)")
      #expect(SchemaTrigger(name: "other", table: "ZA", text: text) == nil)
      for tail in ["; DELETE FROM ZA", ";", " x", "; CREATE TRIGGER u AFTER INSERT ON ZA BEGIN SELECT 1; END", "\0"] {
        #expect(SchemaTrigger(name: "t", table: "ZA", text: text + tail) == nil, "\(text)\(tail)")
      }
      for length in 0..<text.count {
        #expect(SchemaTrigger(name: "t", table: "ZA", text: String(text.prefix(length))) == nil)
      }
    }
    let rest = "AFTER INSERT ON ZA BEGIN SELECT 1; END"
    for start in [
      "CREATE TEMP TRIGGER t ", "CREATE TRIGGER IF NOT EXISTS t ", "CREATE TRIGGER main.t ", "CREATE TRIGGER t.t ",
      "CREATE TRIGGER tt ", " CREATE TRIGGER t ", "CREATE TABLE t ", "CREATE TRIGGER t",
    ] {
      #expect(SchemaTrigger(name: "t", table: "ZA", text: start + rest) == nil, "\(start)")
    }
    #expect(SchemaTrigger(name: "t", table: "ZA", text: "CREATE TRIGGER t " + rest) != nil)
  }
}
