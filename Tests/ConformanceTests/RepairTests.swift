// Stores that claim a version and lack objects of it: each object of a small world is dropped in turn, and the repair
// makes it again. Nothing else in the store may change.

import BlockingTests
import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import OtherPrograms
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage
import Testing

@testable import PersistentStore

@Suite(.blocking) struct RepairTests {
  /// The second version adds an attribute; the first one has each kind of column.
  private static let versions = [1, 2].map { version in
    ManagedObjectModel(
      name: "V\(version)",
      entities: [
        Entity(
          name: "Book",
          attributes: [
            Attribute(name: "title", type: .string, isOptional: true),
            Attribute(name: "pages", type: .integer32, isOptional: false, defaultValue: .integer(7)),
            Attribute(name: "code", type: .string, isOptional: true),
          ] + (version == 2 ? [Attribute(name: "more", type: .string, isOptional: true)] : []),
          relationships: [
            Relationship(name: "author", destinationEntityName: "Person", inverseName: "books"),
            Relationship(
              name: "tags", destinationEntityName: "Tag", inverseName: "books", isToMany: true, isOrdered: true),
          ], uniquenessConstraints: [["code"]]),
        Entity(name: "EBook", parentName: "Book", attributes: [Attribute(name: "url", type: .uri, isOptional: true)]),
        Entity(
          name: "Person",
          attributes: [
            Attribute(name: "name", type: .string, isOptional: true, isIndexed: true),
            Attribute(name: "key", type: .string, isOptional: false),
            Attribute(name: "booksCount", type: .integer64, isOptional: true, derivationExpression: "books.@count"),
          ],
          relationships: [
            Relationship(
              name: "books", destinationEntityName: "Book", inverseName: "author", isToMany: true, isOrdered: true),
            Relationship(name: "favourite", destinationEntityName: "Book", isOptional: true),
          ]),
        Entity(
          name: "Tag", attributes: [Attribute(name: "word", type: .string, isOptional: true)],
          relationships: [
            Relationship(name: "books", destinationEntityName: "Book", inverseName: "tags", isToMany: true)
          ]),
      ])
  }

  /// A store of the first version with objects.
  private final class World {
    let folder: FilePath
    let location: StoreLocation
    let schema = StoreSchema(model: RepairTests.versions[0], frameworkVersion: 1344)

