// Which properties of which source entities the expressions of a hop read. They are distinguished by entity: a report
// must name `Dog.name` even if `Person.name` is carried, and `Car.maker` even if `Bike`, which inherits it too, keeps
// its own.

import Expressions
import ManagedObjectModel

/// Collects the properties that expressions read.
struct ReadProperties {
  /// A property of an entity, own or inherited.
  struct Property: Hashable {
    let entity: String
    let name: String
  }

  /// The entity of the objects to which an expression leads.
  private struct Objects {
    let entity: String
    /// Whether they are of this very entity: an entity mapping takes no objects of subentities.
    var isExact = false
  }

  /// Read of objects of this very entity.
  private var exact: Set<Property> = []
  /// Read of objects that may also be of a superentity or subentity.
  private var found: Set<Property> = []
  /// Read of objects whose entity is not known.
  private var loose: Set<String> = []
  private let model: ManagedObjectModel

  init(model: ManagedObjectModel) { self.model = model }

  /// Whether any of the expressions reads the property of objects of that entity.
  func reads(_ name: String, of entity: Entity) -> Bool {
    loose.contains(name) || exact.contains(Property(entity: entity.name, name: name))
      || (model.lineage(of: entity) + model.subtree(of: entity)).contains {
        found.contains(Property(entity: $0.name, name: name))
      }
  }

  /// Adds everything that an entity mapping writes into its objects; a filter only chooses objects.
  ///
  /// Properties for which `isIdle` returns true write nothing.
  mutating func add(_ mapping: ExplicitEntityMapping, isIdle: (ExplicitPropertyMapping) -> Bool) {
    let variables = variables(of: mapping)
    let read = (mapping.attributes + mapping.relationships).filter { !isIdle($0) }.compactMap(\.value)
    for node in read.flatMap(\.expressions) + mapping.grouping.expressions { add(node, variables) }
  }

  /// Adds what an entity mapping's filter reads.
  mutating func add(filterOf mapping: ExplicitEntityMapping) {
    if let filter = mapping.filter { add(filter.predicate, variables(of: mapping)) }
  }

  private func variables(of mapping: ExplicitEntityMapping) -> [String: Objects] {
    var variables = mapping.grouping.variables.mapValues { Objects(entity: $0) }
    let source = mapping.source.map { Objects(entity: $0, isExact: true) }
    variables["source"] = source
    variables[""] = source
    return variables
  }

  /// Adds an expression, and returns the objects that it leads to; nil if they are not known.
  @discardableResult
  private mutating func add(_ node: ExpressionNode, _ variables: [String: Objects]) -> Objects? {
    switch node {
    case .constant: return nil
    case .selfObject: return variables[""]
    case .variable(let name): return variables[name]
    case .keyPath(let base, let steps):
      var objects = add(base, variables)
      for step in steps {
        guard case .key(let name) = step else { continue }
        switch objects {
        case nil: loose.insert(name)
        case let owner? where owner.isExact: exact.insert(Property(entity: owner.entity, name: name))
        case let owner?: found.insert(Property(entity: owner.entity, name: name))
        }
        objects = objects.flatMap { model.relationship(name, of: $0.entity)?.destinationEntityName }
          .map { Objects(entity: $0) }
      }
      return objects
    case .function(_, let nodes), .aggregate(let nodes), .policyMethod(_, let nodes):
      var objects: Objects?
      for node in nodes { objects = add(node, variables) ?? objects }
      return objects
    case .cast(let node, _), .element(let node, _), .negated(let node), .destinationInstances(_, let node):
      return add(node, variables)
    case .ternary(let predicate, let first, let second):
      add(predicate, variables)
      let one = add(first, variables)
      return add(second, variables) ?? one
    case .subquery(let collection, let variable, let predicate):
      let members = add(collection, variables)
      var inner = variables
      inner[variable] = members
      add(predicate, inner)
      return members
    case .arithmetic(_, let left, let right):
      add(left, variables)
      add(right, variables)
      return nil
    }
  }

  private mutating func add(_ predicate: PredicateNode, _ variables: [String: Objects]) {
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
