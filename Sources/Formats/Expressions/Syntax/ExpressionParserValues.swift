// The grammar below comparisons: arithmetic, bit operators, key paths, literals and lists (docs/formats/expressions.md,
// "Grammar"). Calls are in `ExpressionParserCalls.swift`.

import Diagnostics

extension ExpressionParser {
  /// bits = additive { (&) additive } and so for each bit operator
  mutating func expression() throws(HopdError) -> Built<ExpressionNode> {
    var left = try sum()
    guard let function = bitFunction else { return left.built }
    while let next = bitFunction {
      // Their precedence is documented nowhere, so only a chain of one operator may omit parentheses.
      guard next == function, !left.isArithmetic, !left.isShift else { throw mixedBits() }
      advance()
      let right = try sum()
      guard !right.isArithmetic else { throw mixedBits() }
      let built: Built<ExpressionNode> = try build(
        .function(function, [left.built.node, right.built.node]), above: left.built.height, right.built.height)
      left = Terms(built: built, isShift: function == .leftShift || function == .rightShift)
    }
    return left.built
  }

  private func mixedBits() -> HopdError {
    source.syntax(
      "a bit operator beside another operator is not clear: parentheses are needed", at: offset,
      hint: "write (a & b) | c, or AND and OR between comparisons")
  }

  /// An expression, and whether it has operators of its own level.
  private struct Terms {
    let built: Built<ExpressionNode>
    var isArithmetic = false
    var isShift = false
  }

  /// The function of the next bit operator; nil if there is none.
  private var bitFunction: ExpressionFunction? {
    guard case .symbol(let symbol) = peek() else { return nil }
    switch symbol {
    case .bitAnd: return .bitwiseAnd
    case .bitOr: return .bitwiseOr
    case .bitXor: return .bitwiseXor
    case .shiftLeft: return .leftShift
    case .shiftRight: return .rightShift
    default: return nil
    }
  }

  /// additive = multiplicative { (+|-) multiplicative }
  private mutating func sum() throws(HopdError) -> Terms {
    try terms([.plus: .add, .minus: .subtract]) { parser throws(HopdError) in
      // multiplicative = power { (*|/) power }
      try parser.terms([.times: .multiply, .divide: .divide]) { parser throws(HopdError) in try parser.power() }
    }
  }

  /// Parses operands separated by operators of one level.
  private mutating func terms(
    _ operators: [ExpressionToken.Symbol: ArithmeticOperator],
    of operand: (inout ExpressionParser) throws(HopdError) -> Terms
  ) throws(HopdError) -> Terms {
    var left = try operand(&self)
    while case .symbol(let symbol) = peek(), let operation = operators[symbol] {
      advance()
      let right = try operand(&self).built
      left = Terms(
        built: try build(.arithmetic(operation, left.built.node, right.node), above: left.built.height, right.height),
        isArithmetic: true)
    }
    return left
  }

  private mutating func power() throws(HopdError) -> Terms {
    let isNegative = peek() == .symbol(.minus)
    let left = try unary()
    guard peek() == .symbol(.power) else { return Terms(built: left) }
    guard !isNegative else {
      throw source.syntax(
        "a minus before ** is not clear: parentheses are needed", at: offset, hint: "write (-a) ** b or -(a ** b)")
    }
    advance()
    let right = try unary()
    guard peek() != .symbol(.power) else {
      throw source.syntax(
        "a chain of ** is not clear: parentheses are needed", at: offset, hint: "write (a ** b) ** c or a ** (b ** c)")
    }
    return Terms(
      built: try build(.arithmetic(.power, left.node, right.node), above: left.height, right.height),
      isArithmetic: true)
  }

  private mutating func unary() throws(HopdError) -> Built<ExpressionNode> {
    if take(.bitNot) {
      guard peek() != .symbol(.bitNot), peek() != .symbol(.minus) else {
        throw source.syntax("two signs in a row", at: offset, hint: "write ~(-a)")
      }
      let operand = try postfix()
      return try build(.function(.onesComplement, [operand.node]), above: operand.height)
    }
    guard take(.minus) else { return try postfix() }
    // The sign belongs to a number that follows directly: the smallest integer has no positive counterpart.
    if peek(1) != .symbol(.dot), peek(1) != .symbol(.openBracket) {
      switch peek() {
      case .integer(let magnitude):
        guard magnitude <= UInt64(Int64.max) + 1 else { throw tooLarge() }
        advance()
        return try build(.constant(.integer(Int64(truncatingIfNeeded: 0 &- magnitude))))
      case .double(let magnitude):
        advance()
        return try build(.constant(.double(-magnitude)))
      default: break
      }
    }
    guard peek() != .symbol(.minus) else {
      throw source.syntax("two signs in a row", at: offset, hint: "write -(-a)")
    }
    let operand = try postfix()
    return try build(.negated(operand.node), above: operand.height)
  }

  func tooLarge() -> HopdError { source.syntax("the number is not an integer of 64 bits", at: offset) }

  // MARK: Key paths and elements

  /// primary { "." key | "[" index "]" }
  private mutating func postfix() throws(HopdError) -> Built<ExpressionNode> {
    var base: Built<ExpressionNode>
    if let key = try leadingKey() {
      let start = offset
      advance()
      base = try keyPath(on: Built(node: .selfObject, height: 1), beginningWith: key, at: start)
    } else {
      base = try primary()
    }
    while true {
      if peek() == .symbol(.dot) {
        base = try keyPath(on: base, beginningWith: nil, at: offset)
      } else if peek() == .symbol(.openBracket) {
        base = try element(of: base)
      } else {
        return base
      }
    }
  }

