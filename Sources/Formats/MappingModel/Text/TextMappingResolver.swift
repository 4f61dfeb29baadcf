// Resolves a text mapping against its two models: every name must exist, every expression must fit its place, and
// everything that the file leaves out is filled in as in Xcode's generated mapping. All mistakes are reported at once.

import Diagnostics
import Expressions
import ManagedObjectModel

extension TextMapping {
  /// Returns the mapping between these two versions; `others` are the entity mappings of the hop's other mapping
  /// models.
  ///
  /// Throws one error with every mistake in `reasons`, each with file, line, key and remedy.
  package func resolved(
    source: ManagedObjectModel, destination: ManagedObjectModel, beside others: [MappingOutline] = []
  ) throws(HopdError) -> ExplicitMapping {
    var resolver = TextMappingResolver(self, source: source, destination: destination, beside: others)
    let mappings = resolver.resolve()
    try resolver.mistakes.check(path)
    return ExplicitMapping(
      name: name, path: path, sourceVersion: source.name, destinationVersion: destination.name,
      entityMappings: mappings)
  }
}

/// One run over a text mapping.
struct TextMappingResolver {
  let source: ManagedObjectModel
  let destination: ManagedObjectModel
  private let text: TextMapping
  /// The outlines of this file's entity mappings, then those of other files.
  private let outlines: [MappingOutline]
  private(set) var mistakes = TextMistakes(.textMappingInvalid)

  init(
    _ text: TextMapping, source: ManagedObjectModel, destination: ManagedObjectModel, beside others: [MappingOutline]
  ) {
    self.text = text
    let own = text.entities.map(\.outline)
    outlines = own + MappingOutline.foreign([others], beside: own)
    self.source = source
    self.destination = destination
  }

  mutating func resolve() -> [ExplicitEntityMapping] {
    var seen: Set<String> = []
    for entity in text.entities {
      checkEntities(of: entity)
      if !seen.insert(entity.title).inserted {
        mistakes.add(
          "two entity mappings are called \(entity.title)", at: entity.name?.place ?? entity.place,
          "give one of them its own name: name = \"…\"")
      }
    }
    return text.entities.compactMap { resolve($0) }
  }

  // MARK: Entities

  private mutating func checkEntities(of entity: TextEntityMapping) {
    if let name = entity.source, source.entity(named: name.value) == nil {
      unknown("entity", name, of: "version \(source.name)", among: source.entities.map(\.name))
    }
    guard let name = entity.destination else { return }
    guard let found = destination.entity(named: name.value) else {
      unknown("entity", name, of: "version \(destination.name)", among: destination.entities.map(\.name))
      return
    }
    if found.isAbstract {
      let below = destination.subtree(of: found).filter { !$0.isAbstract }.map(\.name)
      mistakes.add(
        "the destination entity \(found.name) is abstract and has no objects", at: name.place,
        below.isEmpty ? "use another entity" : "use one of: \(below.joined(separator: ", "))")
    }
  }

  private mutating func resolve(_ written: TextEntityMapping) -> ExplicitEntityMapping? {
    let origin = written.source.flatMap { source.entity(named: $0.value) }
    guard written.source == nil || origin != nil else { return nil }
    guard let destinationName = written.destination else { return removal(written) }
    guard let entity = destination.entity(named: destinationName.value) else { return nil }
    let text = written.openingComposites(from: origin, source, to: entity, destination)
    checkPropertyNames(text, entity)
    checkUseOfSource(text)
    if let filter = text.filter, let origin {
      let checker = ExpressionChecker(scope(.sourceFilter, origin, text))
      mistakes.collect(filter.place) { () throws(HopdError) in try checker.check(filter.value.predicate) }
    }
    let grouping = grouping(text, origin)
    var properties = TextPropertyResolver(
      text: text, origin: origin, entity: entity, source: source, destination: destination, outlines: outlines,
      variables: grouping?.variables ?? [:])
    let attributes = properties.attributes()
    let relationships = properties.relationships()
    for error in properties.mistakes.errors { mistakes.add(error) }
    return ExplicitEntityMapping(
      name: text.title,
      type: .compiled(
        policy: text.policy, source: origin?.name, destination: entity.name, from: source, to: destination,
        isGrouped: text.grouping != nil),
      source: origin?.name, destination: entity.name, policy: text.policy, userInfo: text.userInfo,
      filter: text.filter?.value, attributes: attributes, relationships: relationships, grouping: grouping ?? .each)
  }

  /// Returns the entity mapping for a source without a destination, whose objects are dropped on purpose.
  private mutating func removal(_ text: TextEntityMapping) -> ExplicitEntityMapping {
    let rest: [(isSaid: Bool, word: String)] = [
      (!text.attributes.isEmpty, "attributes"), (!text.relationships.isEmpty, "relationships"),
      (!text.skipped.isEmpty, "skip"), (text.grouping != nil, "a grouping"), (text.policy != nil, "a policy"),
      (text.filter != nil, "a filter"),
    ]
    let extra = rest.filter(\.isSaid).map(\.word)
    if !extra.isEmpty {
      mistakes.add(
        "without a destination the objects are dropped, so that \(extra.joined(separator: ", ")) mean nothing",
        at: text.place, "add destination = \"…\", or remove the rest")
    }
    return ExplicitEntityMapping(name: text.title, type: .remove, source: text.source?.value, destination: nil)
  }

