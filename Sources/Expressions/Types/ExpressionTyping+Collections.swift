// Types of collections.

import Diagnostics
import ManagedObjectModel

extension ExpressionTyping {
  mutating func aggregateType(_ members: [ExpressionNode], _ node: ExpressionNode) -> ExpressionType {
    var common = ExpressionType.null
    for member in members {
      let type = type(of: member)
      if type == .unknown { return .unknown }
      guard !type.isMany else {
        return invalid("a member of the list “\(node)” gives \(type.words)", hint: "a list holds single values")
      }
      common = unified(common, type, node)
      if common == .unknown { return .unknown }
    }
    switch common {
    case .value(let type): return .values(type)
    case .object(let entity): return .objects(entity: entity, isOrdered: true)
    default: return .values(.undefined)
    }
  }

  mutating func elementType(
    _ base: ExpressionNode, _ index: ElementIndex, _ node: ExpressionNode
  ) -> ExpressionType {
    let type = type(of: base)
    if type == .unknown { return .unknown }
    guard type.isMany, !type.isDestination else {
      return invalid("“\(node)” wants a collection, but “\(base)” gives \(type.words)")
    }
    if index == .size { return .value(.integer64) }
    switch type {
    case .objects(_, isOrdered: true): return type.member
    case .values:
      // The most frequent values are sorted.
      switch base {
      case .aggregate, .function(.mode, _): return type.member
      default: break
      }
    default: break
    }
    return invalid(
      "“\(node)” uses an index on a collection without an order",
      hint: "only ordered relationships and lists have one; @min and @max find a least and a greatest")
  }

  mutating func subqueryType(
    _ collection: ExpressionNode, _ variable: String, _ condition: PredicateNode, _ node: ExpressionNode
  ) -> ExpressionType {
    let type = type(of: collection)
    if Self.reservedVariables.contains(variable) || variables[variable] != nil {
      return invalid("the variable $\(variable) of SUBQUERY has a meaning already", hint: "choose another name")
    }
    guard case .objects(let entity, _) = type else {
      if type != .unknown {
        invalid("SUBQUERY wants a collection of objects, but “\(collection)” gives \(type.words)")
      }
      return .unknown
    }
    variables[variable] = entity
    check(condition)
    variables[variable] = nil
    return type
  }

  mutating func lookupType(
    _ lookup: InstanceLookup, _ objects: ExpressionNode, _ node: ExpressionNode
  ) -> ExpressionType {
    guard scope.place == .relationship else {
      return invalid("“\(node)” finds objects of the destination, which only a relationship takes")
    }
    // The name in `sourceRelationship` has no effect: for a renamed relationship it is the new name, and at the end of
    // a path it belongs to another entity. The objects alone decide the lookup.
    if case .entityMapping(let name) = lookup, let known = scope.entityMappings, !known.contains(name) {
      invalid(
        "there is no entity mapping “\(name)”",
        hint: "entity mappings are: " + known.sorted().prefix(20).joined(separator: ", "))
    }
    let type = type(of: objects)
    switch type {
    case .object: return .destinationObjects(lookup, isMany: false)
    case .objects, .null: return .destinationObjects(lookup, isMany: true)
    case .unknown: return .unknown
    case .value, .values, .destinationObjects:
      return invalid("“\(node)” wants objects of the source, but “\(objects)” gives \(type.words)")
    }
  }
}