  /// Returns the next key if the expression begins with one.
  private func leadingKey() throws(HopdError) -> String? {
    switch peek() {
    case .name(let name): return peek(1) == .symbol(.open) ? nil : name
    case .escapedName(let name): return name
    default: return nil
    }
  }

  private mutating func keyPath(
    on base: Built<ExpressionNode>, beginningWith first: String?, at start: Int
  ) throws(HopdError) -> Built<ExpressionNode> {
    var components = first.map { [$0] } ?? []
    var offsets = first == nil ? [] : [start]
    while take(.dot) {
      offsets.append(offset)
      switch peek() {
      case .name(let name), .keyword(_, let name), .escapedName(let name), .collectionOperator(let name):
        components.append(name)
      case .functionName(let name): throw source.syntax("\(name) is not a key", at: offset)
      default: throw source.syntax("a key is missing after the dot", at: offset)
      }
      advance()
      if peek() == .symbol(.open) {
        throw source.unsupported(
          "calls of methods are not supported", at: offset, hint: "use the function without a receiver")
      }
    }
    let steps: [KeyPathStep]
    do {
      steps = try KeyPathSteps.steps(components)
    } catch {
      let at = error.component < offsets.count ? offsets[error.component] : offset
      throw error.isUnsupported ? source.unsupported(error.message, at: at) : source.syntax(error.message, at: at)
    }
    let height = if case .keyPath = base.node { base.height } else { base.height + 1 }
    return try build(ExpressionNode.path(base.node, steps), above: height - 1)
  }

  private mutating func element(of base: Built<ExpressionNode>) throws(HopdError) -> Built<ExpressionNode> {
    advance()
    let index: ElementIndex
    switch peek() {
    case .integer(let number):
      guard let position = Int64(exactly: number) else { throw tooLarge() }
      index = .position(position)
    case .keyword(.first, _): index = .first
    case .keyword(.last, _): index = .last
    case .keyword(.size, _): index = .size
    default: throw source.unsupported("only a number, FIRST, LAST or SIZE is supported in brackets", at: offset)
    }
    advance()
    try expect(.closeBracket, "after the index")
    return try build(.element(base.node, index), above: base.height)
  }

  // MARK: Literals and lists

  private mutating func primary() throws(HopdError) -> Built<ExpressionNode> {
    switch peek() {
    case .string(let text): return try constant(.string(text))
    case .integer(let magnitude):
      guard let number = Int64(exactly: magnitude) else { throw tooLarge() }
      return try constant(.integer(number))
    case .double(let number): return try constant(.double(number))
    case .variable(let name):
      advance()
      return try build(.variable(name))
    case .functionName(let name), .name(let name): return try call(name)
    case .keyword(let keyword, let text): return try keyworded(keyword, text)
    case .symbol(.open):
      advance()
      try enter()
      let inner = try expression()
      leave()
      if peek() == .symbol(.comma) {
        throw source.syntax("a list is written in braces", at: offset, hint: "write {a, b}")
      }
      guard take(.close) else {
        throw source.syntax(
          ") is missing after the expression", at: offset,
          hint: "write TERNARY(comparison, a, b) for a value")
      }
      return inner
    case .symbol(.openBrace): return try aggregate()
    case .collectionOperator(let name):
      throw source.syntax("\(name) needs a collection before it", at: offset, hint: "write collection.\(name)")
    case .escapedName: throw source.syntax("an expression is missing", at: offset)
    case .symbol(let symbol):
      throw source.syntax("an expression is missing before \(symbol.rawValue)", at: offset)
    case .end: throw source.syntax("an expression is missing at the end", at: offset)
    }
  }

  private mutating func constant(_ value: ConstantValue) throws(HopdError) -> Built<ExpressionNode> {
    advance()
    return try build(.constant(value))
  }

  private mutating func keyworded(
    _ keyword: ExpressionKeyword, _ text: String
  ) throws(HopdError) -> Built<ExpressionNode> {
    switch keyword {
    case .true, .yes: return try constant(.boolean(true))
    case .false, .no: return try constant(.boolean(false))
    case .null, .nil: return try constant(.null)
    case .self:
      advance()
      return try build(.selfObject)
    case .cast where peek(1) == .symbol(.open): return try call { parser throws(HopdError) in try parser.cast() }
    case .ternary where peek(1) == .symbol(.open): return try call { parser throws(HopdError) in try parser.ternary() }
    case .subquery where peek(1) == .symbol(.open):
      return try call { parser throws(HopdError) in try parser.subquery() }
    case .function where peek(1) == .symbol(.open): return try call { parser throws(HopdError) in try parser.message() }
    default:
      let hint = "write #\(text) for a property of that name"
      if let refusal = keyword.refusal { throw source.unsupported(refusal, at: offset, hint: hint) }
      throw source.syntax("\(text) is a keyword, not an expression", at: offset, hint: hint)
    }
  }

  private mutating func aggregate() throws(HopdError) -> Built<ExpressionNode> {
    let start = offset
    advance()
    try enter()
    let (members, height) = try list(endingWith: .closeBrace, at: start, limit: ExpressionLimits.members)
    leave()
    try expect(.closeBrace, "after the list")
    return try build(.aggregate(members), above: height)
  }
}
