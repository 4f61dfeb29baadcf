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

  /// A column is in the list as often as it is read; other tables' columns have other aliases.
  @Test func columnsAreCounted() {
    let column = SQLExpression.column("ZA")
    let sum: SQLExpression = "(\(column) + \(column) + \(SQLExpression.column("ZA", of: "t")))"
    #expect(sum.reads.map(\.alias) == ["s", "s", "t"] && sum.reads.allSatisfy { $0.column == "ZA" })
    #expect(column.column(of: "s") == "ZA" && column.column(of: "t") == nil && sum.column(of: "s") == nil)
    // A name with quotes is quoted in the text and plain in the list.
    let odd = SQLExpression.column("Z\"A")
    #expect(odd.text == "s.\"Z\"\"A\"" && odd.column(of: "s") == "Z\"A")
  }

  /// The position of a column is known, whatever a neighbouring literal looks like.
  @Test func columnsAreReplaced() {
    let (column, other) = (SQLExpression.column("ZÄ"), SQLExpression.column("ZB", of: "t"))
    let literal = SQLExpression.value(.text("é s.\"ZÄ\""))
    let sum: SQLExpression = "(\(literal) || \(column) || \(other) || \(column))"
    let once = sum.replacing(columnsOf: "s", by: ["ZÄ": .integer(7)])
    #expect(once.text == "('é s.\"ZÄ\"' || 7 || t.\"ZB\" || 7)")
    // The traits of a replacement are known like those of the original.
    let product: SQLExpression = "\(SQLExpression.column("ZC")) * 2"
    let twice = sum.replacing(columnsOf: "s", by: ["ZÄ": product])
      .replacing(columnsOf: "s", by: ["ZC": .column("ZD")]).replacing(columnsOf: "t", by: ["ZB": .null])
    #expect(twice.text == "('é s.\"ZÄ\"' || (s.\"ZD\" * 2) || NULL || (s.\"ZD\" * 2))")
    #expect(twice.reads.map(\.column) == ["ZD", "ZD"])
    #expect((sum + sum).replacing(columnsOf: "s", by: ["ZÄ": .null]).text.firstRange(of: "s.\"ZÄ\" ||") == nil)
    #expect(column.replacing(columnsOf: "s", by: ["ZÄ": literal]) == literal)
    #expect(column.replacing(columnsOf: "s", by: [:]).isNull && literal.replacing(columnsOf: "s", by: [:]) == literal)
  }

  /// A SELECT reads tables, and its columns stay known.
  @Test func queriesAskTables() {
    let query = SQLExpression.query("SELECT max(\(SQLExpression.column("ZA", of: "t"))) FROM t")
    let sum: SQLExpression = "1 + \(query)"
    #expect(sum.text == "1 + (SELECT max(t.\"ZA\") FROM t)" && sum.traits == .readsTables)
    #expect(sum.replacing(columnsOf: "t", by: ["ZA": .integer(1)]).text == "1 + (SELECT max(1) FROM t)")
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
