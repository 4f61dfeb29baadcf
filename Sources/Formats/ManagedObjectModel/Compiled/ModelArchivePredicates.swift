// Predicates and expressions of an archived model, as objects of Foundation's classes (docs/formats/model-files.md,
// "Model cache archives").

import PropertyLists

extension ModelArchive {
  // MARK: Predicates

  /// Writes a predicate.
  mutating func makePredicate(_ predicate: ModelPredicate) -> Writer.Object {
    switch predicate {
    case .and(let parts): makeCompound(parts, type: 1)
    case .or(let parts): makeCompound(parts, type: 2)
    case .comparison(let left, let operation, let right):
      makeComparison(makeOperand(left), makeOperation(operation), makeOperand(right))
    }
  }

  private mutating func makeCompound(_ parts: [ModelPredicate], type: Int) -> Writer.Object {
    let parts = parts.map { Writer.Reference.object(makePredicate($0)) }
    return writer.makeObject(
      Writer.ClassName("NSCompoundPredicate", "NSPredicate"),
      [("NSCompoundPredicateType", .integer(type)), ("NSSubpredicates", .object(writer.makeList(parts)))])
  }

  /// Writes a comparison of two expressions.
  mutating func makeComparison(
    _ left: Writer.Object, _ operation: Writer.Object, _ right: Writer.Object
  ) -> Writer.Object {
    writer.makeObject(
      Writer.ClassName("NSComparisonPredicate", "NSPredicate"),
      [
        ("NSLeftExpression", .object(left)), ("NSRightExpression", .object(right)),
        ("NSPredicateOperator", .object(operation)),
      ])
  }

  private mutating func makeOperation(_ operation: ModelPredicate.Operation) -> Writer.Object {
    switch operation {
    case .equal, .notEqual:
      let isNegated = operation == .notEqual
      return writer.makeObject(
        Writer.ClassName("NSEqualityPredicateOperator", "NSPredicateOperator"),
        [
          ("NSModifier", .integer(0)), ("NSNegate", .boolean(isNegated)), ("NSOptions", .integer(0)),
          ("NSOperatorType", .integer(isNegated ? 5 : 4)),
        ])
    case .greater: return makeOrderOperation(2)
    case .contains(let ignoresCase):
      return writer.makeObject(
        Writer.ClassName("NSInPredicateOperator", "NSPredicateOperator"),
        [("NSModifier", .integer(0)), ("NSFlags", .integer(ignoresCase ? 1 : 0)), ("NSOperatorType", .integer(99))])
    }
  }

  /// Writes an operator that compares an order, by its number: 1 for at most, 2 for greater, 3 for at least.
  mutating func makeOrderOperation(_ number: Int) -> Writer.Object {
    writer.makeObject(
      Writer.ClassName("NSComparisonPredicateOperator", "NSPredicateOperator"),
      [
        ("NSModifier", .integer(0)), ("NSVariant", .integer(number)), ("NSOptions", .integer(0)),
        ("NSOperatorType", .integer(number)),
      ])
  }

  // MARK: Expressions

  private mutating func makeOperand(_ operand: ModelPredicate.Operand) -> Writer.Object {
    switch operand {
    case .path(let keys): keys == ["SELF"] ? makeSelf() : makePath(keys)
    case .variable(let name, let keys): makePath(keys, of: name)
    case .integer(let number): makeConstant(.integer(number))
    case .boolean(let flag): makeConstant(.boolean(flag))
    // Nil is a constant without a value.
    case .null: writer.makeObject(.constant, [("NSConstantValueClassName", .null), ("NSExpressionType", .integer(0))])
    }
  }

  /// Writes a constant.
  mutating func makeConstant(_ value: PropertyListValue) -> Writer.Object {
    writer.makeObject(
      .constant, [("NSConstantValue", .reference(.scalar(value))), ("NSExpressionType", .integer(0))])
  }

  /// Writes SELF.
  mutating func makeSelf() -> Writer.Object {
    if let selfExpression { return selfExpression }
    let object = writer.makeObject(
      Writer.ClassName("NSSelfExpression", "NSExpression"), [("NSExpressionType", .integer(1))])
    selfExpression = object
    return object
  }

  /// Writes the value of a key path of SELF, or of a variable; without keys, the variable itself.
  mutating func makePath(_ keys: [String], of variable: String? = nil) -> Writer.Object {
    var operand: Writer.Object?
    if let variable {
      let object = writer.makeObject(
        Writer.ClassName("NSVariableExpression", "NSExpression"),
        [("NSVariable", .text(variable)), ("NSExpressionType", .integer(2))])
      if keys.isEmpty { return object }
      operand = object
    }
    let specifier = writer.makeObject(
      Writer.ClassName("NSKeyPathSpecifierExpression", "NSExpression"),
      [("NSExpressionType", .integer(10)), ("NSKeyPath", .text(keys.joined(separator: ".")))])
    let arguments = writer.makeList([.object(specifier)], .mutableArray)
    let isOneKey = operand == nil && keys.count == 1
    return writer.makeObject(
      Writer.ClassName("NSKeyPathExpression", "NSFunctionExpression", "NSExpression"),
      [
        ("NSSelectorName", .text(isOneKey ? "valueForKey:" : "valueForKeyPath:")),
        ("NSOperand", .object(operand ?? makeSelf())), ("NSArguments", .object(arguments)),
        ("NSExpressionType", .integer(operand == nil ? 3 : 4)),
      ])
  }
}

extension KeyedArchiveWriter.ClassName {
  static let constant = Self("NSConstantValueExpression", "NSExpression")
}
