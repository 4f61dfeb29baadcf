// Archived expressions: every shape found in mapping models gives the tree of its text; all others are refused by
// class.

import BlockingTests
import Diagnostics
import Expressions
import PropertyLists
import Testing

@Suite(.blocking) struct ArchivedExpressionReaderTests {
  private typealias Build = (ExpressionArchive) -> PropertyListValue

  @Test func everyKnownShape() throws {
    let shapes: [(String, Build)] = [
      ("$source.name", { $0.path($0.variable("source"), "name") }),
      ("$source.continent.code", { $0.path($0.variable("source"), "continent.code") }),
      ("$source.a.@distinctUnionOfSets.b", { $0.path($0.variable("source"), "a.@distinctUnionOfSets.b") }),
      (
        "$source.objectID.URIRepresentation.path", { $0.path($0.variable("source"), "objectID.URIRepresentation.path") }
      ),
      ("importDate", { $0.path($0.myself, "importDate", selector: "valueForKey:") }),
      ("$source", { $0.variable("source") }), ("SELF", { $0.myself }), ("nil", { $0.constant(nil) }),
      ("nil", { $0.constant(.uid(0)) }), ("25", { $0.constant($0.value(.integer(25))) }),
      ("true", { $0.constant(.boolean(true)) }), ("1.5", { $0.constant(.real(1.5)) }),
      ("\"Unknown\"", { $0.constant($0.text("Unknown")) }),
      ("CAST(-7.5, \"NSDate\")", { $0.constant($0.object("NSDate", ["NS.time": .real(-7.5)])) }),
      (
        "CAST(\"-1.50\", \"NSDecimalNumber\")",
        {
          $0.constant(
            $0.object(
              "NSDecimalNumber",
              [
                "NS.mantissa": .data([150, 0] + [UInt8](repeating: 0, count: 14)), "NS.exponent": .integer(-2),
                "NS.negative": .boolean(true), "NS.mantissa.bo": .integer(1),
              ]))
        }
      ),
      (
        "CAST(\"00010203-0405-0607-0809-0A0B0C0D0E0F\", \"NSUUID\")",
        { $0.constant($0.object("NSUUID", ["NS.uuidbytes": .data(Array(0...15))])) }
      ),
      ("now()", { $0.builtIn("now", []) }), ("count:(pages)", { $0.builtIn("count:", [$0.path($0.myself, "pages")]) }),
      ("1 + $source.a", { $0.builtIn("add:to:", [$0.constant(.integer(1)), $0.path($0.variable("source"), "a")]) }),
      (
        "CAST($source.a, \"NSDate\")",
        { $0.builtIn("castObject:toType:", [$0.path($0.variable("source"), "a"), $0.classConstant("NSDate")]) }
      ),
      (
        "CAST((0), \"NSDate\")",
        { $0.builtIn("castObject:toType:", [$0.constant(.integer(0)), $0.constant($0.text("NSDate"))]) }
      ),
      ("canonical:($source.a)", { $0.builtIn("canonical:", [$0.path($0.variable("source"), "a")]) }),
      ("sqrt:(4)", { $0.builtIn("sqrt:", [$0.constant(.integer(4))]) }),
      (
        "$source.a ** 2",
        { $0.builtIn("raise:toPower:", [$0.path($0.variable("source"), "a"), $0.constant(.integer(2))]) }
      ),
      (
        "bitwiseAnd:with:($source.a, 4)",
        { $0.builtIn("bitwiseAnd:with:", [$0.path($0.variable("source"), "a"), $0.constant(.integer(4))]) }
      ),
      ("$source.a.stringValue", { $0.path($0.variable("source"), "a.stringValue") }),
      (
        "CAST($source.a, \"NSNumber\")",
        { $0.builtIn("castObject:toType:", [$0.path($0.variable("source"), "a"), $0.constant($0.text("NSNumber"))]) }
      ),
      (
        "concat:($source.a, \"-\")",
        {
          $0.function(
            $0.path($0.variable("source"), "a"), "stringByAppendingString:", [$0.constant($0.text("-"))])
        }
      ),
      (
        "FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", \"AToB\", $source.a)",
        {
          $0.function(
            $0.variable("manager"), "destinationInstancesForEntityMappingNamed:sourceInstances:",
            [$0.constant($0.text("AToB")), $0.path($0.variable("source"), "a")])
        }
      ),
      (
        "FUNCTION($entityPolicy, \"state:for:\", $source.flag, $source)",
        {
          $0.function(
            $0.variable("entityPolicy"), "state:for:", [$0.path($0.variable("source"), "flag"), $0.variable("source")])
        }
      ),
    ]
    for (text, build) in shapes {
      let archive = ExpressionArchive()
      let node = try ArchivedExpressionReader.expression(archive.archived(build(archive)))
      #expect(node.description == text)
      #expect(try ExpressionParser.expression(text) == node, "\(text)")
    }
  }

