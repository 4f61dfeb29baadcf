// Fills the gaps of a mapping model in source form as Xcode's mapping compiler does (docs/formats/mapping-models.md,
// "Compiling a source"): names, order, types, and an expression for every property that the author left to be
// generated.

import Diagnostics
import Expressions
import ManagedObjectModel
import SystemPackage

/// Compiles one mapping model against both of its models.
struct MappingCompiler {
  let source: ManagedObjectModel
  let destination: ManagedObjectModel
  private let mapping: XcodeMapping
  /// Names of the entity mappings by source entity.
  private let namesBySource: [String: [String]]

  init(_ mapping: XcodeMapping, source: ManagedObjectModel, destination: ManagedObjectModel) {
    self.mapping = mapping
    self.source = source
    self.destination = destination
    namesBySource = mapping.entityMappings.reduce(into: [:]) { names, entity in
      if let source = entity.source { names[source, default: []].append(Self.name(of: entity)) }
    }
  }

  /// Returns the entity mappings in the order of execution.
  func entityMappings(at place: Place) throws(HopdError) -> [ExplicitEntityMapping] {
    var result: [ExplicitEntityMapping] = []
    for entity in mapping.entityMappings {
      var here = place
      here.line = entity.line
      let origin = entity.source.flatMap { source.entity(named: $0) }
      result.append(
        ExplicitEntityMapping(
          name: Self.name(of: entity),
          type: .compiled(
            policy: entity.policy, source: entity.source, destination: entity.destination, from: source, to: destination
          ), source: entity.source,
          destination: entity.destination, policy: entity.policy, userInfo: entity.userInfo,
          filter: try entity.filter.map { text throws(HopdError) in
            try SourceFilter(text: text, at: here.filled(from: Place(entity: entity.source)))
          },
          attributes: entity.attributes.sortedByBytes(of: \.name).map {
            ExplicitPropertyMapping(name: $0.name, value: attribute($0, origin).map { .expression($0) })
          },
          relationships: entity.relationships.sortedByBytes(of: \.name).map {
            ExplicitPropertyMapping(name: $0.name, value: relationship($0, origin).map { .expression($0) })
          }))
    }
    return result
  }

  /// Returns the author's name, otherwise `<Source>To<Destination>`, otherwise the name of the only entity.
  static func name(of entity: XcodeEntityMapping) -> String {
    entity.name ?? [entity.source, entity.destination].compactMap(\.self).joined(separator: "To")
  }

  // MARK: Expressions

  private func attribute(_ property: XcodePropertyMapping, _ origin: Entity?) -> ExpressionNode? {
    if let expression = property.expression { return expression }
    // A transient attribute has no value in any store.
    guard let origin,
      (source.allAttributes(of: origin)[property.name] ?? source.allComposites(of: origin)[property.name])?.isTransient
        == false
    else { return nil }
    return .ofSource(property.name)
  }

  private func relationship(_ property: XcodePropertyMapping, _ origin: Entity?) -> ExpressionNode? {
    if let expression = property.expression { return expression }
    let objects = property.sourceKeyPath ?? .ofSource(property.name)
    if let name = property.sourceMapping { return .destinationInstances(.entityMapping(name), objects) }
    guard property.isGenerated || property.sourceKeyPath != nil, let origin,
      let target = property.sourceKeyPath.map({ destination(of: $0, from: origin) })
        ?? source.allRelationships(of: origin)[property.name]?.destinationEntityName
    else { return nil }
    if let entity = source.entity(named: target), source.subentities(of: entity).isEmpty,
      let names = namesBySource[target], names.count == 1
    {
      return .destinationInstances(.entityMapping(names[0]), objects)
    }
    // The objects have several entities, or one entity with several mappings: each object's own entity decides.
    return .destinationInstances(.sourceRelationship(property.name), objects)
  }

  /// Returns the entity at the end of a key path that begins at the source object; nil if not every step is a
  /// relationship.
  private func destination(of node: ExpressionNode, from origin: Entity) -> String? {
    guard case .keyPath(.variable("source"), let steps) = node else {
      return node == .variable("source") ? origin.name : nil
    }
    var entity = origin
    for step in steps {
      guard case .key(let name) = step, let relationship = source.allRelationships(of: entity)[name],
        let next = source.entity(named: relationship.destinationEntityName)
      else { return nil }
      entity = next
    }
    return entity.name
  }
}

extension SourceFilter {
  /// Parses a predicate text.
  init(text: String, at place: Place) throws(HopdError) {
    self.init(text: text, predicate: try ExpressionParser.predicate(text, at: place))
  }
}
