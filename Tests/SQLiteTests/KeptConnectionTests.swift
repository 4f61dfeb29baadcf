import BlockingTests
import CSQLite
import SystemPackage
import Testing

@testable import SQLite

/// A connection that is kept reads and writes every database as one that is opened for it.
@Suite(.blocking) struct KeptConnectionTests {
  /// The bytes of a database that these statements make.
  private func image(_ statements: [String], pageSize: Int = 4096) throws -> [UInt8] {
    let connection = try Connection(path: "/", access: .memory)
    try connection.attachMemory(as: "m", for: .image)
    try connection.execute("PRAGMA m.page_size = \(pageSize); PRAGMA m.auto_vacuum = 2")
    for statement in statements { try connection.run(statement) }
    return try connection.image(of: "m")
  }

  private func store(_ rows: ClosedRange<Int>, table: String = "T") throws -> [UInt8] {
    try image(
      ["CREATE TABLE m.\(table) (A INTEGER PRIMARY KEY, B)", "CREATE INDEX m.\(table)_I ON \(table) (B)"]
        + rows.map { "INSERT INTO m.\(table) VALUES (\($0), 'row \($0)')" })
  }

  @Test func thePagesOfOneStoreAreNeverReadAsThoseOfAnother() throws {
    let connection = try Connection(keptFor: try store(1...9), builds: true)
    let sql = "SELECT group_concat(B) FROM main.T"
    #expect(try connection.text(sql)?.hasPrefix("row 1,") == true)
    for first in [3, 200, 7, 7, 1] {
      #expect(try connection.exchange("main", for: try store(first...(first + 1))))
      #expect(try connection.text(sql) == "row \(first),row \(first + 1)")
      #expect(try connection.integer("SELECT count(*) FROM main.T WHERE B = 'row \(first)'") == 1)
      #expect(try connection.text("PRAGMA \"main\".quick_check(1)") == "ok")
    }
  }

  @Test func statementsStayCompiledForStoresOfTheSameSchema() throws {
    let connection = try Connection(keptFor: try store(1...2), builds: true)
    let sql = "SELECT max(A) FROM main.T WHERE A > ?"
    #expect(try connection.integer(sql, [.integer(0)]) == 2)
    let handle = try #require(connection.keptStatements(sql)?.handles.first)
    _ = try connection.exchange("main", for: try store(5...6))
    #expect(try connection.integer(sql, [.integer(0)]) == 6)
    #expect(sqlite3_stmt_status(handle, SQLITE_STMTSTATUS_REPREPARE, 0) == 0)
    // No value of the store before is bound.
    #expect(try connection.prepare(sql).first([]) { $0.isNull(at: 0) } == true)
    // A function that is registered again is another one, for the statements too.
    for answer in [1, 2] as [Int64] {
      try connection.registerFunction("f", argumentCount: 0) { _ in .integer(answer) }
      try connection.registerKeyTest("k", argumentCount: 1) { key, _ in key == answer }
      #expect(try connection.integer("SELECT f() + max(A) FROM main.T") == 6 + answer)
      #expect(try connection.integer("SELECT k(1) FROM main.T") == answer - 1)
    }
    connection.finishStore()
    #expect(throws: SQLiteError.self) { try connection.integer("SELECT f() FROM main.T") }
    connection.removeKeyTest("k", argumentCount: 1)
    #expect(throws: SQLiteError.self) { try connection.integer("SELECT k(1) FROM main.T") }
    #expect(sqlite3_stmt_status(handle, SQLITE_STMTSTATUS_REPREPARE, 0) == 0)
  }

  @Test func anotherSchemaIsRead() throws {
    let (first, second) = (try store(1...3), try store(4...8, table: "OTHER"))
    let connection = try Connection(keptFor: first, builds: true)
    try connection.createTemporary("VIEW", "V", "CREATE TEMP VIEW V AS SELECT A FROM main.T")
    for _ in 0..<3 {
      #expect(try connection.exchange("main", for: second))
      #expect(throws: SQLiteError.self) { try connection.integer("SELECT count(*) FROM main.T") }
      #expect(try connection.integer("SELECT count(*) FROM main.OTHER") == 5)
      try connection.createTemporary("VIEW", "V", "CREATE TEMP VIEW V AS SELECT A FROM main.OTHER")
      #expect(try connection.integer("SELECT sum(A) FROM temp.V") == 30)
      #expect(try connection.exchange("main", for: first))
      #expect(throws: SQLiteError.self) { try connection.integer("SELECT count(*) FROM main.OTHER") }
      try connection.createTemporary("VIEW", "V", "CREATE TEMP VIEW V AS SELECT A FROM main.T")
      #expect(try connection.integer("SELECT sum(A) FROM temp.V") == 6)
    }
  }

