// Printed text is parsed to the same tree, and has the form of NSExpression's text.

import BlockingTests
import Expressions
import SeededRandom
import Testing

@Suite(.blocking) struct ExpressionTextTests {
  @Test func randomTreesReadBack() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var dice = ExpressionDice(seed: seed)
    var lengths = 0
    for round in 0..<3_000 {
      let node = dice.expression(round % 5)
      let text = node.description
      lengths += text.utf8.count
      let read = try #require(try? ExpressionParser.expression(text), "seed \(seed), round \(round): \(text)")
      // Doubles compare by value; the text also shows the sign of zero.
      #expect(read == node && read.description == text, "seed \(seed), round \(round): \(text)")
      let predicate = dice.predicate(round % 5)
      let words = predicate.description
      let again = try #require(try? ExpressionParser.predicate(words), "seed \(seed), round \(round): \(words)")
      #expect(again == predicate && again.description == words, "seed \(seed), round \(round): \(words)")
    }
    #expect(lengths > 100_000, "the trees were small")
  }

  @Test(arguments: [
    "$source.name", "$source.continent.numericISO3166Code", "$source.countries.@distinctUnionOfSets.moods",
    "$source.objectID.URIRepresentation.path", "0", "-25", "1.5", "true", "false", "nil", "\"Unknown\"", "now()",
    "importDate", "FUNCTION($entityPolicy, \"stateFromFlag:\", $source.flag)", "FUNCTION($entityPolicy, \"make\")",
    "FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", \"XToY\", $source.rel)",
    "FUNCTION($manager, \"destinationInstancesForSourceRelationshipNamed:sourceInstances:\", \"rel\", $source.rel)",
    "CAST($source.age, \"NSString\")", "TERNARY($source.a == nil, 0, $source.a)", "{1, 2, 3}",
    "SUBQUERY($source.items, $x, $x.price > 10 AND $x.name != nil).@count", "($source.a + 1) * 2", "-$source.a ** 2",
    "$source.pages[FIRST].number", "#size", "$source.size", "modulus:by:($source.a, 3)", "(1 + 2).x",
    "($source.r.@distinctUnionOfObjects.p).@count", "2 ** -3", "(2 ** 3) ** 4", "1 - (2 - 3)", "1 - 2 - 3",
  ])
  func expressionsPrintAsTheyAreWritten(text: String) throws {
    // A minus before a power is printed only in parentheses.
    if text == "-$source.a ** 2" {
      let power = ExpressionNode.arithmetic(
        .power, .path(.variable("source"), [.key("a")]), .constant(.integer(2)))
      #expect(ExpressionNode.negated(power).description == "-($source.a ** 2)")
      return
    }
    #expect(try ExpressionParser.expression(text).description == text)
  }

  @Test(arguments: [
    "ads.@count == 1", "image != nil", "name != \"A\" AND name != \"B\"", "(a == 1 OR b == 2) AND c == 3",
    "NOT (a == 1 AND b == 2)", "NOT a == 1", "name BEGINSWITH[cd] \"x\"", "ANY items.price > 10",
    "x BETWEEN {1, 5}", "NONE items.name IN {\"a\", nil}", "TRUEPREDICATE", "(a + b) * 2 > 3", "NOT NOT a == 1",
  ])
  func predicatesPrintAsTheyAreWritten(text: String) throws {
    #expect(try ExpressionParser.predicate(text).description == text)
  }
}
