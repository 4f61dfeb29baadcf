// The difference of two versions as a hop: inference decides which property continues which, and each change has its
// effect on rows. A hop that cannot be inferred is reported in full too.

import Diagnostics
import ManagedObjectModel
import MappingModel

extension ModelDifference {
  /// The difference from one version to another, matched as lightweight migration matches: by renaming identifiers.
  package init(
    from source: ManagedObjectModel, to destination: ManagedObjectModel, renames: RenameRules = RenameRules()
  ) {
    self.init(source, destination, matching: renames, decided: renames)
  }

  /// The difference between two states of one version, matched by names alone.
  package init(ofVersion earlier: ManagedObjectModel, edited later: ManagedObjectModel) {
    self.init(earlier, later, matching: RenameRules(namesCount: true), decided: RenameRules())
  }

  /// The difference under the matching `rules`; names in `renames` are not suspected any more.
  private init(
    _ source: ManagedObjectModel, _ destination: ManagedObjectModel, matching rules: RenameRules,
    decided renames: RenameRules
  ) {
    let (mapping, reasons) = MappingInference.attempt(from: source, to: destination, renames: rules)
    let hop = HopDifference(source: source, destination: destination, mapping: mapping, reasons: reasons)
    let entities = hop.entities()
    let search = RenameSearch(source: source, destination: destination, mapping: mapping, renames: renames)
    self.init(
      from: source.name, to: destination.name, entities: entities, suspicions: search.suspicions(),
      unchanged: destination.entities.count - entities.count { $0.kind != .removed })
  }
}

/// Creates the difference of two versions.
struct HopDifference {
  let source: ManagedObjectModel
  let destination: ManagedObjectModel
  let mapping: InferredMapping
  let reasons: [HopdError]

  /// Maps names of source entities to names of destination entities.
  private var continued: [String: String] {
    Dictionary(
      mapping.entityMappings.compactMap { part in
        part.sourceEntity.flatMap { from in part.destinationEntity.map { (from, $0) } }
      }, uniquingKeysWith: { first, _ in first })
  }

  func entities() -> [EntityDifference] {
    let continued = continued
    return mapping.entityMappings.compactMap { difference($0, continued) }
      .sorted { Entity.caseInsensitiveOrder($0.name, $1.name) }
  }

  private func difference(_ part: EntityMapping, _ continued: [String: String]) -> EntityDifference? {
    guard let name = part.destinationEntity, let new = destination.entity(named: name) else {
      return part.sourceEntity.flatMap { source.entity(named: $0) }.map { gone in
        EntityDifference(
          kind: .removed, name: gone.name, effect: gone.isAbstract ? .none : .dropped,
          outcome: gone.isAbstract ? "abstract, so it has no rows" : "rows dropped")
      }
    }
    guard let old = part.sourceEntity.flatMap({ source.entity(named: $0) }) else {
      return EntityDifference(
        kind: .added, name: name, effect: .none,
        outcome: new.isAbstract ? "abstract, so it has no rows" : "starts without rows")
    }
    let parent = old.parentName.map { continued[$0] ?? $0 }
    let changes = DefinitionChange.between(old, new, parent: parent)
    let properties =
      (attributes(of: new, from: old, part) + relationships(of: new, from: old, part, continued))
      .sorted { Entity.caseInsensitiveOrder($0.name, $1.name) }
    let isRenamed = old.name != name
    guard isRenamed || !changes.isEmpty || !properties.isEmpty else { return nil }
    let (effect, outcome) = outcome(ofEntity: name, changes, properties)
    return EntityDifference(
      kind: isRenamed ? .renamed : .changed, name: name, oldName: isRenamed ? old.name : nil, changes: changes,
      properties: properties, effect: effect, outcome: outcome)
  }

  private func outcome(
    ofEntity name: String, _ changes: [DefinitionChange], _ properties: [PropertyDifference]
  ) -> (RowEffect, String) {
    if let reason = reasons.first(where: { $0.place.entity == name && $0.place.property == nil }) {
      return (.needsMapping, reason.message)
    }
    if properties.contains(where: { $0.effect == .needsMapping }) {
      return (.needsMapping, "rows cannot be copied without a decision")
    }
    if changes.contains(where: { $0.words.hasPrefix("uniqueness constraint") && $0.words.hasSuffix("added") }) {
      return (.rowsDecide, "rows copied, unless two have the same values under the new constraint")
    }
    if changes.contains(where: { $0.words == "concrete → abstract" }) {
      return (.rowsDecide, "rows prevent the hop: an abstract entity has none")
    }
    if properties.contains(where: { $0.effect == .rowsDecide }) {
      return (.rowsDecide, "rows copied, unless one violates a rule")
    }
    return (.kept, "rows copied")
  }

