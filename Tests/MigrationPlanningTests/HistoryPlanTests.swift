// Stores with persistent history, with CloudKit's tables, and with unknown reserved numbers.

import BlockingTests
import Diagnostics
import ManagedObjectModel
import PersistentStore
import PropertyLists
import SQLite
import Testing

@testable import MigrationPlanning

@Suite(.blocking) struct HistoryPlanTests {
  private let simple = catalog(
    [entity("A", [attribute("x")])], [entity("A", [attribute("x"), attribute("y")])],
    [entity("A", [attribute("x"), attribute("y"), attribute("z")])])

  /// SQL that gives a store history with rows.
  static func history(framework: Int64 = 1344, rows: Bool = true) -> String {
    let layout = HistoryLayout.made(byFramework: framework, tombstones: 0)
    var lines = layout.statements.map(\.createStatement)
    lines += layout.numbers.map { "INSERT INTO Z_PRIMARYKEY VALUES (\($0.number), '\($0.name)', 0, 40)" }
    if rows {
      lines += [
        "INSERT INTO ACHANGE (Z_PK, Z_ENT, ZENTITY, ZENTITYPK) VALUES (41, 16001, 1, 1), (42, 16001, 1, 2)",
        "INSERT INTO ATRANSACTION (Z_PK, Z_ENT, ZAUTHOR) VALUES (7, 16002, 'secret author')",
      ]
    }
    return lines.joined(separator: ";") + ";"
  }

  private func plan(_ store: SmallStore, _ rule: HistoryRule = .clear) throws -> MigrationPlan {
    let identified = try #require(try store.identify(simple).identified)
    return try StoreReader.withUnchangedStore(at: store.location) { reader in
      try MigrationPlanner.plan(store: identified, catalog: simple, rules: PlanningRules(history: rule), reader: reader)
    }
  }

  @Test func historyIsClearedAndReported() throws {
    for framework in [851, 1344] as [Int64] {
      let store = try SmallStore(try simple.model("V1"), framework: framework, Self.history(framework: framework))
      let plan = try plan(store)
      #expect(plan.hops.count == 2)
      // The store between the hops has no history.
      #expect(plan.hops[0].destinationSchema.history == nil)
      let layout = try #require(plan.hops[1].destinationSchema.history)
      #expect(layout.statements == HistoryLayout.made(byFramework: framework, tombstones: 0).statements)
      #expect(layout.numbers.map(\.highWaterMark) == (framework == 851 ? [42, 40] : [42, 40, 40]))
      #expect(plan.clearedHistory.map(\.table).prefix(2) == ["ACHANGE", "ATRANSACTION"])
      #expect(plan.clearedHistory.map(\.rows).prefix(2) == [2, 1])
      #expect(plan.clearedHistory.allSatisfy { $0.hop == 1 })
      let warning = try #require(plan.warnings.first { $0.code == .historyCleared })
      #expect(warning.message.contains("2 rows of ACHANGE, 1 row of ATRANSACTION"))
      #expect(!plan.warnings.contains { "\($0)".contains("secret") })
      #expect(warning.hint != nil && warning.place.store != nil)
    }
  }

  @Test func emptyHistoryIsNoNews() throws {
    let plan = try plan(try SmallStore(try simple.model("V1"), Self.history(rows: false)))
    #expect(plan.hops.last?.destinationSchema.history != nil)
    #expect(!plan.warnings.contains { $0.code == .historyCleared })
  }

  @Test func theRuleCanBeToRefuse() throws {
    let store = try SmallStore(try simple.model("V1"), Self.history())
    let error = #expect(throws: HopdError.self) { try plan(store, .refuse) }
    #expect(error?.code == .historyNotSupported && error?.hint?.contains("--history clear") == true)
    // Without history the rule has no effect.
    #expect(try plan(try SmallStore(try simple.model("V1")), .refuse).hops.count == 2)
  }

