// Parses predicates and expressions from text (docs/formats/expressions.md, "Grammar"): the entry points, and the
// grammar above comparisons. The token after the matching ")" decides what a "(" opens. All pairs are matched
// beforehand, so parsing takes linear time. Nesting and height of the tree are bounded, because later passes walk it by
// recursion.

import Diagnostics

/// Parses texts into trees. `ExpressionChecker` then checks them against a model.
package struct ExpressionParser {
  /// A part of the tree, with its height in nodes.
  struct Built<Node> {
    let node: Node
    let height: Int
  }

  let source: ExpressionSource
  private let tokens: [ExpressionToken]
  /// The index of the matching token, for each opening parenthesis.
  private let partners: [Int: Int]
  private var index = 0
  private var nesting = 0

  /// Parses a value expression. Errors show how far the text was parsed.
  package static func expression(_ text: String, at place: Place = Place()) throws(HopdError) -> ExpressionNode {
    var parser = try ExpressionParser(text, at: place)
    let built = try parser.expression()
    try parser.expectEnd(of: "expression")
    return built.node
  }

  /// Parses a predicate. Errors show how far the text was parsed.
  package static func predicate(_ text: String, at place: Place = Place()) throws(HopdError) -> PredicateNode {
    var parser = try ExpressionParser(text, at: place)
    let built = try parser.predicate()
    try parser.expectEnd(of: "predicate")
    return built.node
  }

  private init(_ text: String, at place: Place) throws(HopdError) {
    source = try ExpressionSource(text, at: place)
    tokens = try ExpressionLexer.tokens(source)
    var open: [Int] = []
    var partners: [Int: Int] = [:]
    for (number, token) in tokens.enumerated() {
      if token.kind == .symbol(.open) { open.append(number) }
      if token.kind == .symbol(.close), let partner = open.popLast() { partners[partner] = number }
    }
    self.partners = partners
  }

  // MARK: Tokens

  /// Returns the next token, or a later one; `end` after the last.
  func peek(_ distance: Int = 0) -> ExpressionToken.Kind {
    index + distance < tokens.count ? tokens[index + distance].kind : .end
  }

  /// The position of the next token.
  var offset: Int { index < tokens.count ? tokens[index].offset : source.scalars.count }

  mutating func advance(_ count: Int = 1) { index += count }

  /// Consumes the next token if it is that sign.
  mutating func take(_ symbol: ExpressionToken.Symbol) -> Bool {
    guard peek() == .symbol(symbol) else { return false }
    advance()
    return true
  }

  /// Consumes that sign; throws if the next token is another.
  mutating func expect(_ symbol: ExpressionToken.Symbol, _ purpose: String) throws(HopdError) {
    guard take(symbol) else {
      throw source.syntax("\(symbol.rawValue) is missing \(purpose)", at: offset)
    }
  }

  private func expectEnd(of what: String) throws(HopdError) {
    if peek() == .end { return }
    if case .name(let name) = peek(), let refusal = ExpressionRefusal.infix(name) {
      throw source.unsupported(refusal, at: offset)
    }
    if case .keyword(let keyword, _) = peek(), let refusal = keyword.refusal {
      throw source.unsupported(refusal, at: offset)
    }
    if what == "expression", comparisonOperator != nil {
      throw source.syntax(
        "a comparison is not a value", at: offset, hint: "write TERNARY(comparison, TRUE, FALSE) for the value of one")
    }
    throw source.syntax("the \(what) ends here, but the text continues", at: offset)
  }

  /// Increases the nesting by one; the caller must decrease it again.
  mutating func enter() throws(HopdError) {
    nesting += 1
    guard nesting <= ExpressionLimits.nesting else {
      throw source.syntax("the expression is nested deeper than \(ExpressionLimits.nesting)", at: offset)
    }
  }

  mutating func leave() { nesting -= 1 }

  /// Creates a node above others, with its height.
  func build<Node>(_ node: Node, above heights: Int...) throws(HopdError) -> Built<Node> {
    let height = 1 + (heights.max() ?? 0)
    guard height <= ExpressionLimits.height else {
      throw source.syntax(
        "the expression is nested deeper than \(ExpressionLimits.height)", at: offset,
        hint: "split the expression; each term of a sum or product counts as one level")
    }
    return Built(node: node, height: height)
  }

  // MARK: Predicates

  /// or = and { OR and }
  mutating func predicate() throws(HopdError) -> Built<PredicateNode> {
    try chain(.or, .or, PredicateNode.or) { parser throws(HopdError) in
      // and = not { AND not }
      try parser.chain(.and, .and, PredicateNode.and) { parser throws(HopdError) in try parser.negation() }
    }
  }

  /// Parses parts separated by a word or sign. A single part is returned unchanged.
  private mutating func chain(
    _ word: ExpressionKeyword, _ sign: ExpressionToken.Symbol, _ node: ([PredicateNode]) -> PredicateNode,
    of part: (inout ExpressionParser) throws(HopdError) -> Built<PredicateNode>
  ) throws(HopdError) -> Built<PredicateNode> {
    let first = try part(&self)
    var parts = [first.node]
    var height = first.height
    while isNext(word) || peek() == .symbol(sign) {
      advance()
      let next = try part(&self)
      parts.append(next.node)
      height = max(height, next.height)
    }
    return parts.count == 1 ? first : try build(node(parts), above: height)
  }

  private func isNext(_ word: ExpressionKeyword) -> Bool {
    if case .keyword(word, _) = peek() { true } else { false }
  }

  private mutating func negation() throws(HopdError) -> Built<PredicateNode> {
    switch peek() {
    case .keyword(.not, _), .symbol(.not):
      advance()
      try enter()
      let part = try negation()
      leave()
      return try build(.not(part.node), above: part.height)
    case .keyword(.truePredicate, _):
      advance()
      return try build(.constant(true))
    case .keyword(.falsePredicate, _):
      advance()
      return try build(.constant(false))
    case .symbol(.open) where opensPredicate:
      advance()
      try enter()
      let part = try predicate()
      leave()
      try expect(.close, "after the predicate")
      return part
    default: return try comparison()
    }
  }

  /// Whether the next parenthesis contains a predicate. After an expression's parenthesis, the expression would
  /// continue.
  private var opensPredicate: Bool {
    guard let partner = partners[index] else { return true }
    switch tokens[partner + 1].kind {
    case .end: return true
    case .symbol(let symbol): return [.close, .closeBrace, .closeBracket, .comma, .and, .or].contains(symbol)
    case .keyword(let keyword, _): return keyword == .and || keyword == .or
    default: return false
    }
  }

  // MARK: Comparisons

  private mutating func comparison() throws(HopdError) -> Built<PredicateNode> {
    var modifier = Comparison.Modifier.direct
    if case .keyword(let keyword, _) = peek(), let found = Self.modifiers[keyword] {
      modifier = found
      advance()
    }
    let left = try expression()
    guard let operation = comparisonOperator else { throw missingOperator() }
    advance()
    var result = Comparison(left.node, operation, left.node, modifier: modifier)
    if peek() == .symbol(.openBracket) { try readOptions(into: &result) }
    let right = try expression()
    result.right = right.node
    if comparisonOperator != nil {
      throw source.syntax("comparisons do not chain", at: offset, hint: "write a < b AND b < c")
    }
    return try build(.comparison(result), above: left.height, right.height)
  }

  private static let modifiers: [ExpressionKeyword: Comparison.Modifier] = [
    .any: .any, .some: .any, .all: .all, .none: .none,
  ]

  /// The next comparison operator; nil if there is none.
  private var comparisonOperator: Comparison.Operator? {
    switch peek() {
    case .symbol(let symbol):
      switch symbol {
      case .equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual:
        return Comparison.Operator(rawValue: symbol.rawValue)
      default: return nil
      }
    case .keyword(let keyword, _):
      switch keyword {
      case .beginsWith, .contains, .endsWith, .like, .matches, .in, .between:
        return Comparison.Operator(rawValue: keyword.rawValue)
      default: return nil
      }
    default: return nil
    }
  }

  private func missingOperator() -> HopdError {
    switch peek() {
    case .name(let name):
      if let refusal = ExpressionRefusal.infix(name) { return source.unsupported(refusal, at: offset) }
    case .keyword(let keyword, _):
      if let refusal = keyword.refusal { return source.unsupported(refusal, at: offset) }
      if keyword == .not {
        return source.syntax(
          "a comparison operator is missing", at: offset, hint: "write NOT before the whole comparison: NOT a IN b")
      }
    default: break
    }
    return source.syntax(
      "a comparison operator is missing", at: offset, hint: "write a comparison, such as flag == TRUE")
  }

  /// Parses `[cd]`, directly after the operator.
  private mutating func readOptions(into comparison: inout Comparison) throws(HopdError) {
    advance()
    let letters: String
    switch peek() {
    case .name(let text), .keyword(_, let text): letters = text
    default: throw source.syntax("the letters c, d or n are missing behind [", at: self.offset)
    }
    for letter in letters {
      switch letter {
      case "c": comparison.ignoresCase = true
      case "d": comparison.ignoresDiacritics = true
      case "n": comparison.isNormalized = true
      case "l":
        throw source.unsupported(
          "the modifier [l] is not supported: its meaning depends on the locale of the device", at: self.offset,
          hint: "write [c], [d] or [cd]")
      default:
        throw source.syntax("the modifier \(letter) is unknown", at: self.offset, hint: "write c, d or n")
      }
    }
    advance()
    try expect(.closeBracket, "after the modifiers")
  }
}
