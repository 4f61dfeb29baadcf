// Key paths that stand alone in a value: no document says what they are properties of. hopd reads them as properties of
// the source object where it has them (docs/formats/expressions.md, "Variables"), and makes them `$source.…` once,
// before anything else inspects the expression.

import ManagedObjectModel

/// Gives the bare key paths of values their source object.
package struct BareKeyPaths {
  private let isProperty: (String) -> Bool
  /// The paths that were found, as they were written, each once.
  package private(set) var found: [ExpressionNode] = []

  /// For values of a mapping from the entity `source`.
  package init(model: ManagedObjectModel, source: String?) {
    let lineage = source.flatMap { model.entity(named: $0) }.map { model.lineage(of: $0) } ?? []
    isProperty = { name in lineage.contains { $0.hasProperty(named: name) } }
  }

  /// The expression with `$source` before its bare key paths.
  package mutating func named(_ node: ExpressionNode) -> ExpressionNode {
    switch node {
    case .constant, .selfObject, .variable: return node
    case .keyPath(.selfObject, let steps):
      switch steps.first {
      case .key(let name)? where isProperty(name): break
      case .objectPath?: break
      default: return node
      }
      if !found.contains(node) { found.append(node) }
      return .keyPath(.variable("source"), steps)
    case .keyPath(let base, let steps): return .keyPath(named(base), steps)
    case .function(let function, let arguments): return .function(function, named(arguments))
    case .cast(let operand, let target): return .cast(named(operand), target)
    case .ternary(let condition, let first, let second):
      return .ternary(named(condition), named(first), named(second))
    case .subquery(let collection, let variable, let condition):
      return .subquery(named(collection), variable: variable, named(condition))
    case .aggregate(let members): return .aggregate(named(members))
    case .element(let base, let index): return .element(named(base), index)
    case .arithmetic(let operation, let left, let right): return .arithmetic(operation, named(left), named(right))
    case .negated(let operand): return .negated(named(operand))
    case .destinationInstances(let lookup, let objects): return .destinationInstances(lookup, named(objects))
    case .policyMethod(let selector, let arguments): return .policyMethod(selector: selector, named(arguments))
    }
  }

  private mutating func named(_ nodes: [ExpressionNode]) -> [ExpressionNode] {
    var result: [ExpressionNode] = []
    for node in nodes { result.append(named(node)) }
    return result
  }

  private mutating func named(_ predicate: PredicateNode) -> PredicateNode {
    switch predicate {
    case .constant: return predicate
    case .comparison(var comparison):
      comparison.left = named(comparison.left)
      comparison.right = named(comparison.right)
      return .comparison(comparison)
    case .and(let parts): return .and(named(parts))
    case .or(let parts): return .or(named(parts))
    case .not(let part): return .not(named(part))
    }
  }

  private mutating func named(_ predicates: [PredicateNode]) -> [PredicateNode] {
    var result: [PredicateNode] = []
    for predicate in predicates { result.append(named(predicate)) }
    return result
  }
}
