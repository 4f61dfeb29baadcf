// Resolves the properties of one entity mapping of a text mapping: those that the file maps, and the others as in
// Xcode's generated mapping (docs/formats/mapping-models.md, "Compiling a source", rules 4 and 5).

import Diagnostics
import Expressions
import ManagedObjectModel

/// Resolves attributes and relationships and collects every mistake.
struct TextPropertyResolver {
  let text: TextEntityMapping
  /// nil if the mapping has no source.
  let origin: Entity?
  let entity: Entity
  let source: ManagedObjectModel
  let destination: ManagedObjectModel
  let outlines: [MappingOutline]
  /// Entities of the variables that expressions may use in addition to `$source`.
  let variables: [String: String]
  private(set) var mistakes = TextMistakes(.textMappingInvalid)

  /// Whether properties are copied by name. Objects of a group or of an expanding mapping are different things from
  /// their sources: equal names are a coincidence.
  var copies: Bool {
    if let copies = text.copies { return copies }
    switch text.grouping?.value {
    case nil, .deduplicate: return true
    case .distinctBy, .expand: return false
    }
  }

  // MARK: Attributes

  mutating func attributes() -> [ExplicitPropertyMapping] {
    let given = Dictionary(text.attributes.map { ($0.name, $0.value) }) { first, _ in first }
    let skipped = Set(text.skipped.map(\.value))
    let old = origin.map { source.allAttributes(of: $0) } ?? [:]
    let checker = ExpressionChecker(scope(.attribute))
    var result: [ExplicitPropertyMapping] = []
    for attribute in destination.allAttributes(of: entity).values.sortedByBytes(of: \.name)
    where !attribute.isTransient && !skipped.contains(attribute.name) {
      if let value = given[attribute.name] {
        mistakes.collect(value.place) { () throws(HopdError) in try checker.check(value.value, for: attribute) }
        result.append(ExplicitPropertyMapping(name: attribute.name, value: .expression(value.value)))
      } else if copies, let before = old[attribute.name], !before.isTransient {
        let value = ExpressionNode.ofSource(attribute.name)
        do {
          try checker.check(value, for: attribute)
        } catch {
          mistakes.add(
            HopdError(
              .textMappingInvalid,
              "\(attribute.name) cannot be carried as it is from \(origin?.name ?? "") to \(entity.name)",
              at: text.place, cause: error,
              hint: "set attributes.\(attribute.name) = \"…\", or skip = [\"\(attribute.name)\"]"))
        }
        result.append(ExplicitPropertyMapping(name: attribute.name, value: .expression(value)))
      } else {
        result.append(ExplicitPropertyMapping(name: attribute.name, value: nil))
      }
    }
    return result
  }

  // MARK: Relationships

  mutating func relationships() -> [ExplicitPropertyMapping] {
    let given = Dictionary(text.relationships.map { ($0.name, $0.value) }) { first, _ in first }
    let skipped = Set(text.skipped.map(\.value))
    let old = origin.map { source.allRelationships(of: $0) } ?? [:]
    var result: [ExplicitPropertyMapping] = []
    for relationship in destination.allRelationships(of: entity).values.sortedByBytes(of: \.name)
    where !relationship.isTransient && !skipped.contains(relationship.name) {
      var value: PropertyValue?
      let text = given[relationship.name]
      if let text {
        value = self.value(of: text, relationship)
      } else if copies, let before = old[relationship.name],
        origin.map({ source.hasStorage(ofRelationship: relationship.name, in: $0) }) == true
      {
        value = lookup(
          .ofSource(relationship.name), before.destinationEntityName, relationship, self.text.place, isGenerated: true
        )
        .map { .expression($0) }
      }
      result.append(
        ExplicitPropertyMapping(name: relationship.name, value: value, isCopied: text == nil && value != nil))
    }
    return result
  }

