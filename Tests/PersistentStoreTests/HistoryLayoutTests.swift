// History tables as found: kept to the letter if they are understood, and otherwise never run.

import BlockingTests
import Diagnostics
import ManagedObjectModel
import SQLite
import SystemPackage
import Testing

@testable import PersistentStore

@Suite(.blocking) struct HistoryLayoutTests {
  /// A database with the tables of `layout`, changed by `sql`.
  private func read(
    _ layout: HistoryLayout = .made(byFramework: 1344, tombstones: 2), _ sql: String = ""
  ) throws -> HistoryLayout.Finding {
    let connection = try Connection(path: FilePath(":memory:"), access: .memory)
    try connection.execute(
      "CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER);"
        + "INSERT INTO Z_PRIMARYKEY VALUES (1, 'A', 0, 0)")
    for statement in layout.statements { try connection.execute(statement.createStatement) }
    for entry in layout.numbers {
      try connection.run(
        "INSERT INTO Z_PRIMARYKEY VALUES (?, ?, 0, 5)", [.integer(entry.number), .text(entry.name)])
    }
    try connection.execute(sql)
    return try HistoryLayout.read(from: StoreReader(connection: connection))
  }

  @Test func whatCoreDataMakesIsReadBackToTheLetter() throws {
    for (version, count) in [(851, 2), (973, 3), (1344, 3), (1526, 3)] as [(Int64, Int)] {
      for tombstones in 0...4 {
        let made = HistoryLayout.made(byFramework: version, tombstones: tombstones)
        let found = try read(made, "INSERT INTO ACHANGE (Z_PK, Z_ENT) VALUES (9, 16001), (3, 16001)")
        #expect(found.errors.isEmpty && found.warnings.isEmpty)
        let layout = try #require(found.layout)
        #expect(layout.statements == made.statements)
        #expect(layout.tables.count == count)
        #expect(layout.tombstoneCount == tombstones)
        #expect(found.rows[.change] == 2)
        // Never less than a key in use, and otherwise the store's number.
        #expect(layout.numbers.map(\.highWaterMark) == [9, 5, 5].prefix(count) + [])
        #expect(layout.asMade(byFramework: version) == layout)
      }
    }
  }

  @Test func aStoreWithoutHistoryHasNone() throws {
    let found = try read(HistoryLayout(tables: [:], indexes: [], numbers: []))
    #expect(found.layout == nil && found.errors.isEmpty)
  }

  @Test func columnsThatWereAppendedStayWhereTheyAre() throws {
    let text =
      "CREATE TABLE ACHANGE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZCHANGETYPE INTEGER, "
      + "ZENTITY INTEGER, ZENTITYPK INTEGER, ZTRANSACTIONID INTEGER, ZCOLUMNS BLOB , ZTOMBSTONE0 BLOB)"
    let found = try read(.made(byFramework: 1344, tombstones: 0), "ALTER TABLE ACHANGE ADD COLUMN ZTOMBSTONE0 BLOB")
    #expect(found.layout?.tables[.change]?.createStatement == text)
    let wide = try #require(found.layout).widened(for: Self.model(preserved: 3))
    #expect(wide.tables[.change]?.createStatement == text.dropLast() + ", ZTOMBSTONE1 BLOB, ZTOMBSTONE2 BLOB)")
    // SQLite runs and keeps exactly that text.
    #expect(try read(wide).layout?.statements == wide.statements)
  }

  @Test func tombstonesFollowTheWidestEntityAndNeverGoAway() {
    for had in 0...4 {
      for needed in 0...4 {
        let layout = HistoryLayout.made(byFramework: 1344, tombstones: had).widened(for: Self.model(preserved: needed))
        #expect(layout == .made(byFramework: 1344, tombstones: max(had, needed)))
      }
    }
    #expect(HistoryLayout.tombstoneCount(of: Self.model(preserved: 4)) == 4)
  }

