// Writes that are gathered, and pages that are read together: nobody can tell either from the files. A process that is
// killed leaves what SQLite can roll back, a commit is complete, and every page read is the file's.

import BlockingTests
import FoundationEssentials
import OtherPrograms
import SystemPackage
import Testing

@testable import SQLite

@Suite(.blocking) struct GatheredWritesTests {
  private struct Snapshot {
    let folder: FilePath
    let committed: Int64
  }

  /// Copies database and journal as a killed process would leave them.
  private func snapshot(_ path: FilePath, to folder: FilePath, committed: Int64) throws -> Snapshot {
    try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
    for suffix in ["", "-journal"] {
      let from = path.string + suffix
      guard FileManager.default.fileExists(atPath: from) else { continue }
      try Data(contentsOf: URL(filePath: from)).write(to: URL(filePath: folder.appending("a.sqlite\(suffix)").string))
    }
    return Snapshot(folder: folder, committed: committed)
  }

  /// Copies are made within transactions that spill their pages, and after each commit.
  @Test(arguments: ["PERSIST", "DELETE", "TRUNCATE"])
  func aKilledProcessLeavesTheLastCommit(_ journal: String) throws {
    let directory = try TemporaryDirectory()
    let path = directory.path.appending("a.sqlite")
    var snapshots: [Snapshot] = []
    var committed: Int64 = 0
    do {
      let writer = try Connection(path: path, access: .create)
      writer.gatherWrites(of: "main")
      try writer.execute(
        "PRAGMA synchronous = OFF; PRAGMA cache_size = 12; PRAGMA journal_mode = \(journal);"
          + " CREATE TABLE t (k INTEGER PRIMARY KEY, n INTEGER, b BLOB); CREATE INDEX i ON t (b)")
      func take() throws {
        snapshots.append(
          try snapshot(path, to: directory.path.appending("kill-\(snapshots.count)"), committed: committed))
      }
      var failure: (any Error)?
      for round in Int64(1)...6 {
        var calls = 0
        writer.setProgressHandler(every: 300) {
          calls += 1
          if calls.isMultiple(of: 4) { do { try take() } catch { failure = error } }
          return true
        }
        try writer.execute(
          "BEGIN; UPDATE t SET n = \(round), b = randomblob(300) WHERE k % 3 = \(round % 3);"
            + " WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 250)"
            + " INSERT INTO t (n, b) SELECT \(round), randomblob(300) FROM c; COMMIT")
        writer.setProgressHandler(nil)
        committed = round
        try take()
      }
      #expect(failure == nil)
    }
    #expect(snapshots.count > 30)
    for snapshot in snapshots {
      let after = try Connection.ofApp(snapshot.folder.appending("a.sqlite"))
      #expect(try after.text("PRAGMA integrity_check") == "ok")
      let found = try after.integer("SELECT coalesce(max(n), 0) FROM t") ?? -1
      #expect(found == snapshot.committed)
      #expect(try after.integer("SELECT count(*) FROM t") == 250 * snapshot.committed)
    }
  }

  /// A file whose rows and indexes are scattered over its pages.
  private func scattered(_ path: FilePath) throws {
    let writer = try Connection(path: path, access: .create)
    try writer.execute(
      "CREATE TABLE t (k INTEGER PRIMARY KEY, b BLOB); CREATE INDEX i ON t (b); "
        + " CREATE TABLE u (k INTEGER PRIMARY KEY, c);"
        + " WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 4000)"
        + " INSERT INTO t SELECT n, randomblob(100 + n % 9000) FROM c;"
        + " DELETE FROM t WHERE k % 5 = 0; INSERT INTO u SELECT k, substr(b, 1, 900) FROM t WHERE k % 2 = 0")
  }

  @Test func aBorrowedFileHasTheSameContent() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path.appending("a.sqlite")
    try scattered(path)
    let holder = try Connection(path: path, access: .readOnly)
    let file = try #require(try holder.borrowedFile(of: "main"))
    let reader = try Connection(reading: file)
    for sql in [
      "SELECT k, hex(b) FROM t ORDER BY k", "SELECT k, hex(b) FROM t ORDER BY k DESC",
      "SELECT k, hex(b) FROM t INDEXED BY i WHERE b > x'80' ORDER BY b LIMIT 500",
      "SELECT u.k, length(t.b) || hex(u.c) FROM u JOIN t USING (k)",
      "SELECT 1, integrity_check FROM pragma_integrity_check",
    ] {
      func rows(_ connection: Connection) throws -> [String] {
        try connection.rows(sql) { "\($0.integer(at: 0)) \($0.text(at: 1) ?? "")" }
      }
      #expect(try rows(reader) == rows(holder), "\(sql)")
    }
  }

  /// The file became shorter, by another program that ignores locks: an error, or fewer rows, as without reading ahead.
  @Test func aCutFileIsNoticedAsBefore() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path.appending("a.sqlite")
    try scattered(path)
    let holder = try Connection(path: path, access: .readOnly)
    let file = try #require(try holder.borrowedFile(of: "main"))
    let reader = try Connection(reading: file)
    _ = try reader.integer("SELECT count(*) FROM sqlite_master")
    let descriptor = try FileDescriptor.open(path, .readWrite)
    try descriptor.closeAfter { try descriptor.resize(to: file.bytes / 2) }
    #expect(throws: SQLiteError.self) { try reader.rows("SELECT hex(b) FROM t ORDER BY k") { $0.text(at: 0) } }
  }
}
