// Reads archived expressions of mapping models into trees (docs/formats/expressions.md, "Archived expressions"). The
// class decides what an object is, not the number NSExpressionType: `$source.x` has the number of a function. Shapes
// that no file has shown are refused with the class's name. Archives are graphs: depth and objects are counted, because
// one list may contain itself many times.

import Diagnostics
import ManagedObjectModel
import PropertyLists

/// Reads archived NSExpression and NSPredicate objects.
package struct ArchivedExpressionReader {
  var nodes = ExpressionLimits.archivedNodes
  var bytes = ExpressionLimits.textBytes

  /// Returns the expression of an archived object.
  package static func expression(_ object: ArchivedObject) throws(HopdError) -> ExpressionNode {
    var reader = ArchivedExpressionReader()
    return try reader.expression(object, depth: 0)
  }

  /// Returns the predicate of an archived object.
  package static func predicate(_ object: ArchivedObject) throws(HopdError) -> PredicateNode {
    var reader = ArchivedExpressionReader()
    return try reader.predicate(object, depth: 0)
  }

  /// Counts an object. Throws beyond the depth and the number that are allowed.
  mutating func count(_ object: ArchivedObject, _ depth: Int) throws(HopdError) {
    nodes -= 1
    guard depth <= ExpressionLimits.nesting, nodes >= 0 else {
      throw object.damaged(
        "the expression or predicate is nested deeper than \(ExpressionLimits.nesting) or has more than "
          + "\(ExpressionLimits.archivedNodes) parts")
    }
  }

  // MARK: Expressions

  mutating func expression(_ object: ArchivedObject, depth: Int) throws(HopdError) -> ExpressionNode {
    try count(object, depth)
    switch object.className {
    case "NSConstantValueExpression": return .constant(try constant(object))
    case "NSSelfExpression": return .selfObject
    case "NSVariableExpression": return .variable(try name(object, "NSVariable"))
    case "NSKeyPathExpression": return try keyPath(object, depth: depth)
    case "NSKeyPathSpecifierExpression": return ExpressionNode.path(.selfObject, try steps(object))
    case "NSFunctionExpression": return try function(object, depth: depth)
    default: throw unsupported(object, "expressions of class \(object.className) are not supported")
    }
  }

  /// Returns a text field that must exist.
  private mutating func text(_ object: ArchivedObject, _ field: String) throws(HopdError) -> String {
    guard let text = try object.string(field) else { throw object.damaged("\(field) is missing") }
    bytes -= text.utf8.count
    guard bytes >= 0 else {
      throw object.damaged("the expression has more than \(ExpressionLimits.textBytes) bytes of text")
    }
    return text
  }

  private mutating func name(_ object: ArchivedObject, _ field: String) throws(HopdError) -> String {
    let text = try text(object, field)
    guard KeyPathSteps.isName(text) else { throw object.damaged("\(field) is not a name") }
    return text
  }

  private mutating func steps(_ object: ArchivedObject) throws(HopdError) -> [KeyPathStep] {
    let path = try text(object, "NSKeyPath")
    let components = path.split(separator: ".", omittingEmptySubsequences: false).map { String($0) }
    for component in components {
      let name = component.utf8.first == UInt8(ascii: "@") ? String(component.dropFirst()) : component
      guard KeyPathSteps.isName(name) else { throw object.damaged("the key path “\(path)” is none") }
    }
    do {
      return try KeyPathSteps.steps(components)
    } catch {
      throw error.isUnsupported
        ? unsupported(object, "in the key path “\(path)”: \(error.message)")
        : object.damaged("in the key path “\(path)”: \(error.message)")
    }
  }

  private mutating func keyPath(_ object: ArchivedObject, depth: Int) throws(HopdError) -> ExpressionNode {
    let selector = try object.string("NSSelectorName") ?? "valueForKeyPath:"
    guard selector == "valueForKeyPath:" || selector == "valueForKey:" else {
      throw unsupported(object, "a key path by the method \(selector) is not supported")
    }
    let arguments = try object.elements("NSArguments")
    guard arguments.count == 1, let specifier = arguments[0].object,
      specifier.className == "NSKeyPathSpecifierExpression"
    else { throw object.damaged("it has no key path") }
    try count(specifier, depth + 1)
    let base: ExpressionNode =
      if let operand = try object.object("NSOperand") { try expression(operand, depth: depth + 1) } else { .selfObject }
    return ExpressionNode.path(base, try steps(specifier))
  }

  private mutating func function(_ object: ArchivedObject, depth: Int) throws(HopdError) -> ExpressionNode {
    let selector = try text(object, "NSSelectorName")
    guard let operand = try object.object("NSOperand") else { throw object.damaged("it has no receiver") }
    var arguments: [ExpressionNode] = []
    let isBuiltIn = try isUtilities(operand)
    for value in try object.elements("NSArguments") {
      guard let argument = value.object else { throw object.damaged("an argument is \(value.kind)") }
      if isBuiltIn, selector == CastTarget.selector, arguments.count == 1, let type = try className(argument) {
        arguments.append(.constant(.string(type)))
      } else {
        arguments.append(try expression(argument, depth: depth + 1))
      }
    }
    if isBuiltIn { return try builtIn(selector, arguments, object) }
    let target = try expression(operand, depth: depth + 1)
    if selector == MethodCall.appendSelector, arguments.count == 1, target != .variable("manager"),
      target != .variable("entityPolicy")
    {
      return .function(.concatenate, [target, arguments[0]])
    }
    guard case .variable(let receiver) = target else {
      throw unsupported(object, "the method \(selector) is supported for variables only")
    }
    do {
      return try MethodCall.node(receiver: receiver, selector: selector, arguments: arguments)
    } catch {
      throw error.isUnsupported
        ? unsupported(object, error.message, hint: error.hint) : object.damaged(error.message)
    }
  }

  /// Whether the operand is the receiver of the language's functions: a class, archived as a constant with the class's
  /// name.
  private func isUtilities(_ operand: ArchivedObject) throws(HopdError) -> Bool {
    try className(operand) == "_NSPredicateUtilities"
  }

  /// Returns the name of the class that a constant is; nil for all other expressions.
  private func className(_ object: ArchivedObject) throws(HopdError) -> String? {
    guard object.className == "NSConstantValueExpression",
      case .string(let name) = try object.value("NSConstantValueClassName")
    else { return nil }
    return name
  }

  private func builtIn(
    _ selector: String, _ arguments: [ExpressionNode], _ object: ArchivedObject
  ) throws(HopdError) -> ExpressionNode {
    if let operation = ArithmeticOperator(functionName: selector), arguments.count == 2 {
      return .arithmetic(operation, arguments[0], arguments[1])
    }
    // CAST is archived under its function's name (docs/formats/expressions.md, "Archived expressions").
    if selector == CastTarget.selector {
      guard arguments.count == 2, case .constant(.string(let type)) = arguments[1] else {
        throw unsupported(object, "a CAST whose type is not a name is not supported")
      }
      guard let target = CastTarget(typeName: type) else {
        throw unsupported(object, "CAST to \(type) is not supported")
      }
      return .cast(arguments[0], target)
    }
    guard let function = ExpressionFunction(rawValue: selector) else {
      throw unsupported(object, ExpressionRefusal.function(selector), hint: ExpressionRefusal.functionHint(selector))
    }
    if let problem = function.problem(ofCount: arguments.count) { throw object.damaged(problem) }
    return .function(function, arguments)
  }

  // MARK: Constants

  /// Returns a constant. nil is archived without a value (docs/formats/expressions.md, "Archived expressions").
  private mutating func constant(_ object: ArchivedObject) throws(HopdError) -> ConstantValue {
    switch try object.value("NSConstantValue") {
    case .null: return .null
    case .string: return .string(try text(object, "NSConstantValue"))
    case .integer(let number): return .integer(number)
    case .boolean(let flag): return .boolean(flag)
    case .real(let number):
      guard number.isFinite else {
        throw unsupported(object, "a constant that is not a finite number is not supported")
      }
      return .double(number)
    case .date(let seconds):
      guard seconds.isFinite else { throw object.damaged("the constant is not a date") }
      return .date(seconds)
    case .data(let content):
      bytes -= content.count
      guard bytes >= 0 else {
        throw object.damaged("the expression has more than \(ExpressionLimits.textBytes) bytes of constants")
      }
      return .data(content)
    case .object(let value):
      if value.isKind(of: "NSUUID"), case .data(let content) = try value.value("NS.uuidbytes"), content.count == 16 {
        return .uuid(content)
      }
      if let digits = try value.decimalText() { return .decimal(digits) }
      throw unsupported(object, "constants of class \(value.className) are not supported")
    }
  }

  /// Creates the error for a shape that is not supported, with the class in the message, or the alternative in the
  /// hint.
  func unsupported(_ object: ArchivedObject, _ message: String, hint: String? = nil) -> HopdError {
    var error = object.damaged(message)
    error.code = .expressionUnsupported
    error.message = message
    error.hint = hint ?? "write the mapping as text, or do this part in a policy"
    return error
  }
}
