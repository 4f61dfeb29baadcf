// Composite attributes in mapping models. Engine and checks know elements only, as attributes named by their key path:
// so key paths into composites are joined, and a property mapping of a whole composite becomes one for each element.

import Expressions
import ManagedObjectModel

/// Opens what one entity mapping says of composites.
struct CompositeOpening {
  private let paths: ElementPaths
  /// Composites of both sides by name.
  private let before: [String: Attribute]
  private let after: [String: Attribute]

  init(
    from origin: Entity?, _ source: ManagedObjectModel, to entity: Entity?, _ destination: ManagedObjectModel,
    variables: [String: String] = [:]
  ) {
    paths = ElementPaths(model: source, source: origin?.name, variables: variables)
    before = origin.map(source.allComposites) ?? [:]
    after = entity.map(destination.allComposites) ?? [:]
  }

  func joined(_ node: ExpressionNode) -> ExpressionNode { paths.joined(node) }

  func joined(_ filter: SourceFilter) -> SourceFilter {
    SourceFilter(text: filter.text, predicate: paths.joined(filter.predicate))
  }

  /// The entity of the objects that an expression reaches.
  func entity(of node: ExpressionNode) -> String? { paths.entity(of: node) }

  /// What becomes of each element of a composite that is named as a whole; nil where the name is no composite's, or
  /// where the value is none that has elements.
  ///
  /// A composite is carried by the names of its elements, as its dictionary is.
  func elements(_ name: String, value: ExpressionNode?) -> [(name: String, value: ExpressionNode?)]? {
    guard let composite = after[name] else { return nil }
    return composite.elements.reduce(into: Optional([])) { result, element in
      let own = "\(name).\(element.name)"
      switch value {
      case nil: result?.append((own, nil))
      case .constant(.null)?: result?.append((own, value))
      case .keyPath(.variable("source"), let steps)? where steps.count == 1:
        guard case .key(let key)? = steps.first, let old = before[key] else {
          result = nil
          return
        }
        let isThere = old.elements.contains { $0.name == element.name }
        result?.append(
          (own, isThere ? .keyPath(.variable("source"), [.key("\(key).\(element.name)")]) : nil))
      default: result = nil
      }
    }
  }

  /// Is it a composite of the destination?
  func isComposite(_ name: String) -> Bool { after[name] != nil }

  /// The names of what a name stands for: a composite's elements, else itself.
  func names(of name: String) -> [String] { after[name].map { $0.elements.map { "\(name).\($0.name)" } } ?? [name] }

  func joined(_ keep: KeepRule) -> KeepRule {
    if case .latest(let node) = keep { .latest(joined(node)) } else { keep }
  }
}

extension ExplicitEntityMapping {
  /// The same with everything said of elements.
  func openingComposites(source: ManagedObjectModel, destination: ManagedObjectModel) -> ExplicitEntityMapping {
    let origin = self.source.flatMap { source.entity(named: $0) }
    let target = self.destination.flatMap { destination.entity(named: $0) }
    var variables: [String: String] = [:]
    if case .expand(_, let members) = grouping { variables["each"] = members }
    let opening = CompositeOpening(from: origin, source, to: target, destination, variables: variables)
    func opened(_ value: PropertyValue?) -> PropertyValue? {
      switch value {
      case nil: nil
      case .expression(let node)?: .expression(opening.joined(node))
      case .grouped(let mapping, let keys)?: .grouped(mapping: mapping, keys: keys.map(opening.joined))
      case .matching(let entity, let attribute, let key)?:
        .matching(entity: entity, attribute: attribute, key: opening.joined(key))
      }
    }
    let attributes = attributes.flatMap { property -> [ExplicitPropertyMapping] in
      let value = opened(property.value)
      var node: ExpressionNode?
      if case .expression(let expression)? = value { node = expression }
      guard let elements = opening.elements(property.name, value: node) else {
        return [ExplicitPropertyMapping(name: property.name, value: value)]
      }
      return elements.map { ExplicitPropertyMapping(name: $0.name, value: $0.value.map { .expression($0) }) }
    }
    let grouping: SourceGrouping =
      switch self.grouping {
      case .each: .each
      case .distinctBy(let keys, let keep): .distinctBy(keys.map(opening.joined), keep: opening.joined(keep))
      case .deduplicate(let keys, let keep): .deduplicate(by: keys.map(opening.joined), keep: opening.joined(keep))
      case .expand(let objects, let members): .expand(opening.joined(objects), entity: members)
      }
    return ExplicitEntityMapping(
      name: name, type: type, source: self.source, destination: self.destination, policy: policy, userInfo: userInfo,
      filter: filter.map(opening.joined), attributes: attributes,
      relationships: relationships.map { ExplicitPropertyMapping(name: $0.name, value: opened($0.value)) },
      grouping: grouping, deadness: deadness)
  }
}

extension ExplicitMapping {
  /// The same with everything said of elements; nothing changes where neither version has composites.
  func openingComposites(source: ManagedObjectModel, destination: ManagedObjectModel) -> ExplicitMapping {
    guard [source, destination].contains(where: { $0.entities.contains { !$0.composites.isEmpty } }) else {
      return self
    }
    return ExplicitMapping(
      name: name, path: path, sourceVersion: sourceVersion, destinationVersion: destinationVersion,
      entityMappings: entityMappings.map { $0.openingComposites(source: source, destination: destination) })
  }
}