  @Test func predicates() throws {
    let a = { (archive: ExpressionArchive) in archive.path(archive.myself, "a") }
    let shapes: [(String, Build)] = [
      ("a == 1", { $0.comparison(a($0), 4, $0.constant(.integer(1))) }),
      ("a != 1", { $0.comparison(a($0), 4, $0.constant(.integer(1)), negated: true) }),
      ("a != nil", { $0.comparison(a($0), 5, $0.constant(nil), negated: true) }),
      ("a <[c] \"x\"", { $0.comparison(a($0), 0, $0.constant($0.text("x")), options: 1) }),
      ("a >= 1", { $0.comparison(a($0), 3, $0.constant(.integer(1))) }),
      ("ANY a LIKE[cd] \"x*\"", { $0.comparison(a($0), 7, $0.constant($0.text("x*")), modifier: 2, options: 3) }),
      ("ALL a CONTAINS \"x\"", { $0.comparison(a($0), 99, $0.constant($0.text("x")), modifier: 1) }),
      (
        "NOT (a < 1 OR a > 2)",
        {
          $0.compound(
            0,
            [
              $0.compound(
                2,
                [$0.comparison(a($0), 0, $0.constant(.integer(1))), $0.comparison(a($0), 2, $0.constant(.integer(2)))])
            ])
        }
      ),
      ("TRUEPREDICATE", { $0.compound(1, []) }), ("FALSEPREDICATE", { $0.compound(2, []) }),
      ("TRUEPREDICATE", { $0.object("NSTruePredicate") }),
    ]
    for (text, build) in shapes {
      let archive = ExpressionArchive()
      let predicate = try ArchivedExpressionReader.predicate(archive.archived(build(archive)))
      #expect(predicate.description == text)
      #expect(try ExpressionParser.predicate(text) == predicate, "\(text)")
    }
  }

  @Test func everythingElseIsRefusedByName() throws {
    let refused: [(String, Build)] = [
      ("NSTernaryExpression", { $0.object("NSTernaryExpression") }),
      ("NSSubqueryExpression", { $0.object("NSSubqueryExpression") }),
      ("NSAggregateExpression", { $0.object("NSAggregateExpression", ["NSCollection": $0.list([])]) }),
      ("NSFetchRequestExpression", { $0.object("NSFetchRequestExpression") }),
      ("NSBlockExpression", { $0.builtIn("abs:", [$0.object("NSBlockExpression")]) }),
      ("NSArray", { $0.constant($0.list([$0.text("a")])) }), ("@median", { $0.path($0.myself, "a.@median.b") }),
      ("is none", { $0.path($0.myself, "a..b") }), ("is none", { $0.path($0.myself, "a b") }),
      ("is none", { $0.path($0.myself, "") }), ("not a name", { $0.variable("a b") }),
      ("random", { $0.builtIn("random", []) }),
      ("takes 1 arguments, not 0", { $0.builtIn("abs:", []) }),
      ("destinationContext", { $0.function($0.variable("manager"), "destinationContext", []) }),
      ("takes 1 arguments, not 0", { $0.function($0.variable("entityPolicy"), "state:", []) }),
      ("for variables only", { $0.function($0.path($0.myself, "a"), "state:", [$0.myself]) }),
      ("not a finite number", { $0.constant(.real(.infinity)) }),
      ("CAST to NSSet", { $0.builtIn("castObject:toType:", [$0.myself, $0.classConstant("NSSet")]) }),
      ("not a name", { $0.builtIn("castObject:toType:", [$0.myself, $0.path($0.myself, "a")]) }),
      ("CAST to NSSet", { $0.builtIn("castObject:toType:", [$0.myself, $0.constant($0.text("NSSet"))]) }),
    ]
    for (word, build) in refused {
      let archive = ExpressionArchive()
      let error = #expect(throws: HopdError.self, "\(word)") {
        try ArchivedExpressionReader.expression(archive.archived(build(archive)))
      }
      #expect(error?.message.contains(word) == true, "\(word): \(error?.description ?? "")")
    }
    let archive = ExpressionArchive()
    let options = archive.comparison(archive.myself, 4, archive.constant(.integer(1)), options: 8)
    #expect(throws: HopdError.self) { try ArchivedExpressionReader.predicate(archive.archived(options)) }
    let block = ExpressionArchive()
    #expect(throws: HopdError.self) {
      try ArchivedExpressionReader.predicate(block.archived(block.object("NSBlockPredicate")))
    }
  }

  /// Lists that contain themselves, endless chains, and strings repeated a thousand times end in an error, soon.
  @Test func hostileArchivesAreBounded() throws {
    let circle = ExpressionArchive()
    // Object 1 is the class, 2 the list, 3 its class …: the argument is the function itself.
    let node = circle.builtIn("abs:", [.uid(8)])
    var uid: UInt64 = 0
    if case .uid(let number) = node { uid = number }
    let again = ExpressionArchive()
    _ = again.builtIn("abs:", [.uid(uid)])
    let error = #expect(throws: HopdError.self) { try ArchivedExpressionReader.expression(again.archived(.uid(uid))) }
    #expect(error?.message.contains("nested deeper") == true, "\(error?.description ?? "")")

    let wide = ExpressionArchive()
    var level = wide.constant(.integer(1))
    for _ in 0..<60 { level = wide.builtIn("add:to:", [level, level]) }
    let flood = #expect(throws: HopdError.self) { try ArchivedExpressionReader.expression(wide.archived(level)) }
    #expect(flood?.message.contains("2000 parts") == true, "\(flood?.description ?? "")")

    let heavy = ExpressionArchive()
    let text = heavy.constant(heavy.text(String(repeating: "x", count: 50_000)))
    let sum = heavy.builtIn("add:to:", [text, text])
    #expect(throws: HopdError.self) { try ArchivedExpressionReader.expression(heavy.archived(sum)) }
    #expect(try ArchivedExpressionReader.expression(heavy.archived(text)) != .constant(.null))
  }
}
