import BlockingTests
import PersistentStore
import SQLite
import SystemPackage
import Testing

/// The texts of tables that Core Data made, and then extended.
@Suite(.blocking) struct TableTextTests {
  @Test(arguments: [
    ("CREATE TABLE ZCAR ( Z_PK INTEGER PRIMARY KEY, ZDATA BLOB )", ["Z_PK INTEGER PRIMARY KEY", "ZDATA BLOB"]),
    ("CREATE TABLE \"ZCAR\" ( Z_PK INTEGER PRIMARY KEY )", ["Z_PK INTEGER PRIMARY KEY"]),
    (
      "CREATE TABLE ZCAR ( Z_PK INTEGER PRIMARY KEY, ZDATA BLOB , ZNONCE BLOB)",
      ["Z_PK INTEGER PRIMARY KEY", "ZDATA BLOB", "ZNONCE BLOB"]
    ),
    (
      "CREATE TABLE ZCAR ( Z_PK INTEGER PRIMARY KEY , ZA BLOB, ZB INTEGER)",
      ["Z_PK INTEGER PRIMARY KEY", "ZA BLOB", "ZB INTEGER"]
    ),
  ])
  func textsOfCoreDataAreTakenApart(_ text: String, _ definitions: [String]) {
    #expect(TableText(text, table: "ZCAR")?.definitions == definitions)
  }

  @Test(arguments: [
    "CREATE TABLE ZCARS ( Z_PK INTEGER PRIMARY KEY )", "CREATE TABLE ZCAR (Z_PK INTEGER PRIMARY KEY)",
    "CREATE TABLE ZCAR ( Z_PK INTEGER PRIMARY KEY, ZA BLOB)", "CREATE TABLE ZCAR ( Z_PK INTEGER PRIMARY KEY ) STRICT",
    "CREATE TABLE ZCAR ( Z_PK INTEGER PRIMARY KEY , ZA BLOB )", "CREATE TABLE ZCAR ( Z_PK INTEGER PRIMARY KEY  )",
    "CREATE TABLE ZCAR ( Z_PK INTEGER PRIMARY KEY,  ZA BLOB )", "CREATE TABLE ZCAR ( , ZA BLOB )",
    "create table ZCAR ( Z_PK INTEGER PRIMARY KEY )", "CREATE TABLE ZCAR ( ",
  ])
  func anythingElseIsNot(_ text: String) { #expect(TableText(text, table: "ZCAR") == nil) }

  /// The text that SQLite itself makes, whatever the names.
  @Test func appendingIsWhatSQLiteWrites() throws {
    let connection = try Connection(path: "memory", access: .memory)
    var text = "CREATE TABLE ZCAR ( Z_PK INTEGER PRIMARY KEY, ZDATA BLOB )"
    try connection.execute(text)
    for (name, type) in [("ZNONCE", "BLOB"), ("ZÄ", "VARCHAR"), ("Z;\"x", "INTEGER"), ("Z_LAST", "TIMESTAMP")] {
      let definition = TableText.definition(of: name, type: type)
      try connection.execute("ALTER TABLE \"ZCAR\" ADD COLUMN \(definition)")
      text = TableText.appending([definition], to: text)
      #expect(try connection.text("SELECT sql FROM sqlite_master") == text)
    }
    #expect(text.contains("ZDATA BLOB , ZNONCE BLOB, "))
  }
}