    init(rows: Int64 = 40) throws {
      folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-repair-\(UUID().uuidString)")
      try FileManager.default.createDirectory(
        atPath: folder.appending("state").string, withIntermediateDirectories: true)
      location = StoreLocation(database: folder.appending("store.sqlite"))
      try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: 7)).make(at: location.database, rows: rows)
    }

    deinit { try? FileManager.default.removeItem(atPath: folder.string) }

    func edit(_ sql: String) throws {
      let connection = try Connection.ofApp(location.database)
      try SchemaTrigger.registerFunctions(on: connection)
      try connection.execute(sql)
    }

    /// Repairs the store; `current` is the version to reach.
    func repair(
      to current: Int = 1, repairs: Bool = true, output: FilePath? = nil
    ) throws(MigrationFailure) -> MigrationReport {
      let bundle = ModelBundle(
        name: "World", path: "/World.xcdatamodeld", versions: RepairTests.versions, currentVersionName: "V\(current)")
      var request = MigrationRequest(
        location: CanonicalStoreLocation(unresolved: location.database), catalog: ModelCatalog(bundles: [bundle]),
        settings: MigrationSettings(verification: .full), stateDirectory: folder.appending("state"), job: "01")
      request.repairs = repairs
      request.output = output
      return try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
    }

    /// The failed checks of the store as it is.
    func failures() throws -> [VerificationCheck] {
      try StoreReader.withUnchangedStore(at: location) { reader in
        try StoreVerifier(depth: .full).checks(of: reader, schema: schema, isExact: false)
      }.filter { !$0.passed }
    }

    /// The gaps of the store as it is.
    func gaps() throws -> [SchemaGap] {
      try StoreReader.withUnchangedStore(at: location) { try $0.gaps(in: schema) }
    }

    func dumped(_ version: Int = 1) throws -> [DumpedObject] {
      try dump(location, model: RepairTests.versions[version - 1])
    }

    /// Names in the store's folder.
    var names: [String] {
      get throws { try FileManager.default.contentsOfDirectory(atPath: folder.string).sorted() }
    }
  }

  /// An object of the schema, and how it is dropped.
  private struct Loss: CustomTestStringConvertible, Sendable {
    let gap: SchemaGap
    let sql: String
    var testDescription: String { sql }
  }

  private static let losses: [Loss] = {
    let schema = StoreSchema(model: versions[0], frameworkVersion: 1344)
    func quoted(_ name: String) -> String { SQLiteIdentifier.quoted(name) }
    var losses = schema.tables.map { table in
      Loss(
        gap: SchemaGap(kind: .table, name: table.name, table: table.name, entity: table.rootEntity),
        sql: "DROP TABLE \(quoted(table.name))")
    }
    losses += schema.joinTables.map { join in
      Loss(
        gap: SchemaGap(
          kind: .joinTable, name: join.name, table: join.name, entity: join.entity, property: join.relationship),
        sql: "DROP TABLE \(quoted(join.name))")
    }
    losses += schema.indexes.map { index in
      Loss(
        gap: SchemaGap(kind: .index, name: index.name, table: index.table), sql: "DROP INDEX \(quoted(index.name))")
    }
    losses += schema.triggers.map { trigger in
      Loss(
        gap: SchemaGap(kind: .trigger, name: trigger.name, table: trigger.table),
        sql: "DROP TRIGGER \(quoted(trigger.name))")
    }
    losses += schema.primaryKeyEntries.map { entry in
      Loss(
        gap: SchemaGap(kind: .entityNumber, name: entry.name, table: "Z_PRIMARYKEY", entity: entry.name),
        sql: "DELETE FROM Z_PRIMARYKEY WHERE Z_ENT = \(entry.number)")
    }
    losses.append(
      Loss(
        gap: SchemaGap(kind: .modelCache, name: "Z_MODELCACHE", table: "Z_MODELCACHE"),
        sql: "DROP TABLE Z_MODELCACHE"))
    for table in schema.tables {
      for column in table.columns {
        let gap = SchemaGap(
          kind: .column, name: column.name, table: table.name, entity: column.role.property?.entity ?? table.rootEntity,
          property: column.role.property?.name)
        let indexes = schema.indexes.filter { index in
          index.table == table.name && index.columns.contains { $0.name == column.name }
        }
        // A column cannot go while an index or a trigger names it.
        let drops =
          indexes.map { "DROP INDEX \(quoted($0.name));" }.joined()
          + schema.triggers.filter { $0.text.contains(column.name) || $0.table == table.name }
          .map { "DROP TRIGGER \(quoted($0.name));" }.joined()
        losses.append(
          Loss(gap: gap, sql: drops + "ALTER TABLE \(quoted(table.name)) DROP COLUMN \(quoted(column.name))"))
      }
    }
    return losses
  }()

  /// Whether the objects are equal apart from what the loss has taken.
  private func difference(_ before: [DumpedObject], _ after: [DumpedObject], _ gap: SchemaGap) -> String? {
    let lostRoot = gap.kind == .table ? gap.entity : nil
    func isLost(_ object: DumpedObject) -> Bool {
      lostRoot.map { root in object.entity == root || root == "Book" && object.entity == "EBook" } ?? false
    }
    let kept = before.filter { !isLost($0) }
    guard kept.map(\.id) == after.map(\.id) else { return "\(kept.map(\.id)) became \(after.map(\.id))" }
    for (old, new) in zip(kept, after) {
      // The default is what a new attribute gets; the count of books follows the books.
      let values = old.attributes.filter { name, value in
        new.attributes[name] != value && name != gap.property
          && !(name == "booksCount" && (lostRoot == "Book" || gap.name == "ZAUTHOR"))
      }
      guard values.isEmpty, Set(old.attributes.keys) == Set(new.attributes.keys) else {
        return "\(old.id): \(values.keys.sorted())"
      }
      let isOfRelationship = gap.property != nil && gap.kind != .entityNumber
      guard isOfRelationship || lostRoot != nil || old.relationships == new.relationships else {
        return "\(old.id): relationships"
      }
    }
    return nil
  }

  @Test("A repair makes every kind of missing object, and changes nothing else", arguments: losses)
  private func eachLoss(_ loss: Loss) throws {
    // Z1_FAVOURITE names the entity of a reference.
    let isKey = loss.gap.kind == .column && ["Z_PK", "Z_ENT", "Z_OPT", "Z1_FAVOURITE"].contains(loss.gap.name)
    // SQLite drops no column of a primary key.
    guard loss.gap.name != "Z_PK" else { return }
    let world = try World()
    let before = try world.dumped()
    try world.edit(loss.sql)
    let gaps = try world.gaps()
    #expect(gaps.contains(loss.gap), "\(gaps)")
    let found = try Data(contentsOf: URL(filePath: world.location.database.string))
    guard !isKey, loss.gap.property != "key" else {
      do {
        _ = try world.repair()
        Issue.record("\(loss.gap.text) was made")
      } catch {
        let codes = Set(([error.error] + error.error.reasons).map(\.code))
        #expect(codes.contains(isKey ? .cannotRepair : .missingRequiredValue), "\(error.error)")
        if !isKey { #expect(error.error.place.entity == "Person" && error.error.place.property == "key") }
      }
      #expect(try Data(contentsOf: URL(filePath: world.location.database.string)) == found)
      #expect(try world.names == ["state", "store.sqlite"])
      return
    }
    let report = try world.repair()
    #expect(report.result == .repaired && report.backup != nil && report.from == "V1" && report.to == "V1")
    #expect(report.repaired.map(\.gap).contains(loss.gap))
    #expect(try world.gaps().isEmpty)
    let failed = try world.failures()
    // References to the rows of a table that was lost stay as they were, and are counted.
    #expect(failed.allSatisfy { $0.name == "relationships" && loss.gap.kind == .table }, "\(failed)")
    #expect(report.warnings.contains { $0.code == .danglingReferences } == !failed.isEmpty)
    #expect(difference(before, try world.dumped(), loss.gap) == nil)
    if loss.gap.name == "ZPAGES" {
      let rows = before.count { $0.entity == "Book" || $0.entity == "EBook" }
      #expect(report.repaired.first { $0.gap == loss.gap }?.rows == Int64(rows))
      #expect(try world.dumped().filter { $0.entity == "Book" }.allSatisfy { $0.attributes["pages"] == .integer(7) })
    }
    #expect(try world.repair().result == .current)
  }

  @Test("A repair and the hops after it replace the store once")
  func repairBeforeHops() throws {
    let world = try World()
    let before = try world.dumped()
    let index = try #require(world.schema.indexes.first { $0.table == "ZPERSON" })
    try world.edit("DROP INDEX \(index.name); DROP TABLE ZTAG; ALTER TABLE ZBOOK DROP COLUMN ZTITLE")
    do {
      _ = try world.repair(to: 2, repairs: false)
      Issue.record("a store that lacks a table was migrated")
    } catch {
      let hints = ([error.error] + error.error.reasons).compactMap(\.hint)
      #expect(hints.contains { $0.contains("hopctl migrate \(world.location.database) --repair") }, "\(hints)")
    }
    let report = try world.repair(to: 2)
    #expect(report.result == .migrated && report.hops.count == 1 && report.to == "V2" && !report.repaired.isEmpty)
    // Nothing but the backups stays beside the store.
    #expect(try world.names == [".store.sqlite.hopd-backups", "state", "store.sqlite"])
    let after = try world.dumped(2)
    #expect(after.map(\.id) == before.filter { $0.entity != "Tag" }.map(\.id))
    #expect(after.filter { $0.entity == "Book" }.allSatisfy { $0.attributes["title"] == .null })
  }

  @Test("A repair starts over where one was cut off", arguments: [1, 2])
  func leftovers(_ version: Int) throws {
    let world = try World()
    try world.edit("DROP TABLE ZTAG")
    for name in [".store.sqlite.hop-01.tmp", ".store.sqlite.hop-01.tmp-journal", ".store.sqlite.hop-02.tmp"] {
      try Data("half a copy".utf8).write(to: URL(filePath: world.folder.appending(name).string))
    }
    #expect(try world.repair(to: version).repaired.map(\.gap.name) == ["ZTAG"])
    #expect(try world.names == [".store.sqlite.hopd-backups", "state", "store.sqlite"])
  }

  @Test("A repair into a copy leaves the store as it is", arguments: [1, 2])
  func copy(_ version: Int) throws {
    let world = try World()
    try world.edit("DROP TABLE ZTAG")
    let found = try Data(contentsOf: URL(filePath: world.location.database.string))
    let output = world.folder.appending("copy.sqlite")
    let report = try world.repair(to: version, output: output)
    #expect(report.result == (version == 1 ? .repaired : .migrated) && !report.repaired.isEmpty)
    #expect(try Data(contentsOf: URL(filePath: world.location.database.string)) == found)
    #expect(try world.names == ["copy.sqlite", "state", "store.sqlite"])
  }

  @Test(
    "A repair is refused where rows would need a guess",
    arguments: [
      (
        "UPDATE Z_PRIMARYKEY SET Z_NAME = CASE Z_ENT WHEN 1 THEN 'Person' WHEN 3 THEN 'Book' ELSE Z_NAME END",
        "the rows were written by another version"
      ),
      ("INSERT INTO Z_PRIMARYKEY VALUES (9, 'Shelf', 0, 0)", "which the version does not have"),
      ("CREATE INDEX ZTAG ON ZBOOK (ZTITLE)", "the store has the index ZTAG"),
      ("DROP INDEX Z_Book_UNIQUE_code; UPDATE ZBOOK SET ZCODE = 'x'", "rows share the values"),
    ])
  func refusals(_ sql: String, _ words: String) throws {
    let world = try World()
    try world.edit("DROP TABLE ZTAG; \(sql)")
    let found = try Data(contentsOf: URL(filePath: world.location.database.string))
    do {
      _ = try world.repair()
      Issue.record("the store was repaired")
    } catch {
      let messages = ([error.error] + error.error.reasons).map(\.message)
      #expect(messages.contains { $0.contains(words) }, "\(messages)")
    }
    #expect(try Data(contentsOf: URL(filePath: world.location.database.string)) == found)
    #expect(try world.names == ["state", "store.sqlite"])
  }

  @Test("Tables of others and triggers stay, and no trigger runs")
  func strangersStay() throws {
    let world = try World()
    try world.edit(
      "CREATE TABLE NOTES (word TEXT); INSERT INTO NOTES VALUES ('a');"
        + "CREATE TRIGGER WATCH AFTER UPDATE ON ZBOOK BEGIN DELETE FROM NOTES; END;"
        + Self.losses.filter { $0.gap.name == "ZPAGES" }.map(\.sql).joined())
    let report = try world.repair()
    #expect(report.warnings.contains { $0.code == .leftAsFound && $0.message.contains("NOTES") }, "\(report.warnings)")
    let connection = try Connection.ofApp(world.location.database)
    #expect(try connection.integer("SELECT count(*) FROM NOTES") == 1)
    #expect(try connection.integer("SELECT count(*) FROM sqlite_master WHERE name = 'WATCH'") == 1)
  }

  @Test("A new row of Z_PRIMARYKEY has no key that a row or a reference uses")
  func highWaterMark() throws {
    let world = try World()
    try world.edit(
      "DELETE FROM Z_PRIMARYKEY WHERE Z_NAME IN ('Person', 'Tag'); UPDATE ZBOOK SET ZAUTHOR = 999 WHERE Z_PK = 1")
    _ = try world.repair()
    let connection = try Connection.ofApp(world.location.database)
    #expect(try connection.integer("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_NAME = 'Person'") == 999)
    #expect(
      try connection.integer("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_NAME = 'Tag'")
        == connection.integer("SELECT max(Z_PK) FROM ZTAG"))
  }

  // MARK: Numbers

  @Test(
    "A repair corrects a Z_MAX, and gives no other row another value",
    arguments: [
      ("UPDATE Z_PRIMARYKEY SET Z_MAX = 1 WHERE Z_NAME = 'Person'", "Person"),
      ("UPDATE Z_PRIMARYKEY SET Z_MAX = NULL WHERE Z_NAME = 'Book'", "Book"),
      ("UPDATE Z_PRIMARYKEY SET Z_MAX = 9 WHERE Z_NAME = 'EBook'", "EBook"),
    ])
  func lowMark(_ sql: String, _ entity: String) throws {
    let world = try World()
    let before = try world.dumped()
    let marks = { () throws -> [Int64] in
      try Connection.ofApp(world.location.database).rows("SELECT Z_MAX FROM Z_PRIMARYKEY ORDER BY Z_ENT") {
        $0.integer(at: 0)
      }
    }
    let wanted = try marks()
    try world.edit(sql)
    #expect(try marks() != wanted)
    #expect(try !world.failures().isEmpty)
    let report = try world.repair()
    let gap = SchemaGap(kind: .highestKey, name: entity, table: "Z_PRIMARYKEY", entity: entity)
    #expect(report.result == .repaired && report.repaired.map(\.gap) == [gap])
    #expect(try marks() == wanted)
    #expect(try world.failures().isEmpty)
    #expect(try world.dumped() == before)
    #expect(try world.repair().result == .current)
  }

  @Test("A repair refuses wrong rows of Z_PRIMARYKEY where nothing is missing")
  func wrongNumbers() throws {
    for (sql, words) in [
      ("UPDATE Z_PRIMARYKEY SET Z_SUPER = 3 WHERE Z_NAME = 'EBook'", "the parent 3 in place of 1"),
      ("INSERT INTO Z_PRIMARYKEY VALUES (9, 'Shelf', 0, 0)", "which the version does not have"),
    ] {
      let world = try World()
      try world.edit(sql)
      do {
        _ = try world.repair()
        Issue.record("the store passed as repaired")
      } catch {
        #expect(error.error.code == .cannotRepair && error.error.message.contains(words), "\(error.error)")
      }
    }
  }

  // MARK: History

  /// History of one transaction, as of one insertion.
  private static let history =
    HistoryLayout.made(byFramework: 1344, tombstones: 0).statements.map { $0.createStatement(in: nil) + ";" }.joined()
    + "INSERT INTO Z_PRIMARYKEY VALUES (16001, 'CHANGE', 0, 4), (16002, 'TRANSACTION', 0, 5),"
    + " (16003, 'TRANSACTIONSTRING', 0, 6);"
    + "INSERT INTO ATRANSACTIONSTRING (Z_PK, Z_ENT, ZNAME) VALUES (6, 16003, 'app');"
    + "INSERT INTO ATRANSACTION (Z_PK, Z_ENT, ZAUTHORTS, ZTIMESTAMP) VALUES (5, 16002, 6, 7);"
    + "INSERT INTO ACHANGE (Z_PK, Z_ENT, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZTRANSACTIONID)"
    + " VALUES (4, 16001, 0, 1, 1, 5);"

  @Test(
    "A repair makes history tables that no row needs, and their numbers",
    arguments: [
      ("DELETE FROM ATRANSACTION; DROP TABLE ACHANGE", ["ACHANGE"]),
      ("DELETE FROM ACHANGE; DROP TABLE ATRANSACTION; DELETE FROM Z_PRIMARYKEY WHERE Z_ENT = 16002", ["ATRANSACTION"]),
      ("UPDATE ATRANSACTION SET ZAUTHORTS = NULL; DROP TABLE ATRANSACTIONSTRING", ["ATRANSACTIONSTRING"]),
      ("DELETE FROM Z_PRIMARYKEY WHERE Z_ENT > 16000", ["CHANGE", "TRANSACTION", "TRANSACTIONSTRING"]),
      ("DELETE FROM ATRANSACTION; DELETE FROM Z_PRIMARYKEY WHERE Z_ENT = 16003", ["TRANSACTIONSTRING"]),
      ("UPDATE ATRANSACTION SET Z_PK = 3; UPDATE Z_PRIMARYKEY SET Z_MAX = 0 WHERE Z_ENT = 16002", ["TRANSACTION"]),
    ])
  func historyTables(_ sql: String, _ made: [String]) throws {
    let world = try World()
    try world.edit(Self.history)
    let texts = { () throws -> [String] in
      try Connection.ofApp(world.location.database).rows(
        "SELECT sql FROM sqlite_master WHERE tbl_name IN ('ACHANGE', 'ATRANSACTION', 'ATRANSACTIONSTRING')"
          + " ORDER BY name"
      ) { $0.text(at: 0) ?? "" }
    }
    let wanted = try texts()
    #expect(wanted.count == 11)
    #expect(try world.gaps().isEmpty && world.failures().isEmpty)
    try world.edit(sql)
    #expect(try world.failures().map(\.name) == ["history"])
    let report = try world.repair()
    #expect(report.repaired.map(\.gap.name) == made, "\(report.repaired)")
    #expect(try texts() == wanted)
    #expect(try world.gaps().isEmpty && world.failures().isEmpty)
    let connection = try Connection.ofApp(world.location.database)
    // A number that a row refers to is not given again, also where it has no row.
    for (number, mark) in [(16001, 4), (16002, 5), (16003, 6)] {
      let found = try connection.integer("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = \(number)")
      #expect(found == Int64(mark) || sql.contains("DROP TABLE") && found == nil, "\(number)")
    }
  }

  @Test(
    "A repair refuses a history table that rows of the others need",
    arguments: [
      ("DROP TABLE ACHANGE", "the table ACHANGE is missing, and 1 row of ATRANSACTION belongs to rows that it"),
      ("DROP TABLE ATRANSACTION", "the table ATRANSACTION is missing, and 1 row of ACHANGE belongs to rows that it"),
      (
        "DROP TABLE ATRANSACTIONSTRING",
        "the table ATRANSACTIONSTRING is missing, and 1 row of ATRANSACTION belongs to rows that it"
      ),
    ])
  func historyRefusals(_ sql: String, _ words: String) throws {
    let world = try World()
    try world.edit(Self.history + sql)
    do {
      _ = try world.repair()
      Issue.record("the history was repaired")
    } catch {
      let messages = ([error.error] + error.error.reasons).map(\.message)
      #expect(messages.contains { $0.contains(words) }, "\(messages)")
    }
  }

  @Test("The repaired copy has another schema version, by which recovery tells the two stores apart")
  func schemaVersion() throws {
    // A row of Z_PRIMARYKEY alone changes no schema.
    for sql in ["UPDATE Z_PRIMARYKEY SET Z_MAX = 1 WHERE Z_NAME = 'Person'", "DROP TABLE ZTAG"] {
      let world = try World()
      try world.edit(sql)
      let number = { () throws -> Int64? in
        try Connection.ofApp(world.location.database).integer("PRAGMA schema_version")
      }
      let before = try #require(try number())
      _ = try world.repair()
      #expect(try number() == before + 1)
    }
  }
}
