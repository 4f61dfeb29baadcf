// Texts that were broken, by accident or on purpose: each is parsed, or refused with its place, quickly and without a
// trap.

import Diagnostics
import SeededRandom
import SystemPackage
import Testing

@testable import TOMLDocuments

@Suite struct HostileTextTests {
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
    \"é\" = +1.5e3
    [[array]]

    """

  /// A text that is accepted has a place for every value; one that is refused has the place of the mistake.
  private static func parseOrRefuse(_ bytes: some Collection<UInt8>) {
    let text = String(decoding: bytes, as: UTF8.self)
    let lines = text.utf8.count { $0 == UInt8(ascii: "\n") } + 1
    do throws(HopdError) {
      let node = try TOMLNode(toml: text, file: "/x.toml", code: .internalError)
      guard case .table(let entries) = node.value else {
        Issue.record("no table: \(text.debugDescription)")
        return
      }
      for entry in entries.values {
        let line = entry.position?.line ?? 0
        #expect((1...lines).contains(line), "\(text.debugDescription)")
      }
    } catch {
      let isPlaced = (1...lines).contains(error.place.line ?? 0) && (error.place.column ?? 0) > 0
      #expect(isPlaced && error.message.hasPrefix("no valid TOML"), "\(text.debugDescription)\n\(error)")
    }
  }

  /// Several changes at once, from a printed seed: cut, doubled, exchanged and random bytes.
  @Test func everyMutationOfAGoodTextIsParsedOrRefused() {
    var random = Dice(seed: 20_261_123)
    let good = Array(Self.everyForm.utf8)
    let pieces = [
      "[[", "]]", "\"\"\"", "'''", "\\u", "\\U0010", "=", ".", "0x", "1e9", "inf", "1979-05-27", "07:32:00", "\r\n",
      "#",
      "{", "}", ",", "\u{0}", "\u{7f}", "é", "[array.below]", "table",
    ].map { Array($0.utf8) }
    for _ in 0..<4_000 {
      var bytes = good
      for _ in 0..<Int.random(in: 1...6, using: &random) {
        let start = Int.random(in: 0...bytes.count, using: &random)
        let end = min(bytes.count, start + Int.random(in: 0...12, using: &random))
        switch Int.random(in: 0..<4, using: &random) {
        case 0: bytes.removeSubrange(start..<end)
        case 1: bytes.insert(contentsOf: bytes[start..<end], at: Int.random(in: 0...bytes.count, using: &random))
        case 2: bytes.replaceSubrange(start..<end, with: pieces.randomElement(using: &random) ?? [])
        default: bytes.insert(UInt8.random(in: 0...255, using: &random), at: start)
        }
      }
      Self.parseOrRefuse(bytes)
    }
  }

  @Test func everyTextIsParsedOrRefused() {
    let bytes = Array(Self.everyForm.utf8)
    for length in 0...bytes.count { Self.parseOrRefuse(bytes[..<length]) }
    for index in bytes.indices {
      for byte in "\"'[]{}=.\\#\n,\t 1".utf8 {
        var changed = bytes
        changed[index] = byte
        Self.parseOrRefuse(changed)
      }
    }
    for opening in [
      "a = [", "a = [1,", "a = [[ ", "a = {b = [", "a = {", "a = ", "a", "[", "[[", "[ ", "[[\t", "\u{feff}[",
      "a = 1\n[",
    ] {
      for byte in UInt8(0)...255 { Self.parseOrRefuse(Array(opening.utf8) + [byte]) }
    }
  }

  @Test func aHeaderWithoutNameIsRefusedWhereItStands() {
    let error = #expect(throws: HopdError.self) {
      _ = try TOMLNode(toml: "a = \"[\"\n[b]\n  [ .c]", file: "/x.toml", code: .internalError)
    }
    #expect(error?.place.line == 3 && error?.place.column == 5)
  }

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
              Self.parseOrRefuse(Array(start.utf8) + changed + Array(end.utf8))
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

  /// Without limits, each of these would overflow the stack, or take minutes, or memory without bound.
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

  /// A C string would end at a NUL: hopd would run another policy program than the written one.
  @Test(arguments: ["a = \"b\\u0000c\"", "a = \"\"\"b\\U00000000c\"\"\"", "\"a\\u0000b\" = 1"])
  func aWrittenNULIsRefusedWhereItStands(_ text: String) {
    let error = #expect(throws: HopdError.self) {
      _ = try TOMLNode(toml: text, file: "/x.toml", code: .internalError)
    }
    #expect(error?.message.contains("NUL") == true && error?.place.line == 1)
  }

  /// Steps that grow with the square of the length would take hours.
  @Test(.timeLimit(.minutes(5))) func aLongTextIsReadInLinearTime() throws {
    let texts = [
      "a = \"" + String(repeating: "x", count: 1 << 20) + "\"",
      "a = \"\"\"" + String(repeating: "\\\n \"\" ", count: 1 << 17) + "\"\"\"",
      "a = [" + String(repeating: "1.5,", count: 60_000) + "]",
      String(repeating: "[[a.b]]\nc.d = 1\n", count: 20_000),
      String(repeating: "# x\r\n", count: 1 << 18),
      "a = 1" + String(repeating: "0", count: 1 << 20),
      (0..<15_000).map { "k\($0).x.y.z = 1\n" }.joined(),
    ]
    for text in texts { Self.parseOrRefuse(text.utf8) }
  }
}