  @Test func anotherPlanIsNotGoneOnWith() throws {
    let store = try SmallStore(try simple.model("V1"), Self.history())
    let before = try plan(store).fingerprint
    #expect(try plan(store).fingerprint == before)
    try store.execute("UPDATE Z_PRIMARYKEY SET Z_MAX = 99 WHERE Z_ENT = 16002")
    #expect(try plan(store).fingerprint != before)
  }

  @Test func aStoreThatIsCurrentIsLeftAlone() throws {
    for sql in [
      Self.history(), "CREATE TABLE ANSCKX (Z_PK INTEGER)", "INSERT INTO Z_PRIMARYKEY VALUES (17001, 'NSCKX', 0, 0)",
    ] {
      let store = try SmallStore(try simple.model("V3"), sql)
      #expect(try store.identify(simple).state == .current)
      let plan = try plan(store, .refuse)
      #expect(plan.hops.isEmpty && plan.clearedHistory.isEmpty)
    }
  }

  @Test func reservedNumbersOfNobodyAreRefusedByName() throws {
    for (sql, name) in [
      ("INSERT INTO Z_PRIMARYKEY VALUES (16004, 'NEWS', 0, 0)", "16004 (NEWS)"),
      ("INSERT INTO Z_PRIMARYKEY VALUES (16000, 'X', 0, 0)", "16000 (X)"),
      ("INSERT INTO Z_PRIMARYKEY VALUES (16001, 'OTHER', 0, 0)", "16001 (OTHER)"),
    ] {
      let error = #expect(throws: HopdError.self) { try plan(try SmallStore(try simple.model("V1"), sql)) }
      #expect(error?.code == .historyNotUnderstood && error?.message.contains(name) == true, "\(sql)")
      #expect(error?.hint != nil)
    }
    let error = #expect(throws: HopdError.self) {
      try plan(try SmallStore(try simple.model("V1"), Self.history() + "CREATE TABLE AOTHER (Z_PK INTEGER)"))
    }
    #expect(error?.code == .unknownTable && error?.message.contains("AOTHER") == true)
  }

  /// Mirroring is reported before any other mistake in the store, and by any of its traces.
  @Test func mirroredStoresAreRefusedBeforeAnythingElse() throws {
    for sql in [
      "CREATE TABLE ANSCKRECORDMETADATA ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZENTITYID INTEGER )",
      "CREATE TRIGGER t AFTER INSERT ON ZA BEGIN SELECT 1; END; CREATE TABLE ANSCKEVENT (Z_PK INTEGER)",
      "INSERT INTO Z_PRIMARYKEY VALUES (17012, 'NSCKRecordMetadata', 0, 3)",
      "CREATE INDEX Z_NSCKRecordMetadata_UNIQUE_x ON ZA (ZX)",
      "CREATE TRIGGER ANSCK_t AFTER INSERT ON ZA BEGIN SELECT 1; END",
    ] {
      let store = try SmallStore(
        try simple.model("V1"), metadata: [StoreMetadata.Key.deferredMigration: .boolean(true)],
        Self.history() + "CREATE TABLE notes (a); DELETE FROM Z_PRIMARYKEY WHERE Z_ENT = 1;" + sql)
      for rule in HistoryRule.allCases {
        let error = #expect(throws: HopdError.self) { try plan(store, rule) }
        #expect(error?.code == .cloudKitNotSupported && error?.reasons.isEmpty == true, "\(sql)")
        #expect(error?.hint?.contains("--cloudkit migrate") == true && error?.place.store != nil)
      }
    }
  }

  @Test func wrongMetadataAndNewFrameworksAreReported() throws {
    let store = try SmallStore(
      try simple.model("V1"), framework: 1700,
      metadata: [
        StoreMetadata.Key.versionHashesDigest: .string("x"), StoreMetadata.Key.autoVacuumLevel: .string("2"),
      ])
    let codes = try plan(store).warnings.map(\.code)
    // SmallStore makes files without auto_vacuum.
    #expect(codes.filter { $0 == .metadataCorrected }.count == 2)
    #expect(codes.contains(.frameworkVersionUnknown))
  }
}
