// The scanner is told every text, also such as the parser would refuse: it must end and must not trap.

import Diagnostics
import SystemPackage
import Testing

@testable import TOMLDocuments

@Suite struct KeyPositionsTests {
  /// Every form of key and value, with the characters that begin and end them inside strings and comments.
  private static let everyForm = """
    # [not.a.table] = "x"
    plain = 1 # = [
    'lite\\ral'."quo\\"t\\u0065d".bare = "a \\" ] } # b"
    long = \"\"\"
    two "" lines ]
    # no comment\"\"\"\"
    raw = '''it's [ raw'''
    [table . 'in it'] # after
    list = [ 1, # one
      [ "x", { a = 1, b.c = [ ] } ], 1979-05-27T07:32:00Z,
    ]
    [[array]]
    inline = { x = { y = "}" } }
    [array.below]
    é = +1.5e3
    [[array]]

    """

  @Test func everyCutAndEveryChangedByteIsSurvived() throws {
    let text = Self.everyForm
    let bytes = Array(text.utf8)
    for length in 0...bytes.count {
      _ = KeyPositions(String(decoding: bytes[..<length], as: UTF8.self)).positions
    }
    for index in bytes.indices {
      for byte in "\"'[]{}=.\\#\n,".utf8 {
        var changed = bytes
        changed[index] = byte
        let string = String(decoding: changed, as: UTF8.self)
        let lines = string.utf8.count(where: { $0 == 10 }) + 1
        #expect(KeyPositions(string).positions.values.allSatisfy { (1...lines).contains($0.line) && $0.column >= 1 })
      }
    }
  }

  @Test func findsKeysOfEveryForm() {
    let positions = KeyPositions("a = 1\n[b.'c']\n\"d e\".f = [ 1,\n { g = 2 } ]\n[[h]]\n[[h]]\ni=1\n[h.j]\nk=1")
      .positions
    #expect(positions[[.key("a")]] == SourcePosition(line: 1, column: 1))
    #expect(positions[[.key("b"), .key("c")]] == SourcePosition(line: 2, column: 1))
    let nested: [KeyStep] = [.key("b"), .key("c"), .key("d e"), .key("f")]
    #expect(positions[nested] == SourcePosition(line: 3, column: 7))
    #expect(positions[nested + [.index(1), .key("g")]] == SourcePosition(line: 4, column: 4))
    #expect(positions[[.key("h"), .index(1), .key("i")]] == SourcePosition(line: 7, column: 1))
    #expect(positions[[.key("h"), .index(1), .key("j"), .key("k")]] == SourcePosition(line: 9, column: 1))
  }

  /// The parser itself would stop the program at some of these.
  @Test func everyTextIsParsedOrRefused() {
    func tryIt(_ bytes: some Collection<UInt8>) {
      _ = try? TOMLNode(toml: String(decoding: bytes, as: UTF8.self), file: "/x.toml", code: .internalError)
    }
    let bytes = Array(Self.everyForm.utf8)
    for length in 0...bytes.count { tryIt(bytes[..<length]) }
    for index in bytes.indices {
      for byte in "\"'[]{}=.\\#\n,\t 1".utf8 {
        var changed = bytes
        changed[index] = byte
        tryIt(changed)
      }
    }
    for opening in [
      "a = [", "a = [1,", "a = [[ ", "a = {b = [", "a = {", "a = ", "a", "[", "[[", "[ ", "[[\t", "\u{feff}[",
      "a = 1\n[",
    ] {
      for byte in UInt8(1)...255 { tryIt(Array(opening.utf8) + [byte]) }
    }
  }

  @Test func aHeaderWithoutNameIsRefusedWhereItStands() {
    let error = #expect(throws: HopdError.self) {
      _ = try TOMLNode(toml: "a = \"[\"\n[b]\n  [ .c]", file: "/x.toml", code: .internalError)
    }
    #expect(error?.place.line == 3 && error?.place.column == 5)
  }

  /// The parser stops the program at `1979-05-27T:` and at a date, a space, and a digit alone.
  @Test func everyDateThatIsCutOrChangedIsParsedOrRefused() throws {
    let whole = ["1979-05-27T07:32:00.5Z", "1979-05-27 07:32:00+01:00", "1979-05-27", "07:32:00"]
    for date in whole {
      let node = try TOMLNode(
        toml: "a = \(date) # then\nb = [\(date) , \(date)]", file: "/x.toml", code: .internalError)
      guard case .table(let entries) = node.value, case .other? = entries["a"]?.value else {
        Issue.record("\(date) is not read as a date")
        continue
      }
      let bytes = Array(date.utf8)
      for index in bytes.indices {
        for byte in " T:-.0_,#\n\"]Ze".utf8 {
          let before = bytes[..<index]
          let after = bytes[(index + 1)...]
          let cuts: [[UInt8]] = [
            before + [byte], before + [byte] + after, before + [byte] + bytes[index...], Array(before + after),
          ]
          for changed in cuts {
            for (start, end) in [("a = ", ""), ("a = ", " # x\n"), ("a = [", "]")] {
              let text = start + String(decoding: changed, as: UTF8.self) + end
              _ = try? TOMLNode(toml: text, file: "/x.toml", code: .internalError)
            }
          }
        }
      }
    }
    let error = #expect(throws: HopdError.self) {
      _ = try TOMLNode(toml: "\na = 1979-05-27 1 ", file: "/x.toml", code: .internalError)
    }
    #expect(error?.place.line == 2 && error?.place.column == 5)
  }

  /// Each of these would end the program's stack, or take minutes, or memory without bound.
  @Test(arguments: [
    ("a" + String(repeating: ".a", count: 500_000) + " = 1", "at most 32 names"),
    ("[a" + String(repeating: ".a", count: 500_000) + "]", "at most 32 names"),
    ("a = " + String(repeating: "{a=", count: 300_000), "at most 32 names"),
    ("a = " + String(repeating: "[", count: 1_000_000), "at most 32 names"),
    ("a = [" + String(repeating: "1,", count: 500_000) + "]", "at most 65536 keys and values"),
    (String(repeating: "[[a]]\n", count: 170_000), "at most 65536 keys and values"),
  ])
  func whatIsNestedTooDeepOrTooMuchIsRefused(_ text: String, _ expected: String) {
    let error = #expect(throws: HopdError.self) {
      _ = try TOMLNode(toml: text, file: "/x.toml", code: .internalError)
    }
    #expect(error?.message.contains(expected) == true && error?.place.line != nil && error?.place.column != nil)
  }

  /// The parser's C interface would cut the value there: another policy program would be run than the one written.
  @Test(arguments: ["a = \"b\\u0000c\"", "a = \"\"\"b\\U00000000c\"\"\"", "\"a\\u0000b\" = 1"])
  func aWrittenNULIsRefusedWhereItStands(_ text: String) {
    let error = #expect(throws: HopdError.self) {
      _ = try TOMLNode(toml: text, file: "/x.toml", code: .internalError)
    }
    #expect(error?.message.contains("NUL") == true && error?.place.line == 1)
  }
}
