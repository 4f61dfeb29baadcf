// Writes expressions and predicates as NSExpression and NSPredicate print them, which is the text in compiled mapping
// models (docs/formats/mapping-models.md, "Compiling a source"): strings in double quotes, arguments after ", ", `nil`
// for the constant nil. Parsing the text gives the same tree.

import Diagnostics
import ManagedObjectModel

extension ExpressionNode: CustomStringConvertible {
  /// The expression's text.
  package var description: String {
    var printer = ExpressionPrinter()
    printer.add(self)
    return printer.text
  }
}

extension PredicateNode: CustomStringConvertible {
  /// The predicate's text.
  package var description: String {
    var printer = ExpressionPrinter()
    printer.add(self)
    return printer.text
  }
}

/// Appends trees to one text.
private struct ExpressionPrinter {
  var text = ""

  /// The precedence of an expression: an operand with a lower one is put in parentheses.
  private enum Binding: Int, Comparable {
    case sum, product, power, sign, primary

    static func < (left: Binding, right: Binding) -> Bool { left.rawValue < right.rawValue }
  }

  // MARK: Expressions

  mutating func add(_ node: ExpressionNode) {
    switch node {
    case .constant(let value): add(value)
    case .selfObject: text += "SELF"
    case .variable(let name): text += "$" + name
    case .keyPath(let base, let steps): addPath(base, steps)
    case .function(let function, let arguments): addCall(function.rawValue, arguments)
    case .cast(let operand, let target): addCast(operand, target)
    case .ternary(let condition, let first, let second):
      text += "TERNARY("
      add(condition)
      text += ", "
      addList([first, second])
      text += ")"
    case .subquery(let collection, let variable, let condition):
      text += "SUBQUERY("
      add(collection)
      text += ", $\(variable), "
      add(condition)
      text += ")"
    case .aggregate(let members):
      text += "{"
      addList(members)
      text += "}"
    case .element(let base, let index): addElement(base, index)
    case .arithmetic(let operation, let left, let right): addArithmetic(operation, left, right)
    case .negated(let operand):
      text += "-"
      // `-5` would be parsed as a number.
      if case .constant(let value) = operand, value.isNumber {
        addInParentheses(operand)
      } else {
        add(operand, .primary)
      }
    case .destinationInstances(let lookup, let objects):
      let (selector, name) = lookup.parts
      addCall("FUNCTION", [.variable("manager"), .constant(.string(selector)), .constant(.string(name)), objects])
    case .policyMethod(let selector, let arguments):
      addCall("FUNCTION", [.variable("entityPolicy"), .constant(.string(selector))] + arguments)
    }
  }

  private mutating func addList(_ nodes: [ExpressionNode]) {
    for (index, node) in nodes.enumerated() {
      if index > 0 { text += ", " }
      add(node)
    }
  }

  private mutating func addCall(_ name: String, _ arguments: [ExpressionNode]) {
    text += name + "("
    addList(arguments)
    text += ")"
  }

  private mutating func addInParentheses(_ node: ExpressionNode) {
    text += "("
    add(node)
    text += ")"
  }

  private mutating func add(_ node: ExpressionNode, _ least: Binding) {
    if binding(of: node) < least { addInParentheses(node) } else { add(node) }
  }

  private func binding(of node: ExpressionNode) -> Binding {
    switch node {
    case .arithmetic(.add, _, _), .arithmetic(.subtract, _, _): .sum
    case .arithmetic(.multiply, _, _), .arithmetic(.divide, _, _): .product
    case .arithmetic(.power, _, _): .power
    case .negated: .sign
    case .constant(.integer(let number)): number < 0 ? .sign : .primary
    case .constant(.double(let number)): number.sign == .minus ? .sign : .primary
    default: .primary
    }
  }

  private mutating func addArithmetic(
    _ operation: ArithmeticOperator, _ left: ExpressionNode, _ right: ExpressionNode
  ) {
    let least: (left: Binding, right: Binding) =
      switch operation {
      case .add, .subtract: (.sum, .product)
      case .multiply, .divide: (.product, .power)
      case .power: (.primary, .sign)
      }
    add(left, least.left)
    text += " \(operation.rawValue) "
    add(right, least.right)
  }

  private mutating func addCast(_ operand: ExpressionNode, _ target: CastTarget) {
    text += "CAST("
    // A literal alone would be parsed as the constant itself.
    if case .constant(let value) = operand, value.isNumber || value.isString {
      addInParentheses(operand)
    } else {
      add(operand)
    }
    text += ", "
    addQuoted(target.rawValue)
    text += ")"
  }

  // MARK: Key paths

