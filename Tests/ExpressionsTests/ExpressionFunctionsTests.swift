import BlockingTests
import Expressions
import SQLite
import SystemPackage
import Testing

/// The functions that SQL calls and that have a fast path.
@Suite(.blocking) struct ExpressionFunctionsTests {
  @Test func textOfEveryKindChangesItsCaseAsStringsDo() throws {
    let connection = try Connection(path: "memory", access: .memory)
    try ExpressionFunctions.register(on: connection)
    let letters = (0..<128).compactMap { UnicodeScalar(UInt8($0)) }.map { String(Character($0)) }
    let texts =
      letters + [
        "", letters.joined(), "straße", "ǆ", "é", "e\u{301}", "İ", "ﬁ", "ΑΣ", "日本", "@[`{",
        String(repeating: "aZ9", count: 341) + "a", String(repeating: "aZ9", count: 342),
        String(repeating: "a", count: 1024) + "é",
      ]
    for text in texts {
      let found = try connection.rows(
        "SELECT hopd_uppercase(?1), hopd_lowercase(?1), hopd_length(?1), typeof(hopd_uppercase(?1))", [.text(text)]
      ) { row in [row.text(at: 0), row.text(at: 1), "\(row.integer(at: 2))", row.text(at: 3)] }
      // The standard library does not produce a final sigma.
      let lower = text == "ΑΣ" ? "ας" : text.lowercased()
      #expect(
        found == [[text.uppercased(), lower, "\(text.utf16.count)", "text"]], "\(text.debugDescription)")
    }
    for sql in ["SELECT hopd_uppercase(x'61')", "SELECT hopd_lowercase(1)", "SELECT hopd_length(1.5)"] {
      #expect(throws: SQLiteError.self, "\(sql)") { try connection.value(sql) }
    }
  }
}
