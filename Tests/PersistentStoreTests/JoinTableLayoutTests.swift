// Which end names a join table, what its columns are called, and what a store shows that no rule tells.

import BlockingTests
import Diagnostics
import SQLite
import SystemPackage
import Testing

@testable import ManagedObjectModel
@testable import PersistentStore

@Suite(.blocking) struct JoinTableLayoutTests {
  private func schema(
    _ entities: [Entity], _ framework: Int64 = 1447, _ naming: JoinTableNaming = JoinTableNaming()
  ) -> StoreSchema {
    StoreSchema(
      model: ManagedObjectModel(name: "V1", entities: entities), frameworkVersion: framework, naming: naming)
  }

  private func toMany(
    _ name: String, _ destination: String, _ inverse: String?, isOrdered: Bool = false
  ) -> Relationship {
    Relationship(
      name: name, destinationEntityName: destination, inverseName: inverse, isToMany: true, isOrdered: isOrdered)
  }

  /// Asset and Album of Photos: the entity with subentities names the table although its number is higher.
  private func albums(_ further: [Entity]) -> [Entity] {
    [
      Entity(name: "Asset", relationships: [toMany("albums", "Album", "assets")]),
      Entity(name: "Album", relationships: [toMany("assets", "Asset", "albums", isOrdered: true)]),
    ] + further
  }

