// The grammar: the meaning of each text, and that every refusal names the part and its position.

import BlockingTests
import Diagnostics
import Expressions
import SystemPackage
import Testing

private func comparison(
  _ left: ExpressionNode, _ operation: Comparison.Operator, _ right: ExpressionNode
) -> PredicateNode {
  .comparison(Comparison(left, operation, right))
}

private func key(_ names: String...) -> ExpressionNode { .path(.selfObject, names.map { .key($0) }) }

private func number(_ value: Int64) -> ExpressionNode { .constant(.integer(value)) }

@Suite(.blocking) struct ExpressionParserTests {
  @Test func precedence() throws {
    let (a, b, c) = (key("a"), key("b"), key("c"))
    let expressions: [(String, ExpressionNode)] = [
      ("a + b * c", .arithmetic(.add, a, .arithmetic(.multiply, b, c))),
      ("a - b - c", .arithmetic(.subtract, .arithmetic(.subtract, a, b), c)),
      ("a / b * c", .arithmetic(.multiply, .arithmetic(.divide, a, b), c)),
      ("a * b ** c", .arithmetic(.multiply, a, .arithmetic(.power, b, c))),
      ("-a * b", .arithmetic(.multiply, .negated(a), b)), ("a - -b", .arithmetic(.subtract, a, .negated(b))),
      ("a--1", .arithmetic(.subtract, a, number(-1))), ("(a+b)*c", .arithmetic(.multiply, .arithmetic(.add, a, b), c)),
      ("-(5)", .negated(number(5))), ("-5", number(-5)), ("-9223372036854775808", number(.min)),
      ("add:to:(a, b)", .arithmetic(.add, a, b)),
    ]
    for (text, node) in expressions { #expect(try ExpressionParser.expression(text) == node, "\(text)") }
    let one = { (name: String) in comparison(key(name), .equal, number(1)) }
    let predicates: [(String, PredicateNode)] = [
      ("a=1 OR b=1 AND c=1", .or([one("a"), .and([one("b"), one("c")])])),
      ("a=1||b=1&&c=1", .or([one("a"), .and([one("b"), one("c")])])),
      ("NOT a=1 AND b=1", .and([.not(one("a")), one("b")])), ("!a=1 AND b=1", .and([.not(one("a")), one("b")])),
      ("(a=1 or b=1) and c=1", .and([.or([one("a"), one("b")]), one("c")])), ("((a=1))", one("a")),
      ("(a)=1", one("a")), ("((a))=1 AND (b=1)", .and([one("a"), one("b")])),
      ("(a+b) > 3", comparison(.arithmetic(.add, a, b), .greater, number(3))),
      ("(a).b == 1", comparison(key("a", "b"), .equal, number(1))),
      ("NOT (a + b) * c < 1", .not(comparison(.arithmetic(.multiply, .arithmetic(.add, a, b), c), .less, number(1)))),
      ("(TRUEPREDICATE) OR (falsepredicate)", .or([.constant(true), .constant(false)])),
    ]
    for (text, node) in predicates { #expect(try ExpressionParser.predicate(text) == node, "\(text)") }
  }

  @Test func operatorsInEverySpelling() throws {
    let spellings: [(String, Comparison.Operator)] = [
      ("=", .equal), ("==", .equal), ("!=", .notEqual), ("<>", .notEqual), ("<", .less), ("<=", .lessOrEqual),
      ("=<", .lessOrEqual), (">", .greater), (">=", .greaterOrEqual), ("=>", .greaterOrEqual),
      (" beginswith ", .beginsWith), (" Contains ", .contains), (" ENDSWITH ", .endsWith), (" like ", .like),
      (" MATCHES ", .matches), (" in ", .in), (" between ", .between),
    ]
    for (spelling, operation) in spellings {
      let text = "ads.@count\(spelling){1, 2}"
      let left = ExpressionNode.path(.selfObject, [.key("ads"), .collection(.count)])
      #expect(
        try ExpressionParser.predicate(text) == comparison(left, operation, .aggregate([number(1), number(2)])),
        "\(text)")
    }
    for (word, modifier) in [
      ("any", Comparison.Modifier.any), ("SOME", .any), ("All", .all), ("none", .none),
    ] {
      guard case .comparison(let read) = try ExpressionParser.predicate("\(word) r.p == 1") else {
        Issue.record("\(word) is no comparison")
        continue
      }
      #expect(read.modifier == modifier)
    }
    guard case .comparison(let read) = try ExpressionParser.predicate("a ==[dc] b") else { return }
    #expect(read.ignoresCase && read.ignoresDiacritics && !read.isNormalized)
  }

  @Test func literals() throws {
    let texts: [(String, ConstantValue)] = [
      ("'it\\'s \"so\"'", .string("it's \"so\"")), ("\"it's\"", .string("it's")), ("'\\u00e9\\xe9'", .string("éé")),
      ("'\\uD83D\\uDE00'", .string("😀")), ("'a\\\\*'", .string("a\\*")), ("0x1F", .integer(31)), ("0o17", .integer(15)),
      ("0b101", .integer(5)), ("2e3", .double(2000)), ("1.5", .double(1.5)), ("1E-2", .double(0.01)),
      ("Yes", .boolean(true)),
      ("no", .boolean(false)), ("NULL", .null), ("Nil", .null), ("CAST(5, 'NSDate')", .date(5)),
      ("CAST(-1.5, \"NSDate\")", .date(-1.5)), ("CAST('1.50', 'NSDecimalNumber')", .decimal("1.50")),
      ("CAST('00010203-0405-0607-0809-0a0b0c0d0e0f', 'NSUUID')", .uuid(Array(0...15))),
      ("CAST('00ff', 'NSData')", .data([0, 255])),
    ]
    #expect(
      try ExpressionParser.expression(
        "FUNCTION(FUNCTION(a, 'stringByAppendingString:', ' '), 'stringByAppendingString:', b)")
        == .function(
          .concatenate, [.function(.concatenate, [key("a"), .constant(.string(" "))]), key("b")]))
    for (text, value) in texts { #expect(try ExpressionParser.expression(text) == .constant(value), "\(text)") }
    #expect(
      try ExpressionParser.expression("CAST(x, 'Integer 32')") == .cast(key("x"), .integer32))
    #expect(
      try ExpressionParser.expression("CAST('1x', 'NSDecimalNumber')") == .cast(.constant(.string("1x")), .decimal))
    #expect(
      try ExpressionParser.expression("$source . #in . size") == .path(.variable("source"), [.key("in"), .key("size")]))
  }

  /// Each text with a word of the message, which names the fault, and the character of its position.
  @Test func everyRefusalByName() {
    let refused: [(text: String, word: String, column: Int)] = [
      ("a == ", "missing at the end", 6), ("a", "comparison operator is missing", 2), ("a < b < c", "do not chain", 7),
      ("a == 'x", "has no end", 6), ("a == 'x\\q'", "escape \\q", 8), ("a == '\\uD800'", "surrogate", 7),
      ("a == 12345678901234567890", "64 bits", 6), ("a == 1e999", "too large", 6), ("a == 5x", "runs into a name", 7),
      ("a == %@", "%@ and %K", 6), ("a := 1", "assignment", 3), ("a & b | c == 1", "parentheses", 7),
      ("a + b & c == 1", "parentheses", 7), ("a ^ b * c == 1", "parentheses", 11), ("~~a == 1", "two signs", 2),
      ("a << 1 >> 2 == 2", "parentheses", 8), ("a == 1 & b == 2", "do not chain", 12), ("a ==[l] b", "[l]", 6),
      ("a ==[x] b", "modifier x", 6),
      ("a UNION b == c", "UNION", 3),
      ("a MINUS b == c", "MINUS", 3), ("a INTERSECT b == c", "INTERSECT", 3),
      ("a UTI-CONFORMS-TO b", "UTI-CONFORMS-TO", 3),
      ("ANYKEY == 1", "ANYKEY", 1), ("FETCH(a, b, NO) == 1", "FETCH", 1), ("a CI 'x'", "CI is not supported", 3),
      ("a CASEINSENSITIVE 'x'", "CASEINSENSITIVE", 3), ("BLOCKPREDICATE(x) == 1", "block predicates", 1),
      ("distanceToLocation:fromLocation:(a, b) < 5", "geographic", 1), ("random() == 1", "random", 1),
      ("size == 1", "size is a keyword", 1), ("a.@count.b == 1", "nothing may follow @count", 10),
      ("a.@sum == 1", "@sum needs a key", 8), ("a.@median.b == 1", "@median", 3),
      ("@count == 1", "needs a collection", 1),
      ("a[-1] == 1", "in brackets", 3), ("a['k'] == 1", "in brackets", 3), ("a.b() == 1", "calls of methods", 4),
      ("-a ** 2 == 1", "minus before **", 4), ("a ** b ** c == 1", "chain of **", 8), ("--a == 1", "two signs", 2),
      ("abs:(a, b) == 1", "takes 1 arguments, not 2", 1), ("abs(a) == 1", "function abs is unknown", 1),
      ("CAST(a, 'NSSet') == 1", "CAST to NSSet", 9), ("CAST(a, b) == 1", "type is a string", 9),
      ("SUBQUERY(a, b, c == 1).@count > 0", "is a variable", 13),
      ("FUNCTION(a, 'b') == 1", "$manager and $entityPolicy", 10),
      ("FUNCTION(a, 'stringByAppendingString:') == 'b'", "before the text", 39),
      ("concat:('a') == 'a'", "concat: takes 2 to 10000 arguments, not 1", 1),
      ("FUNCTION($manager, 'fetch:', a) == 1", "fetch:", 20),
      ("FUNCTION($entityPolicy, 'x:') == 1", "takes 1 arguments, not 0", 25),
      ("a IN (1, 2)", "is written in braces", 8), ("a NOT IN {1}", "operator is missing", 3),
      ("(a == 1", ") is missing", 8),
      ("a == 1)", "ends here", 7), ("a == “x”", "typographic", 6), ("a == €", "U+20AC", 6),
      ("a . == 1", "after the dot", 5),
      ("TERNARY(a, 1, 2) == 1", "operator is missing", 10), ("$ == 1", "after $", 2), ("a ==[c b", "] is missing", 8),
      ("", "missing at the end", 1), ("a == 1 b == 2", "ends here", 8), ("{1, == 2", "missing before", 5),
    ]
    for (text, word, column) in refused {
      let error = #expect(throws: HopdError.self, "\(text)") {
        try ExpressionParser.predicate(text, at: Place(file: "/m/A.hopmap.toml", line: 7, column: 11))
      }
      #expect(error?.message.contains(word) == true, "\(text): \(error?.message ?? "")")
      #expect(error?.place.line == 7 && error?.place.column == 10 + column, "\(text): \(error?.description ?? "")")
      #expect(error?.place.file == "/m/A.hopmap.toml")
    }
  }

  @Test func placesCountLines() {
    let error = #expect(throws: HopdError.self) {
      try ExpressionParser.predicate("a == 1\nAND b ==", at: Place(file: "/m/A", line: 3, column: 5))
    }
    #expect(error?.place.line == 4 && error?.place.column == 9)
    #expect(error?.message.contains("line 2, character 9, after “a == 1\nAND b ==”") == true)
    // If the place has no line, lines of the text are not lines of the file.
    let other = #expect(throws: HopdError.self) { try ExpressionParser.expression("a +", at: Place(file: "/m/A")) }
    #expect(other?.place.line == nil && other?.message.contains("character 4, after “a +”") == true)
    let value = #expect(throws: HopdError.self) { try ExpressionParser.expression("$source.a > 1") }
    #expect(value?.hint?.contains("TERNARY") == true)
  }

  /// A text above a limit ends in an error, and one just below it is parsed: linear time, bounded recursion.
  @Test func bounds() throws {
    func nested(_ open: String, _ middle: String, _ close: String, _ count: Int) -> String {
      String(repeating: open, count: count) + middle + String(repeating: close, count: count)
    }
    for (open, middle, close) in [
      ("(", "a == 1", ")"), ("(", "a", ") == 1"), ("NOT ", "a == 1", ""), ("!", "a == 1", ""),
    ] {
      let text = open == "(" && middle == "a" ? nested("(", "a", ")", 100) + " == 1" : nested(open, middle, close, 100)
      _ = try ExpressionParser.predicate(text)
    }
    for text in [
      nested("(", "a == 1", ")", 101), nested("(", "a", ")", 101) + " == 1", nested("NOT ", "a == 1", "", 101),
      nested("(", "a == 1", ")", 20_000), nested("!", "a == 1", "", 60_000), String(repeating: "(", count: 60_000),
      nested("abs:(", "a", ")", 101) + " == 1", "a" + String(repeating: "[0]", count: 300) + " == 1",
      "a" + String(repeating: " + a", count: 10_000) + " == 1", nested("{", "", "}", 101) + " == a",
      nested("TERNARY(TRUEPREDICATE, ", "1", ", 2)", 101) + " == 1",
      "a IN {" + String(repeating: "1,", count: 10_000) + "1}", String(repeating: " ", count: 65_537),
    ] {
      let error = #expect(throws: HopdError.self) { try ExpressionParser.predicate(text) }
      let message = error?.message ?? ""
      #expect(
        message.contains("nested deeper") || message.contains("more than") || message.contains("operator is missing"),
        "\(text.prefix(40)): \(message)")
      #expect(message.utf8.count < 500)
    }
    _ = try ExpressionParser.expression("a" + String(repeating: " + a", count: 150))
    guard
      case .comparison(let list) = try ExpressionParser.predicate(
        "a IN {" + String(repeating: "1,", count: 9_999) + "1}"), case .aggregate(let members) = list.right
    else {
      Issue.record("no list")
      return
    }
    #expect(members.count == 10_000)
    // As many conditions as the limits allow: they are siblings in the tree.
    guard case .and(let parts) = try ExpressionParser.predicate("a=1" + String(repeating: "&&a=1", count: 13_000))
    else {
      Issue.record("no conjunction")
      return
    }
    #expect(parts.count == 13_001)
  }
}
