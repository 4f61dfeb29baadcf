// The part of the grammar below the comparison: arithmetic, key paths, literals, and the calls
// (docs/formats/expressions.md, "Grammar").

import Diagnostics

extension ExpressionParser {
  /// additive = multiplicative { (+|-) multiplicative }
  mutating func expression() throws(HopdError) -> Built<ExpressionNode> {
    var left = try product()
    while peek() == .symbol(.plus) || peek() == .symbol(.minus) {
      let operation: ArithmeticOperator = peek() == .symbol(.plus) ? .add : .subtract
      advance()
      let right = try product()
      left = try build(.arithmetic(operation, left.node, right.node), above: left.height, right.height)
    }
    return left
  }

  private mutating func product() throws(HopdError) -> Built<ExpressionNode> {
    var left = try power()
    while peek() == .symbol(.times) || peek() == .symbol(.divide) {
      let operation: ArithmeticOperator = peek() == .symbol(.times) ? .multiply : .divide
      advance()
      let right = try power()
      left = try build(.arithmetic(operation, left.node, right.node), above: left.height, right.height)
    }
    return left
  }

  private mutating func power() throws(HopdError) -> Built<ExpressionNode> {
    let isNegative = peek() == .symbol(.minus)
    let left = try unary()
    guard peek() == .symbol(.power) else { return left }
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
    return try build(.arithmetic(.power, left.node, right.node), above: left.height, right.height)
  }

  private mutating func unary() throws(HopdError) -> Built<ExpressionNode> {
    guard take(.minus) else { return try postfix() }
    // The sign belongs to a number that stands directly behind it: the smallest integer has no positive partner.
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

  private func tooLarge() -> HopdError { source.syntax("the number is no integer of 64 bits", at: offset) }

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

  /// The key that comes next, if the expression begins with one.
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
      case .functionName(let name): throw source.syntax("\(name) is no key", at: offset)
      default: throw source.syntax("a key is missing behind the dot", at: offset)
      }
      advance()
      if peek() == .symbol(.open) {
        throw source.unsupported(
          "calls of methods are not supported", at: offset, hint: "functions stand by themselves")
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
    default:
      throw source.unsupported("only a number, FIRST, LAST or SIZE is supported in brackets", at: offset)
    }
    advance()
    try expect(.closeBracket, "behind the index")
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
        throw source.syntax("a list stands in braces", at: offset, hint: "write {a, b}")
      }
      guard take(.close) else {
        throw source.syntax(
          ") is missing behind the expression", at: offset,
          hint: "a comparison is no value; TERNARY(comparison, a, b) is")
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
      if let refusal = keyword.refusal {
        throw source.unsupported(refusal, at: offset, hint: "a property of that name is written #\(text)")
      }
      throw source.syntax(
        "\(text) is a keyword and no expression", at: offset, hint: "a property of that name is written #\(text)")
    }
  }

  private mutating func aggregate() throws(HopdError) -> Built<ExpressionNode> {
    let start = offset
    advance()
    try enter()
    var members: [ExpressionNode] = []
    var height = 0
    if peek() != .symbol(.closeBrace) {
      repeat {
        guard members.count < ExpressionLimits.members else {
          throw source.syntax("the list has more than \(ExpressionLimits.members) members", at: start)
        }
        let member = try expression()
        members.append(member.node)
        height = max(height, member.height)
      } while take(.comma)
    }
    leave()
    try expect(.closeBrace, "behind the list")
    return try build(.aggregate(members), above: height)
  }

  // MARK: Calls

  /// A word with its parenthesis; the body reads from behind it up to the closing one.
  private mutating func call(
    _ body: (inout ExpressionParser) throws(HopdError) -> Built<ExpressionNode>
  ) throws(HopdError) -> Built<ExpressionNode> {
    advance(2)
    try enter()
    let result = try body(&self)
    leave()
    try expect(.close, "behind the arguments")
    return result
  }

  /// A function by its name.
  private mutating func call(_ name: String) throws(HopdError) -> Built<ExpressionNode> {
    let start = offset
    guard peek(1) == .symbol(.open) else {
      throw source.syntax("( is missing behind the function's name \(name)", at: start)
    }
    let arithmetic = ArithmeticOperator(functionName: name)
    let function = ExpressionFunction(rawValue: name)
    guard arithmetic != nil || function != nil else {
      throw source.unsupported(
        ExpressionRefusal.function(name), at: start, hint: ExpressionRefusal.functionHint(name))
    }
    return try call { parser throws(HopdError) in
      let (arguments, height) = try parser.arguments()
      if let problem = function?.problem(ofCount: arguments.count) { throw parser.source.syntax(problem, at: start) }
      if let arithmetic {
        guard arguments.count == 2 else {
          throw parser.source.syntax("\(name) takes 2 arguments, not \(arguments.count)", at: start)
        }
        return try parser.build(.arithmetic(arithmetic, arguments[0], arguments[1]), above: height)
      }
      if let function { return try parser.build(.function(function, arguments), above: height) }
      throw parser.source.syntax("\(name) is no function", at: start)
    }
  }

  /// Expressions up to the closing parenthesis, which is left.
  private mutating func arguments() throws(HopdError) -> (nodes: [ExpressionNode], height: Int) {
    var nodes: [ExpressionNode] = []
    var height = 0
    guard peek() != .symbol(.close) else { return (nodes, height) }
    repeat {
      let argument = try expression()
      nodes.append(argument.node)
      height = max(height, argument.height)
    } while take(.comma)
    return (nodes, height)
  }

  private mutating func cast() throws(HopdError) -> Built<ExpressionNode> {
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
        hint: "types are: " + CastTarget.allCases.map(\.rawValue).joined(separator: ", "))
    }
    advance()
    return try build(.cast(operand.node, target), above: operand.height)
  }

  /// Dates, decimals and other values without a literal of their own are casts of one, and become constants when read.
  private func literalCast() -> (value: ConstantValue, tokens: Int)? {
    let sign = peek() == .symbol(.minus) ? 1 : 0
    guard peek(sign + 1) == .symbol(.comma), case .string(let type) = peek(sign + 2),
      peek(sign + 3) == .symbol(.close)
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

  private mutating func ternary() throws(HopdError) -> Built<ExpressionNode> {
    let condition = try predicate()
    try expect(.comma, "behind the predicate of TERNARY")
    let first = try expression()
    try expect(.comma, "before the last argument of TERNARY")
    let second = try expression()
    return try build(
      .ternary(condition.node, first.node, second.node), above: condition.height, first.height, second.height)
  }

  private mutating func subquery() throws(HopdError) -> Built<ExpressionNode> {
    let collection = try expression()
    try expect(.comma, "behind the collection of SUBQUERY")
    guard case .variable(let name) = peek() else {
      throw source.syntax("the second argument of SUBQUERY is a variable, as $x", at: offset)
    }
    advance()
    try expect(.comma, "behind the variable of SUBQUERY")
    let condition = try predicate()
    return try build(
      .subquery(collection.node, variable: name, condition.node), above: collection.height, condition.height)
  }

  /// FUNCTION(receiver, 'selector', arguments…)
  private mutating func message() throws(HopdError) -> Built<ExpressionNode> {
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
    if take(.comma) { (nodes, height) = try arguments() }
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

  /// FUNCTION(text, 'stringByAppendingString:', text): the one method of a value that mapping models are known to call.
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
