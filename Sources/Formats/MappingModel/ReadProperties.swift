// Which properties of which source entities the expressions of a hop read. Unlike the drops of a plan, which go by name
// alone (`MappedHopDrops`), they are distinguished by entity: a report must name `Dog.name` even if `Person.name` is
// carried.

import Expressions
import ManagedObjectModel

/// Collects the properties that expressions read.
struct ReadProperties {
  /// A property of an entity, own or inherited.
  struct Property: Hashable {
    let entity: String
    let name: String
  }

  private(set) var found: Set<Property> = []
  private let model: ManagedObjectModel

  init(model: ManagedObjectModel) { self.model = model }

  /// Whether any of the expressions reads the property of objects of that entity.
  func reads(_ name: String, of entity: Entity) -> Bool {
    (model.lineage(of: entity) + model.subtree(of: entity)).contains {
      found.contains(Property(entity: $0.name, name: name))
    }
  }

  /// Adds everything that an entity mapping writes into its objects; a filter only chooses objects.
  ///
  /// Properties for which `isIdle` returns true write nothing.
  mutating func add(_ mapping: ExplicitEntityMapping, isIdle: (ExplicitPropertyMapping) -> Bool) {
    var variables = mapping.grouping.variables
    variables["source"] = mapping.source ?? ""
    variables[""] = mapping.source ?? ""
    let read = (mapping.attributes + mapping.relationships).filter { !isIdle($0) }.compactMap(\.value)
    for node in read.flatMap(\.expressions) + mapping.grouping.expressions { add(node, variables) }
  }

  /// Adds an expression, and returns the entity of the objects that it leads to.
  @discardableResult
  private mutating func add(_ node: ExpressionNode, _ variables: [String: String]) -> String? {
    switch node {
    case .constant: return nil
    case .selfObject: return variables[""]
    case .variable(let name): return variables[name]
    case .keyPath(let base, let steps):
      var entity = add(base, variables)
      for step in steps {
        guard case .key(let name) = step else { continue }
        if let owner = entity { found.insert(Property(entity: owner, name: name)) }
        entity = entity.flatMap { model.relationship(name, of: $0)?.destinationEntityName }
      }
      return entity
    case .function(_, let nodes), .aggregate(let nodes), .policyMethod(_, let nodes):
      var entity: String?
      for node in nodes { entity = add(node, variables) ?? entity }
      return entity
    case .cast(let node, _), .element(let node, _), .negated(let node), .destinationInstances(_, let node):
      return add(node, variables)
    case .ternary(let predicate, let first, let second):
      add(predicate, variables)
      let one = add(first, variables)
      return add(second, variables) ?? one
    case .subquery(let collection, let variable, let predicate):
      let members = add(collection, variables)
      add(predicate, variables.merging([variable: members ?? ""]) { _, new in new })
      return members
    case .arithmetic(_, let left, let right):
      add(left, variables)
      add(right, variables)
      return nil
    }
  }

  private mutating func add(_ predicate: PredicateNode, _ variables: [String: String]) {
    switch predicate {
    case .constant: break
    case .comparison(let comparison):
      add(comparison.left, variables)
      add(comparison.right, variables)
    case .and(let parts), .or(let parts): for part in parts { add(part, variables) }
    case .not(let part): add(part, variables)
    }
  }
}
