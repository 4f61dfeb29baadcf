// A good store passes every check; each kind of damage fails the check for it.

import BlockingTests
import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import OtherPrograms
import PersistentStore
import SQLite
import SystemPackage
import Testing

@testable import MigrationPlanning
@testable import StoreVerification

@Suite(.blocking) struct StoreVerifierTests {
  static let model = ManagedObjectModel(
    name: "Library",
    entities: [
      Entity(
        name: "Book",
        attributes: [Attribute(name: "title", type: .string), Attribute(name: "pages", type: .integer32)],
        relationships: [
          Relationship(name: "author", destinationEntityName: "Person", inverseName: "books"),
          Relationship(
            name: "tags", destinationEntityName: "Tag", inverseName: "books", isToMany: true, isOrdered: true),
        ], uniquenessConstraints: [["title"]]),
      Entity(name: "EBook", parentName: "Book", attributes: [Attribute(name: "url", type: .uri, isOptional: true)]),
      Entity(
        name: "Person",
        attributes: [
          Attribute(name: "name", type: .string, isIndexed: true),
          Attribute(name: "booksCount", type: .integer64, isOptional: true, derivationExpression: "books.@count"),
        ],
        relationships: [
          Relationship(
            name: "books", destinationEntityName: "Book", inverseName: "author", isToMany: true, isOrdered: true),
          Relationship(name: "favourite", destinationEntityName: "Book"),
        ]),
      Entity(
        name: "Tag", attributes: [Attribute(name: "word", type: .string)],
        relationships: [Relationship(name: "books", destinationEntityName: "Book", inverseName: "tags", isToMany: true)]
      ),
    ])

  private let schema: StoreSchema = {
    var schema = StoreSchema(model: model, frameworkVersion: 1344)
    // As after the migration of a store with history: no rows, and numbers that continue.
    var history = HistoryLayout.made(byFramework: 1344, tombstones: 1)
    history.numbers = history.numbers.map {
      PrimaryKeyEntry(number: $0.number, name: $0.name, parent: 0, highWaterMark: 77)
    }
    schema.history = history
    return schema
  }()

