// Counts of the one pass compared with plain statements, one for each number: over stores with gaps in their keys, with
// dangling references, with keys of every type, with unassigned entity numbers.

import BlockingTests
import FoundationEssentials
import ManagedObjectModel
import SQLite
import SeededRandom
import SystemPackage
import Testing

@testable import PersistentStore

@Suite(.blocking) struct StoreCensusTests {
  /// Every kind of storage: to-ones with and without discriminator, ordered, many-to-many with order, owners, and a
  /// tree of entities with an abstract root.
  static let model = ManagedObjectModel(
    name: "World",
    entities: [
      Entity(
        name: "Book", attributes: [Attribute(name: "title", type: .string, isOptional: true)],
        relationships: [
          Relationship(name: "author", destinationEntityName: "Person", inverseName: "books"),
          Relationship(name: "next", destinationEntityName: "Book"),
          Relationship(
            name: "tags", destinationEntityName: "Tag", inverseName: "books", isToMany: true, isOrdered: true),
        ]),
      Entity(name: "EBook", parentName: "Book", attributes: [Attribute(name: "url", type: .uri, isOptional: true)]),
      Entity(
        name: "Person", attributes: [Attribute(name: "name", type: .string, isOptional: true)],
        relationships: [
          Relationship(
            name: "books", destinationEntityName: "Book", inverseName: "author", isToMany: true, isOrdered: true),
          Relationship(name: "shelf", destinationEntityName: "Place", isToMany: true),
        ]),
      Entity(name: "Place", isAbstract: true, attributes: [Attribute(name: "n", type: .integer32, isOptional: true)]),
      Entity(
        name: "Room", parentName: "Place",
        relationships: [Relationship(name: "door", destinationEntityName: "Place")]),
      Entity(name: "Yard", parentName: "Place"),
      Entity(
        name: "Tag", attributes: [Attribute(name: "word", type: .string, isOptional: true)],
        relationships: [Relationship(name: "books", destinationEntityName: "Book", inverseName: "tags", isToMany: true)]
      ),
    ])
  static let schema = StoreSchema(model: model, frameworkVersion: 1344)

  /// A store in memory with the tables of the schema and consistent rows.
  private static func store(rows: Int64, gaps: Bool, texts: Bool) throws -> Connection {
    let connection = try Connection(path: "/", access: .memory)
    for table in schema.tables {
      // A table declared by another program may compare keys as texts.
      let statement = table.createStatement.replacing(
        texts ? "AUTHOR INTEGER" : "-", with: "AUTHOR VARCHAR", maxReplacements: 1)
      try connection.execute(statement)
      let step = gaps ? 3 : 1
      for key in stride(from: Int64(1), through: rows, by: step) {
        let names = table.entities.filter { schema.model.entity(named: $0)?.isAbstract == false }
        let name = names[Int(key) % names.count]
        try connection.run(
          "INSERT INTO \(table.name) (Z_PK, Z_ENT, Z_OPT) VALUES (?, ?, 1)",
          [.integer(key), .integer(schema.number(of: name) ?? 0)])
      }
    }
    for join in schema.joinTables { try connection.execute(join.createStatement) }
    return connection
  }

  private static let strange = [
    "NULL", "0", "-7", "'x'", "'31'", "2.5", "x'31'", "9223372036854775807", "-9223372036854775808", "1000000000000",
  ]