  @Test func nothingIsExchangedBelowAStatementThatRuns() throws {
    let connection = try Connection(keptFor: try store(1...9), builds: true)
    let statement = try connection.prepare("SELECT B FROM main.T")
    #expect(try statement.step())
    let error = #expect(throws: SQLiteError.self) { try connection.exchange("main", for: try store(20...30)) }
    #expect(error.map { $0.extendedCode & 0xff } == SQLITE_BUSY)
    #expect(try statement.step() && statement.text(at: 0) == "row 2")
    statement.reset()
    #expect(try connection.exchange("main", for: try store(20...30)))
    #expect(try statement.step() && statement.text(at: 0) == "row 20")
  }

  @Test func whatSQLiteReadsOnlyOnOpeningIsNotExchanged() throws {
    let connection = try Connection(keptFor: try store(1...9), builds: true)
    #expect(try !connection.exchange("main", for: try image(["CREATE TABLE m.T (A)"], pageSize: 1024)))
    let utf16 = try Connection(path: "/", access: .memory)
    try utf16.execute("PRAGMA encoding = 'UTF-16'; CREATE TABLE T (A)")
    #expect(try !connection.exchange("main", for: try utf16.image(of: "main")))
    #expect(try !connection.exchange("main", for: Array(repeating: 7, count: 8192)))
    #expect(try !connection.exchange("main", for: []))
    #expect(throws: SQLiteError.self) { try Connection(keptFor: Array(repeating: 7, count: 8192), builds: true) }
    // The source is only read.
    #expect(throws: SQLiteError.self) { try connection.run("DELETE FROM main.T") }
    #expect(try connection.integer("SELECT count(*) FROM main.T") == 9)
  }

  @Test func theResultIsTheFileThatSQLiteWouldHaveWritten() throws {
    let template = try image(["CREATE TABLE m.T (A INTEGER PRIMARY KEY, B)", "CREATE INDEX m.I ON T (B)"])
    func fill(_ connection: Connection, _ rows: Int) throws {
      for row in 0..<rows { try connection.run("INSERT INTO r.T VALUES (?, zeroblob(700))", [.integer(Int64(row))]) }
    }
    let kept = try Connection(keptFor: try store(1...2), builds: true)
    try kept.attachImage(template, as: "r")
    try kept.execute("PRAGMA r.journal_mode = MEMORY")
    for (number, rows) in [40, 3, 0, 90].enumerated() {
      if number > 0 { #expect(try kept.exchange("r", for: template)) }
      try fill(kept, rows)
      let fresh = try Connection(path: "/", access: .memory)
      try fresh.attachMemory(as: "r", for: .image)
      try fresh.load(template, into: "r")
      try fill(fresh, rows)
      #expect(try kept.image(of: "r") == fresh.image(of: "r"))
    }
    // Where SQLite itself has changed the schema, its numbers of schemas are not those of exchanges.
    try kept.run("CREATE TABLE r.MORE (A)")
    #expect(try !kept.exchange("r", for: template))
    #expect(try kept.isInMemory("r"))
  }

  @Test func theFirstStoreGetsNoConnectionAndAFailedOneIsNotKept() throws {
    let kept = KeptConnections()
    let models = KeptStatements.Marker()
    let shelf = kept.shelf(of: models)
    func take(_ rows: ClosedRange<Int>) throws -> Connection? { try shelf.take(.build) { try store(rows) } }
    #expect(try take(1...2) == nil)
    let first = try #require(try take(1...2))
    #expect(try take(1...2).map { $0 !== first } == true)
    shelf.putBack(first, .build)
    #expect(try kept.shelf(of: KeptStatements.Marker()).take(.build) { try store(1...2) } == nil)
    #expect(try shelf.take(.check) { try store(1...2) } == nil)
    let again = try #require(try take(5...7))
    #expect(again === first)
    #expect(try again.integer("SELECT count(*) FROM main.T") == 3)
    shelf.putBack(again, .build)
    #expect(throws: SQLiteError.self) {
      try shelf.with(.build, { try store(1...2) }, { try $0.run("no statement") })
    }
    #expect(try take(1...2).map { $0 !== first } == true)
    shelf.putBack(first, .build)
    kept.release()
    #expect(try take(1...2) == nil)
  }
}

extension KeptStatements {
  /// An object that stores have in common.
  final class Marker: Sendable {}
}
