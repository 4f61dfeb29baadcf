// Builds keyed archives of models by hand, in the shape that Apple's compiler and frameworks write.

import PropertyLists

/// An archive under construction. Objects are numbered in the order in which they are added; a number can be reserved.
final class ArchiveBuilder {
  private var objects: [PropertyListValue] = [.string("$null")]
  private var classes: [String: UInt64] = [:]

  static let superclasses: [String: [String]] = [
    "NSMutableDictionary": ["NSDictionary"], "NSMutableArray": ["NSArray"], "NSMutableSet": ["NSSet"],
    "NSDerivedAttributeDescription": ["NSAttributeDescription", "NSPropertyDescription"],
    "NSCompositeAttributeDescription": ["NSAttributeDescription", "NSPropertyDescription"],
    "NSAttributeDescription": ["NSPropertyDescription"], "NSRelationshipDescription": ["NSPropertyDescription"],
    "NSFetchedPropertyDescription": ["NSPropertyDescription"],
    "NSKeyPathExpression": ["NSFunctionExpression", "NSExpression"],
    "NSFunctionExpression": ["NSExpression"], "NSSelfExpression": ["NSExpression"],
    "NSConstantValueExpression": ["NSExpression"], "NSKeyPathSpecifierExpression": ["NSExpression"],
    "NSVariableExpression": ["NSExpression"],
    "NSComparisonPredicate": ["NSPredicate"], "NSCompoundPredicate": ["NSPredicate"],
    "NSKnownKeysDictionary1": ["NSKnownKeysDictionary", "NSMutableDictionary", "NSDictionary"],
  ]

  /// Reserves a number for an object that is added later.
  func reserve() -> PropertyListValue {
    objects.append(.string("$null"))
    return .uid(UInt64(objects.count - 1))
  }

  /// A plain value as an object of its own.
  func value(_ value: PropertyListValue) -> PropertyListValue {
    objects.append(value)
    return .uid(UInt64(objects.count - 1))
  }

  func text(_ text: String) -> PropertyListValue { value(.string(text)) }

  /// An object of a class; at a reserved number if one is given.
  @discardableResult
  func object(
    _ name: String, _ fields: [String: PropertyListValue] = [:], at reserved: PropertyListValue? = nil
  ) -> PropertyListValue {
    let number: UInt64
    if let known = classes[name] {
      number = known
    } else {
      let lineage = [name] + (Self.superclasses[name] ?? []) + ["NSObject"]
      objects.append(
        .dictionary(["$classname": .string(name), "$classes": .array(lineage.map { .string($0) })]))
      number = UInt64(objects.count - 1)
      classes[name] = number
    }
    let result = PropertyListValue.dictionary(fields.merging(["$class": .uid(number)]) { _, new in new })
    if case .uid(let place)? = reserved {
      objects[Int(place)] = result
      return .uid(place)
    }
    return value(result)
  }

  func list(_ elements: [PropertyListValue], _ name: String = "NSArray") -> PropertyListValue {
    object(name, ["NS.objects": .array(elements)])
  }

  func map(_ entries: [(String, PropertyListValue)], _ name: String = "NSMutableDictionary") -> PropertyListValue {
    object(name, ["NS.keys": .array(entries.map { text($0.0) }), "NS.objects": .array(entries.map(\.1))])
  }

  /// The bytes of the archive with `root` on top.
  func bytes(root: PropertyListValue) -> [UInt8] {
    PropertyList.encodeBinary(
      .dictionary([
        "$archiver": .string("NSKeyedArchiver"), "$version": .integer(100_000), "$top": .dictionary(["root": root]),
        "$objects": .array(objects),
      ]))
  }

  // MARK: Models

  func attribute(_ name: String, _ type: Int64, _ fields: [String: PropertyListValue] = [:]) -> PropertyListValue {
    property("NSAttributeDescription", name, fields.merging(["NSAttributeType": .integer(type)]) { old, _ in old })
  }

  func property(_ kind: String, _ name: String, _ fields: [String: PropertyListValue]) -> PropertyListValue {
    object(kind, fields.merging(["NSPropertyName": text(name), "_P": .integer(129)]) { old, _ in old })
  }

  func entity(
    _ name: String, _ properties: [(String, PropertyListValue)], _ fields: [String: PropertyListValue] = [:],
    at place: PropertyListValue? = nil
  ) -> PropertyListValue {
    object(
      "NSEntityDescription",
      fields.merging(["NSEntityName": text(name), "NSProperties": map(properties)]) { old, _ in old }, at: place)
  }

  /// The bytes of a model with these entities.
  func model(
    _ entities: [(String, PropertyListValue)], _ fields: [String: PropertyListValue] = [:]
  ) -> [UInt8] {
    bytes(
      root: object(
        "NSManagedObjectModel",
        fields.merging([
          "NSEntities": map(entities), "NSVersionIdentifiers": list([text("")], "NSSet"),
          "NSFetchRequestTemplates": .uid(0),
        ]) { old, _ in old }))
  }

  // MARK: Expressions

  func keyPath(_ path: String, of operand: PropertyListValue? = nil) -> PropertyListValue {
    object(
      "NSKeyPathExpression",
      [
        "NSOperand": operand ?? object("NSSelfExpression", ["NSExpressionType": .integer(1)]),
        "NSArguments": list([object("NSKeyPathSpecifierExpression", ["NSKeyPath": text(path)])]),
        "NSSelectorName": text("valueForKeyPath:"),
      ])
  }

  func function(_ selector: String, _ arguments: [PropertyListValue]) -> PropertyListValue {
    object(
      "NSFunctionExpression",
      [
        "NSOperand": object("NSConstantValueExpression", ["NSConstantValueClassName": text("_NSPredicateUtilities")]),
        "NSSelectorName": text(selector), "NSArguments": list(arguments),
      ])
  }

  func comparison(
    _ left: PropertyListValue, _ operation: Int64, _ right: PropertyListValue
  ) -> PropertyListValue {
    object(
      "NSComparisonPredicate",
      [
        "NSLeftExpression": left,
        "NSRightExpression": object("NSConstantValueExpression", ["NSConstantValue": right]),
        "NSPredicateOperator": object(
          "NSComparisonPredicateOperator", ["NSOperatorType": .integer(operation), "NSModifier": .integer(0)]),
      ])
  }
}
