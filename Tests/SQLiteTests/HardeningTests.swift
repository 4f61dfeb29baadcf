// The attacks that a file from a stranger cannot make through SQLite, one test for each line of the list
// (tools/README.md, "Hostile stores").

import BlockingTests
import CSQLite
import SystemPackage
import Testing

@testable import SQLite

@Suite(.blocking) struct HardeningTests {
  /// A database with a table, a view, a trigger and a constraint, as a stranger might have made it.
  private func file(_ directory: TemporaryDirectory, _ more: String = "") throws -> FilePath {
    let path = directory.path.appending("stranger.sqlite")
    let writer = try Connection(path: path, access: .create)
    try writer.execute("CREATE TABLE t (a CHECK (a > 100)); INSERT INTO t VALUES (1), (2); " + more)
    return path
  }

  private static let readers: [Connection.Access] = [.readOnly, .immutable, .unlocked]
  private static let all: [Connection.Access] =
    readers + [.readWrite, .exclusive(keepsLog: false)]

  /// The error of a statement; nil if it succeeds.
  private func refusal(_ connection: Connection, _ sql: String) -> SQLiteError? {
    do throws(SQLiteError) {
      try connection.execute(sql)
      return nil
    } catch {
      return error
    }
  }

  @Test func everyConnectionIsSetUpAlike() throws {
    let directory = try TemporaryDirectory()
    let path = try file(directory)
    for access in Self.all + [.memory] {
      let connection = try Connection(path: path, access: access)
      let settings = ["trusted_schema": 0, "cell_size_check": 1, "ignore_check_constraints": 1] as [String: Int64]
      for (name, value) in settings {
        #expect(try connection.integer("PRAGMA \(name)") == value, "\(name), \(access)")
      }
      // In memory there is nothing to map, and the PRAGMA returns no row.
      #expect(try connection.integer("PRAGMA mmap_size") ?? 0 == 0)
      // A word in double quotes is a name, and never becomes a text by mistake.
      #expect(refusal(connection, "SELECT \"nothing of that name\"") != nil)
    }
  }

  @Test func noStatementLoadsCodeOrAttaches() throws {
    let directory = try TemporaryDirectory()
    let path = try file(directory)
    let beside = directory.path.appending("beside.sqlite")
    for access in Self.all + [.memory] {
      let connection = try Connection(path: path, access: access)
      for sql in [
        "SELECT load_extension('x')", "SELECT load_extension('x', 'y')", "SELECT fts3_tokenizer('simple')",
        "ATTACH ':memory:' AS other", "ATTACH '\(beside)' AS other",
      ] {
        let error = refusal(connection, sql)
        // For functions there is only the message, no code.
        #expect(
          error?.code == SQLITE_AUTH || error?.message.hasPrefix("not authorized to use function") == true,
          "\(sql): \(error as Any)")
      }
      try connection.attachMemory(as: "ours")
      #expect(refusal(connection, "DETACH ours")?.code == SQLITE_AUTH)
      try connection.detach("ours")
    }
    #expect(directory.names == ["stranger.sqlite"])
  }

  @Test func whoeverReadsWritesNothing() throws {
    let directory = try TemporaryDirectory()
    let path = try file(directory, "CREATE VIEW v AS SELECT a FROM t")
    let before = directory.stamps
    for access in Self.readers {
      let connection = try Connection(path: path, access: access)
      for sql in [
        "INSERT INTO t VALUES (1)", "UPDATE t SET a = 2", "DELETE FROM t", "DROP TABLE t", "CREATE TABLE u (a)",
        "CREATE INDEX i ON t (a)", "CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END", "ALTER TABLE t ADD b",
        "CREATE VIRTUAL TABLE f USING rtree(a, b, c)", "ANALYZE", "VACUUM",
        "VACUUM INTO '\(directory.path.appending("copy.sqlite"))'", "DROP VIEW v", "PRAGMA user_version = 5",
      ] {
        #expect(refusal(connection, sql) != nil, "\(sql), \(access)")
      }
      // Temporary tables and views of its own are allowed.
      try connection.execute(
        "CREATE TEMP TABLE own (a); INSERT INTO own SELECT a FROM t; CREATE TEMP VIEW ours AS SELECT a FROM own; "
          + "DROP VIEW ours; DROP TABLE own"
      )
    }
    #expect(directory.stamps == before)
  }

  @Test func theSchemaOfAFileCannotBeWrittenOrCallUs() throws {
    let directory = try TemporaryDirectory()
    let path = try file(
      directory, "CREATE VIEW v AS SELECT ours(a) FROM t; CREATE VIEW w AS SELECT load_extension(a) FROM t")
    let connection = try Connection(path: path, access: .readWrite)
    try connection.registerKeyTest("ours", argumentCount: 1) { _, _ in true }
    #expect(try connection.integer("SELECT ours(5)") == 0)
    #expect(refusal(connection, "SELECT * FROM v")?.isForeignSchema == true)
    #expect(refusal(connection, "SELECT * FROM w") != nil)
    try connection.execute("PRAGMA writable_schema = ON")
    #expect(refusal(connection, "UPDATE sqlite_master SET sql = 'CREATE TABLE t (b)' WHERE name = 't'") != nil)
    #expect(refusal(connection, "DELETE FROM sqlite_master") != nil)
  }

  @Test func sizesAreBounded() throws {
    let directory = try TemporaryDirectory()
    let path = try file(directory)
    for access in Self.readers {
      let connection = try Connection(path: path, access: access)
      #expect(refusal(connection, "SELECT length(randomblob(1000000000))")?.code == SQLITE_TOOBIG)
      #expect(try connection.integer("SELECT length(zeroblob(60000000))") == 60_000_000)
    }
    let connection = try Connection(path: path, access: .readWrite)
    let long = "SELECT '" + String(repeating: "x", count: Int(ConnectionGuard.statementBytes)) + "'"
    #expect(refusal(connection, long)?.code == SQLITE_TOOBIG)
    try connection.execute(
      "CREATE TABLE deep (n); CREATE TRIGGER again AFTER INSERT ON deep BEGIN INSERT INTO deep VALUES (new.n + 1); END")
    try connection.execute("PRAGMA recursive_triggers = ON")
    #expect(refusal(connection, "INSERT INTO deep VALUES (1)")?.message.contains("too many levels") == true)
  }

  /// A constraint is a stranger's expression: reading pages does not evaluate it.
  @Test func constraintsOfAFileAreNotAsked() throws {
    let directory = try TemporaryDirectory()
    let path = try file(directory)
    for access in Self.all {
      let connection = try Connection(path: path, access: access)
      #expect(try connection.text("PRAGMA quick_check") == "ok")
      #expect(try connection.text("PRAGMA integrity_check") == "ok")
    }
  }

  @Test func aFormatOfTheFutureIsDamage() throws {
    let directory = try TemporaryDirectory()
    let path = try file(directory)
    let descriptor = try FileDescriptor.open(path, .readWrite)
    _ = try descriptor.closeAfter { try descriptor.writeAll(toAbsoluteOffset: 44, [0, 0, 0, 5]) }
    for access in Self.readers {
      let error = #expect(throws: SQLiteError.self) {
        try Connection(path: path, access: access).integer("SELECT count(*) FROM t")
      }
      #expect(error?.isDamage == true)
    }
  }
}