  /// Without a source no objects are made, unless a policy of another mapping makes them.
  private mutating func checkUseOfSource(_ text: TextEntityMapping) {
    guard text.source == nil else { return }
    let hasProperties = !text.attributes.isEmpty || !text.relationships.isEmpty
    let hasRules = text.filter != nil || text.grouping != nil || text.policy != nil
    if hasProperties || hasRules {
      mistakes.add(
        "without a source no objects are created, so that all other keys have no effect", at: text.place,
        "add source = \"…\", or remove the rest")
    }
  }

  private mutating func checkPropertyNames(_ text: TextEntityMapping, _ entity: Entity) {
    let attributes = destination.allAttributes(of: entity)
    let relationships = destination.allRelationships(of: entity)
    let stored =
      destination.storedAttributes(of: entity).map(\.name)
      + destination.storedRelationships(of: entity).map(\.name)
    let composites = destination.allComposites(of: entity)
    func check(_ name: Located<String>, isAttribute: Bool?) {
      if let composite = composites[name.value], isAttribute == true {
        let first = composite.elements.first?.name ?? ""
        mistakes.add(
          "\(entity.name).\(name.value) is a composite, and this is not a composite of the source", at: name.place,
          "give its elements, as attributes.\(name.value).\(first) = \"…\", or a composite: \"$source.…\"")
      } else if attributes[name.value]?.isTransient == true || relationships[name.value]?.isTransient == true {
        mistakes.add(
          "\(entity.name).\(name.value) is transient and has no place in a store", at: name.place, "remove it")
      } else if isAttribute == true, attributes[name.value] == nil, relationships[name.value] != nil {
        mistakes.add("\(entity.name).\(name.value) is a relationship", at: name.place, "write it under relationships")
      } else if isAttribute == false, relationships[name.value] == nil, attributes[name.value] != nil {
        mistakes.add("\(entity.name).\(name.value) is an attribute", at: name.place, "write it under attributes")
      } else if attributes[name.value] == nil, relationships[name.value] == nil {
        unknown("property", name, of: "entity \(entity.name) of version \(destination.name)", among: stored)
      }
    }
    for (name, value) in text.attributes { check(Located(value: name, place: value.place), isAttribute: true) }
    for (name, value) in text.relationships { check(Located(value: name, place: value.place), isAttribute: false) }
    for name in text.skipped {
      check(name, isAttribute: nil)
      if text.attributes.contains(where: { $0.name == name.value })
        || text.relationships.contains(where: { $0.name == name.value })
      {
        mistakes.add("\(name.value) is skipped and has a value too", at: name.place, "remove one of the two")
      }
    }
  }

  // MARK: Groupings

  private mutating func grouping(_ text: TextEntityMapping, _ origin: Entity?) -> SourceGrouping? {
    guard let grouping = text.grouping, let origin else { return .each }
    let checker = ExpressionChecker(scope(.key, origin, text))
    switch grouping.value {
    case .distinctBy(let keys, let keep):
      check(keys, keep, checker, grouping.place)
      return .distinctBy(keys, keep: keep)
    case .deduplicate(let keys, let keep):
      check(keys, keep, checker, grouping.place)
      return .deduplicate(by: keys, keep: keep)
    case .expand(let members):
      let checker = ExpressionChecker(scope(.relationship, origin, text))
      var entity: String?
      mistakes.collect(grouping.place) { () throws(HopdError) in entity = try checker.checkCollection(members) }
      guard let entity else { return nil }
      return .expand(members, entity: entity)
    }
  }

  private mutating func check(
    _ keys: [ExpressionNode], _ keep: KeepRule, _ checker: ExpressionChecker, _ place: Place
  ) {
    let latest: [ExpressionNode] = if case .latest(let value) = keep { [value] } else { [] }
    for key in keys + latest { mistakes.collect(place) { () throws(HopdError) in try checker.checkKey(key) } }
  }

  // MARK: Errors

  private func scope(_ place: ExpressionScope.Place, _ origin: Entity, _ text: TextEntityMapping) -> ExpressionScope {
    ExpressionScope(
      model: source, sourceEntity: origin.name, place: place, entityMappings: Set(outlines.map(\.name)),
      hasPolicy: text.policy != nil)
  }

  private mutating func unknown(_ kind: String, _ name: Located<String>, of owner: String, among names: [String]) {
    let near = NearestName.among(names, to: name.value)
    let known = names.sorted().prefix(20).joined(separator: ", ")
    mistakes.add(
      "no \(kind) \(name.value) in \(owner)", at: name.place,
      near.map { "use '\($0)'" } ?? (known.isEmpty ? "remove it" : "use one of: \(known)"))
  }
}
