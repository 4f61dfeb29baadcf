import Testing

@testable import MigrationPolicy

@Suite struct JSONTests {
  private func value(_ json: String) throws -> PolicyValue {
    var reader = JSONReader(Array(json.utf8))
    let value = try reader.value()
    try reader.end()
    return value
  }

  private func text(_ value: PolicyValue) -> String {
    var writer = JSONWriter()
    writer.value(value)
    return String(decoding: writer.bytes.dropFirst(JSONWriter.headLength), as: UTF8.self)
  }

  @Test(arguments: [
    (PolicyValue.integer(1), "1"), (.double(1), "1.0"), (.double(-0.0), "-0.0"),
    (.integer(.min), "-9223372036854775808"),
    (.integer(.max), "9223372036854775807"), (.double(.leastNonzeroMagnitude), "5e-324"), (.double(0.1), "0.1"),
    (.boolean(true), "true"),
    (.null, "null"), (.string("a\"\\\n\u{1}ä😀"), "\"a\\\"\\\\\\n\\u0001ä😀\""),
    (.double(.infinity), "{\"$double\":\"inf\"}"),
    (.date(-1.5), "{\"$date\":-1.5}"), (.data([0, 255]), "{\"$data\":\"AP8=\"}"),
    (.decimal("1.50"), "{\"$decimal\":\"1.50\"}"),
    (.uuid([UInt8](0..<16)), "{\"$uuid\":\"00010203-0405-0607-0809-0A0B0C0D0E0F\"}"),
    (.object(PolicyObjectID(side: .destination, entity: "Book", key: 3)), "{\"$object\":[\"destination\",\"Book\",3]}"),
    (.list([1, "a", .null]), "[1,\"a\",null]"),
  ])
  func valuesHaveOneFormAndComeBack(_ value: PolicyValue, _ json: String) throws {
    #expect(text(value) == json)
    let back = try self.value(json)
    #expect(back == value)
    if case .double(let number) = value, case .double(let read) = back { #expect(number.bitPattern == read.bitPattern) }
  }

  @Test func everyDoubleComesBackBitForBit() throws {
    var random = SeededRandom(seed: 18)
    for _ in 0..<20_000 {
      let double = Double(bitPattern: random.next())
      guard case .double(let back) = try value(text(.double(double))) else {
        Issue.record("\(double) became something else")
        return
      }
      #expect(back.bitPattern == double.bitPattern || (back.isNaN && double.isNaN), "\(double)")
    }
  }

  @Test func anyNestingOfValuesComesBack() throws {
    var random = SeededRandom(seed: 4)
    for round in 0..<2_000 {
      let value = random.value(depth: 3)
      #expect(try self.value(text(value)) == value, "seed 4, round \(round)")
    }
  }

  @Test func whatOthersWriteIsUnderstood() throws {
    #expect(try value(" [ 1 , 2.5E+3 ,\t\"\\u00e4\\ud83d\\ude00\\/\" ]\n") == [1, .double(2500), "ä😀/"])
    #expect(try value("{\"$date\":3}") == .date(3))
    #expect(try value("{\"$uuid\":\"0a010203-0405-0607-0809-0a0b0c0d0e0f\"}").bytes?.first == 10)
  }

  @Test(arguments: [
    "", "1 2", "01", "-", "1.", ".5", "1e", "+1", "nul", "truefalse", "[1,]", "[", "[1", "{\"a\":1}", "{}",
    "{\"$date\":1,\"$date\":2}",
    "\"", "\"\u{1}\"", "\"\\x\"", "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\u0041\"", "9223372036854775808",
    "-9223372036854775809",
    "1e400", "{\"$uuid\":\"1\"}", "{\"$data\":\"A\"}", "{\"$data\":\"====\"}", "{\"$decimal\":\"1,5\"}",
    "{\"$decimal\":\"--1\"}",
    "{\"$object\":[\"source\",\"A\"]}", "{\"$object\":[\"middle\",\"A\",1]}", "{\"$object\":[\"source\",\"A\",1.0]}",
    "'a'", "NaN",
  ])
  func brokenJSONIsRefused(_ json: String) { #expect(throws: PolicyWireError.self) { try value(json) } }

  @Test func textThatIsNotUTF8IsRefused() {
    #expect(throws: PolicyWireError.self) {
      var reader = JSONReader([0x22, 0xc3, 0x28, 0x22])
      _ = try reader.value()
    }
  }

  @Test func depthIsBounded() throws {
    let deep = String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
    #expect(throws: PolicyWireError.self) { try value(deep) }
    var reader = JSONReader(Array(deep.utf8))
    #expect(throws: PolicyWireError.self) { try reader.skip() }
    let allowed = JSONReader.maxDepth
    _ = try value(String(repeating: "[", count: allowed) + String(repeating: "]", count: allowed))
  }
}

/// xorshift64*: the same values for the same seed.
struct SeededRandom: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed &* 0x9e37_79b9_7f4a_7c15 | 1 }

  mutating func next() -> UInt64 {
    state ^= state >> 12
    state ^= state << 25
    state ^= state >> 27
    return state &* 0x2545_f491_4f6c_dd1d
  }

  mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: 0...255, using: &self) } }

  mutating func text() -> String {
    let some = ["", "a", "\"", "\\", "\n", "\u{0}", "é", "e\u{301}", "😀", "\u{feff}", "\u{2028}", "$date", "中"]
    return (0..<Int.random(in: 0...6, using: &self)).map { _ in some.randomElement(using: &self) ?? "" }.joined()
  }

  mutating func id() -> PolicyObjectID {
    PolicyObjectID(
      side: Bool.random(using: &self) ? .source : .destination, entity: "Entity" + text(),
      key: Int64.random(in: 1...(.max), using: &self))
  }

  mutating func value(depth: Int) -> PolicyValue {
    switch Int.random(in: 0...(depth > 0 ? 13 : 12), using: &self) {
    case 0: .null
    case 1: .boolean(.random(using: &self))
    case 2: .integer(Int64(bitPattern: next()))
    case 3: .double(Double.random(in: -1e9...1e9, using: &self))
    case 4: .decimal("\(Int32.random(in: .min...(.max), using: &self)).5")
    case 5: .string(text())
    case 6: .date(Double.random(in: -1e9...1e9, using: &self))
    case 7: .data(bytes(Int.random(in: 0...20, using: &self)))
    case 8: .uuid(bytes(16))
    case 9: .uri(text())
    case 10: .transformable(bytes(Int.random(in: 0...20, using: &self)))
    case 11: .object(id())
    case 12: .objects((0..<Int.random(in: 0...3, using: &self)).map { _ in id() })
    default: .list((0..<Int.random(in: 0...3, using: &self)).map { _ in value(depth: depth - 1) })
    }
  }
}
