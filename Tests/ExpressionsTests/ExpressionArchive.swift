// Archived expressions built by hand, in the shapes that Apple's editor writes (measured in mapping models).

import Diagnostics
import Expressions
import PropertyLists

/// Builds an archive; object 0 is `$null`.
final class ExpressionArchive {
  private var objects: [PropertyListValue] = [.string("$null")]
  private var classes: [String: UInt64] = [:]

  private static let superclasses: [String: [String]] = [
    "NSKeyPathExpression": ["NSFunctionExpression", "NSExpression"], "NSFunctionExpression": ["NSExpression"],
    "NSMutableArray": ["NSArray"], "NSDecimalNumber": ["NSNumber", "NSValue"],
  ]

  func value(_ value: PropertyListValue) -> PropertyListValue {
    objects.append(value)
    return .uid(UInt64(objects.count - 1))
  }

  func text(_ text: String) -> PropertyListValue { value(.string(text)) }

  func object(_ name: String, _ fields: [String: PropertyListValue] = [:]) -> PropertyListValue {
    if classes[name] == nil {
      let lineage = [name] + (Self.superclasses[name] ?? ["NSExpression"]) + ["NSObject"]
      _ = value(.dictionary(["$classname": .string(name), "$classes": .array(lineage.map { .string($0) })]))
      classes[name] = UInt64(objects.count - 1)
    }
    return value(.dictionary(fields.merging(["$class": .uid(classes[name] ?? 0)]) { _, new in new }))
  }

  func list(_ members: [PropertyListValue], mutable: Bool = false) -> PropertyListValue {
    object(mutable ? "NSMutableArray" : "NSArray", ["NS.objects": .array(members)])
  }

  func archived(_ root: PropertyListValue) throws -> ArchivedObject {
    let list = PropertyListValue.dictionary([
      "$archiver": .string("NSKeyedArchiver"), "$version": .integer(100_000), "$top": .dictionary(["root": root]),
      "$objects": .array(objects),
    ])
    return try KeyedArchive.decode(PropertyList.encodeBinary(list)).root()
  }

  // MARK: Expressions

  func constant(_ value: PropertyListValue?) -> PropertyListValue {
    var fields: [String: PropertyListValue] = ["NSExpressionType": .integer(0), "NSConstantValueClassName": .uid(0)]
    fields["NSConstantValue"] = value
    return object("NSConstantValueExpression", fields)
  }

  /// Returns a class as a constant, as the receivers of built-in functions are archived.
  func classConstant(_ name: String) -> PropertyListValue {
    object("NSConstantValueExpression", ["NSExpressionType": .integer(0), "NSConstantValueClassName": text(name)])
  }

  func variable(_ name: String) -> PropertyListValue {
    object("NSVariableExpression", ["NSExpressionType": .integer(2), "NSVariable": text(name)])
  }

  var myself: PropertyListValue { object("NSSelfExpression", ["NSExpressionType": .integer(1)]) }

  func path(_ base: PropertyListValue, _ path: String, selector: String = "valueForKeyPath:") -> PropertyListValue {
    let specifier = object(
      "NSKeyPathSpecifierExpression", ["NSExpressionType": .integer(10), "NSKeyPath": text(path)])
    return object(
      "NSKeyPathExpression",
      [
        "NSExpressionType": .integer(4), "NSOperand": base, "NSSelectorName": text(selector),
        "NSArguments": list([specifier], mutable: true),
      ])
  }

  func function(_ receiver: PropertyListValue, _ selector: String, _ arguments: [PropertyListValue])
    -> PropertyListValue
  {
    object(
      "NSFunctionExpression",
      [
        "NSExpressionType": .integer(4), "NSOperand": receiver, "NSSelectorName": text(selector),
        "NSArguments": list(arguments),
      ])
  }

  func builtIn(_ selector: String, _ arguments: [PropertyListValue]) -> PropertyListValue {
    let receiver = object(
      "NSConstantValueExpression",
      ["NSExpressionType": .integer(0), "NSConstantValueClassName": text("_NSPredicateUtilities")])
    return function(receiver, selector, arguments)
  }

  // MARK: Predicates

  func comparison(
    _ left: PropertyListValue, _ operation: Int64, _ right: PropertyListValue, negated: Bool = false,
    modifier: Int64 = 0, options: Int64 = 0
  ) -> PropertyListValue {
    let kind = object(
      operation == 4 || operation == 5 ? "NSEqualityPredicateOperator" : "NSComparisonPredicateOperator",
      [
        "NSOperatorType": .integer(operation), "NSNegate": .boolean(negated), "NSModifier": .integer(modifier),
        "NSOptions": .integer(options),
      ])
    return object(
      "NSComparisonPredicate",
      ["NSPredicateOperator": kind, "NSLeftExpression": left, "NSRightExpression": right])
  }

  func compound(_ type: Int64, _ parts: [PropertyListValue]) -> PropertyListValue {
    object("NSCompoundPredicate", ["NSCompoundPredicateType": .integer(type), "NSSubpredicates": list(parts)])
  }
}
