// Composite attributes in mapping models. Engine and checks handle only elements, as attributes named by their key
// path. So key paths into composites are joined, and a property mapping of a whole composite becomes one for each
// element.

import Expressions
import ManagedObjectModel

/// Replaces the composites in one entity mapping by their elements.
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
    var copy = filter
    copy.predicate = paths.joined(filter.predicate)
    return copy
  }

  /// The entity of the objects that an expression reaches.
  func entity(of node: ExpressionNode) -> String? { paths.entity(of: node) }

  /// Returns the value of each element of a composite that is mapped as a whole; nil if the name is not a composite's,
  /// or the value has no elements.
  ///
  /// A composite's elements are carried by name, like the keys of its dictionary.
  func elements(_ name: String, value: ExpressionNode?) -> [(name: String, value: ExpressionNode?)]? {
    guard let composite = after[name] else { return nil }
    if value == nil || value == .constant(.null) { return composite.elements.map { ("\(name).\($0.name)", value) } }
    guard let key = value?.sourceProperty, let old = before[key] else { return nil }
    return composite.elements.map { element in
      let isThere = old.elements.contains { $0.name == element.name }
      return ("\(name).\(element.name)", isThere ? .ofSource("\(key).\(element.name)") : nil)
    }
  }

  /// Returns the names of a composite's elements; for another name, the name itself.
  func names(of name: String) -> [String] { after[name].map { $0.elements.map { "\(name).\($0.name)" } } ?? [name] }
}

extension ExplicitEntityMapping {
  /// Returns a copy that maps elements in place of composites.
  func openingComposites(source: ManagedObjectModel, destination: ManagedObjectModel) -> ExplicitEntityMapping {
    let origin = self.source.flatMap { source.entity(named: $0) }
    let target = self.destination.flatMap { destination.entity(named: $0) }
    let opening = CompositeOpening(from: origin, source, to: target, destination, variables: grouping.variables)
    var copy = self
    copy.filter = filter.map(opening.joined)
    copy.attributes = attributes.flatMap { property -> [ExplicitPropertyMapping] in
      let opened = property.mappingExpressions(opening.joined)
      var node: ExpressionNode?
      if case .expression(let expression)? = opened.value { node = expression }
      guard let elements = opening.elements(property.name, value: node) else { return [opened] }
      return elements.map { ExplicitPropertyMapping(name: $0.name, value: $0.value.map { .expression($0) }) }
    }
    copy.relationships = relationships.map { $0.mappingExpressions(opening.joined) }
    copy.grouping = grouping.mappingExpressions(opening.joined)
    return copy
  }
}

extension ExplicitMapping {
  /// Returns a copy that maps elements in place of composites; unchanged if neither version has composites.
  func openingComposites(source: ManagedObjectModel, destination: ManagedObjectModel) -> ExplicitMapping {
    guard [source, destination].contains(where: { $0.entities.contains { !$0.composites.isEmpty } }) else {
      return self
    }
    return replacing(entityMappings.map { $0.openingComposites(source: source, destination: destination) })
  }
}
