// Columns of composite attributes (docs/formats/store-layout.md, "Composite attributes"), and their values in a dump.

import Diagnostics
import ManagedObjectModel
import SQLite
import SystemPackage
import Testing

@testable import PersistentStore

@Suite struct CompositeLayoutTests {
  private func schema(_ body: String, _ framework: Int64 = 1344) throws -> StoreSchema {
    StoreSchema(model: try sampleModel(body), frameworkVersion: framework)
  }

  private func composite(_ name: String, _ elements: [(String, String)]) -> String {
    let list = elements.map { "<attribute name='\($0.0)' optional='YES' attributeType='\($0.1)'/>" }
    return "<composite name='\(name)'>\(list.joined())</composite>"
  }

  private func uses(_ uses: [(String, String)]) -> String {
    uses.map { "<attribute name='\($0.0)' optional='YES' attributeType='Composite' composite='\($0.1)'/>" }.joined()
  }

  private func text(_ schema: StoreSchema) -> String? { schema.tables.first?.createStatement }

  /// The author's id comes first, because the composite precedes the entity's own id; the order inside a group is that
  /// of declaration.
  @Test func elementsStandAtTheirCompositesPlace() throws {
    let schema = try schema(
      "<entity name='Quote'>\(uses([("author", "Author")]))<attribute name='id' attributeType='UUID'/>"
        + "<attribute name='content' attributeType='String'/></entity>"
        + composite("Author", [("id", "UUID"), ("person", "String"), ("place", "String"), ("year", "Integer 64")]))
    #expect(
      text(schema) == "CREATE TABLE ZQUOTE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZYEAR INTEGER, "
        + "ZPERSON VARCHAR, ZPLACE VARCHAR, ZCONTENT VARCHAR, ZID BLOB, ZID1 BLOB )")
    #expect(schema.unsupported.isEmpty)
    #expect(schema.column(ofAttribute: "author.id", in: "Quote") == "ZID")
    #expect(schema.column(ofAttribute: "id", in: "Quote") == "ZID1")
  }

  @Test func elementsOfOneTypeTwice() throws {
    let schema = try schema(
      "<entity name='Cup'>\(uses([("drinkColor", "Color"), ("backgroundColor", "Color")]))"
        + "<attribute name='capacity' attributeType='Double'/></entity>"
        + composite("Color", [("linearRed", "Double"), ("linearBlue", "Double"), ("space", "Integer 16")]))
    #expect(
      text(schema) == "CREATE TABLE ZCUP ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZSPACE INTEGER, "
        + "ZSPACE1 INTEGER, ZLINEARRED FLOAT, ZLINEARBLUE FLOAT, ZCAPACITY FLOAT, ZLINEARRED1 FLOAT, "
        + "ZLINEARBLUE1 FLOAT )"
    )
  }

  @Test func inheritedCompositesHaveTheirColumnsOnce() throws {
    let schema = try schema(
      "<entity name='A'>\(uses([("c", "P")]))</entity><entity name='B' parentEntity='A'>\(uses([("d", "P")]))</entity>"
        + composite("P", [("x", "String")]))
    #expect(schema.tables.first?.columns.map(\.name).dropFirst(3) == ["ZX", "ZX1"])
    #expect(schema.column(ofAttribute: "c.x", in: "B") == "ZX")
    #expect(schema.column(ofAttribute: "d.x", in: "B") == "ZX1")
  }

  @Test func nestedCompositesAreRefusedByName() throws {
    let schema = try schema(
      "<entity name='A'>\(uses([("c", "P")]))</entity>"
        + "<composite name='P'><attribute name='q' attributeType='Composite' composite='Q'/></composite>"
        + composite("Q", [("x", "String")]))
    #expect(schema.unsupported.map(\.code) == [.layoutUnsupported])
    #expect(schema.unsupported.first?.place.property == "c")
  }

  /// An index over an element is left out: its name is unknown. A store works without it.
  @Test func indexesOverElementsAreLeftOut() throws {
    let schema = try schema(
      "<entity name='A'>\(uses([("c", "P")]))<attribute name='n' attributeType='String'/>"
        + "<fetchIndex name='byX'><fetchIndexElement property='c.x' type='Binary' order='ascending'/></fetchIndex>"
        + "<uniquenessConstraints><uniquenessConstraint><constraint value='c.x'/></uniquenessConstraint>"
        + "<uniquenessConstraint><constraint value='n'/></uniquenessConstraint></uniquenessConstraints>"
        + "</entity>" + composite("P", [("x", "String")]))
    #expect(schema.indexes.map(\.name) == ["Z_A_UNIQUE_n"])
    #expect(schema.unsupported.map(\.code) == [.indexLeftOut, .indexLeftOut])
    // The rule itself is checked.
    let rules = ValidationRule.all(in: schema, tables: .schema("main"))
    #expect(rules.filter { $0.code == .uniqueness }.map(\.property).sorted() == ["c.x", "n"])
  }

  /// A composite is an object of its elements, and nil if none of them has a value.
  @Test func dumpsNestElements() throws {
    let schema = try schema(
      "<entity name='Quote'>\(uses([("author", "Author")]))<attribute name='authorX' attributeType='String'/>"
        + "<attribute name='auth' attributeType='String'/></entity>"
        + composite("Author", [("year", "Integer 64"), ("id", "String")]))
    let connection = try Connection(path: "", access: .memory)
    try StoreWriter(connection: connection, schema: "main").createTables(schema)
    try connection.execute(
      """
      INSERT INTO ZQUOTE (Z_PK, Z_ENT, Z_OPT, ZYEAR, ZID, ZAUTH) VALUES (1, 1, 1, 1900, NULL, 'a'), \
      (2, 1, 1, NULL, NULL, 'b')
      """)
    let lines = try PersistentStoreTests.dumped(StoreReader(connection: connection), schema).split(separator: "\n")
    #expect(
      lines == [
        #"""
        {"entity":"Quote","id":"Quote/p1","attributes":{"auth":"a","author":{"id":null,"year":1900},"authorX":null},\#
        "relationships":{}}
        """#,
        #"""
        {"entity":"Quote","id":"Quote/p2","attributes":{"auth":"b","author":null,"authorX":null},\#
        "relationships":{}}
        """#,
      ])
  }

  /// The key of a composite is its elements' key paths; its position among the attributes follows from its own name.
  @Test func keysOfElements() throws {
    let schema = try schema(
      "<entity name='N'>\(uses([("c", "P")]))<relationship name='to' optional='YES' toMany='YES' destinationEntity='N' "
        + "inverseName='from' inverseEntity='N'/><relationship name='from' optional='YES' toMany='YES' "
        + "destinationEntity='N' inverseName='to' inverseEntity='N'/></entity>"
        + composite("P", [("x", "String"), ("y", "String")]))
    var orders = KeyOrders(model: schema.model, numbers: schema.numbers)
    let order = orders.order(of: try #require(schema.model.entity(named: "N")))
    #expect(Set(order.keys) == ["_ent", "_pk", "_opt", "c.x", "c.y", "to", "from"])
    #expect(order.doubt == nil)
  }
}
