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
}