  /// Makes one change.
  static func change(_ random: inout Dice, rows: Int64) -> String {
    let table = schema.tables[random.below(schema.tables.count)]
    let key = 1 + Int64(random.below(Int(rows)))
    if random.below(8) == 0 { return "DELETE FROM \(table.name) WHERE Z_PK = \(key)" }
    if random.below(30) == 0 { return "UPDATE OR IGNORE \(table.name) SET Z_PK = 1099511627776 WHERE Z_PK = \(key)" }
    if random.below(4) == 0, let join = schema.joinTables.first {
      let values = join.columns.map { _ in
        random.below(6) == 0 ? strange[random.below(strange.count)] : String(1 + random.below(Int(rows)))
      }
      return "INSERT OR IGNORE INTO \(join.name) VALUES (\(values.joined(separator: ", ")))"
    }
    let column = table.columns[1 + random.below(table.columns.count - 1)]
    let isStrange = random.below(5) == 0
    let offset = random.below(9)
    func target(_ table: String) -> String { "(SELECT Z_PK FROM \(table) ORDER BY Z_PK LIMIT 1 OFFSET \(offset))" }
    let value =
      switch column.role {
      case _ where isStrange: strange[random.below(strange.count)]
      case .entityNumber: "coalesce(Z_ENT, 1)"
      case .discriminator(let entity, let relationship):
        if let key = schema.storage(ofRelationship: relationship, in: entity)?.ownColumns?.key,
          let place = DiscriminatorAgreement.places(in: schema).first(where: { $0.column == column.name })
        {
          "(SELECT Z_ENT FROM \(place.target) AS t WHERE t.Z_PK = \(table.name).\(key))"
        } else {
          "NULL"
        }
      case .toOne, .owner:
        DanglingReferences.places(in: schema).first { $0.table == table.name && $0.ends.first?.column == column.name }
          .map { target($0.ends[0].target) } ?? "NULL"
      default: "7"
      }
    return "UPDATE \(table.name) SET \(SQLiteIdentifier.quoted(column.name)) = \(value)"
      + (random.below(3) == 0 ? "" : " WHERE Z_PK = \(key)")
  }

  @Test func whatIsRememberedIsToldOfItsOwnTablesOnlyAndUntilItIsForgotten() throws {
    let connection = try Connection(path: "memory", access: .memory)
    try connection.attachMemory(as: "other")
    let rowCountCache = RowCountCache()
    let spaces = [SourceTables.schema("main"), .schema("other")]
    for (position, tables) in spaces.enumerated() {
      try connection.execute(
        "CREATE TABLE \(tables.qualified("ZA")) (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER);"
          + " INSERT INTO \(tables.qualified("ZA")) VALUES (1, 1)\(position == 0 ? ", (2, 3)" : "")")
    }
    func counts() throws -> [[Int64]] {
      try spaces.map { tables in
        // One counter per request, because every caller has its own.
        let reader = StoreReader(connection: connection, tables: tables, rowCountCache: rowCountCache)
        return try RowCounter(reader: reader).counts(["s.Z_ENT = 1", "s.Z_ENT = 3"], in: "ZA")
          + [RowCounter(reader: reader).total(of: "ZA")]
      }
    }
    #expect(try counts() == [[1, 1, 2], [1, 0, 1]])
    try connection.execute("DELETE FROM main.ZA")
    #expect(try counts() == [[1, 1, 2], [1, 0, 1]])
    rowCountCache.forget()
    #expect(try counts() == [[0, 0, 0], [1, 0, 1]])
  }