  private mutating func value(of text: Located<PropertyValue>, _ relationship: Relationship) -> PropertyValue? {
    let place = text.place
    switch text.value {
    case .expression(let node):
      guard let node = isObjectExpression(node) ? node : counterparts(of: node, relationship, place) else { return nil }
      return checked(node, relationship, place)
    case .grouped(let mapping, let keys):
      guard checkMaker(mapping, relationship, place) else { return nil }
      if let outline = outlines.first(where: { $0.name == mapping }) {
        guard let count = outline.keyCount else {
          mistakes.add(
            "the mapping \(mapping) has no keys to find its objects by", at: place,
            "write { mapping = \"\(mapping)\", objects = \"$source.…\" }, or give \(mapping) a distinct_by")
          return nil
        }
        if count != keys.count {
          mistakes.add(
            "the mapping \(mapping) identifies its objects by \(count) keys; found \(keys.count)", at: place,
            "give one key for each expression of its distinct_by, in that order")
        }
      }
      let checker = ExpressionChecker(scope(.key))
      for key in keys { mistakes.collect(place) { () throws(HopdError) in try checker.checkKey(key) } }
      return .grouped(mapping: mapping, keys: keys)
    case .matching(let name, let attributeName, let key):
      return matching(name, attributeName, key, relationship, place)
    }
  }

  /// Whether the text itself gives destination objects.
  private func isObjectExpression(_ node: ExpressionNode) -> Bool {
    switch node {
    case .constant, .destinationInstances, .policyMethod: true
    case .ternary(_, let first, let second): isObjectExpression(first) && isObjectExpression(second)
    default: false
    }
  }

  /// Returns the expression for the objects made of the source objects that a text names.
  private mutating func counterparts(
    of node: ExpressionNode, _ relationship: Relationship, _ place: Place
  ) -> ExpressionNode? {
    let checker = ExpressionChecker(scope(.relationship))
    switch checker.type(of: node) {
    case .object(let reached), .objects(let reached, _):
      return lookup(node, reached, relationship, place, isGenerated: false)
    case .unknown:
      // Mistakes are reported as for a look-up of objects.
      mistakes.collect(place) { () throws(HopdError) in
        try checker.check(
          .destinationInstances(.sourceRelationship(relationship.name), node), forRelationship: relationship)
      }
    default:
      mistakes.add(
        "this is neither an object nor a list of objects", at: place,
        "write a relationship of the source, as \"$source.…\", or \"nil\"")
    }
    return nil
  }

  /// Rules 5c and 5d, with one addition: mappings from the same source entity into other hierarchies do not count.
  private mutating func lookup(
    _ objects: ExpressionNode, _ reached: String, _ relationship: Relationship, _ place: Place, isGenerated: Bool
  ) -> ExpressionNode? {
    guard let target = source.entity(named: reached) else { return nil }
    // `$source` itself is of exactly this entity.
    let subtree = objects == .variable("source") ? [reached] : source.subtree(of: target).map(\.name)
    let makers = outlines.filter { outline in
      outline.source.map { subtree.contains($0) } ?? false && isFit(outline, for: relationship)
    }
    let ambiguous = Dictionary(grouping: makers, by: { $0.source ?? "" }).filter { $0.value.count > 1 }
      .sorted { $0.key < $1.key }.first
    let name = Self.lastKey(of: objects) ?? relationship.name
    if let (origin, several) = ambiguous {
      let shown = objects.description
      mistakes.add(
        "\(several.map(\.name).joined(separator: ", ")) all make \(relationship.destinationEntityName) objects of "
          + "\(origin), and \(entity.name).\(relationship.name) does not state whose it means", at: place,
        "write relationships.\(relationship.name) = { mapping = \"\(several[0].name)\", objects = \"\(shown)\" }, or "
          + "for those of all of them { relationship = \"\(name)\", objects = \"\(shown)\" }")
      return nil
    }
    if makers.isEmpty, !isGenerated {
      mistakes.add(
        "no mapping of this hop makes \(relationship.destinationEntityName) objects of \(reached)", at: place,
        "add an [[entity]] with source = \"\(reached)\" and destination = \"\(relationship.destinationEntityName)\"")
      return nil
    }
    if subtree.count == 1, let only = makers.first {
      return .destinationInstances(.entityMapping(only.name), objects)
    }
    return .destinationInstances(.sourceRelationship(name), objects)
  }

