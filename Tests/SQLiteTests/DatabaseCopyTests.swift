import BlockingTests
import OtherPrograms
import SystemPackage
import Testing

@testable import SQLite

/// A database copied page by page.
@Suite(.blocking) struct DatabaseCopyTests {
  private func source(
    in folder: TemporaryDirectory, pageSize: Int64, autoVacuum: Int64, isLogged: Bool
  ) throws -> Connection {
    let path = folder.path.appending("source.sqlite")
    let connection = try Connection.ofApp(path, .create)
    try connection.execute("PRAGMA page_size = \(pageSize); PRAGMA auto_vacuum = \(autoVacuum)")
    if isLogged {
      try #require(try connection.text("PRAGMA journal_mode = WAL") == "wal")
      try connection.execute("PRAGMA wal_autocheckpoint = 0")
    }
    try connection.execute(
      "CREATE TABLE ZA ( Z_PK INTEGER PRIMARY KEY, ZB BLOB ); CREATE INDEX ZI ON ZA (ZB);"
        + " INSERT INTO ZA WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
        + " SELECT i, zeroblob(i % 700) FROM n")
    return connection
  }

  private func empty(_ path: FilePath) throws {
    let connection = try Connection(path: path, access: .create)
    _ = try connection.integer("PRAGMA user_version")
    try connection.execute("PRAGMA journal_mode = DELETE")
  }

  @Test(arguments: [(4096, 2, true), (4096, 0, false), (1024, 1, true), (16384, 2, false)])
  func aCopyIsThatDatabaseInRollbackMode(_ pageSize: Int64, _ autoVacuum: Int64, _ isLogged: Bool) throws {
    let folder = try TemporaryDirectory()
    let connection = try source(in: folder, pageSize: pageSize, autoVacuum: autoVacuum, isLogged: isLogged)
    let before = folder.stamps
    let path = folder.path.appending("copy.sqlite")
    try empty(path)
    var reported: [(Int64, Int64)] = []
    try connection.copy("main", to: path, pagesPerStep: 16) { done, all in
      reported.append((done, all))
      return true
    }
    #expect(reported.count > 5)
    #expect(zip(reported, reported.dropFirst()).allSatisfy { $0.0 < $1.0 && $0.1 == $1.1 })
    // The copy has no side files, and the source is unchanged: its log is not checkpointed.
    #expect(folder.names.filter { $0.hasPrefix("copy") } == ["copy.sqlite"])
    #expect(folder.stamps.filter { $0.hasPrefix("source") } == before)
    let copy = try Connection(path: path, access: .immutable)
    #expect(try copy.integer("SELECT count(*) FROM ZA") == 3000)
    #expect(try copy.text("PRAGMA integrity_check") == "ok")
    #expect(try copy.integer("PRAGMA page_size") == pageSize)
    #expect(try copy.integer("PRAGMA auto_vacuum") == autoVacuum)
    for query in ["SELECT sql FROM sqlite_master ORDER BY name", "SELECT hex(ZB) FROM ZA ORDER BY Z_PK"] {
      #expect(try copy.rows(query) { $0.text(at: 0) } == connection.rows(query) { $0.text(at: 0) })
    }
    // Opened for writing it is in rollback mode: no log appears.
    let writer = try Connection(path: path, access: .readWrite)
    #expect(try writer.text("PRAGMA journal_mode") == "delete")
  }

  @Test func aDatabaseIsWrittenAnewAlsoByAConnectionThatOnlyReadsIt() throws {
    let folder = try TemporaryDirectory()
    let connection = try source(in: folder, pageSize: 4096, autoVacuum: 0, isLogged: false)
    try connection.execute("DELETE FROM ZA WHERE Z_PK > 100")
    let reader = try Connection(path: "", access: .memory)
    try reader.attachUnchanged(folder.path.appending("source.sqlite"), as: "store", access: .immutable)
    let path = folder.path.appending("copy.sqlite")
    try reader.vacuum("store", into: path)
    let copy = try Connection(path: path, access: .immutable)
    #expect(try copy.integer("SELECT count(*) FROM ZA") == 100)
    #expect(try copy.integer("PRAGMA freelist_count") == 0)
    #expect(throws: SQLiteError.self) { try reader.vacuum("store", into: path) }
  }

  @Test func givingUpLeavesNoDatabase() throws {
    let folder = try TemporaryDirectory()
    let connection = try source(in: folder, pageSize: 4096, autoVacuum: 2, isLogged: true)
    let path = folder.path.appending("copy.sqlite")
    try empty(path)
    var steps = 0
    do {
      try connection.copy("main", to: path, pagesPerStep: 8) { _, _ in
        steps += 1
        return steps < 3
      }
      Issue.record("it went on")
    } catch {
      #expect(error.isInterrupt)
    }
    #expect(steps == 3)
    // The source is unlocked again, for another copy and for writing.
    try connection.execute("INSERT INTO ZA VALUES (9000, NULL)")
    let other = folder.path.appending("copy2.sqlite")
    try empty(other)
    try connection.copy("main", to: other) { _, _ in true }
    #expect(try Connection(path: other, access: .immutable).integer("SELECT count(*) FROM ZA") == 3001)
  }
}
