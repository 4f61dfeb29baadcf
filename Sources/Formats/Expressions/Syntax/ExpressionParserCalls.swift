// Calls in texts: functions by name, CAST, TERNARY, SUBQUERY and FUNCTION (docs/formats/expressions.md, "Grammar" and
// "Functions").

import Diagnostics

extension ExpressionParser {
  /// Parses a word with its parentheses; `body` parses the part between them.
  mutating func call(
    _ body: (inout ExpressionParser) throws(HopdError) -> Built<ExpressionNode>
  ) throws(HopdError) -> Built<ExpressionNode> {
    advance(2)
    try enter()
    let result = try body(&self)
    leave()
    try expect(.close, "after the arguments")
    return result
  }

  /// Parses a call of a function by its name.
  mutating func call(_ name: String) throws(HopdError) -> Built<ExpressionNode> {
    let start = offset
    guard peek(1) == .symbol(.open) else {
      throw source.syntax("( is missing after the function's name \(name)", at: start)
    }
    if name == CastTarget.selector { return try call { parser throws(HopdError) in try parser.cast() } }
    let arithmetic = ArithmeticOperator(functionName: name)
    let function = ExpressionFunction(rawValue: name)
    guard arithmetic != nil || function != nil else {
      throw source.unsupported(ExpressionRefusal.function(name), at: start, hint: ExpressionRefusal.functionHint(name))
    }
    return try call { parser throws(HopdError) in
      let (arguments, height) = try parser.list()
      if let problem = function?.problem(ofCount: arguments.count) { throw parser.source.syntax(problem, at: start) }
      if let arithmetic {
        guard arguments.count == 2 else {
          throw parser.source.syntax("\(name) takes 2 arguments, not \(arguments.count)", at: start)
        }
        return try parser.build(.arithmetic(arithmetic, arguments[0], arguments[1]), above: height)
      }
      if let function { return try parser.build(.function(function, arguments), above: height) }
      throw parser.source.syntax("\(name) is not a function", at: start)
    }
  }

  /// Parses expressions up to the closing sign, which it does not consume. Throws if a list that begins at `start` has
  /// more than `limit`.
  mutating func list(
    endingWith close: ExpressionToken.Symbol = .close, at start: Int = 0, limit: Int = .max
  ) throws(HopdError) -> (nodes: [ExpressionNode], height: Int) {
    var nodes: [ExpressionNode] = []
    var height = 0
    guard peek() != .symbol(close) else { return (nodes, height) }
    repeat {
      guard nodes.count < limit else { throw source.syntax("the list has more than \(limit) members", at: start) }
      let member = try expression()
      nodes.append(member.node)
      height = max(height, member.height)
    } while take(.comma)
    return (nodes, height)
  }

  mutating func cast() throws(HopdError) -> Built<ExpressionNode> {
    if let literal = literalCast() {
      advance(literal.tokens)
      return try build(.constant(literal.value))
    }
    let operand = try expression()
    try expect(.comma, "before the type")
    guard case .string(let name) = peek() else {
      throw source.syntax("the type is a string, as in CAST(x, 'NSNumber')", at: offset)
    }
    guard let target = CastTarget(typeName: name) else {
      throw source.unsupported(
        "CAST to \(name) is not supported", at: offset,
        hint: "use one of: " + CastTarget.allCases.map(\.rawValue).joined(separator: ", "))
    }
    advance()
    return try build(.cast(operand.node, target), above: operand.height)
  }

  /// Returns the constant of a cast. Dates, decimals and other values without a literal of their own are written as
  /// casts.
  private func literalCast() -> (value: ConstantValue, tokens: Int)? {
    let sign = peek() == .symbol(.minus) ? 1 : 0
    guard peek(sign + 1) == .symbol(.comma), case .string(let type) = peek(sign + 2), peek(sign + 3) == .symbol(.close)
    else { return nil }
    switch (peek(sign), type) {
    case (.integer(let magnitude), "NSDate"):
      return (.date(sign == 1 ? -Double(magnitude) : Double(magnitude)), sign + 3)
    case (.double(let magnitude), "NSDate"): return (.date(sign == 1 ? -magnitude : magnitude), sign + 3)
    case (.string(let text), _):
      return sign == 0 ? ConstantLiteral.value(text, type: type).map { ($0, 3) } : nil
    default: return nil
    }
  }

  mutating func ternary() throws(HopdError) -> Built<ExpressionNode> {
    let condition = try predicate()
    try expect(.comma, "after the predicate of TERNARY")
    let first = try expression()
    try expect(.comma, "before the last argument of TERNARY")
    let second = try expression()
    return try build(
      .ternary(condition.node, first.node, second.node), above: condition.height, first.height, second.height)
  }

  mutating func subquery() throws(HopdError) -> Built<ExpressionNode> {
    let collection = try expression()
    try expect(.comma, "after the collection of SUBQUERY")
    guard case .variable(let name) = peek() else {
      throw source.syntax("the second argument of SUBQUERY is a variable, as $x", at: offset)
    }
    advance()
    try expect(.comma, "after the variable of SUBQUERY")
    let condition = try predicate()
    return try build(
      .subquery(collection.node, variable: name, condition.node), above: collection.height, condition.height)
  }

  /// FUNCTION(receiver, 'selector', arguments…)
  mutating func message() throws(HopdError) -> Built<ExpressionNode> {
    guard case .variable(let receiver) = peek(), peek(1) == .symbol(.comma),
      receiver == "manager" || receiver == "entityPolicy"
    else { return try messageOfText() }
    advance(2)
    let selectorOffset = offset
    guard case .string(let selector) = peek() else {
      throw source.syntax("the second argument of FUNCTION is a string, the method's name", at: offset)
    }
    advance()
    var nodes: [ExpressionNode] = []
    var height = 0
    if take(.comma) { (nodes, height) = try list() }
    do {
      return try build(try MethodCall.node(receiver: receiver, selector: selector, arguments: nodes), above: height)
    } catch let problem as MethodCall.Problem {
      throw problem.isUnsupported
        ? source.unsupported(problem.message, at: selectorOffset, hint: problem.hint)
        : source.syntax(problem.message, at: selectorOffset, hint: problem.hint)
    } catch let error as HopdError {
      throw error
    } catch {
      throw source.syntax("the call cannot be read", at: selectorOffset)
    }
  }

  /// FUNCTION(text, 'stringByAppendingString:', text): the one method of a value that known mapping models call.
  private mutating func messageOfText() throws(HopdError) -> Built<ExpressionNode> {
    let start = offset
    let receiver = try expression()
    guard take(.comma), case .string(MethodCall.appendSelector) = peek() else {
      throw source.unsupported(
        "FUNCTION is supported for $manager and $entityPolicy, and for a text's \(MethodCall.appendSelector) only",
        at: start)
    }
    advance()
    try expect(.comma, "before the text that is appended")
    let appended = try expression()
    return try build(.function(.concatenate, [receiver.node, appended.node]), above: receiver.height, appended.height)
  }
}
