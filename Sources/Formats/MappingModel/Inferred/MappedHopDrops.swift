// The drops of a mapped hop: source entities that no entity mapping takes, and source properties that no expression
// reads. A plan counts their rows and values before any row is migrated.

import Expressions
import ManagedObjectModel

extension MappedHop {
  /// Returns the name trail with the drops of the whole hop: a property that any expression reads is not dropped, and
  /// each drop is reported once, however many mappings an entity has.
  package func trail(from source: ManagedObjectModel, to destination: ManagedObjectModel) -> InferredMapping {
    let names = nameTrail(source: source, destination: destination)
    let taken = Set(entityMappings.compactMap(\.source))
    var reported: Set<String> = []
    let mappings = names.entityMappings.compactMap { mapping -> EntityMapping? in
      guard let name = mapping.sourceEntity, let entity = source.entity(named: name) else { return mapping }
      if mapping.destinationEntity == nil, taken.contains(name) { return nil }
      let isFirst = reported.insert(name).inserted && mapping.destinationEntity != nil
      var copy = mapping
      (copy.droppedAttributes, copy.droppedRelationships) = isFirst ? unread(entity, in: source) : ([], [])
      return copy
    }
    return InferredMapping(
      sourceVersion: names.sourceVersion, destinationVersion: names.destinationVersion, entityMappings: mappings)
  }

  /// Returns the stored properties of a source entity whose names no expression of the hop contains; none if the hop
  /// has policies, which may read them.
  private func unread(
    _ entity: Entity, in model: ManagedObjectModel
  ) -> (attributes: [String], relationships: [String]) {
    guard policies.isEmpty else { return ([], []) }
    let read = mentioned
    let relationships = model.storedRelationships(of: entity).filter { relationship in
      // The pairs continue if either end is read.
      !read.contains(relationship.name)
        && !(model.inverse(of: relationship).map { read.contains($0.relationship.name) } ?? false)
    }
    return (model.storedAttributes(of: entity).map(\.name).filter { !read.contains($0) }, relationships.map(\.name))
  }

  /// Every key in any expression of the hop.
  private var mentioned: Set<String> {
    var keys = MentionedKeys()
    for mapping in entityMappings {
      if let filter = mapping.filter { keys.add(filter.predicate) }
      let values = (mapping.attributes + mapping.relationships).compactMap(\.value)
      for node in values.flatMap(\.expressions) + mapping.grouping.expressions { keys.add(node) }
    }
    return keys.names
  }
}

/// The keys in a tree.
private struct MentionedKeys {
  private(set) var names: Set<String> = []

  mutating func add(_ node: ExpressionNode) {
    switch node {
    case .constant, .selfObject, .variable: break
    case .keyPath(let base, let steps):
      add(base)
      for case .key(let name) in steps { names.insert(name) }
    case .function(_, let nodes), .aggregate(let nodes), .policyMethod(_, let nodes):
      for node in nodes { add(node) }
    case .cast(let node, _), .element(let node, _), .negated(let node): add(node)
    case .ternary(let predicate, let first, let second):
      add(predicate)
      add(first)
      add(second)
    case .subquery(let collection, _, let predicate):
      add(collection)
      add(predicate)
    case .arithmetic(_, let left, let right):
      add(left)
      add(right)
    case .destinationInstances(let lookup, let node):
      if case .sourceRelationship(let name) = lookup { names.insert(name) }
      add(node)
    }
  }

  mutating func add(_ predicate: PredicateNode) {
    switch predicate {
    case .constant: break
    case .comparison(let comparison):
      add(comparison.left)
      add(comparison.right)
    case .and(let parts), .or(let parts): for part in parts { add(part) }
    case .not(let part): add(part)
    }
  }
}
