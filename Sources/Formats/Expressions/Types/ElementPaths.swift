// Key paths into composite attributes. A model holds an element as an attribute whose name is its key path
// (`CompositeAttributes.swift`), so the two keys of a path become one step here, once, before the expression is
// checked: `$source.author.year` is a path of the single step "author.year".

import ManagedObjectModel

/// Joins the keys of composites and their elements in expressions over one model.
package struct ElementPaths {
  private let model: ManagedObjectModel
  private let hasComposites: Bool
  /// The entities of SELF and of the variables, by name without `$`; SELF has the empty name.
  private var objects: [String: String]

  /// For expressions in which `$source` and SELF have the entity `source`, with further variables.
  package init(model: ManagedObjectModel, source: String?, variables: [String: String] = [:]) {
    self.model = model
    hasComposites = model.entities.contains { !$0.composites.isEmpty }
    objects = variables
    objects["source"] = source
    objects[""] = source
  }

  /// Returns the expression with joined keys.
  package func joined(_ node: ExpressionNode) -> ExpressionNode { hasComposites ? reach(node).node : node }

  /// Returns the predicate with joined keys.
  package func joined(_ predicate: PredicateNode) -> PredicateNode { hasComposites ? join(predicate) : predicate }

  /// Returns the entity of the objects that an expression reaches; nil if it reaches none.
  package func entity(of node: ExpressionNode) -> String? { reach(node).entity }

  private func reach(_ node: ExpressionNode) -> (node: ExpressionNode, entity: String?) {
    switch node {
    case .selfObject: return (node, objects[""])
    case .variable(let name): return (node, objects[name])
    case .keyPath(let base, let steps):
      let start = reach(base)
      let path = join(steps, from: start.entity)
      return (.keyPath(start.node, path.steps), path.entity)
    case .function(.noIndex, let arguments):
      let parts = arguments.map(reach)
      return (.function(.noIndex, parts.map(\.node)), parts.first?.entity)
    case .ternary(let condition, let first, let second):
      let (one, other) = (reach(first), reach(second))
      return (.ternary(join(condition), one.node, other.node), one.entity ?? other.entity)
    case .subquery(let collection, let variable, let condition):
      let members = reach(collection)
      var inner = self
      inner.objects[variable] = members.entity
      return (.subquery(members.node, variable: variable, inner.join(condition)), members.entity)
    case .element(let base, let index):
      let members = reach(base)
      return (.element(members.node, index), index == .size ? nil : members.entity)
    case .constant, .function, .cast, .aggregate, .arithmetic, .negated, .destinationInstances, .policyMethod:
      return (node.mapping { reach($0).node }, nil)
    }
  }

  private func join(_ predicate: PredicateNode) -> PredicateNode { predicate.mapping { reach($0).node } }

  private func join(_ steps: [KeyPathStep], from start: String?) -> (steps: [KeyPathStep], entity: String?) {
    var entity = start.flatMap { model.entity(named: $0) }
    var result: [KeyPathStep] = []
    var rest = steps[...]
    while let step = rest.popFirst() {
      guard case .key(let name) = step, let owner = entity else {
        // After a collection operator, the path continues from the members before it.
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
