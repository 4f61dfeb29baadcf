// The values themselves: decimals, sums, casts, folding, patterns, and the report of a failing row.

import BlockingTests
import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite
import SeededRandom
import SystemPackage
import Testing

@testable import Expressions

@Suite(.blocking) struct DecimalNumberTests {
  private func decimal(_ text: String) throws -> DecimalNumber { try #require(DecimalNumber(text)) }

  @Test func computesInDecimal() throws {
    #expect(try decimal("0.1").adding(decimal("0.2"))?.description == "0.3")
    #expect(try decimal("1").divided(by: decimal("3"))?.description == "0." + String(repeating: "3", count: 38))
    #expect(try decimal("2").divided(by: decimal("3"))?.description == "0." + String(repeating: "6", count: 37) + "7")
    #expect(try decimal("-1.5").multiplied(by: decimal("1e3"))?.description == "-1500")
    #expect(try decimal("-1.5").floor?.description == "-2")
    #expect(try decimal("-1.5").ceiling?.description == "-1")
    #expect(DecimalNumber(Int64.min).description == "-9223372036854775808")
    #expect(DecimalNumber(Int64.min).integer == .min)
    #expect(try decimal("1e100").multiplied(by: decimal("1e100")) == nil)
  }

  @Test(arguments: ["", "+", ".", "1.2.3", "12abc", " 1", "1e", "0x10", "inf", "1e99999999"])
  func refusesOtherText(_ text: String) { #expect(DecimalNumber(text) == nil) }

  @Test func agreesWithIntegers() throws {
    var dice = Dice(seed: 5)
    for _ in 0..<2000 {
      let (one, other) = (Int64(dice.below(2_000_001)) - 1_000_000, Int64(dice.below(2_000_001)) - 1_000_000)
      let (left, right) = (DecimalNumber(one), DecimalNumber(other))
      #expect(left.adding(right)?.integer == one + other)
      #expect(left.subtracting(right)?.integer == one - other)
      #expect(left.multiplied(by: right)?.integer == one * other)
      #expect(left.order(right) == (one < other ? -1 : one == other ? 0 : 1))
      if other != 0, let quotient = left.divided(by: right) {
        #expect(quotient.truncated.integer == one / other)
        #expect(abs(quotient.double - Double(one) / Double(other)) <= 1e-9)
      }
    }
  }
}

@Suite(.blocking) struct ValueSumTests {
  @Test func doesNotDependOnOrder() throws {
    var dice = Dice(seed: 6)
    for _ in 0..<200 {
      var terms = (0..<20).map { _ in
        ExpressionValue.double(dice.pick([1e16, 1, -1e16, 0.1, 3e-9, -0.3, 1e300, -1e300]))
      }
      terms += [.integer(Int64(dice.below(1000))), .null]
      var results: Set<UInt64> = []
      for _ in 0..<10 {
        terms.shuffle(using: &dice)
        var sum = ValueSum()
        for term in terms { try sum.add(term) }
        guard case .double(let total) = try sum.sum() else {
          Issue.record("no double")
          return
        }
        results.insert(total.bitPattern)
      }
      #expect(results.count == 1)
    }
  }

  @Test func passesTheLimitsAndComesBack() throws {
    var sum = ValueSum()
    for term: Int64 in [.max, .max, -.max, -5] { try sum.add(.integer(term)) }
    #expect(try sum.sum() == .integer(.max - 5))
    try sum.add(.integer(6))
    #expect(throws: HopdError.self) { try sum.sum() }
  }
}

@Suite(.blocking) struct ValueCastTests {
  @Test(arguments: [
    (ExpressionValue.double(2), "2"), (.double(0.1), "0.1"), (.double(-0.0), "0"),
    (.integer(.min), "-9223372036854775808"),
    (.boolean(true), "1"), (.double(1e300), "1e+300"),
  ]) func writesShortestText(_ value: ExpressionValue, _ text: String) throws {
    #expect(try ValueCast.apply(.string, to: value) == .string(text))
  }

  @Test(arguments: ["", "x", "12abc", " 1", "1 ", "0x1", "inf", "nan", "1e", "--1", "9223372036854775808", "1e400"])
  func refusesWhatIsNoNumber(_ text: String) {
    #expect(throws: HopdError.self) { try ValueCast.apply(.number, to: .string(text)) }
  }

  @Test func integersFitOrFail() throws {
    #expect(try ValueCast.apply(.integer16, to: .string("-32768")) == .integer(-32768))
    #expect(throws: HopdError.self) { try ValueCast.apply(.integer16, to: .integer(32768)) }
    #expect(throws: HopdError.self) { try ValueCast.apply(.integer64, to: .double(1.5)) }
    #expect(throws: HopdError.self) { try ValueCast.apply(.integer64, to: .double(0x1p63)) }
    #expect(try ValueCast.apply(.integer64, to: .double(-0x1p63)) == .integer(.min))
  }
}

@Suite(.blocking) struct TextFoldingTests {
  @Test(arguments: [
    ("ÄÖÜ", "äöü", true, false), ("ſ", "S", true, false), ("Σας", "σασ", true, false), ("ẞ", "ß", true, false),
    ("Straße", "STRASSE", true, false), ("é", "E\u{301}", true, false), ("ﬁ", "FI", true, true),
    ("\u{1e69}", "s\u{307}\u{323}", true, false), ("한", "\u{1112}\u{1161}\u{11ab}", true, false),
    ("é", "e\u{301}", false, true), ("Å", "a", true, true), ("ﬁ", "ﬁ", true, true), ("Ǖ", "U", false, true),
    ("한", "한", true, true), ("İ", "I", false, true),
  ]) func foldsAlike(_ left: String, _ right: String, _ isCase: Bool, _ isMarks: Bool) {
    func fold(_ text: String) -> [UInt8] {
      Array(TextFolding.fold(text, ignoringCase: isCase, ignoringDiacritics: isMarks).utf8)
    }
    #expect(fold(left) == fold(right))
  }

  @Test func keepsApartWhatIsDifferent() {
    #expect(TextFolding.fold("ß", ignoringCase: false, ignoringDiacritics: true) == "ß")
    #expect(TextFolding.fold("ä", ignoringCase: true, ignoringDiacritics: false) == "ä")
    #expect(TextFolding.fold("\u{301}a", ignoringCase: true, ignoringDiacritics: true) == "\u{301}a")
    #expect(TextFolding.simplyFolded("ß", ignoringCase: true, ignoringDiacritics: true) == "ß")
    #expect(TextFolding.fold("日本", ignoringCase: true, ignoringDiacritics: true) == "日本")
  }

  /// If upper- and lower-case forms are single characters, the two forms fold to one.
  @Test func foldsEveryPairOfCases() {
    for value in UInt32(0)...0x1_ffff {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let lower = scalar.properties.lowercaseMapping.unicodeScalars
      // Characters that got another case in newer versions of Unicode are not in the table.
      guard lower.count == 1, let other = lower.first, other != scalar,
        (scalar.properties.age.map { $0.major <= 14 }) ?? false, value != 0x130
      else { continue }
      #expect(TextFolding.foldedCase(scalar) == TextFolding.foldedCase(other), "U+\(String(value, radix: 16))")
    }
  }
}

@Suite(.blocking) struct RegularPatternTests {
  @Test(arguments: [
    ("a+b", "aab", true), ("a+b", "aabc", false), ("(ab|c)*d?", "abcab", true), ("[^x-z]{2,3}", "ab", true),
    ("[^x-z]{2,3}", "a", false), ("\\d{3}-\\d{4}", "555-1234", true), ("^abc$", "abc", true), ("a.c", "a\nc", false),
    ("\\w+@\\w+\\.com", "me@here.com", true), ("[\\w.]+", "a.b", true), ("(a*)*", "aaaa", true), ("", "", true),
    ("\\u00e4", "ä", true), ("[]a]+", "a]", true), ("a{0}", "", true), ("\\bab\\b", "ab", true), ("x*?", "xx", true),
  ]) func matchesWholeTexts(_ pattern: String, _ text: String, _ expected: Bool) throws {
    #expect(try RegularPattern(pattern).matches(text) == expected)
  }

  /// Classes and boundaries are Unicode's, in brackets and outside, negated and not.
  @Test func classesAreUnicodes() throws {
    let cases: [(String, String, Bool)] = [
      ("\\w+", "José", true), ("\\w+", "Jose\u{301}", true), ("\\w{4}", "日本한국", true), ("\\w", "½", false),
      ("a\\wb", "a\u{200d}b", true), ("a\\wb", "a\u{203f}b", true), ("a\\wb", "a\u{20dd}b", true),
      ("\\W", "é", false), ("\\W+", "€–😀", true), ("\\d+", "١٢", true), ("\\d", "²", false), ("\\D", "१", false),
      ("\\s+", "\u{a0}\u{2003}\u{2028}\u{3000}", true), ("\\s{2}", "\u{b}\u{85}", true), ("\\s", "\u{200b}", false),
      ("\\S", "\u{a0}", false), ("[\\w.-]+", "josé.müller-১", true), ("[^\\w]", "é", false), ("[^\\W\\d]", "é", true),
      ("[^\\W\\d]", "٣", false), ("[\\W\\d]", "٣", true), ("[\\D]", "٣", false), ("[^\\S]", "\u{3000}", true),
      ("\\bJosé\\b.*", "José!", true), ("Jos\\bé", "José", false), ("Jos\\Bé", "José", true), ("\\bé", "é", true),
      ("e\\b\u{301}!", "e\u{301}!", false), ("e\u{301}\\b!", "e\u{301}!", true), (" \u{301}\\b!", " \u{301}!", false),
      ("a\u{ad}\\Bb", "a\u{ad}b", true), ("a\u{ad}\\b", "a\u{ad}", true), ("\\é", "é", true),
    ]
    for (pattern, text, expected) in cases {
      #expect(try RegularPattern(pattern).matches(text) == expected, "\(pattern) \(text)")
      #expect(try RegularPattern(pattern, ignoringCase: true).matches(text) == expected, "[c] \(pattern) \(text)")
    }
  }

  @Test(arguments: [
    "(", ")", "[", "a**", "a++", "(?<=a)b", "(?i)a", "\\p{L}", "a{2", "a{3,2}", "*a", "[[:alpha:]]", "\\", "\\1",
    "a{5000}",
    "((a{1000}){1000})", "[z-a]",
  ]) func refusesByName(_ pattern: String) {
    #expect(throws: HopdError.self) { try RegularPattern(pattern) }
  }

  /// A pattern that takes a backtracking matcher ages takes a step per character and instruction here.
  @Test func neverExplodes() throws {
    let text = String(repeating: "a", count: 5000) + "!"
    #expect(try !RegularPattern("(a+)+b").matches(text))
    #expect(try !RegularPattern("(a|a)*b").matches(text))
    #expect(try !RegularPattern("((a*)*)*b").matches(text))
    _ = try RegularPattern("((((){1000}){1000}){1000}){1000}").matches("a")
    let marks = "a" + String(repeating: "\u{301}", count: 5000) + "!"
    #expect(try RegularPattern("a\u{301}*(\\b|\\b|\\b)!").matches(marks))
  }

  @Test func ignoresCase() throws {
    #expect(try RegularPattern("[A-Z]ÄB", ignoringCase: true).matches("qäb"))
    #expect(try !RegularPattern("[^a]", ignoringCase: true).matches("A"))
  }
}

@Suite(.blocking) struct RowErrorTests {
  /// The error names the row, its entity and the property, and no value.
  @Test(arguments: [false, true]) func namesTheRow(_ forced: Bool) throws {
    let world = try ExpressionWorld(seed: 9)
    try world.connection.execute(
      "UPDATE store.ZPERSON SET ZAGE = 0 WHERE Z_PK = 2; UPDATE store.ZPERSON SET ZAGE = 4 WHERE Z_PK <> 2")
    let node = ExpressionNode.arithmetic(
      .divide, .constant(.integer(4711)), .keyPath(.variable("source"), [.key("age")]))
    let fallbacks = ExpressionFallbacks()
    let compiler = SQLExpressionCompiler(
      scope: ExpressionScope(model: world.model, sourceEntity: "Person", place: .attribute), schema: world.schema,
      tables: .schema("store"), moment: 0, fallbacks: fallbacks)
    let (row, share) = (SQLRow(alias: "s", entity: "Person"), Attribute(name: "share", type: .integer64))
    let sql =
      forced
      ? fallbacks.call(.stored(node, share), compiler, row, property: share.name, because: "")
      : try compiler.value(node, row: row, storedAs: share)
    try fallbacks.register(on: world.connection, schema: world.schema, tables: .schema("store"))
    #expect(fallbacks.isEmpty == !forced)
    #expect(throws: SQLiteError.self) {
      try world.connection.rows("SELECT \(sql.text) FROM store.ZPERSON AS s ORDER BY s.Z_PK") { $0.value(at: 0) }
    }
    let error = try #require(world.connection.takeFunctionFailure() as? HopdError)
    #expect(error.code == .divisionByZero)
    #expect(error.place == Place(entity: "Person", property: "share", row: 2))
    #expect(!"\(error)".contains("4711"))
  }

  /// Content that is only copied keeps its form in the column.
  @Test func carriesContent() throws {
    let world = try ExpressionWorld(seed: 10)
    try world.connection.execute("UPDATE store.ZITEM SET ZPICTURE = X'01AABB', ZSHAPE = X'FF', ZBYTES = X'02CC'")
    let compiler = SQLExpressionCompiler(
      scope: ExpressionScope(model: world.model, sourceEntity: "Item", place: .attribute), schema: world.schema,
      tables: .schema("store"), moment: 0)
    func stored(_ name: String, _ type: AttributeType, isExternal: Bool) throws -> SQLiteValue? {
      let attribute = Attribute(name: "to", type: type, allowsExternalStorage: isExternal)
      let sql = try compiler.value(
        .keyPath(.variable("source"), [.key(name)]), row: SQLRow(alias: "s", entity: "Item"), storedAs: attribute)
      return try world.connection.value("SELECT \(sql.text) FROM store.ZITEM AS s LIMIT 1")
    }
    try world.connection.registerFailingFunction("hopd_external_content", argumentCount: 1) { $0[0] }
    #expect(try stored("picture", .binary, isExternal: true) == .blob([1, 0xaa, 0xbb]))
    #expect(try stored("picture", .binary, isExternal: false) == .blob([0xaa, 0xbb]))
    #expect(try stored("bytes", .binary, isExternal: true) == .blob([1, 2, 0xcc]))
    #expect(try stored("shape", .transformable, isExternal: false) == .blob([0xff]))
  }
}