  // MARK: Attributes

  private func attributes(of new: Entity, from old: Entity, _ part: EntityMapping) -> [PropertyDifference] {
    let before = source.allAttributes(of: old)
    let sources = Dictionary(part.attributes.map { ($0.destination, $0.source) }) { first, _ in first }
    var result: [PropertyDifference] = []
    for attribute in new.attributes {
      // A mapping does not contain transient attributes; they are matched by name.
      let name = attribute.isTransient ? attribute.name : sources[attribute.name].flatMap { $0 }
      guard let name, let earlier = before[name] else {
        result.append(added(attribute, of: new))
        continue
      }
      var changes = DefinitionChange.between(earlier, attribute)
      if let mover = moved(name, from: old) { changes.append(.init("moved from \(mover)")) }
      let isRenamed = name != attribute.name
      guard isRenamed || !changes.isEmpty else { continue }
      let (effect, outcome) = outcome(of: attribute, earlier, entity: new.name)
      result.append(
        PropertyDifference(
          kind: isRenamed ? .renamed : .changed, name: attribute.name, oldName: isRenamed ? name : nil,
          isRelationship: false, changes: changes, effect: effect, outcome: outcome))
    }
    let ownTransients = old.attributes.filter { gone in
      gone.isTransient && !new.attributes.contains { $0.name == gone.name }
    }
    for name in part.droppedAttributes where source.declaringEntity(of: name, in: old)?.name == old.name {
      guard let gone = before[name], !(new.attributes.contains { $0.name == name && $0.isTransient }) else { continue }
      result.append(
        PropertyDifference(
          kind: .removed, name: name, isRelationship: false,
          changes: [.init("\(gone.type.name)\(gone.isOptional ? ", optional" : "")")], effect: .dropped,
          outcome: "values dropped"))
    }
    return result
      + ownTransients.map {
        PropertyDifference(
          kind: .removed, name: $0.name, isRelationship: false, changes: [.init("transient")],
          effect: .none, outcome: "transient, so it has no values")
      }
  }

  /// Returns the ancestor of `old` that declared a property; nil if `old` declared it.
  private func moved(_ name: String, from old: Entity) -> String? {
    guard let owner = source.declaringEntity(of: name, in: old), owner.name != old.name else { return nil }
    return owner.name
  }

  private func added(_ attribute: Attribute, of entity: Entity) -> PropertyDifference {
    let (effect, outcome): (RowEffect, String) =
      if attribute.isTransient {
        (.none, "transient, so it has no values")
      } else if attribute.isDerived {
        (.defaulted, "computed for existing rows")
      } else if let reason = reason(entity.name, attribute.name) {
        (.needsMapping, reason.message)
      } else if let value = attribute.defaultValue {
        (.defaulted, "existing rows get the default \(value.words)")
      } else if attribute.isOptional {
        (.empty, "existing rows have no value")
      } else {
        (.needsMapping, "required and without a default: existing rows have no value")
      }
    return PropertyDifference(
      kind: .added, name: attribute.name, isRelationship: false,
      changes: [.init("\(attribute.type.name)\(attribute.isOptional ? ", optional" : "")")], effect: effect,
      outcome: outcome)
  }

  private func outcome(of new: Attribute, _ old: Attribute, entity: String) -> (RowEffect, String) {
    if new.isTransient { return (old.isTransient ? .none : .dropped, "transient: values dropped") }
    if let reason = reason(entity, new.name) { return (.needsMapping, reason.message) }
    if old.isTransient { return (.empty, "existing rows have no value") }
    if !new.isOptional, old.isOptional, !new.isDerived {
      return new.defaultValue.map { (.defaulted, "rows without a value get the default \($0.words)") }
        ?? (.rowsDecide, "refused if a row has no value: no default")
    }
    if let condition = condition(entity, new.name) { return (.rowsDecide, condition.message) }
    if new.type != old.type {
      return NumberConversion.canLose(from: old.type, to: new.type)
        ? (.rowsDecide, "values converted; refused if one does not fit")
        : (.converted, "values converted")
    }
    return (.kept, "values preserved")
  }

  // MARK: Relationships