  private mutating func matching(
    _ name: String, _ attributeName: String, _ key: ExpressionNode, _ relationship: Relationship, _ place: Place
  ) -> PropertyValue? {
    guard let target = destination.entity(named: name) else {
      mistakes.add(
        "no entity \(name) in version \(destination.name)", at: place,
        NearestName.among(destination.entities.map(\.name), to: name).map { "use '\($0)'" }
          ?? "use an entity of the destination")
      return nil
    }
    let attributes = destination.allAttributes(of: target).filter { !$0.value.isTransient }
    guard let attribute = attributes[attributeName] else {
      mistakes.add(
        "no stored attribute \(attributeName) in entity \(name) of version \(destination.name)", at: place,
        NearestName.among(attributes.keys, to: attributeName).map { "use '\($0)'" }
          ?? "use one of: \(attributes.keys.sorted().prefix(20).joined(separator: ", "))")
      return nil
    }
    if !isCompatible(target.name, with: relationship) {
      mistakes.add(
        "\(entity.name).\(relationship.name) holds \(relationship.destinationEntityName) objects, not \(name)",
        at: place,
        "name \(relationship.destinationEntityName) or an entity below it")
    }
    let checker = ExpressionChecker(scope(.key))
    mistakes.collect(place) { () throws(HopdError) in
      try checker.checkKey(key)
      try checker.check(key, for: attribute)
    }
    return .matching(entity: name, attribute: attributeName, key: key)
  }

  private mutating func checked(
    _ node: ExpressionNode, _ relationship: Relationship, _ place: Place
  ) -> PropertyValue? {
    if case .destinationInstances(.entityMapping(let mapping), _) = node,
      !checkMaker(mapping, relationship, place)
    {
      return nil
    }
    let checker = ExpressionChecker(scope(.relationship))
    mistakes.collect(place) { () throws(HopdError) in try checker.check(node, forRelationship: relationship) }
    return .expression(node)
  }

  /// Whether the hop has such a mapping, and its objects fit the relationship.
  private mutating func checkMaker(_ mapping: String, _ relationship: Relationship, _ place: Place) -> Bool {
    guard let outline = outlines.first(where: { $0.name == mapping }) else {
      let names = outlines.map(\.name)
      mistakes.add(
        "no entity mapping \(mapping) in this hop", at: place,
        NearestName.among(names, to: mapping).map { "use '\($0)'" }
          ?? "use one of: \(names.prefix(20).joined(separator: ", "))")
      return false
    }
    guard isFit(outline, for: relationship) else {
      mistakes.add(
        "the mapping \(mapping) makes \(outline.destination ?? "no") objects, and \(entity.name).\(relationship.name) "
          + "holds \(relationship.destinationEntityName)", at: place,
        "use a mapping whose destination is \(relationship.destinationEntityName) or below it")
      return false
    }
    return true
  }

  private func isFit(_ outline: MappingOutline, for relationship: Relationship) -> Bool {
    outline.destination.map { isCompatible($0, with: relationship) } ?? false
  }

  private func isCompatible(_ name: String, with relationship: Relationship) -> Bool {
    destination.isEntity(name, within: relationship.destinationEntityName)
  }

  // MARK: Environment

  private func scope(_ place: ExpressionScope.Place) -> ExpressionScope {
    ExpressionScope(
      model: source, sourceEntity: origin?.name, place: place, variables: variables,
      entityMappings: Set(outlines.map(\.name)), hasPolicy: text.policy != nil)
  }

  private static func lastKey(of node: ExpressionNode) -> String? {
    guard case .keyPath(_, let steps) = node, case .key(let name)? = steps.last else { return nil }
    return name
  }
}