  /// Compares the counts with those of plain statements.
  static func compare(_ reader: StoreReader, together: Bool, _ what: String) throws {
    let connection = reader.connection
    let census = StoreCensus(schema: schema, reader: reader)
    var countRequests: [String: [StoreCensus.CountRequest]] = [:]
    for table in schema.tables {
      let numbers = table.entities.compactMap { schema.number(of: $0) }.sorted()
      let sets = [nil] + numbers.map { [$0] } + [numbers]
      for column in table.columns.dropFirst() {
        for entities in sets {
          countRequests[table.name, default: []].append(
            StoreCensus.CountRequest(column: column.name, entities: entities))
        }
      }
    }
    if together { try census.take(.all, values: countRequests) }
    for table in schema.tables {
      #expect(try census.rowCounts(of: table) == reader.rowCounts(of: table.name), "\(table.name) \(what)")
      let requests = countRequests[table.name] ?? []
      let plain = try requests.map { request in
        let filter = request.entities.map { " WHERE Z_ENT IN (\($0.map(String.init).joined(separator: ", ")))" } ?? ""
        return try connection.integer("SELECT count(\"\(request.column)\") FROM \(table.name)\(filter)") ?? -1
      }
      #expect(try census.values(requests, in: table.name) == plain, "\(table.name) \(what)")
    }
    let missing = try DanglingReferences.places(in: schema).compactMap { place -> DanglingReferences? in
      let count = try connection.integer(place.query(reader)) ?? -1
      return count == 0
        ? nil : DanglingReferences(entity: place.entity, relationship: place.relationship, count: count)
    }
    #expect(try census.danglingReferences() == missing, "\(what)")
    let wrong = try DiscriminatorAgreement.places(in: schema).map { try connection.integer($0.query(reader)) ?? -1 }
    #expect(try census.discriminators().map(\.wrong) == wrong, "\(what)")
    let tags = try #require(schema.joinTables.first)
    #expect(
      try census.missingOrderKeys()
        == connection.integer(
          "SELECT (SELECT count(*) FROM ZBOOK WHERE ZAUTHOR IS NOT NULL AND Z_FOK_AUTHOR IS NULL)"
            + " + (SELECT count(*) FROM \(tags.name) WHERE \(tags.orderColumn ?? "") IS NULL)"), "\(what)")
  }

  @Test(arguments: [UInt64](1...24))
  func everyNumberIsThatOfAPlainStatement(_ seed: UInt64) throws {
    var random = Dice(seed: seed)
    let rows = Int64(8 + random.below(30))
    let connection = try Self.store(rows: rows, gaps: seed.isMultiple(of: 2), texts: seed.isMultiple(of: 3))
    let reader = StoreReader(connection: connection)
    var log: [String] = []
    for step in 0..<30 {
      try Self.compare(reader, together: step.isMultiple(of: 2), "seed \(seed): \(log)")
      let sql = Self.change(&random, rows: rows)
      log.append(sql)
      try connection.execute(sql)
    }
    // No registered function remains.
    #expect(throws: SQLiteError.self) { try connection.integer("SELECT hopd_unknown_key_0(1)") }
  }

  /// Far more keys than there are bits: SQLite looks them up, with the same result.
  @Test func keysTooFarApartAreLookedUp() throws {
    let connection = try Self.store(rows: 9, gaps: true, texts: false)
    let reader = StoreReader(connection: connection)
    try connection.execute(
      "UPDATE ZPERSON SET Z_PK = 9000000000000000000 WHERE Z_PK = 1; UPDATE ZBOOK SET ZAUTHOR = 4, Z_FOK_AUTHOR = 1")
    #expect(try StoreCensus(schema: Self.schema, reader: reader).danglingReferences() == [])
    try connection.execute("UPDATE ZBOOK SET ZAUTHOR = 1 WHERE Z_PK = 1")
    #expect(
      try StoreCensus(schema: Self.schema, reader: reader).danglingReferences()
        == [DanglingReferences(entity: "Book", relationship: "author", count: 1)])
  }

  /// A Z_ENT that is not an integer is the number of no entity, even if SQLite would convert it to one.
  @Test(arguments: ["NULL", "1.5", "'1x'", "x'31'", "0"])
  func rowsOfNoEntityAreNobodys(_ value: String) throws {
    let connection = try Self.store(rows: 6, gaps: false, texts: false)
    try connection.execute("UPDATE ZBOOK SET Z_ENT = 1; UPDATE ZBOOK SET Z_ENT = \(value) WHERE Z_PK = 2")
    let books = try #require(Self.schema.tables.first { $0.name == "ZBOOK" })
    let (book, ebook) = (try #require(Self.schema.number(of: "Book")), try #require(Self.schema.number(of: "EBook")))
    try #require(book == 1)
    for subjects: StoreCensus.Subjects in [[], .rows, .all] {
      let census = StoreCensus(schema: Self.schema, reader: StoreReader(connection: connection))
      try census.take(subjects)
      #expect(try census.rowCounts(of: books) == [1: 5, 0: 1], "\(subjects)")
      let request = StoreCensus.CountRequest(column: "Z_OPT", entities: [book, ebook])
      #expect(try census.values([request], in: "ZBOOK") == [5], "\(subjects)")
    }
  }

  /// One pass: no table is read twice for counts that are requested together.
  @Test func whatIsTakenTogetherIsReadOnce() throws {
    let connection = try Self.store(rows: 20, gaps: false, texts: false)
    let census = StoreCensus(schema: Self.schema, reader: StoreReader(connection: connection))
    try census.take(.all)
    try connection.execute("DELETE FROM ZTAG; DELETE FROM ZBOOK; DELETE FROM ZPERSON; DELETE FROM ZPLACE")
    let tags = try #require(Self.schema.tables.first { $0.name == "ZTAG" })
    #expect(try census.rowCounts(of: tags) == [Self.schema.number(of: "Tag") ?? 0: 20])
    #expect(try census.danglingReferences() == [])
  }
}