  private func relationships(
    of new: Entity, from old: Entity, _ part: EntityMapping, _ continued: [String: String]
  ) -> [PropertyDifference] {
    let before = source.allRelationships(of: old)
    let sources = Dictionary(part.relationships.map { ($0.destination, $0.source) }) { first, _ in first }
    var result: [PropertyDifference] = []
    for relationship in new.relationships {
      guard let pairs = sources[relationship.name].flatMap({ $0 }), !pairs.isInverted,
        let earlier = before[pairs.relationship]
      else {
        result.append(added(relationship, of: new, isFilled: sources[relationship.name].flatMap { $0 } != nil))
        continue
      }
      let target = continued[earlier.destinationEntityName] ?? earlier.destinationEntityName
      var changes = DefinitionChange.between(
        earlier, relationship, destination: target, inverse: inverse(of: earlier, continuedAs: target))
      if let mover = moved(earlier.name, from: old) { changes.append(.init("moved from \(mover)")) }
      if part.droppedRelationships.contains(earlier.name) { changes.append(.init("inverse becomes transient")) }
      let isRenamed = earlier.name != relationship.name
      guard isRenamed || !changes.isEmpty else { continue }
      let (effect, outcome) = outcome(of: relationship, entity: new.name)
      result.append(
        PropertyDifference(
          kind: isRenamed ? .renamed : .changed, name: relationship.name, oldName: isRenamed ? earlier.name : nil,
          isRelationship: true, changes: changes, effect: effect, outcome: outcome))
    }
    // One that goes on, but loses its place in the store, is told above, with what the rows decide.
    let kept = Set(sources.values.compactMap { $0.flatMap { $0.isInverted ? nil : $0.relationship } })
    for gone in old.relationships where !kept.contains(gone.name) {
      let (effect, outcome): (RowEffect, String)
      if part.droppedRelationships.contains(gone.name) {
        (effect, outcome) = (.dropped, "references dropped")
      } else if gone.isTransient || new.relationships.contains(where: { $0.name == gone.name }) {
        continue
      } else {
        // What it connects is in the rows of its other end, which stays.
        (effect, outcome) = (.kept, "\(gone.destinationEntityName).\(gone.inverseName ?? "") preserves the references")
      }
      result.append(
        PropertyDifference(
          kind: .removed, name: gone.name, isRelationship: true, changes: [.init(gone.words)], effect: effect,
          outcome: outcome))
    }
    return result
  }

  /// Returns the inverse by its name in the later model.
  private func inverse(of relationship: Relationship, continuedAs target: String) -> String? {
    guard let name = relationship.inverseName else { return nil }
    let part = mapping.mapping(toDestination: target)
    return part?.relationships.first { $0.source?.relationship == name && $0.source?.isInverted == false }?.destination
      ?? name
  }

  private func added(_ relationship: Relationship, of entity: Entity, isFilled: Bool) -> PropertyDifference {
    let (effect, outcome): (RowEffect, String) =
      if let reason = reason(entity.name, relationship.name) {
        (.needsMapping, reason.message)
      } else if isFilled {
        (.kept, "filled from its inverse")
      } else if relationship.isOptional {
        (.empty, "starts empty")
      } else {
        (.rowsDecide, "required: existing rows have no target")
      }
    return PropertyDifference(
      kind: .added, name: relationship.name, isRelationship: true,
      changes: [.init(relationship.words)], effect: effect, outcome: outcome)
  }

  private func outcome(of new: Relationship, entity: String) -> (RowEffect, String) {
    if let reason = reason(entity, new.name) { return (.needsMapping, reason.message) }
    if let condition = condition(entity, new.name) { return (.rowsDecide, condition.message) }
    return (.kept, "references preserved")
  }

  // MARK: Results of inference

  private func reason(_ entity: String, _ property: String) -> HopdError? {
    reasons.first { $0.place.entity == entity && $0.place.property == property }
  }

  private func condition(_ entity: String, _ property: String) -> RowCondition? {
    mapping.conditions.first { $0.entity == entity && $0.property == property }
  }
}

extension Relationship {
  /// The relationship as a phrase.
  package var words: String {
    "\(isToMany ? isOrdered ? "ordered to-many" : "to-many" : "to-one") to \(destinationEntityName)"
      + (isOptional ? ", optional" : "")
  }
}

extension NumberConversion {
  /// Whether the old type has values that the new type cannot hold.
  static func canLose(from old: AttributeType, to new: AttributeType) -> Bool {
    let (before, after) = (old.traits, new.traits)
    if let numbers = before.integers {
      if let kept = after.integers { return !kept.contains(numbers) }
      return before.bits > 32 || after.isFloat
    }
    return before.form != after.form || before.bits > after.bits
  }
}
