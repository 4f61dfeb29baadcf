import Diagnostics
import PersistentStore
import SQLite
import SystemPackage
import Testing

@Suite("The shape of a table")
struct TableShapeTests {
  private func reader(_ statements: String...) throws -> StoreReader {
    let connection = try Connection(path: "", access: .memory)
    for statement in statements { try connection.execute(statement) }
    return StoreReader(connection: connection)
  }

  @Test("Tables of one name in several stores each have the shape of their own text")
  func eachText() throws {
    let texts: [(text: String, columns: [String], isKeyed: Bool, isWithoutRowID: Bool)] = [
      ("CREATE TABLE ZNOTE (Z_PK INTEGER PRIMARY KEY, ZTEXT VARCHAR)", ["Z_PK", "ZTEXT"], true, false),
      ("CREATE TABLE ZNOTE (Z_PK INTEGER PRIMARY KEY, ZDATE TIMESTAMP)", ["Z_PK", "ZDATE"], true, false),
      ("CREATE TABLE ZNOTE (Z_PK integer PRIMARY KEY)", ["Z_PK"], true, false),
      ("CREATE TABLE ZNOTE (Z_PK INTEGER PRIMARY KEY DESC)", ["Z_PK"], false, false),
      ("CREATE TABLE ZNOTE (Z_PK INT PRIMARY KEY)", ["Z_PK"], false, false),
      ("CREATE TABLE ZNOTE (Z_PK INTEGER, ZTEXT VARCHAR)", ["Z_PK", "ZTEXT"], false, false),
      ("CREATE TABLE ZNOTE (Z_PK INTEGER PRIMARY KEY) WITHOUT ROWID", ["Z_PK"], false, true),
    ]
    // Twice: the second time the texts are known.
    for expected in texts + texts {
      let shape = try reader(expected.text).shape(of: "ZNOTE")
      #expect(shape.columns.map(\.name) == expected.columns, "\(expected.text)")
      #expect(shape.isKeyedByRowID == expected.isKeyed, "\(expected.text)")
      #expect(shape.isWithoutRowID == expected.isWithoutRowID, "\(expected.text)")
    }
  }

  @Test("A reader sees a table that was altered after it was read")
  func alteredTable() throws {
    let reader = try reader("CREATE TABLE ZNOTE (Z_PK INTEGER PRIMARY KEY)")
    #expect(try reader.shape(of: "ZNOTE").columns.count == 1)
    try reader.connection.execute("ALTER TABLE ZNOTE ADD COLUMN ZTEXT VARCHAR")
    #expect(try reader.shape(of: "ZNOTE").columns.map(\.name) == ["Z_PK", "ZTEXT"])
    try reader.connection.execute("DROP TABLE ZNOTE")
    #expect(try reader.schemaObjects().isEmpty)
    #expect(try reader.shape(of: "ZNOTE").columns.isEmpty)
  }
}

@Suite("Tables that are more than names and types")
struct PlainTableTests {
  private func isRefused(_ text: String) throws -> Bool {
    let connection = try Connection(path: "", access: .memory)
    try connection.execute(text)
    do {
      try StoreReader.requirePlainTables(StoreReader(connection: connection).schemaObjects(), at: Place())
      return false
    } catch let error as HopdError {
      #expect(error.code.name == "schema-foreign")
      return true
    }
  }

  @Test("A column that SQLite computes, checks or compares in its own way is refused, in any spelling")
  func computed() throws {
    for clause in ["AS (1)", "as(1)", "GENERATED ALWAYS AS (1)", "ChEcK (1)", "default 1", "collate nocase"] {
      #expect(try isRefused("CREATE TABLE ZNOTE (Z_PK INTEGER PRIMARY KEY, ZTEXT VARCHAR \(clause))"), "\(clause)")
    }
    #expect(try isRefused("CREATE VIEW ZNOTE AS SELECT 1"))
  }

  @Test("Words within names, and quoted ones, are names")
  func names() throws {
    for column in ["ZAS", "ZCHECK", "ZDEFAULTS", "\"AS\"", "[CHECK]", "`DEFAULT`", "ASÄ", "Ä_AS", "'COLLATE'"] {
      #expect(try !isRefused("CREATE TABLE ZNOTE (Z_PK INTEGER PRIMARY KEY, \(column) VARCHAR)"), "\(column)")
    }
    #expect(try !isRefused("CREATE TABLE OTHER (x DEFAULT 1)"), "not Core Data's")
  }
}
