// Checks an expression against the model and its place, before any row is read: an error that every row would have is
// reported here, by name. All findings of one expression are reported together.

import Diagnostics
import ManagedObjectModel
import PersistentStore

/// Checks expressions and predicates, and returns their types.
package struct ExpressionChecker: Sendable {
  /// The context of the expressions.
  package let scope: ExpressionScope

  /// Creates a checker for one context.
  package init(_ scope: ExpressionScope) { self.scope = scope }

  /// Returns the static type of an expression; `unknown` if it is wrong. `variables` are those of the enclosing
  /// SUBQUERYs, with the entity of their objects.
  package func type(of node: ExpressionNode, variables: [String: String] = [:]) -> ExpressionType {
    var typing = ExpressionTyping(scope, variables: variables)
    return typing.type(of: node)
  }

  /// Checks a predicate: a filter, or the condition in a value.
  package func check(_ predicate: PredicateNode) throws(HopdError) {
    var typing = ExpressionTyping(scope)
    typing.check(predicate)
    try typing.finish(at: Place(entity: scope.place == .sourceFilter ? scope.sourceEntity : nil))
  }

  /// Checks the value of a destination attribute. Transient and derived attributes are not written, so any value is
  /// accepted.
  ///
  /// If a policy makes the objects, a plain attribute of the source may have another type: apps write policies to
  /// convert such values, and leave the expression that Xcode has generated. A row in which the value remains is an
  /// error of the row.
  package func check(_ node: ExpressionNode, for attribute: Attribute) throws(HopdError) {
    guard !attribute.isTransient, !attribute.isDerived else { return }
    var typing = ExpressionTyping(scope)
    let type = typing.type(of: node)
    if typing.findings.isEmpty, !isLeftToPolicy(node, type) { typing.checkFit(of: type, node, to: attribute) }
    try typing.finish(at: Place(property: attribute.name))
  }

  private func isLeftToPolicy(_ node: ExpressionNode, _ type: ExpressionType) -> Bool {
    guard scope.hasPolicy, case .value = type, case .keyPath(.variable("source"), let steps) = node, steps.count == 1
    else { return false }
    return true
  }

  /// Checks the objects of a destination relationship. Several objects for a to-one are an error of the row.
  package func check(_ node: ExpressionNode, forRelationship relationship: Relationship) throws(HopdError) {
    guard !relationship.isTransient else { return }
    var typing = ExpressionTyping(scope)
    let type = typing.type(of: node)
    if typing.findings.isEmpty { typing.checkFit(of: type, node, toRelationship: relationship.name) }
    try typing.finish(at: Place(property: relationship.name))
  }

  /// Checks a value that identifies, distinguishes or orders objects. Returns its type; nil for the constant nil.
  @discardableResult
  package func checkKey(_ node: ExpressionNode) throws(HopdError) -> AttributeType? {
    var typing = ExpressionTyping(scope)
    let type = typing.type(of: node)
    var result: AttributeType?
    switch type {
    case .value(let value) where [.number, .string, .date, .uuid, .uri].contains(value.kind): result = value
    case .null, .unknown: break
    default:
      if typing.findings.isEmpty {
        typing.invalid("“\(node)” is \(type.words), which is not a key", hint: "pass a single value as the key")
      }
    }
    try typing.finish(at: Place())
    return result
  }

  /// Checks a collection of source objects: the members of an expanding mapping. Returns their entity.
  @discardableResult
  package func checkCollection(_ node: ExpressionNode) throws(HopdError) -> String {
    var typing = ExpressionTyping(scope)
    let type = typing.type(of: node)
    var result = ""
    if case .objects(let entity, _) = type {
      result = entity
    } else if typing.findings.isEmpty {
      typing.invalid("“\(node)” is \(type.words)", hint: "pass a to-many relationship, such as $source.items")
    }
    try typing.finish(at: Place())
    return result
  }
}

extension ExpressionTyping {
  /// Checks whether a value of that type fits the attribute. All numbers are one class, NSNumber.
  mutating func checkFit(of type: ExpressionType, _ node: ExpressionNode, to attribute: Attribute) {
    switch type {
    case .null, .unknown: return
    case .value(let value):
      guard value != attribute.type else { break }
      let (given, wanted) = (value.kind, attribute.type.kind)
      guard given == wanted, wanted != .other else {
        invalid(
          "“\(node)” is \(given.words), but \(attribute.name) is \(attributeWords(attribute))",
          hint: conversionHint(node, from: given, to: attribute.type))
        return
      }
    case .values, .object, .objects, .destinationObjects:
      invalid(
        "“\(node)” is \(type.words), but \(attribute.name) is \(attributeWords(attribute))",
        hint: type.isMany ? "write an operator such as @count, @max or [FIRST]: an attribute has one value" : nil)
      return
    }
    if case .constant(.integer(let number)) = node, let range = attribute.type.integers, !range.contains(number) {
      invalid("\(number) does not fit \(attribute.name), which is \(attributeWords(attribute))")
    }
    if case .constant(.double(let number)) = node, attribute.type.integers != nil, number != number.rounded(.towardZero)
    {
      invalid("\(number) has a fraction, and \(attribute.name) is \(attributeWords(attribute))")
    }
  }

  private func attributeWords(_ attribute: Attribute) -> String {
    attribute.type == .undefined ? "without a type" : "of type \(attribute.type.name)"
  }

  private func conversionHint(_ node: ExpressionNode, from: ValueKind, to type: AttributeType) -> String {
    let target: CastTarget? =
      switch (from, type.kind) {
      case (.number, .string), (.uuid, .string): .string
      case (.string, .number), (.date, .number): type == .decimal ? .decimal : .number
      case (.number, .date): .date
      default: nil
      }
    if let target { return "write CAST(\(node), '\(target.rawValue)')" }
    return "use a policy; no CAST supports this conversion"
  }

  /// Checks whether a relationship can be set to these objects.
  mutating func checkFit(of type: ExpressionType, _ node: ExpressionNode, toRelationship name: String) {
    switch type {
    case .null, .unknown, .destinationObjects: return
    case .object, .objects:
      invalid(
        "“\(node)” gives objects of the source, but \(name) needs those that were made for them",
        hint: "write FUNCTION($manager, \"\(InstanceLookup.entityMappingSelector)\", \"<mapping>\", \(node))")
    case .value, .values: invalid("“\(node)” is \(type.words), but \(name) is a relationship", hint: nil)
    }
  }
}
