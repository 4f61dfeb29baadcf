// The functions that replace columns must return what columns of the installed library store, for every kind of value.

import BlockingTests
import SQLite
import SystemPackage
import Testing

@Suite(.blocking) struct ColumnAffinityTests {
  private static let values = [
    "NULL", "0", "1", "-1", "5", "255", "9007199254740993", "9223372036854775807", "(-9223372036854775807 - 1)",
    "140737488355328", "-140737488355329", "0.0", "-0.0", "1.0", "5.5", "-2.5", "1e15", "1e18", "1e19", "-1e19",
    "1e300",
    "9223372036854774784.0", "9223372036854775808.0", "-9223372036854775808.0", "9e999", "-9e999", "0.1",
    "123456789.25",
    "''", "'x'", "'5'", "' 5 '", "'5 x'", "'5.0'", "'5.5'", "'-0.0'", "'1e3'", "'1e400'", "'0x10'", "'+7'", "'.5'",
    "'5.'",
    "'9007199254740993'", "'9223372036854775807'", "'9223372036854775808'", "'-9223372036854775808'", "'1e18'",
    "'00012'",
    "'99999999999999999999'", "'NaN'", "'inf'", "X''", "X'35'", "X'00'", "CAST(X'3500' AS TEXT)",
  ]

  @Test(arguments: ["INTEGER", "VARCHAR", "FLOAT", "TIMESTAMP", "DECIMAL", "BLOB", "VARCHAR(255)", "DOUBLE", ""])
  func aFunctionAnswersWhatTheColumnStores(_ type: String) throws {
    let connection = try Connection(path: ":memory:", access: .memory)
    try connection.registerAffinityFunctions()
    try connection.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, a \(type))")
    let affinity = ColumnAffinity(declaredType: type)
    for value in Self.values {
      try connection.execute("DELETE FROM t; INSERT INTO t VALUES (1, \(value))")
      // As a constant and from a column without affinity; the division shows the sign of a zero.
      for source in ["SELECT \(value) AS v", "SELECT v FROM (SELECT \(value) AS v UNION ALL SELECT 1) LIMIT 1"] {
        let answer = try connection.rows(
          "SELECT typeof(x.a), x.a, typeof(y.f), y.f FROM t AS x,"
            + " (SELECT \(affinity.stored("q.v").text) AS f FROM (\(source)) AS q) AS y"
        ) { row in [row.value(at: 0), row.value(at: 1), row.value(at: 2), row.value(at: 3)] }
        let row = try #require(answer.first)
        #expect(row[0] == row[2] && row[1] == row[3], "\(value) in \(type): \(row)")
        if case .real(let stored) = row[1], case .real(let said) = row[3] {
          #expect(stored.sign == said.sign, "\(value) in \(type)")
        }
      }
    }
  }

  @Test func typesHaveTheAffinitiesThatSQLiteGivesThem() {
    let types: [(String, ColumnAffinity)] = [
      ("INTEGER", .integer), ("VARCHAR", .text), ("VARCHAR(255)", .text), ("FLOAT", .real), ("DOUBLE", .real),
      ("TIMESTAMP", .numeric), ("DECIMAL", .numeric), ("BLOB", .blob), ("", .blob), ("CHARINT", .integer),
      ("varchar", .text), ("float", .real), ("Double Precision", .real), ("blobtext", .text), ("floatblob", .blob),
      ("point", .integer), ("IN T", .numeric), ("BLO", .numeric), ("R\u{301}EAL", .numeric), ("REAL\u{301}", .real),
    ]
    for (type, affinity) in types { #expect(ColumnAffinity(declaredType: type) == affinity, "\(type)") }
    #expect(ColumnAffinity.numeric.keeps(valuesOf: .integer) && ColumnAffinity.blob.keeps(valuesOf: .text))
    #expect(!ColumnAffinity.real.keeps(valuesOf: .integer) && !ColumnAffinity.text.keeps(valuesOf: .blob))
  }
}
