// Key paths into composite attributes. A model holds an element as an attribute whose name is its key path
// (`CompositeAttributes.swift`), so the two keys of a path become one step here, once, before anything else inspects
// the expression: `$source.author.year` is a path of the single step "author.year".

import ManagedObjectModel

/// Joins the keys of composites and their elements in expressions over one model.
package struct ElementPaths {
  private let model: ManagedObjectModel
  private let hasComposites: Bool
  /// Entities of SELF and of the variables, by name without `$`; SELF has no name.
  private var objects: [String: String]

  /// For expressions where `$source` and SELF are of the entity `source`, and further variables of theirs.
  package init(model: ManagedObjectModel, source: String?, variables: [String: String] = [:]) {
    self.model = model
    hasComposites = model.entities.contains { !$0.composites.isEmpty }
    objects = variables
    objects["source"] = source
    objects[""] = source
  }

  /// The expression with joined keys.
  package func joined(_ node: ExpressionNode) -> ExpressionNode { hasComposites ? reach(node).node : node }

  /// The predicate with joined keys.
  package func joined(_ predicate: PredicateNode) -> PredicateNode { hasComposites ? join(predicate) : predicate }

  /// The entity of the objects that an expression reaches; nil where it reaches none.
  package func entity(of node: ExpressionNode) -> String? { reach(node).entity }

  private func reach(_ node: ExpressionNode) -> (node: ExpressionNode, entity: String?) {
    switch node {
    case .constant: return (node, nil)
    case .selfObject: return (node, objects[""])
    case .variable(let name): return (node, objects[name])
    case .keyPath(let base, let steps):
      let start = reach(base)
      let path = join(steps, from: start.entity)
      return (.keyPath(start.node, path.steps), path.entity)
    case .function(let function, let arguments):
      let parts = arguments.map(reach)
      return (.function(function, parts.map(\.node)), function == .noIndex ? parts.first?.entity : nil)
    case .cast(let operand, let target): return (.cast(reach(operand).node, target), nil)
    case .ternary(let condition, let first, let second):
      let (one, other) = (reach(first), reach(second))
      return (.ternary(join(condition), one.node, other.node), one.entity ?? other.entity)
    case .subquery(let collection, let variable, let condition):
      let members = reach(collection)
      var inner = self
      inner.objects[variable] = members.entity
      return (.subquery(members.node, variable: variable, inner.join(condition)), members.entity)
    case .aggregate(let members): return (.aggregate(members.map { reach($0).node }), nil)
    case .element(let base, let index):
      let members = reach(base)
      return (.element(members.node, index), index == .size ? nil : members.entity)
    case .arithmetic(let operation, let left, let right):
      return (.arithmetic(operation, reach(left).node, reach(right).node), nil)
    case .negated(let operand): return (.negated(reach(operand).node), nil)
    case .destinationInstances(let lookup, let objects):
      return (.destinationInstances(lookup, reach(objects).node), nil)
    case .policyMethod(let selector, let arguments):
      return (.policyMethod(selector: selector, arguments.map { reach($0).node }), nil)
    }
  }

  private func join(_ predicate: PredicateNode) -> PredicateNode {
    switch predicate {
    case .constant: return predicate
    case .comparison(var comparison):
      comparison.left = reach(comparison.left).node
      comparison.right = reach(comparison.right).node
      return .comparison(comparison)
    case .and(let parts): return .and(parts.map(join))
    case .or(let parts): return .or(parts.map(join))
    case .not(let part): return .not(join(part))
    }
  }

  private func join(_ steps: [KeyPathStep], from start: String?) -> (steps: [KeyPathStep], entity: String?) {
    var entity = start.flatMap { model.entity(named: $0) }
    var result: [KeyPathStep] = []
    var rest = steps[...]
    while let step = rest.popFirst() {
      guard case .key(let name) = step, let owner = entity else {
        // A collection operator continues with the members that are before it.
        if case .objectPath = step { entity = nil }
        result.append(step)
        continue
      }
      if model.allComposites(of: owner)[name] != nil, case .key(let element)? = rest.first {
        rest = rest.dropFirst()
        result.append(.key("\(name).\(element)"))
        entity = nil
      } else {
        result.append(step)
        entity = model.allRelationships(of: owner)[name].flatMap { model.entity(named: $0.destinationEntityName) }
      }
    }
    return (result, entity?.name)
  }
}
