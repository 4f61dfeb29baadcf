// Where the names of a hop with mapping models go on: which source entity an entity continues, and which properties are
// carried as they are. Layouts, costs and remarks ask for it; what rows become is decided by the expressions alone.

import Expressions
import ManagedObjectModel

extension MappedHop {
  /// The hop as a mapping of names: of each entity mapping the properties whose expression is a plain `$source.name`, or a
  /// lookup of the objects made for `$source.name`; entities without a mapping are added or removed.
  package func nameTrail(
    from source: ManagedObjectModel, to destination: ManagedObjectModel
  ) -> InferredMapping {
    var trail: [EntityMapping] = []
    var told: Set<String> = []
    for mapping in entityMappings {
      guard let to = mapping.destination, let target = destination.entity(named: to) else { continue }
      let from = mapping.source.flatMap { source.entity(named: $0) }
      let isFirst = from.map { told.insert($0.name).inserted } ?? false
      trail.append(
        EntityMapping(
          name: mapping.name, kind: from == nil ? .add : mapping.type == .copy ? .copy : .transform,
          sourceEntity: from?.name, destinationEntity: to,
          attributes: destination.storedAttributes(of: target).map { attribute in
            AttributeMapping(
              destination: attribute.name,
              source: from.flatMap { carried(attribute.name, by: mapping, of: $0, in: source) })
          },
          relationships: destination.storedRelationships(of: target).map { relationship in
            RelationshipMapping(
              destination: relationship.name,
              source: from.flatMap { pairs(relationship.name, by: mapping, of: $0, in: source) })
          },
          droppedAttributes: isFirst ? from.map { unread($0, in: source).attributes } ?? [] : [],
          droppedRelationships: isFirst ? from.map { unread($0, in: source).relationships } ?? [] : []))
    }
    let reached = Set(trail.compactMap(\.destinationEntity))
    for entity in destination.rootEntities.flatMap({ destination.subtree(of: $0) }) where !reached.contains(entity.name)
    {
      trail.append(
        EntityMapping(name: entity.name, kind: .add, sourceEntity: nil, destinationEntity: entity.name))
    }
    for entity in source.rootEntities.flatMap({ source.subtree(of: $0) }) where !told.contains(entity.name) {
      trail.append(
        EntityMapping(name: entity.name, kind: .remove, sourceEntity: entity.name, destinationEntity: nil))
    }
    return InferredMapping(
      sourceVersion: source.name, destinationVersion: destination.name, entityMappings: trail)
  }

  /// The source attribute that the expression is, and nothing else.
  private func carried(
    _ attribute: String, by mapping: ExplicitEntityMapping, of entity: Entity, in model: ManagedObjectModel
  ) -> String? {
    guard case .expression(let node)? = mapping.attributes.first(where: { $0.name == attribute })?.value,
      let name = MappedHop.plainSourceKey(node), model.allAttributes(of: entity)[name] != nil
    else { return nil }
    return name
  }

  private func pairs(
    _ relationship: String, by mapping: ExplicitEntityMapping, of entity: Entity, in model: ManagedObjectModel
  ) -> RelationshipMapping.SourcePairs? {
    guard case .expression(let node)? = mapping.relationships.first(where: { $0.name == relationship })?.value,
      case .destinationInstances(_, let argument) = node, let name = MappedHop.plainSourceKey(argument),
      model.allRelationships(of: entity)[name] != nil
    else { return nil }
    return RelationshipMapping.SourcePairs(entity: entity.name, relationship: name, isInverted: false)
  }

  /// `name` of a plain `$source.name`.
  package static func plainSourceKey(_ node: ExpressionNode) -> String? {
    guard case .keyPath(.variable("source"), let steps) = node, steps.count == 1, case .key(let name)? = steps.first
    else { return nil }
    return name
  }

  // MARK: What nobody reads

  /// Stored properties of a source entity whose names no expression of the hop mentions; none where a policy may read them.
  private func unread(
    _ entity: Entity, in model: ManagedObjectModel
  ) -> (attributes: [String], relationships: [String]) {
    guard policies.isEmpty else { return ([], []) }
    let read = mentioned
    let relationships = model.storedRelationships(of: entity).filter { relationship in
      // The pairs go on if either end is read.
      !read.contains(relationship.name) && !(relationship.inverseName.map(read.contains) ?? false)
    }
    return (
      model.storedAttributes(of: entity).map(\.name).filter { !read.contains($0) }, relationships.map(\.name)
    )
  }

  /// Every key that any expression of the hop names.
  private var mentioned: Set<String> {
    var keys = MentionedKeys()
    for mapping in entityMappings {
      if let filter = mapping.filter { keys.add(filter.predicate) }
      for property in mapping.attributes + mapping.relationships {
        switch property.value {
        case .expression(let node)?: keys.add(node)
        case .grouped(_, let nodes)?: for node in nodes { keys.add(node) }
        case .matching(_, _, let node)?: keys.add(node)
        case nil: break
        }
      }
      switch mapping.grouping {
      case .each: break
      case .distinctBy(let nodes, let keep), .deduplicate(let nodes, let keep):
        for node in nodes { keys.add(node) }
        if case .latest(let node) = keep { keys.add(node) }
      case .expand(let node, _): keys.add(node)
      }
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
