import BlockingTests
import SystemPackage
import Testing

@testable import SQLite

@Suite(.blocking) struct RowTallyTests {
  @Test("Rows are counted while one statement writes them")
  func withinAStatement() throws {
    let connection = try Connection(path: "memory", access: .memory)
    try connection.execute("CREATE TABLE a (b INTEGER)")
    let tally = connection.tallyRows()
    var seen: [Int64] = []
    connection.setProgressHandler(every: 1000) {
      seen.append(tally.rows)
      return true
    }
    let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
    try connection.execute("\(numbers) INSERT INTO a SELECT i FROM n")
    #expect(connection.changes == 20_000 && tally.rows == 20_000)
    #expect(seen.contains { $0 > 0 && $0 < 20_000 } && seen == seen.sorted())
    seen = []
    try connection.execute("UPDATE a SET b = b + 1 WHERE b > 10000")
    #expect(tally.rows == 30_000 && seen.contains { $0 > 20_000 && $0 < 30_000 })
    try connection.execute("SELECT count(*) FROM a")
    #expect(tally.rows == 30_000 && connection.tallyRows() === tally)
    connection.setProgressHandler(nil)
  }
}