  private mutating func addPath(_ base: ExpressionNode, _ steps: [KeyPathStep]) {
    var steps = steps[...]
    if case .selfObject = base, let first = steps.first, first.isBareStart {
      if case .key(let key) = first, ExpressionKeyword(name: key) != nil { text += "#" }
      text += first.text
      steps = steps.dropFirst()
    } else {
      addBase(base)
    }
    for step in steps { text += "." + step.text }
  }

  private mutating func addElement(_ base: ExpressionNode, _ index: ElementIndex) {
    addBase(base)
    switch index {
    case .position(let position): text += "[\(position)]"
    case .first: text += "[FIRST]"
    case .last: text += "[LAST]"
    case .size: text += "[SIZE]"
    }
  }

  /// Appends the expression before a dot or bracket.
  private mutating func addBase(_ base: ExpressionNode) {
    switch base {
    case .constant, .arithmetic, .negated: addInParentheses(base)
    // Only a parenthesis ends an operator's own path.
    case .keyPath(_, let steps) where !steps.allSatisfy(\.isKey): addInParentheses(base)
    default: add(base)
    }
  }

  // MARK: Constants

  private mutating func add(_ value: ConstantValue) {
    switch value {
    case .null: text += "nil"
    case .boolean(let flag): text += flag ? "true" : "false"
    case .integer(let number): text += String(number)
    case .double(let number): text += "\(number)"
    case .decimal(let digits): addLiteral("\"\(digits)\"", "NSDecimalNumber")
    case .string(let string): addQuoted(string)
    case .date(let seconds): addLiteral("\(seconds)", "NSDate")
    case .data(let bytes): addLiteral("\"\(bytes.hexadecimal.uppercased())\"", "NSData")
    case .uuid(let bytes): addLiteral("\"\(UUIDText.text(of: bytes))\"", "NSUUID")
    }
  }

  private mutating func addLiteral(_ literal: String, _ type: String) {
    text += "CAST(\(literal), \"\(type)\")"
  }

  private mutating func addQuoted(_ string: String) {
    text += "\""
    for scalar in string.unicodeScalars {
      switch scalar {
      case "\\", "\"":
        text += "\\"
        text.unicodeScalars.append(scalar)
      case "\n": text += "\\n"
      case "\r": text += "\\r"
      case "\t": text += "\\t"
      case _ where scalar.value < 0x20 || scalar.value == 0x7f:
        text += "\\x" + [UInt8(truncatingIfNeeded: scalar.value)].hexadecimal.uppercased()
      default: text.unicodeScalars.append(scalar)
      }
    }
    text += "\""
  }

  // MARK: Predicates

  mutating func add(_ predicate: PredicateNode) {
    switch predicate {
    case .constant(let flag): text += flag ? "TRUEPREDICATE" : "FALSEPREDICATE"
    case .comparison(let comparison): add(comparison)
    case .and(let parts): addParts(parts, " AND ", none: "TRUEPREDICATE")
    case .or(let parts): addParts(parts, " OR ", none: "FALSEPREDICATE")
    case .not(let part):
      text += "NOT "
      addPart(part)
    }
  }

  private mutating func addParts(_ parts: [PredicateNode], _ word: String, none: String) {
    if parts.isEmpty { text += none }
    for (index, part) in parts.enumerated() {
      if index > 0 { text += word }
      addPart(part)
    }
  }

  private mutating func addPart(_ part: PredicateNode) {
    switch part {
    case .and, .or:
      text += "("
      add(part)
      text += ")"
    case .constant, .comparison, .not: add(part)
    }
  }

  private mutating func add(_ comparison: Comparison) {
    if comparison.modifier != .direct { text += comparison.modifier.rawValue + " " }
    add(comparison.left)
    text += " " + comparison.operation.rawValue
    let options =
      (comparison.ignoresCase ? "c" : "") + (comparison.ignoresDiacritics ? "d" : "")
      + (comparison.isNormalized ? "n" : "")
    if !options.isEmpty { text += "[\(options)]" }
    text += " "
    add(comparison.right)
  }
}

extension ConstantValue {
  fileprivate var isNumber: Bool {
    switch self {
    case .integer, .double: true
    default: false
    }
  }

  fileprivate var isString: Bool { if case .string = self { true } else { false } }
}

extension KeyPathStep {
  /// Whether an expression can begin with the step if SELF is omitted.
  fileprivate var isBareStart: Bool { if case .collection = self { false } else { true } }

  /// The step's text between dots.
  fileprivate var text: String {
    switch self {
    case .key(let key): key
    case .collection(let operation): operation.rawValue
    case .objectPath: "objectID.URIRepresentation.path"
    }
  }
}
