// Checks mapping models against both versions before any row is migrated. It reports all unknown names and unsupported
// expressions at once, so that none of them ends a run halfway.

import Diagnostics
import Expressions
import ManagedObjectModel
import SystemPackage

/// Checks the mapping models of one hop together: relationships may look up objects that another mapping model makes.
package struct MappingChecker {
  private let source: ManagedObjectModel
  private let destination: ManagedObjectModel
  private let mappings: [ExplicitMapping]
  /// Entity mappings by name. A name that several share identifies none of them.
  private let byName: [String: [ExplicitEntityMapping]]
  private var found: [HopdError] = []

  private init(_ mappings: [ExplicitMapping], source: ManagedObjectModel, destination: ManagedObjectModel) {
    self.mappings = mappings
    self.source = source
    self.destination = destination
    byName = Dictionary(grouping: mappings.flatMap(\.entityMappings), by: \.name)
  }

  /// Returns everything that is wrong with the mapping models of a hop; empty if they can be followed.
  package static func findings(
    in mappings: [ExplicitMapping], source: ManagedObjectModel, destination: ManagedObjectModel
  ) -> [HopdError] {
    let opened = EntityMappingNames.resolved(mappings).mappings.map {
      $0.namingSources(source).mapping.openingComposites(source: source, destination: destination)
    }
    var checker = MappingChecker(opened, source: source, destination: destination)
    checker.check()
    return checker.found
  }

  /// Returns the mapping models ready to be followed: with unique names and without properties that a store does not
  /// keep.
  ///
  /// - Throws: `mapping-stale` if names are unknown, `mapping-invalid` if only expressions are wrong; each with all
  ///   reasons.
  package static func checked(
    _ mappings: [ExplicitMapping], source: ManagedObjectModel, destination: ManagedObjectModel
  ) throws(HopdError) -> (mappings: [ExplicitMapping], warnings: [HopdError]) {
    let reasons = findings(in: mappings, source: source, destination: destination)
    guard reasons.isEmpty else {
      let isStale = reasons.contains { $0.code == .staleMapping }
      let names = mappings.map { "“\($0.name)”" }.joined(separator: ", ")
      let subject = mappings.count == 1 ? "the mapping model \(names)" : "the mapping models \(names)"
      throw HopdError(
        isStale ? .staleMapping : .invalidMapping,
        isStale
          ? "\(subject) does not match its versions: it is of a different state of them, or a name is misspelt"
          : "\(subject) cannot be followed, for \(reasons.count.counted("reason"))",
        at: Place(file: mappings.first?.path, hop: "\(source.name) → \(destination.name)"),
        hint: isStale
          ? "open the mapping model in Xcode with these versions of the model, correct it and save it"
          : "change the mapping model; `hopctl mapping show` lists all its expressions", reasons: reasons)
    }
    let unique = EntityMappingNames.resolved(mappings)
    let named = unique.mappings.map { $0.namingSources(source) }
    let opened = named.map { $0.mapping.openingComposites(source: source, destination: destination) }
    let doubts = LookupReach(mappings: opened.flatMap(\.entityMappings), source: source, destination: destination)
      .remarks(on: opened)
    let settled = settled(opened, destination)
    return (settled.mappings, unique.warnings + named.flatMap(\.remarks) + settled.warnings + doubts)
  }

  /// Keeps only entities that have objects, and only properties that a store keeps: transient ones have no column, and
  /// the app computes them.
  private static func settled(
    _ mappings: [ExplicitMapping], _ destination: ManagedObjectModel
  ) -> (mappings: [ExplicitMapping], warnings: [HopdError]) {
    var warnings: [HopdError] = []
    let result = mappings.map { mapping in
      let entities = mapping.entityMappings.compactMap { entityMapping -> ExplicitEntityMapping? in
        if let entity = entityMapping.destination, destination.entity(named: entity)?.isAbstract == true {
          warnings.append(
            HopdError(
              .mappingRemark, "“\(entityMapping.name)” is ignored: an abstract entity has no objects",
              at: Place(file: mapping.path, entity: entity)))
          return nil
        }
        let entity = entityMapping.destination.flatMap { destination.entity(named: $0) }
        let attributes = entity.map { destination.allAttributes(of: $0) } ?? [:]
        let relationships = entity.map { destination.allRelationships(of: $0) } ?? [:]
        var stored = entityMapping
        stored.attributes.removeAll { attributes[$0.name]?.isTransient != false }
        stored.relationships.removeAll { relationships[$0.name]?.isTransient != false }
        guard let entity else { return stored }
        for property in stored.relationships
        where !destination.hasStorage(ofRelationship: property.name, in: entity) {
          // Left out, it no longer counts as read: pairs that nothing else reads are then reported as dropped.
          stored.relationships.removeAll { $0.name == property.name }
          guard property.value.map({ $0 != .expression(.constant(.null)) }) ?? false else { continue }
          warnings.append(
            HopdError(
              .mappingRemark,
              "“\(entityMapping.name)” leaves it out: its inverse is transient while it is not, and no layout of a "
                + "store is known for that",
              at: Place(file: mapping.path, entity: entity.name, property: property.name),
              hint: "make both ends transient, or none"))
        }
        return stored
      }
      return mapping.replacing(entities)
    }
    return (result, warnings)
  }

  // MARK: Checks

  private mutating func check() {
    for mapping in mappings {
      for entityMapping in mapping.entityMappings { check(entityMapping, of: mapping) }
    }
  }

  private mutating func check(_ mapping: ExplicitEntityMapping, of file: ExplicitMapping) {
    // A dead one is not followed; the plan reports it.
    if mapping.deadness != nil { return }
    let place = Place(file: file.path, entity: mapping.destination ?? mapping.source)
    if let name = mapping.source, source.entity(named: name) == nil {
      stale("“\(mapping.name)” starts at the entity “\(name)”, which the version “\(source.name)” does not have", place)
      return
    }
    checkSource(mapping, place)
    guard let name = mapping.destination else { return }
    guard let entity = destination.entity(named: name) else {
      stale(
        "“\(mapping.name)” creates objects of “\(name)”, which the version “\(destination.name)” does not have", place)
      return
    }
    if entity.isAbstract, !makesNothing(mapping) {
      invalid("“\(mapping.name)” creates objects of an abstract entity, which has none", place)
    }
    let attributes = destination.allAttributes(of: entity)
    let relationships = destination.allRelationships(of: entity)
    let composites = destination.allComposites(of: entity)
    for property in mapping.attributes {
      let here = place.filled(from: Place(property: property.name))
      if composites[property.name] != nil {
        invalid(
          "it is a composite, and its value is neither a composite of the source (\"$source.…\") nor nil", here,
          hint: "map its elements individually in a text mapping (.hopmap.toml)")
        continue
      }
      guard let attribute = attributes[property.name] else {
        stale("the entity of the version “\(destination.name)” has no such attribute", here)
        continue
      }
      guard !attribute.isTransient, let value = property.value else { continue }
      check(value, for: .attribute(attribute), of: mapping, here)
    }
    for property in mapping.relationships {
      let here = place.filled(from: Place(property: property.name))
      guard let relationship = relationships[property.name] else {
        stale("the entity of the version “\(destination.name)” has no such relationship", here)
        continue
      }
      guard !relationship.isTransient, let value = property.value else { continue }
      check(value, for: .relationship(relationship), of: mapping, here)
    }
  }

  /// Whether the mapping goes from an abstract entity to an abstract one. Xcode writes such mappings; a fetch of
  /// exactly that entity finds no object. It is kept if a relationship looks up its objects by name.
  private func makesNothing(_ mapping: ExplicitEntityMapping) -> Bool {
    guard let name = mapping.source, source.entity(named: name)?.isAbstract == true, mapping.policy == nil,
      case .each = mapping.grouping
    else { return false }
    return !mappings.flatMap(\.entityMappings).flatMap(\.relationships).contains {
      $0.value?.mappingLookedFor == mapping.name
    }
  }

  /// Checks filter, keys and members, which decide which objects exist.
  private mutating func checkSource(_ mapping: ExplicitEntityMapping, _ place: Place) {
    if let filter = mapping.filter {
      let checker = ExpressionChecker(scope(.sourceFilter, mapping))
      attempt(place) { () throws(HopdError) in try checker.check(filter.predicate) }
    }
    let keys = ExpressionChecker(scope(.key, mapping))
    if case .expand(let node, _) = mapping.grouping {
      attempt(place) { () throws(HopdError) in try keys.checkCollection(node) }
      return
    }
    for node in mapping.grouping.expressions {
      attempt(place) { () throws(HopdError) in try keys.checkKey(node) }
    }
  }

  private enum Property {
    case attribute(Attribute)
    case relationship(Relationship)
  }

  private mutating func check(
    _ value: PropertyValue, for property: Property, of mapping: ExplicitEntityMapping, _ place: Place
  ) {
    if let name = unknownKey(value, mapping) {
      stale(
        "its value begins at “\(name)”, which the entity \(mapping.source ?? "") of the version “\(source.name)” "
          + "does not have",
        place)
      return
    }
    switch (value, property) {
    case (.expression(let node), .attribute(let attribute)):
      let checker = ExpressionChecker(scope(.attribute, mapping))
      attempt(place) { () throws(HopdError) in try checker.check(node, for: attribute) }
    case (.expression(let node), .relationship(let relationship)):
      if case .destinationInstances(.entityMapping(let name), _) = node {
        checkLookup(of: name, place)
        if byName[name] == nil { return }
      }
      let checker = ExpressionChecker(scope(.relationship, mapping))
      attempt(place) { () throws(HopdError) in try checker.check(node, forRelationship: relationship) }
    case (.grouped(let name, let keys), .relationship(let relationship)):
      let checker = ExpressionChecker(scope(.key, mapping))
      for key in keys { attempt(place) { () throws(HopdError) in try checker.checkKey(key) } }
      if let target = checkLookup(of: name, place), let entity = target.destination {
        checkFits(entity, relationship, place)
      }
    case (.matching(let entity, let attribute, let key), .relationship(let relationship)):
      let checker = ExpressionChecker(scope(.key, mapping))
      attempt(place) { () throws(HopdError) in try checker.checkKey(key) }
      guard let target = destination.entity(named: entity) else {
        stale("it fetches objects of “\(entity)”, which the version “\(destination.name)” does not have", place)
        return
      }
      if destination.allAttributes(of: target)[attribute]?.isTransient ?? true {
        stale("it fetches objects of “\(entity)” by “\(attribute)”, which is not a stored attribute of it", place)
      }
      checkFits(target.name, relationship, place)
    case (.grouped, .attribute), (.matching, .attribute):
      invalid("an attribute cannot hold objects", place)
    }
  }

  /// Returns the first key after `$source`, in a plain path or in a look-up over one, if the source entity has no such
  /// property.
  private func unknownKey(_ value: PropertyValue, _ mapping: ExplicitEntityMapping) -> String? {
    guard case .expression(let node) = value, let origin = mapping.source.flatMap({ source.entity(named: $0) }) else {
      return nil
    }
    var path = node
    if case .destinationInstances(_, let objects) = node { path = objects }
    guard case .keyPath(.variable("source"), let steps) = path, case .key(let name)? = steps.first else { return nil }
    let isKnown = source.lineage(of: origin).contains { $0.hasProperty(named: name) }
    return isKnown ? nil : name
  }

  /// A look-up by name must lead to one entity mapping. Whether the relationship can hold its objects is checked for
  /// each object found: Core Data refuses an object, not an expression (docs/decisions/0066).
  @discardableResult
  private mutating func checkLookup(of name: String, _ place: Place) -> ExplicitEntityMapping? {
    let targets = byName[name] ?? []
    guard let target = targets.first else {
      stale("it fetches the objects of the entity mapping “\(name)”, which does not exist", place)
      return nil
    }
    guard targets.count == 1 else {
      invalid(
        "it fetches the objects of the entity mapping “\(name)”, a name that \(targets.count) entity mappings have",
        place,
        hint: "rename one of the entity mappings")
      return nil
    }
    return target
  }

  private mutating func checkFits(_ entity: String, _ relationship: Relationship, _ place: Place) {
    // An entity that does not exist is reported by the entity mapping that makes it.
    guard destination.entity(named: entity) != nil,
      !destination.isEntity(entity, within: relationship.destinationEntityName)
    else { return }
    invalid("it would hold objects of \(entity), but its destination is \(relationship.destinationEntityName)", place)
  }

  private func scope(_ place: ExpressionScope.Place, _ mapping: ExplicitEntityMapping) -> ExpressionScope {
    // Names of mappings are checked in `checkLookup`, because only the checker sees which names several mappings share.
    return ExpressionScope(
      model: source, sourceEntity: mapping.source, place: place, variables: mapping.grouping.variables,
      entityMappings: Set(byName.keys), hasPolicy: mapping.policy != nil)
  }

  // MARK: Findings

  private mutating func attempt(_ place: Place, _ body: () throws(HopdError) -> Void) {
    do throws(HopdError) {
      try body()
    } catch {
      add(error.located(place))
    }
  }

  private mutating func invalid(_ message: String, _ place: Place, hint: String? = nil) {
    add(HopdError(.invalidMapping, message, at: place, hint: hint))
  }

  private mutating func stale(_ message: String, _ place: Place) {
    add(HopdError(.staleMapping, message, at: place))
  }

  private mutating func add(_ error: HopdError) {
    if found.count < MappingLimits.findings,
      !found.contains(where: { $0.place == error.place && $0.message == error.message })
    {
      found.append(error)
    }
  }
}