  /// Entities with at most one, with half and with all preserved attributes; the last inherits some of them.
  private static func model(preserved count: Int) -> ManagedObjectModel {
    func attributes(_ prefix: String, _ count: Int) -> [Attribute] {
      (0..<count).map { Attribute(name: "\(prefix)\($0)", type: .string, preservesAfterDeletion: true) }
        + [Attribute(name: "\(prefix)plain", type: .string)]
    }
    return ManagedObjectModel(
      name: "M",
      entities: [
        Entity(name: "Few", attributes: attributes("f", min(1, count))),
        Entity(name: "Parent", attributes: attributes("p", count / 2)),
        Entity(name: "Child", parentName: "Parent", attributes: attributes("c", count - count / 2)),
      ])
  }

  /// Texts run again in another database: only plain columns may be accepted.
  @Test(arguments: [
    "CREATE TABLE ATRANSACTION (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER)",
    "CREATE TABLE ATRANSACTION (Z_PK INTEGER, Z_ENT INTEGER, ZTIMESTAMP FLOAT)",
    "CREATE TABLE ATRANSACTION (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, ZTIMESTAMP FLOAT DEFAULT 5)",
    "CREATE TABLE ATRANSACTION (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, ZTIMESTAMP FLOAT CHECK (ZTIMESTAMP > 1))",
    "CREATE TABLE ATRANSACTION (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, ZTIMESTAMP FLOAT UNIQUE)",
    "CREATE TABLE ATRANSACTION (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, ZTIMESTAMP FLOAT) WITHOUT ROWID",
    "CREATE TABLE ATRANSACTION (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, ZTIMESTAMP FLOAT, G AS (Z_ENT + 1))",
    "CREATE TABLE ATRANSACTION (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, ZTIMESTAMP FLOAT, \"a;b\" TEXT)",
    "CREATE TABLE ATRANSACTION AS SELECT 1 AS Z_PK, 2 AS Z_ENT, 3 AS ZTIMESTAMP",
    "CREATE VIRTUAL TABLE ATRANSACTION USING rtree(Z_PK, Z_ENT, ZTIMESTAMP)",
  ])
  func tablesThatAreNotUnderstoodAreReportedAndNotCarried(_ text: String) throws {
    let found = try read(.made(byFramework: 1344, tombstones: 0), "DROP TABLE ATRANSACTION; \(text)")
    #expect(found.errors.map(\.code) == [.historyNotUnderstood])
    #expect(found.errors.first?.message.contains("ATRANSACTION") == true && found.errors.first?.hint != nil)
    #expect(found.layout?.tables[.transaction] == nil)
  }

  @Test(arguments: [
    "CREATE INDEX strange ON ACHANGE (ZENTITY + 1)", "CREATE INDEX strange ON ACHANGE (ZENTITY) WHERE ZENTITY > 1",
    "CREATE INDEX \"str;ange\" ON ACHANGE (ZENTITY)",
  ])
  func indexesThatAreNotUnderstoodAreLeftOutWithARemark(_ text: String) throws {
    let found = try read(.made(byFramework: 1344, tombstones: 0), text)
    #expect(found.errors.isEmpty)
    #expect(found.warnings.map(\.code) == [.indexLeftOut])
    #expect(found.layout?.indexes == HistoryLayout.made(byFramework: 1344, tombstones: 0).indexes)
  }

  @Test func halfOfHistoryIsRefused() throws {
    for sql in [
      "DROP TABLE ACHANGE", "DROP TABLE ATRANSACTION",
      "INSERT INTO ATRANSACTION (Z_PK, Z_ENT) VALUES (1, 16002); DELETE FROM Z_PRIMARYKEY WHERE Z_ENT = 16002",
      "INSERT INTO ATRANSACTIONSTRING (Z_PK) VALUES (1); UPDATE Z_PRIMARYKEY SET Z_NAME = 'OTHER' WHERE Z_ENT = 16003",
    ] {
      let found = try read(.made(byFramework: 1344, tombstones: 0), sql)
      #expect(found.errors.map(\.code) == [.historyNotUnderstood], "\(sql)")
    }
  }

  /// As SwiftData makes a store: the tables come at once, their numbers with the first save.
  @Test func freshHistoryHasNoNumbersYet() throws {
    let made = HistoryLayout.made(byFramework: 1448, tombstones: 0)
    let found = try read(made, "DELETE FROM Z_PRIMARYKEY WHERE Z_ENT > 16000")
    #expect(found.errors.isEmpty)
    #expect(found.layout?.statements == made.statements && found.layout?.numbers == [])
  }
}
