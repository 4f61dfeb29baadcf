// What a look-up of destination objects can find, as far as both models show. Core Data evaluates an expression for one
// object after the other and refuses an object that a relationship cannot hold; an expression that finds none is valid.
// So nothing is refused here: certain and doubtful findings are reported, and the rows decide (docs/decisions/0066).

import Diagnostics
import Expressions
import ManagedObjectModel

/// Checks look-ups among all entity mappings of a hop.
struct LookupReach {
  /// A finding about a look-up that needs no rows.
  enum Finding: Sendable, Hashable {
    /// It never finds an object; the reason follows "because".
    case nothing(String)
    /// It finds only objects that the relationship cannot hold; the reason follows "because".
    case unfit(String)
  }

  let mappings: [ExplicitEntityMapping]
  let source: ManagedObjectModel
  let destination: ManagedObjectModel

  /// Returns the problem of a relationship's look-up; nil if it may find objects that fit, or if there is no look-up.
  func finding(_ property: ExplicitPropertyMapping, of mapping: ExplicitEntityMapping) -> Finding? {
    guard let value = property.value,
      let relationship = mapping.destination.flatMap({ destination.relationship(property.name, of: $0) })
    else { return nil }
    switch value {
    case .expression(.destinationInstances(let lookup, let objects)):
      let reached = reached(objects, from: mapping)
      switch lookup {
      case .entityMapping(let name):
        return mappings.first { $0.name == name }.flatMap { finding($0, reached: reached, relationship) }
      case .sourceRelationship:
        guard let reached else { return nil }
        let makers = mappings.filter { target in
          target.source.map { reached.entities.contains($0) } == true
            && (target.policy != nil || fits(target, relationship))
        }
        return makers.isEmpty
          ? .nothing(
            "no entity mapping creates objects of \(relationship.destinationEntityName) of objects of \(reached.name)")
          : nil
      }
    case .grouped(let name, _):
      return mappings.first { $0.name == name }.flatMap { finding($0, reached: nil, relationship) }
    case .expression, .matching: return nil
    }
  }

  private func finding(
    _ target: ExplicitEntityMapping, reached: (name: String, entities: Set<String>)?, _ relationship: Relationship
  ) -> Finding? {
    if target.deadness != nil { return .nothing("“\(target.name)” has no effect") }
    guard let origin = target.source else {
      return target.policy == nil ? .nothing("“\(target.name)” has no source, so it makes nothing of any object") : nil
    }
    if target.destination == nil { return .nothing("“\(target.name)” creates no objects") }
    if source.entity(named: origin)?.isAbstract == true {
      return .nothing("“\(target.name)” starts at the abstract entity \(origin), which has no objects of its own")
    }
    if let reached, !reached.entities.contains(origin) {
      return .nothing("it asks for objects of \(reached.name), and “\(target.name)” takes those of \(origin)")
    }
    // A policy may make objects of other entities than its mapping names.
    if target.policy == nil, !fits(target, relationship) {
      return .unfit(
        "“\(target.name)” creates objects of \(target.destination ?? ""), and the destination of the relationship is "
          + relationship.destinationEntityName)
    }
    return nil
  }

  private func fits(_ mapping: ExplicitEntityMapping, _ relationship: Relationship) -> Bool {
    mapping.destination.map { destination.isEntity($0, within: relationship.destinationEntityName) } ?? false
  }

  /// Returns the entity of the objects that an expression reaches, and all entities that such an object may have; nil
  /// if the models do not show it.
  private func reached(
    _ objects: ExpressionNode, from mapping: ExplicitEntityMapping
  ) -> (name: String, entities: Set<String>)? {
    let paths = ElementPaths(model: source, source: mapping.source, variables: mapping.grouping.variables)
    guard let name = paths.entity(of: objects), let entity = source.entity(named: name) else { return nil }
    // `$source` itself is of exactly this entity.
    if objects == .variable("source") { return (name, [name]) }
    return (name, Set(source.subtree(of: entity).map(\.name)))
  }

  /// Returns a remark on each look-up of a hop that finds nothing, or nothing that fits.
  func remarks(on files: [ExplicitMapping]) -> [HopdError] {
    var result: [HopdError] = []
    for file in files {
      for mapping in file.entityMappings where mapping.deadness == nil {
        for property in mapping.relationships where result.count < MappingLimits.findings {
          guard let finding = finding(property, of: mapping) else { continue }
          result.append(
            HopdError(
              .mappingRemark, finding.sentence,
              at: Place(file: file.path, entity: mapping.destination, property: property.name)))
        }
      }
    }
    return result
  }
}

extension LookupReach.Finding {
  /// The finding as text of a message.
  var sentence: String {
    switch self {
    case .nothing(let reason): "the lookup never finds an object, because \(reason)"
    case .unfit(let reason): "an object that the lookup finds ends the migration, because \(reason)"
    }
  }
}
