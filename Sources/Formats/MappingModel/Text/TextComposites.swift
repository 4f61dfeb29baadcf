// Composite attributes in text mappings: mappings of a composite become mappings of its elements.

import Expressions
import ManagedObjectModel

extension TextEntityMapping {
  /// Returns a copy that maps elements in place of composites.
  func openingComposites(
    from origin: Entity?, _ source: ManagedObjectModel, to entity: Entity?, _ destination: ManagedObjectModel
  ) -> TextEntityMapping {
    guard [source, destination].contains(where: { $0.entities.contains { !$0.composites.isEmpty } }) else {
      return self
    }
    var copy = self
    var opening = CompositeOpening(from: origin, source, to: entity, destination)
    if let grouping {
      let opened: TextGrouping =
        switch grouping.value {
        case .distinctBy(let keys, let keep):
          .distinctBy(keys.map(opening.joined), keep: keep.mappingExpressions(opening.joined))
        case .deduplicate(let keys, let keep):
          .deduplicate(by: keys.map(opening.joined), keep: keep.mappingExpressions(opening.joined))
        case .expand(let objects): .expand(opening.joined(objects))
        }
      copy.grouping = Located(value: opened, place: grouping.place)
      if case .expand(let objects) = opened, let members = opening.entity(of: objects) {
        opening = CompositeOpening(from: origin, source, to: entity, destination, variables: ["each": members])
      }
    }
    copy.filter = filter.map { Located(value: opening.joined($0.value), place: $0.place) }
    copy.skipped = skipped.flatMap { name in
      opening.names(of: name.value).map { Located(value: $0, place: name.place) }
    }
    let old = origin.map { source.allAttributes(of: $0) } ?? [:]
    var skippedElements: [String] = []
    copy.attributes = attributes.flatMap { attribute -> [(name: String, value: Located<ExpressionNode>)] in
      let (value, place) = (opening.joined(attribute.value.value), attribute.value.place)
      guard let elements = opening.elements(attribute.name, value: value) else {
        return [(attribute.name, Located(value: value, place: place))]
      }
      // An element that the old composite lacks keeps its default; it is not carried from an attribute of the same key
      // path.
      skippedElements += elements.filter { $0.value == nil && old[$0.name] != nil }.map(\.name)
      return elements.compactMap { element in
        element.value.map { (element.name, Located(value: $0, place: place)) }
      }
    }
    copy.skipped += skippedElements.map { Located(value: $0, place: place) }
    copy.relationships = relationships.map { name, value in
      (name, Located(value: value.value.mappingExpressions(opening.joined), place: value.place))
    }
    return copy
  }
}
