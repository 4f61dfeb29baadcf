// Reading through the open file of another connection, pages ahead: every page read is the file's.

import BlockingTests
import SystemPackage
import Testing

@testable import SQLite

@Suite(.blocking) struct BorrowedFileTests {
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
