// The traits of a piece of SQL are passed on when it becomes part of another one.

import SQLite
import Testing

@Suite struct SQLExpressionTests {
  @Test func traitsGoAlong() {
    let failing = SQLExpression.function("f", .mayFail)
    let reading = SQLExpression.function("g", .readsFiles)
    let plain: SQLExpression = "\(SQLExpression.column("ZA")) + 1"
    #expect(!plain.mayFail && !plain.readsFiles && plain.text == "s.\"ZA\" + 1")
    let call: SQLExpression = "\(failing)(\(plain), \(2), \("x"))"
    #expect(call.mayFail && !call.readsFiles && call.text == "f(s.\"ZA\" + 1, 2, x)")
    let both = [call, "\(reading)(1)"].joined(separator: " AND ")
    #expect(both.mayFail && both.readsFiles && both.text == "f(s.\"ZA\" + 1, 2, x) AND g(1)")
    #expect((plain + call).mayFail && [plain, call].mayFail && ![plain].mayFail)
    #expect([SQLExpression]().joined(separator: ", ").text.isEmpty)
  }

  /// Only a column alone is known as one.
  @Test func columnsAreKnown() {
    let column = SQLExpression.column("ZA")
    let sum: SQLExpression = "(\(column) + \(column) + \(SQLExpression.column("ZA", of: "t")))"
    #expect(column.column(of: "s") == "ZA" && column.column(of: "t") == nil && sum.column(of: "s") == nil)
    // A name with quotes is quoted in the text, and plain for others.
    let odd = SQLExpression.column("Z\"A")
    #expect(odd.text == "s.\"Z\"\"A\"" && odd.column(of: "s") == "Z\"A")
  }

  /// A SELECT reads tables.
  @Test func queriesAskTables() {
    let query = SQLExpression.query("SELECT max(\(SQLExpression.column("ZA", of: "t"))) FROM t")
    let sum: SQLExpression = "1 + \(query)"
    #expect(sum.text == "1 + (SELECT max(t.\"ZA\") FROM t)" && sum.traits == .readsTables)
  }

  /// Only values are constant and never NULL.
  @Test func constants() {
    let values: [SQLiteValue] = [.integer(-7), .real(0.5), .text("it's"), .blob([1]), .text("")]
    #expect(values.map { SQLExpression.value($0) }.allSatisfy { $0.isConstant && !$0.isNull })
    #expect(SQLExpression.value(.null).isNull && SQLExpression.value(.real(.nan)).isNull)
    #expect(!SQLExpression.null.isConstant && !SQLExpression.column("ZA").isConstant)
    #expect(!("nullif(1, 1)" as SQLExpression).isConstant)
    #expect(SQLExpression.value(.text("it's")).text == "'it''s'")
  }
}