  /// Makes a filled store, damages it, and returns the checks that fail.
  private func failures(
    isExact: Bool = true, rows: Int64 = 80, preparing first: String = "", spoiling sql: String = ""
  ) throws -> Set<String> {
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-verify-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    let path = folder.appending("store.sqlite")
    try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: 3)).make(at: path, rows: rows, seed: 3)
    let location = StoreLocation(database: path)
    if !first.isEmpty {
      let connection = try Connection.ofApp(path)
      try SchemaTrigger.registerFunctions(on: connection)
      try connection.execute(first)
    }
    let expectation = try StoreReader.withUnchangedStore(at: location) { try counted($0) }
    let metadata = try StoreReader.withUnchangedStore(at: location) { try $0.metadata() }
    do {
      let connection = try Connection.ofApp(path)
      try SchemaTrigger.registerFunctions(on: connection)
      try connection.execute(sql)
    }
    return try StoreReader.withUnchangedStore(at: location) { reader in
      let checks = try StoreVerifier(depth: .full).checks(
        of: reader, schema: schema, isExact: isExact, expectation: expectation, sourceMetadata: metadata)
      return Set(checks.filter { !$0.passed }.map(\.name))
    }
  }

  private func counted(_ reader: StoreReader) throws -> StoreExpectation {
    var rows: [String: Int64] = [:]
    var marks: [String: Int64] = [:]
    for table in schema.tables {
      for (number, count) in try reader.rowCounts(of: table.name) { rows[schema.entityName(of: number) ?? "?"] = count }
      marks[table.rootEntity] = try reader.primaryKeys().first { $0.name == table.rootEntity }?.highWaterMark
    }
    // The store is its own source: every column of every table, in the rows that have the property.
    var values: [String: [String: Int64]] = [:]
    for table in schema.tables {
      for column in table.columns.map(\.name).filter({ !$0.hasPrefix("Z_") }) {
        let rows = column == "ZURL" ? " WHERE Z_ENT = \(schema.number(of: "EBook") ?? 0)" : ""
        values[table.name, default: [:]][column] = try reader.connection.integer(
          "SELECT count(\(column)) FROM \(table.name)\(rows)")
      }
    }
    let pairs = try reader.connection.integer("SELECT count(*) FROM Z_1TAGS") ?? 0
    return StoreExpectation(
      rowsByEntity: rows, droppedRowsByEntity: [:], rowsByJoinTable: ["Z_1TAGS": pairs], highWaterMarks: marks,
      danglingReferences: 0, valuesByColumn: values, nullOrderKeys: 0, storeUUID: try reader.metadata().uuid)
  }

  @Test func aGoodStorePasses() throws {
    #expect(try failures() == [])
  }

  @Test(arguments: [
    ("DROP INDEX ZBOOK_ZAUTHOR_INDEX", "schema"),
    ("CREATE INDEX extra ON ZBOOK (ZPAGES)", "schema"),
    ("CREATE TABLE HOPD_CHECKPOINT (plan)", "schema"),
    ("CREATE VIEW v AS SELECT 1", "schema"),
    ("CREATE TRIGGER t AFTER INSERT ON ZTAG BEGIN SELECT 1; END", "schema"),
    ("DROP TRIGGER Z_DA_ZBOOK_Person_booksCount_PARAMETER_DELETE", "schema"),
    ("UPDATE ZPERSON SET ZBOOKSCOUNT = ZBOOKSCOUNT + 1 WHERE Z_PK = 1", "derived-counts"),
    ("UPDATE ZPERSON SET ZBOOKSCOUNT = NULL WHERE Z_PK = 1", "derived-counts"),
    ("ALTER TABLE ZBOOK DROP COLUMN ZPAGES", "schema"),
    ("ALTER TABLE ZBOOK ADD COLUMN ZEXTRA INTEGER", "schema"),
    ("DROP TABLE Z_1TAGS", "schema"),
    ("INSERT INTO ACHANGE (Z_PK, Z_ENT) VALUES (1, 16001)", "history"),
    ("INSERT INTO ATRANSACTIONSTRING (Z_PK, Z_ENT, ZNAME) VALUES (1, 16003, 'n')", "history"),
    ("UPDATE Z_PRIMARYKEY SET Z_MAX = 76 WHERE Z_ENT = 16002", "history"),
    ("DELETE FROM Z_PRIMARYKEY WHERE Z_ENT = 16003", "history"),
    ("INSERT INTO Z_PRIMARYKEY VALUES (16004, 'MORE', 0, 0)", "history"),
    ("DROP TABLE ATRANSACTIONSTRING", "schema"), ("DROP INDEX ACHANGE_ZTRANSACTIONID_INDEX", "schema"),
    ("ALTER TABLE ACHANGE ADD COLUMN ZTOMBSTONE1 BLOB", "schema"), ("CREATE TABLE AOTHER (Z_PK INTEGER)", "schema"),
    ("UPDATE Z_METADATA SET Z_UUID = '00000000-0000-0000-0000-000000000000'", "hashes"),
    ("UPDATE Z_PRIMARYKEY SET Z_NAME = 'Novel' WHERE Z_NAME = 'EBook'", "entity-numbers"),
    ("UPDATE Z_PRIMARYKEY SET Z_SUPER = 0 WHERE Z_NAME = 'EBook'", "entity-numbers"),
    ("DELETE FROM Z_PRIMARYKEY WHERE Z_NAME = 'Tag'", "entity-numbers"),
    ("UPDATE Z_PRIMARYKEY SET Z_MAX = 1 WHERE Z_NAME = 'Book'", "primary-keys"),
    ("UPDATE Z_MODELCACHE SET Z_CONTENT = x'0300'", "model-cache"),
    ("INSERT INTO Z_MODELCACHE VALUES (x'')", "model-cache"),
    ("UPDATE ZBOOK SET Z_ENT = 99 WHERE Z_PK = 1", "row-entities"),
    ("UPDATE ZBOOK SET Z_ENT = NULL WHERE Z_PK = 1", "row-entities"),
    ("DELETE FROM ZTAG WHERE Z_PK = (SELECT max(Z_PK) FROM ZTAG)", "counts"),
    ("DELETE FROM Z_1TAGS WHERE rowid = (SELECT max(rowid) FROM Z_1TAGS)", "counts"),
    (
      "UPDATE ZPERSON SET Z1_FAVOURITE = 77 WHERE Z_PK = (SELECT min(Z_PK) FROM ZPERSON WHERE ZFAVOURITE NOT NULL)",
      "discriminators"
    ),
    ("UPDATE ZBOOK SET ZAUTHOR = 123456 WHERE Z_PK = 1", "relationships"),
    ("INSERT INTO Z_1TAGS (Z_1BOOKS, Z_4TAGS, Z_FOK_4TAGS) SELECT 999999, Z_PK, 1 FROM ZTAG LIMIT 1", "relationships"),
    ("UPDATE ZBOOK SET ZPAGES = NULL WHERE Z_PK = (SELECT min(Z_PK) FROM ZBOOK WHERE ZPAGES NOT NULL)", "values"),
    ("UPDATE ZBOOK SET ZURL = NULL WHERE Z_PK = (SELECT min(Z_PK) FROM ZBOOK WHERE ZURL NOT NULL)", "values"),
    ("UPDATE ZTAG SET ZWORD = NULL", "values"),
    ("UPDATE ZBOOK SET ZURL = 'x' WHERE Z_ENT = 2 AND ZURL IS NULL", "values"),
    (
      "UPDATE ZBOOK SET ZAUTHOR = NULL, Z_FOK_AUTHOR = NULL WHERE Z_PK ="
        + " (SELECT min(Z_PK) FROM ZBOOK WHERE ZAUTHOR NOT NULL)", "values"
    ),
    ("UPDATE ZPERSON SET ZFAVOURITE = NULL, Z1_FAVOURITE = NULL", "values"),
    (
      "UPDATE ZBOOK SET Z_FOK_AUTHOR = NULL WHERE Z_PK = (SELECT min(Z_PK) FROM ZBOOK WHERE ZAUTHOR NOT NULL)",
      "order-keys"
    ),
    ("UPDATE Z_1TAGS SET Z_FOK_4TAGS = NULL WHERE rowid = (SELECT min(rowid) FROM Z_1TAGS)", "order-keys"),
  ])
  func eachWayOfSpoilingFailsItsCheck(_ sql: String, _ check: String) throws {
    #expect(try failures(spoiling: sql).contains(check))
  }

  /// Removes objects from a sound store so that it stays sound, with gaps in its keys.
  private static let gaps = """
    DELETE FROM Z_1TAGS WHERE Z_4TAGS IN (2, 5) OR Z_1BOOKS IN (3, 8);
    DELETE FROM ZTAG WHERE Z_PK IN (2, 5);
    UPDATE ZPERSON SET ZFAVOURITE = NULL, Z1_FAVOURITE = NULL WHERE ZFAVOURITE IN (3, 8);
    DELETE FROM ZBOOK WHERE Z_PK IN (3, 8);
    UPDATE ZBOOK SET ZAUTHOR = NULL, Z_FOK_AUTHOR = NULL WHERE ZAUTHOR IN (4, 9);
    DELETE FROM ZPERSON WHERE Z_PK IN (4, 9);
    """

  /// One changed value in one row of a table, each with the check that must fail: `?` is the row.
  private static let damages: [(table: String, rows: String, sql: String, check: String)] = [
    ("ZBOOK", "1", "UPDATE ZBOOK SET Z_ENT = 5 WHERE Z_PK = ?", "row-entities"),
    ("ZTAG", "1", "UPDATE ZTAG SET Z_ENT = NULL WHERE Z_PK = ?", "row-entities"),
    ("ZBOOK", "Z_ENT = 1", "UPDATE ZBOOK SET Z_ENT = 2 WHERE Z_PK = ?", "counts"),
    ("ZPERSON", "1", "DELETE FROM ZPERSON WHERE Z_PK = ?", "counts"),
    ("ZTAG", "1", "INSERT INTO ZTAG SELECT Z_PK + 100000, Z_ENT, Z_OPT, ZWORD FROM ZTAG WHERE Z_PK = ?", "counts"),
    ("ZPERSON", "ZNAME NOT NULL", "UPDATE ZPERSON SET ZNAME = NULL WHERE Z_PK = ?", "values"),
    ("ZBOOK", "ZPAGES NOT NULL", "UPDATE ZBOOK SET ZPAGES = NULL WHERE Z_PK = ?", "values"),
    ("ZBOOK", "ZURL IS NULL AND Z_ENT = 2", "UPDATE ZBOOK SET ZURL = 'u' WHERE Z_PK = ?", "values"),
    ("ZBOOK", "ZURL NOT NULL AND Z_ENT = 2", "UPDATE ZBOOK SET ZURL = NULL WHERE Z_PK = ?", "values"),
    ("ZBOOK", "1", "UPDATE ZBOOK SET ZAUTHOR = 99999 WHERE Z_PK = ?", "relationships"),
    ("ZBOOK", "1", "UPDATE ZBOOK SET ZAUTHOR = 4 WHERE Z_PK = ?", "relationships"),
    ("ZBOOK", "1", "UPDATE ZBOOK SET ZAUTHOR = 0 WHERE Z_PK = ?", "relationships"),
    ("ZBOOK", "1", "UPDATE ZBOOK SET ZAUTHOR = 1.5 WHERE Z_PK = ?", "relationships"),
    ("ZBOOK", "1", "UPDATE ZBOOK SET ZAUTHOR = 'x' WHERE Z_PK = ?", "relationships"),
    ("ZPERSON", "1", "UPDATE ZPERSON SET ZFAVOURITE = 8, Z1_FAVOURITE = 1 WHERE Z_PK = ?", "relationships"),
    ("Z_1TAGS", "1", "UPDATE Z_1TAGS SET Z_4TAGS = 5 WHERE rowid = ?", "relationships"),
    ("Z_1TAGS", "1", "UPDATE Z_1TAGS SET Z_1BOOKS = 70000 WHERE rowid = ?", "relationships"),
    ("Z_1TAGS", "1", "UPDATE Z_1TAGS SET Z_1BOOKS = NULL WHERE rowid = ?", "relationships"),
    (
      "ZPERSON", "ZFAVOURITE NOT NULL", "UPDATE ZPERSON SET Z1_FAVOURITE = 3 - Z1_FAVOURITE WHERE Z_PK = ?",
      "discriminators"
    ),
    ("ZPERSON", "ZFAVOURITE NOT NULL", "UPDATE ZPERSON SET Z1_FAVOURITE = NULL WHERE Z_PK = ?", "discriminators"),
    ("ZBOOK", "ZAUTHOR NOT NULL", "UPDATE ZBOOK SET Z_FOK_AUTHOR = NULL WHERE Z_PK = ?", "order-keys"),
    ("Z_1TAGS", "1", "UPDATE Z_1TAGS SET Z_FOK_4TAGS = NULL WHERE rowid = ?", "order-keys"),
  ]

  /// For any row, in a store whose keys have gaps: a reference to a gap leads to no object.
  @Test(arguments: [UInt64](1...3))
  func damageAnywhereIsFound(_ seed: UInt64) throws {
    #expect(try failures(rows: 300, preparing: Self.gaps) == [])
    for (index, damage) in Self.damages.enumerated() {
      // A pseudorandom number from 0, different for each damage.
      let chosen = (seed &* 2_654_435_761 &+ UInt64(index) &* 40_503) % 1_000
      let key = damage.table == "Z_1TAGS" ? "rowid" : "Z_PK"
      let row =
        "(SELECT \(key) FROM (SELECT \(key), row_number() OVER (ORDER BY \(key)) - 1 AS n, count(*) OVER () AS c FROM"
        + " \(damage.table) WHERE \(damage.rows)) WHERE n = \(chosen) % c)"
      let sql = damage.sql.replacing("?", with: row)
      #expect(
        try failures(rows: 300, preparing: Self.gaps, spoiling: sql).contains(damage.check),
        "seed \(seed), \(damage.check): \(sql)")
    }
  }

  /// A file so large that its pages are checked in a thread of their own; the last check is that thread's.
  @Test func aLargeStoreIsVerifiedByTwo() throws {
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-verify-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    let path = folder.appending("store.sqlite")
    try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: 3)).make(at: path, rows: 60_000, seed: 3)
    // In the journal mode of a staged store during its verification.
    try Connection.ofApp(path).execute("PRAGMA journal_mode = DELETE")
    let location = StoreLocation(database: path)
    let (expectation, metadata) = try StoreReader.withUnchangedStore(at: location) {
      (try counted($0), try $0.metadata())
    }
    let holder = try Connection(path: path, access: .readOnly)
    #expect(PageCheck(reading: "main", of: holder, pragma: "quick_check") != nil)
    var calls = 0
    func verify(_ keepAlive: @escaping () -> Bool) throws -> [VerificationCheck] {
      try StoreVerifier(depth: .quick, keepAlive: keepAlive).check(
        database: path, schema: schema, expectation: expectation, sourceMetadata: metadata,
        external: ExternalDataDirectory(of: location), tableTexts: [:])
    }
    let checks = try verify {
      calls += 1
      return true
    }
    #expect(checks.allSatisfy { $0.passed || $0.name == "hashes" })
    #expect(
      checks.last
        == VerificationCheck(
          name: "integrity", passed: true,
          detail: "quick_check passed (does not compare index entries with rows)"))
    #expect(calls > 0)
    let error = #expect(throws: HopdError.self) { try verify { false } }
    #expect(error?.code == .interrupted)
  }

  /// A value in a sibling's row belongs to no property: Core Data writes an added default there, too.
  @Test func valuesInRowsWithoutThePropertyDoNotCount() throws {
    #expect(try failures(spoiling: "UPDATE ZBOOK SET ZURL = 'x' WHERE Z_ENT = 1") == [])
  }

  /// Differences that Apple's in-place migrations leave are not faults of a store that an app made.
  @Test(arguments: [
    "CREATE INDEX Z_Book_oldIndex ON ZBOOK (ZPAGES)",
    "UPDATE Z_PRIMARYKEY SET Z_NAME = 'Novel' WHERE Z_NAME = 'EBook'",
    "ALTER TABLE ZBOOK ADD COLUMN ZOLD INTEGER",
  ])
  func tracesOfApplesMigrationsAreTolerated(_ sql: String) throws {
    #expect(try failures(isExact: false, spoiling: sql) == [])
    #expect(try failures(spoiling: sql) != [])
  }
}
