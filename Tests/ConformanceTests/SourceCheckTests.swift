// The check of a store's pages during its migration: damage that no statement of the migration finds stops the
// migration, and the store stays unchanged.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import MigrationEngine
import MigrationPipeline
import OtherPrograms
import PersistentStore
import SQLite
import SystemPackage
import Testing

@Suite struct SourceCheckTests {
  /// Returns a store that is large enough for a check on a separate thread.
  private func world(_ sql: String = "") throws -> AlteredWorld {
    let world = try AlteredWorld(
      seed: 11, versions: LibraryModels.versions(LibraryModels.withShelves), framework: 1044, rows: 30)
    try world.edit(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000) INSERT INTO ZBOOK (Z_PK, Z_ENT,"
        + " Z_OPT, ZTITLE) SELECT 1000 + i, 2, 1, printf('%.600c', 'x') FROM n;"
        + " UPDATE Z_PRIMARYKEY SET Z_MAX = 13000 WHERE Z_NAME = 'Book';" + sql)
    return world
  }

  /// Spoils the root page of an index that no statement of a migration uses.
  private func spoil(_ index: String, of path: FilePath) throws {
    let root = try #require(
      try Connection.ofApp(path).integer("SELECT rootpage FROM sqlite_master WHERE name = '\(index)'"))
    let file = try FileDescriptor.open(path, .readWrite)
    defer { try? file.close() }
    _ = try [UInt8](repeating: 0xa5, count: 512).withUnsafeBytes {
      try file.writeAll(toAbsoluteOffset: (root - 1) * 4096, $0)
    }
  }

  @Test(arguments: [AlterRule.never, .wherePossible], [false, true])
  func damageStopsTheMigration(_ altering: AlterRule, _ replaces: Bool) throws {
    let world = try world()
    try spoil("ZBOOK_ZAUTHOR_INDEX", of: world.location.database)
    let before = try Data(contentsOf: URL(filePath: world.location.database.string))
    var request = world.request("copy", alters: altering == .wherePossible)
    if replaces { request.output = nil }
    do {
      _ = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
      Issue.record("a damaged store was migrated")
    } catch {
      #expect(error.error.code == .storeDamaged, "\(error.error)")
    }
    #expect(try Data(contentsOf: URL(filePath: world.location.database.string)) == before)
    let names = try FileManager.default.contentsOfDirectory(atPath: world.folder.string).sorted()
    #expect(names == ["original.sqlite", "state"], "\(names)")
  }

  /// Damage that already stops the counting of the plan is reported as damage, and nothing is staged.
  @Test func damageStopsThePlan() throws {
    let world = try world()
    let pages = try #require(try Connection.ofApp(world.location.database).integer("PRAGMA page_count"))
    let file = try FileDescriptor.open(world.location.database, .readWrite)
    try file.closeAfter {
      _ = try [UInt8](repeating: 0xa5, count: 4096).withUnsafeBytes {
        try file.writeAll(toAbsoluteOffset: pages / 2 * 4096, $0)
      }
    }
    do {
      _ = try MigrationPipeline().run(world.request("copy", alters: true), stop: StopSignal()) { event in
        if case .hopStarted = event { Issue.record("a damaged store was migrated") }
      }
      Issue.record("a damaged store was migrated")
    } catch {
      #expect(error.error.code == .storeDamaged, "\(error.error)")
      #expect(error.stage == .plan)
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: world.folder.string).sorted()
    #expect(names == ["original.sqlite", "state"], "\(names)")
  }

  /// One thread counts the rows of a store with a log, two those of one without: the findings are the same.
  @Test func theReportDoesNotDependOnTheThreads() throws {
    var reports: [[String]] = []
    for hasLog in [false, true] {
      let world = try world(
        " UPDATE ZBOOK SET ZAUTHOR = 777777 WHERE Z_PK % 4000 = 0; UPDATE ZBOOK SET ZYEAR = Z_PK WHERE Z_PK % 3 = 0;"
          + " UPDATE ZBOOK SET ZTITLE = NULL WHERE Z_PK % 100 = 5")
      let app = try Connection.ofApp(world.location.database)
      if hasLog { try app.execute("PRAGMA journal_mode = WAL; UPDATE ZBOOK SET Z_OPT = 1 WHERE Z_PK = 1005") }
      let report = try withExtendedLifetime(app) {
        try MigrationPipeline().run(world.request("copy", alters: false), stop: StopSignal()) { _ in }
      }
      #expect(report.result == .migrated)
      reports.append(
        report.warnings.map { "\($0.code) \($0.message) \($0.place.entity ?? "") \($0.place.property ?? "")" }
          + report.dropped.map { "\($0)" } + report.checks.map { "\($0)" }
          + report.rows.sorted { $0.key < $1.key }.map { "\($0)" })
    }
    #expect(reports[0] == reports[1])
    #expect(reports[0].contains { $0.contains("danglingReferences") || $0.contains("dangling") })
  }

  /// Which thread counts how much is chance, so the request comes before either begins.
  @Test func thePlanStopsOnRequest() throws {
    let world = try world()
    let stop = StopSignal()
    do {
      _ = try MigrationPipeline().run(world.request("copy", alters: true), stop: stop) { event in
        if case .identified = event { stop.stop() }
        if case .hopStarted = event { Issue.record("the migration was begun") }
      }
      Issue.record("the migration was not stopped")
    } catch {
      #expect(error.error.code == .interrupted, "\(error.error)")
    }
  }

  /// A store with a log is checked through the connection that reads the log.
  @Test(arguments: [false, true]) func soundStoresPass(_ hasLog: Bool) throws {
    let world = try world()
    let app = try Connection.ofApp(world.location.database)
    if hasLog { try app.execute("PRAGMA journal_mode = WAL; UPDATE ZBOOK SET ZYEAR = 7 WHERE Z_PK = 1005") }
    let report = try withExtendedLifetime(app) {
      try MigrationPipeline().run(world.request("copy", alters: true), stop: StopSignal()) { _ in }
    }
    #expect(report.result == .migrated)
    let copy = StoreLocation(database: world.folder.appending("copy.sqlite"))
    #expect(try copy.answers("SELECT ZYEAR FROM ZBOOK WHERE Z_PK = 1005") == [hasLog ? "7" : "NULL"])
  }
}