  @Test func theEndWithSubentitiesNamesTheTable() {
    // Album is number 1 and Asset number 2 (or 3 with a subentity of Album).
    let plain = schema(albums([]))
    #expect(plain.joinTables.map(\.name) == ["Z_1ASSETS"])
    let onOther = schema(albums([Entity(name: "Movie", parentName: "Asset")]))
    #expect(
      onOther.joinTables.map(\.createStatement) == [
        "CREATE TABLE Z_2ALBUMS ( Z_2ASSETS INTEGER, Z_1ALBUMS INTEGER, Z_FOK_2ASSETS INTEGER, "
          + "PRIMARY KEY (Z_2ASSETS, Z_1ALBUMS) )"
      ])
    #expect(onOther.indexes.map(\.name).contains("Z_2ALBUMS_Z_1ALBUMS_INDEX"))
    let onBoth = schema(
      albums([Entity(name: "Movie", parentName: "Asset"), Entity(name: "Folder", parentName: "Album")]))
    #expect(onBoth.joinTables.map(\.name) == ["Z_1ASSETS"])
    // A subentity that has none itself does not count, though its parent has.
    let below = schema([
      Entity(name: "Album", relationships: [toMany("assets", "Picture", "albums")]), Entity(name: "Asset"),
      Entity(name: "Picture", parentName: "Asset", relationships: [toMany("albums", "Album", "assets")]),
    ])
    #expect(below.joinTables.map(\.name) == ["Z_1ASSETS"])
  }

  @Test func aToManyThatIsItsOwnInverse() throws {
    let schema = schema([Entity(name: "Person", relationships: [toMany("friends", "Person", "friends")])])
    #expect(schema.unsupported.isEmpty)
    #expect(
      schema.joinTables.map(\.createStatement) == [
        "CREATE TABLE Z_1FRIENDS ( Z_1FRIENDS INTEGER, REFLEXIVE INTEGER, PRIMARY KEY (Z_1FRIENDS, REFLEXIVE) )"
      ])
    #expect(
      schema.indexes.map(\.createStatement) == [
        "CREATE INDEX Z_1FRIENDS_REFLEXIVE_INDEX ON Z_1FRIENDS (REFLEXIVE, Z_1FRIENDS)"
      ])
    let ordered = self.schema([
      Entity(name: "Person", relationships: [toMany("friends", "Person", "friends", isOrdered: true)])
    ])
    #expect(ordered.unsupported.map(\.code) == [.layoutUnsupported])
  }

  /// Some stores have one row for a pair: it is a pair from both sides all the same.
  @Test func aPairIsReadFromBothSidesWhicheverRowIsThere() throws {
    let schema = schema([Entity(name: "Person", relationships: [toMany("friends", "Person", "friends")])])
    let connection = try Connection(path: "", access: .memory)
    try StoreWriter(connection: connection, schema: "main").createTables(schema)
    try connection.execute(
      "INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1), (3, 1, 1), (4, 1, 1);"
        + "INSERT INTO Z_1FRIENDS VALUES (1, 2), (2, 3), (3, 2), (4, 4)")
    let lines = try dumped(StoreReader(connection: connection), schema).split(separator: "\n").map(String.init)
    for (line, friends) in zip(
      lines, ["\"Person/p2\"", "\"Person/p1\",\"Person/p3\"", "\"Person/p2\"", "\"Person/p4\""])
    {
      #expect(line.contains("\"friends\":[\(friends)]"), "\(line)")
    }
    #expect(lines.count == 4)
  }

  /// The texts of a call history of WhatsApp and of Cyface, apart from the names.
  @Test func anOrderedToManyWithoutInverse() throws {
    let schema = schema([
      Entity(
        name: "Track", relationships: [toMany("places", "Place", nil, isOrdered: true), toMany("tags", "Place", nil)]),
      Entity(
        name: "Place",
        attributes: [Attribute(name: "accuracy", type: .double), Attribute(name: "count", type: .integer16)],
        relationships: [Relationship(name: "home", destinationEntityName: "Track")]),
    ])
    #expect(schema.unsupported.isEmpty)
    let table = try #require(schema.table(of: "Place"))
    #expect(
      table.columns.map(\.name) == [
        "Z_PK", "Z_ENT", "Z_OPT", "ZCOUNT", "ZHOME", "Z2PLACES", "Z_FOK_2PLACES", "Z2TAGS", "ZACCURACY",
      ]
        || table.columns.map(\.name) == [
          "Z_PK", "Z_ENT", "Z_OPT", "ZCOUNT", "ZHOME", "Z2TAGS", "Z2PLACES", "Z_FOK_2PLACES", "ZACCURACY",
        ])
    #expect(schema.indexes.map(\.createStatement).contains("CREATE INDEX ZPLACE_Z2PLACES_INDEX ON ZPLACE (Z2PLACES)"))
    #expect(!schema.indexes.contains { $0.columns.contains { $0.name == "Z_FOK_2PLACES" } })
    let connection = try Connection(path: "", access: .memory)
    try StoreWriter(connection: connection, schema: "main").createTables(schema)
    try connection.execute(
      "INSERT INTO ZTRACK (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1);"
        + "INSERT INTO ZPLACE (Z_PK, Z_ENT, Z_OPT, Z2PLACES, Z_FOK_2PLACES) VALUES (1, 1, 1, 1, 4096), "
        + "(2, 1, 1, 1, 2048), (3, 1, 1, 1, 3072)")
    let text = try dumped(StoreReader(connection: connection), schema)
    #expect(text.contains("\"places\":[\"Place/p2\",\"Place/p3\",\"Place/p1\"]"), "\(text)")
  }

  // MARK: Reading

  /// Two relationships of Asset whose inverses have one name.
  private let twins = [
    Entity(
      name: "Asset",
      relationships: [toMany2("memories", "Memory", "assets"), toMany2("suggestions", "Suggestion", "assets")]),
    Entity(name: "Memory", relationships: [toMany2("assets", "Asset", "memories")]),
    Entity(name: "Suggestion", relationships: [toMany2("assets", "Asset", "suggestions")]),
  ]

  private static func toMany2(_ name: String, _ destination: String, _ inverse: String) -> Relationship {
    Relationship(name: name, destinationEntityName: destination, inverseName: inverse, isToMany: true)
  }

  private func reader(_ schema: StoreSchema) throws -> StoreReader {
    let connection = try Connection(path: "", access: .memory)
    try StoreWriter(connection: connection, schema: "main").createTables(schema)
    return StoreReader(connection: connection)
  }

  @Test func columnsAreReadAsTheStoreNumbersThem() throws {
    let usual = schema(twins)
    #expect(usual.joinTables.map(\.ownerColumn) == ["Z_1ASSETS", "Z_1ASSETS1"])
    #expect(try reader(usual).joinTableNaming(for: usual.model, frameworkVersion: 1447).isEmpty)
    let reader = try reader(usual)
    // The other way round, and with a gap, as after one of three relationships was removed.
    for numbers in [("1", ""), ("", "2"), ("3", "1")] {
      let copy = try self.reader(usual)
      try copy.connection.execute(
        "ALTER TABLE Z_1MEMORIES RENAME COLUMN Z_1ASSETS TO x; ALTER TABLE Z_1MEMORIES RENAME COLUMN x TO "
          + "Z_1ASSETS\(numbers.0); ALTER TABLE Z_1SUGGESTIONS RENAME COLUMN Z_1ASSETS1 TO x; "
          + "ALTER TABLE Z_1SUGGESTIONS RENAME COLUMN x TO Z_1ASSETS\(numbers.1)")
      let read = try copy.layout(of: usual.model, frameworkVersion: 1447)
      #expect(read.joinTables.map(\.ownerColumn) == ["Z_1ASSETS\(numbers.0)", "Z_1ASSETS\(numbers.1)"])
      #expect(read.joinTables.map(\.targetColumn) == usual.joinTables.map(\.targetColumn))
      _ = try dumped(copy, read)
    }
    #expect(try dumped(reader, usual).isEmpty)
  }

  /// The store's own name is read, whichever end the rule would take; the plan warns of it.
  @Test func namesAreReadAsTheStoreHasThem() throws {
    let parent = Entity(name: "Movie", parentName: "Asset")
    let old = schema(albums([parent]), 1447, JoinTableNaming(["Album.assets"]))
    #expect(old.joinTables.map(\.name) == ["Z_1ASSETS"])
    let read = try reader(old).layout(of: old.model, frameworkVersion: 1447)
    #expect(read.joinTables == old.joinTables)
    #expect(read.unexpectedJoinTables.map(\.name) == ["Z_1ASSETS"])
    let new = schema(albums([parent]))
    #expect(try reader(new).layout(of: new.model, frameworkVersion: 1447).unexpectedJoinTables.isEmpty)
  }

  // MARK: What a dump lacks

  private func leftOut(_ reader: StoreReader, _ schema: StoreSchema) throws -> [HopdError] {
    try StoreDump(reader: reader, schema: schema).write { _ in }.leftOut
  }

  @Test func aDumpSaysWhatItLacks() throws {
    let schema = schema(twins)
    #expect(try leftOut(reader(schema), schema).isEmpty)
    for (sql, word) in [
      ("DROP TABLE Z_1MEMORIES", "Z_1MEMORIES"), ("DROP TABLE ZMEMORY", "ZMEMORY"),
      ("ALTER TABLE Z_1MEMORIES RENAME COLUMN Z_1ASSETS TO other", "Z_1ASSETS"),
      ("INSERT INTO ZASSET (Z_PK, Z_ENT, Z_OPT) VALUES (1, 9, 1)", "1 row of ZASSET"),
    ] {
      let reader = try reader(schema)
      try reader.connection.execute(sql)
      let errors = try leftOut(reader, schema)
      #expect(!errors.isEmpty && errors.allSatisfy { $0.message.contains(word) }, "\(sql): \(errors)")
      #expect(errors.allSatisfy { $0.code.exit != .success })
    }
    let unknown = self.schema([
      Entity(name: "Person", relationships: [toMany("friends", "Person", "friends", isOrdered: true)])
    ])
    #expect(try leftOut(reader(unknown), unknown).map(\.place.property) == ["friends"])
  }
}
