import BlockingTests
import OtherPrograms
import SystemPackage
import Testing

@testable import SQLite

/// A database whose file the kernel copies.
@Suite(.blocking) struct DatabaseFileCopyTests {
  /// A store as an app leaves it: 12 MB, so that a copy takes several steps.
  private func store(in folder: TemporaryDirectory, mode: String, keepsLog: Bool = false) throws -> FilePath {
    let path = folder.path.appending("source.sqlite")
    let connection = try Connection.ofApp(path, .create)
    try #require(try connection.text("PRAGMA journal_mode = \(mode)") == mode)
    if keepsLog { connection.keepWriteAheadLogOnClose() }
    try connection.execute(
      "PRAGMA wal_autocheckpoint = 0; CREATE TABLE ZA ( Z_PK INTEGER PRIMARY KEY, ZB BLOB );"
        + " INSERT INTO ZA WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
        + " SELECT i, randomblob(4000) FROM n")
    return path
  }

  private func empty(_ path: FilePath) throws -> Connection {
    let connection = try Connection(path: path, access: .create)
    try connection.execute("CREATE TABLE OLD (A); INSERT INTO OLD VALUES (zeroblob(40000))")
    return connection
  }

  private func rows(_ connection: Connection) throws -> [String?] {
    try connection.rows("SELECT hex(ZB) FROM ZA ORDER BY Z_PK") { $0.text(at: 0) }
  }

  private static let held = Connection.Access.exclusive(keepsLog: true)

  @Test(arguments: ["delete", "wal"], [held, .unlocked])
  func theKernelCopiesWhatIsAllInTheFile(_ mode: String, _ access: Connection.Access) throws {
    let folder = try TemporaryDirectory()
    let path = try store(in: folder, mode: mode)
    // Bytes after the last page do not belong to the database.
    let file = try FileDescriptor.open(path, .writeOnly, options: .append)
    try file.closeAfter { _ = try file.writeAll([UInt8](repeating: 7, count: 100)) }
    let source = try Connection(path: path, access: access)
    let before = folder.stamps.filter { $0.hasPrefix("source.sqlite ") }
    let target = folder.path.appending("copy.sqlite")
    var reported: [Int64] = []
    let isCopied = try DatabaseFileCopy(source: source, schema: "main", target: empty(target)).run { done, _ in
      reported.append(done)
      return true
    }
    #expect(isCopied)
    #expect(reported == reported.sorted())
    #expect(!source.isInTransaction)
    try source.copy("main", to: target) { _, _ in true }
    #expect(folder.names.filter { $0.hasPrefix("copy") } == ["copy.sqlite"])
    #expect(folder.stamps.filter { $0.hasPrefix("source.sqlite ") } == before)
    let copy = try Connection(path: target, access: .readWrite)
    #expect(try copy.text("PRAGMA journal_mode") == "delete")
    #expect(try copy.text("PRAGMA integrity_check") == "ok")
    #expect(try rows(copy) == rows(source))
  }

  @Test func whatIsInALogAloneIsCopiedPageByPage() throws {
    let folder = try TemporaryDirectory()
    let path = try store(in: folder, mode: "wal", keepsLog: true)
    let source = try Connection(path: path, access: Self.held)
    let target = folder.path.appending("copy.sqlite")
    #expect(try !DatabaseFileCopy(source: source, schema: "main", target: empty(target)).run { _, _ in true })
    try source.copy("main", to: target) { _, _ in true }
    #expect(try rows(Connection(path: target, access: .immutable)) == rows(source))
  }

  @Test func aCopyThatIsGivenUpIsNoDatabase() throws {
    let folder = try TemporaryDirectory()
    let path = try store(in: folder, mode: "delete")
    let source = try Connection(path: path, access: Self.held)
    for end in 1...2 {
      let target = folder.path.appending("copy\(end).sqlite")
      var steps = 0
      let error = #expect(throws: SQLiteError.self) {
        try DatabaseFileCopy(source: source, schema: "main", target: empty(target)).run { _, _ in
          steps += 1
          return steps < end
        }
      }
      #expect(error?.isInterrupt == true)
      #expect(!source.isInTransaction)
      #expect(throws: SQLiteError.self) {
        try Connection(path: target, access: .immutable).integer("SELECT count(*) FROM sqlite_master")
      }
    }
    // The lock on the source is still held: no descriptor of it was closed.
    let other = try Connection.ofApp(path, .readWrite)
    #expect(throws: SQLiteError.self) { try other.execute("DELETE FROM ZA") }
  }
}
