// Rows of data: every form that a file may have, and every form that it must not have.

import Diagnostics
import SystemPackage
import Testing

@testable import StoreExchange

struct RecordTests {
  private func rows(_ text: [UInt8], delimiter: UInt8 = UInt8(ascii: ",")) throws -> [[DataCell]] {
    let room = try Room("<entity name='A'/>")
    let reader = try CSVReader(try room.file("a.csv", text), delimiter: delimiter)
    var rows = [reader.columns.map { DataCell.text($0) }]
    while let row = try reader.next() { rows.append(row.cells) }
    return rows
  }

  private func rows(_ text: String, delimiter: UInt8 = UInt8(ascii: ",")) throws -> [[DataCell]] {
    try rows(Array(text.utf8), delimiter: delimiter)
  }

  @Test("CSV distinguishes nil from empty text, and keeps quotes, delimiters and newlines")
  func quotedCells() throws {
    let found = try rows("a,b,c\r\n,\"\",x\r\n\"1,2\",\"say \"\"hi\"\"\",\"two\r\nlines\"\r\n")
    #expect(
      found == [
        [.text("a"), .text("b"), .text("c")], [.null, .text(""), .text("x")],
        [.text("1,2"), .text("say \"hi\""), .text("two\r\nlines")],
      ])
  }

  @Test("CSV takes any end of line, a byte order mark, empty lines, and a last line without end")
  func endsOfLines() throws {
    let wanted: [[DataCell]] = [[.text("a"), .text("b")], [.text("1"), .text("2")], [.text("3"), .null]]
    #expect(try rows("a,b\n1,2\n3,\n\n") == wanted)
    #expect(try rows("\u{feff}a,b\r1,2\r3,") == wanted)
    #expect(try rows("a\tb\n1\t2\n3\t", delimiter: 9) == wanted)
    #expect(try rows("a,b,,\n1,2,,\n,,,\n").count == 2)
  }

  @Test("CSV keeps NUL, and reports text that is not UTF-8")
  func oddBytes() throws {
    #expect(try rows("a,b\nx\0y,=1+1\n").last == [.text("x\0y"), .text("=1+1")])
    #expect(try rows(Array("a\n".utf8) + [0xff, 0xfe, 0x0a]).last == [.invalidText([0xff, 0xfe])])
  }

  @Test(
    "CSV refuses what could be read in two ways",
    arguments: ["a\n\"x\"y\n", "a\nx\"y\n", "a\n\"x\n", "a,b\n1,2,3\n", "a,b\n1\n", "a,a\n1,2\n", ""])
  func ambiguousCells(text: String) throws {
    #expect(throws: HopdError.self) { _ = try rows(text) }
  }

  @Test("JSON keeps the digits of numbers, and every escape") func jsonValues() throws {
    let node = try JSONNode(
      Array(#"{"n":9223372036854775808,"d":-1.50e+3,"s":"a\"\\\/\b\f\n\r\té🧪","l":[true,false,null]}"#.utf8))
    guard case .number("9223372036854775808")? = node["n"], case .number("-1.50e+3")? = node["d"] else {
      Issue.record("\(node)")
      return
    }
    #expect(node["s"]?.string == "a\"\\/\u{8}\u{c}\n\r\té🧪")
    guard case .array(let list)? = node["l"] else {
      Issue.record("\(node)")
      return
    }
    #expect(list.count == 3 && list[2].isNull)
  }

  @Test(
    "JSON refuses everything that RFC 8259 does",
    arguments: [
      "", "{", "[1,]", "{\"a\":1,}", "01", "1.", ".5", "+1", "NaN", "Infinity", "'a'", "\"a", "\"\t\"", "\"\\x\"",
      "\"\\ud83e\"", "\"\\ud83e\\u0041\"", "{\"a\":1,\"a\":2}", "1 2", "tru", "{a:1}", "\"\\u12g4\"",
    ])
  func invalidJSON(text: String) {
    #expect(throws: JSONMistake.self) { _ = try JSONNode(Array(text.utf8)) }
  }

  @Test("JSON is nested at most 64 levels deep") func deepJSON() {
    func nested(_ depth: Int) -> [UInt8] {
      Array((String(repeating: "[", count: depth) + String(repeating: "]", count: depth)).utf8)
    }
    #expect(throws: Never.self) { _ = try JSONNode(nested(64)) }
    #expect(throws: JSONMistake.self) { _ = try JSONNode(nested(65)) }
    #expect(throws: JSONMistake.self) { _ = try JSONNode(nested(1_000_000)) }
  }

  @Test("A pattern reads dates of other countries") func datePatterns() {
    #expect(DatePattern.seconds(of: "02.01.2001", in: "%d.%m.%Y") == 86_400)
    #expect(DatePattern.seconds(of: "1/2/2001 3:04:05", in: "%m/%d/%Y %H:%M:%S") == 97_445)
    #expect(DatePattern.seconds(of: "31.02.2001", in: "%d.%m.%Y") == nil)
    #expect(DatePattern.seconds(of: "02.01.2001x", in: "%d.%m.%Y") == nil)
    #expect(DatePattern.isValid("%d.%m.%Y") && !DatePattern.isValid("%d.%m") && !DatePattern.isValid("%q%d%m%Y"))
  }
}
