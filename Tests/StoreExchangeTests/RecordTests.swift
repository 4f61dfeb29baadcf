// Rows of data: every form that a file may have, and every form that it must not have.

import Diagnostics
import SystemPackage
import Testing

@testable import StoreExchange

struct RecordTests {
  private func rows(
    _ text: [UInt8], delimiter: UInt8 = UInt8(ascii: ","), encoding: TextEncoding? = nil
  ) throws -> [[DataCell]] {
    let room = try Room("<entity name='A'/>")
    let reader = try CSVReader(try room.file("a.csv", text), delimiter: delimiter, encoding: encoding)
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

  /// A text with characters of every length in UTF-8, and longer than a portion of a file.
  private static let wide = "a,b\n" + String(repeating: "é€🧪,x\n", count: 40_000)

  private func utf16(_ text: String, isBigEndian: Bool) -> [UInt8] {
    text.utf16.flatMap { unit in
      isBigEndian ? [UInt8(unit >> 8), UInt8(unit & 0xff)] : [UInt8(unit & 0xff), UInt8(unit >> 8)]
    }
  }

  @Test("UTF-16 is known by its mark, or by the mapping") func wideText() throws {
    let wanted = try rows(Self.wide)
    #expect(wanted.count == 40_001)
    #expect(try rows([0xff, 0xfe] + utf16(Self.wide, isBigEndian: false)) == wanted)
    #expect(try rows([0xfe, 0xff] + utf16(Self.wide, isBigEndian: true)) == wanted)
    #expect(try rows(utf16(Self.wide, isBigEndian: false), encoding: .utf16) == wanted)
    let error = #expect(throws: HopdError.self) { try rows(utf16(Self.wide, isBigEndian: false)) }
    #expect(error?.message.contains("UTF-16") == true && error?.hint?.contains("encoding = \"utf-16\"") == true)
    // Halves of characters, in the middle and at the end.
    let broken: [UInt8] = [0xff, 0xfe] + utf16("a\n", isBigEndian: false) + [0x3d, 0xd8, 0x41, 0x00, 0x3d, 0xd8, 0x41]
    #expect(try rows(broken).last == [.text("\u{fffd}A\u{fffd}")])
  }

  @Test("Windows-1252 has its own characters between 80 and 9F") func windowsText() throws {
    #expect(try rows(Array("a\n".utf8) + [0x80, 0xe9, 0x9c, 0x0a], encoding: .windows1252).last == [.text("€éœ")])
  }

  @Test("A header that is not UTF-8 names the encoding to set") func windowsHeader() throws {
    let error = #expect(throws: HopdError.self) { try rows([0x48, 0xf6, 0x68, 0x65, 0x0a]) }
    #expect(error?.hint?.contains("encoding = \"windows-1252\"") == true)
  }

  @Test("A header with another delimiter is named", arguments: [("a;b\n", ";"), ("a\tb\n", "tab"), ("a|b\n", "|")])
  func otherDelimiters(header: String, delimiter: String) throws {
    let room = try Room("<entity name='A'/>")
    let reader = try CSVReader(try room.file("a.csv", header), delimiter: UInt8(ascii: ","))
    #expect(reader.advice?.contains("set delimiter = \"\(delimiter)\"") == true)
    #expect(try CSVReader(try room.file("b.csv", "a\n"), delimiter: UInt8(ascii: ",")).advice == nil)
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
