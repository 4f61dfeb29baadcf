// What differs between two models, entity by entity and property by property, in words: for people who review a change,
// and for anyone who has to find the property that made a hash another one. A pure value, made of two models and
// nothing else.

import ManagedObjectModel

/// What a step does to the rows that exist.
package enum RowEffect: String, Sendable, Hashable {
  /// Their values stay as they are.
  case kept
  /// Their values stay, in the form of another type.
  case converted
  /// They begin with the default.
  case defaulted
  /// They begin without a value.
  case empty
  /// What they hold is gone.
  case dropped
  /// The rows decide whether the step is possible.
  case rowsDecide = "rows-decide"
  /// The step needs an answer: a default, a renaming identifier or a mapping model.
  case needsMapping = "needs-mapping"
  /// No row is concerned.
  case none
}

/// What became of a part of a model.
package enum ChangeKind: String, Sendable, Hashable {
  case added, removed, renamed, changed
}

/// What differs between two definitions of a property.
package struct PropertyDifference: Sendable, Hashable {
  package let kind: ChangeKind
  /// Its name in the later model, in the earlier one where it is gone.
  package let name: String
  /// Its name in the earlier model, where that is another one.
  package let oldName: String?
  /// Is it a relationship? Else an attribute.
  package let isRelationship: Bool
  /// The changes, each a phrase: "type String → Integer 16".
  package let changes: [DefinitionChange]
  package let effect: RowEffect
  /// What happens to rows, in a phrase.
  package let outcome: String

  /// Does the difference change the version hash of its entity?
  package var isHashed: Bool { kind != .changed || changes.contains(where: \.isHashed) }
}

/// One change of a definition.
package struct DefinitionChange: Sendable, Hashable {
  /// A phrase.
  package let words: String
  /// Is it part of the version hash?
  package let isHashed: Bool

  /// Notes a change.
  package init(_ words: String, isHashed: Bool = true) {
    self.words = words
    self.isHashed = isHashed
  }
}

/// What differs between two definitions of an entity.
package struct EntityDifference: Sendable, Hashable {
  package let kind: ChangeKind
  /// Its name in the later model, in the earlier one where it is gone.
  package let name: String
  /// Its name in the earlier model, where that is another one.
  package let oldName: String?
  /// Changes of the entity itself.
  package let changes: [DefinitionChange]
  /// Changes of its own properties.
  package let properties: [PropertyDifference]
  package let effect: RowEffect
  /// What happens to its rows, in a phrase.
  package let outcome: String

  /// Does the difference change the version hash of the entity?
  package var isHashed: Bool {
    kind != .changed || changes.contains(where: \.isHashed) || properties.contains(where: \.isHashed)
  }
}

/// Two names that may be one thing, of which nothing in the models says so.
package struct RenameSuspicion: Sendable, Hashable {
  /// What has the two names.
  package enum Part: Sendable, Hashable { case entity, attribute, relationship }

  package let part: Part
  /// The entity of the later model; nil where entities are meant.
  package let entity: String?
  /// That entity's name in the earlier model.
  package let oldEntity: String?
  package let old: String
  package let new: String
  /// Why they look alike.
  package let reason: String

  /// In a sentence.
  package var sentence: String { (entity.map { "\($0): " } ?? "") + question }

  /// The same without the entity.
  package var question: String { "added \(new), dropped \(old), \(reason): is a renaming identifier missing?" }
}

/// What differs between two models.
package struct ModelDifference: Sendable {
  /// Names of the versions.
  package let from: String
  package let to: String
  /// The entities that differ, by name.
  package let entities: [EntityDifference]
  package let suspicions: [RenameSuspicion]
  /// How many entities are the same.
  package let unchanged: Int

  package var isEmpty: Bool { entities.isEmpty }
}

extension DefinitionChange {
  /// The changes between two definitions of an attribute, but for its name.
  package static func between(_ old: Attribute, _ new: Attribute) -> [DefinitionChange] {
    var changes: [DefinitionChange] = []
    if old.type != new.type { changes.append(.init("type \(old.type.words) → \(new.type.words)")) }
    if old.isOptional != new.isOptional {
      changes.append(.init(new.isOptional ? "required → optional" : "optional → required"))
    }
    if old.isTransient != new.isTransient {
      changes.append(.init(new.isTransient ? "stored → transient" : "transient → stored"))
    }
    if old.derivationExpression != new.derivationExpression {
      changes.append(
        .init(
          "derivation \(old.derivationExpression ?? "none") → \(new.derivationExpression ?? "none")"))
    }
    if old.allowsExternalStorage != new.allowsExternalStorage {
      changes.append(.init("external storage switched \(new.allowsExternalStorage ? "on" : "off")"))
    }
    if old.preservesAfterDeletion != new.preservesAfterDeletion {
      changes.append(.init("preserved after deletion: \(new.preservesAfterDeletion ? "now" : "no more")"))
    }
    if old.versionHashModifier != new.versionHashModifier { changes.append(.init("another version hash modifier")) }
    if old.elements != new.elements || old.compositeTypeName != new.compositeTypeName {
      changes.append(.init("another composite"))
    }
    func unhashed(_ words: String) { changes.append(.init(words, isHashed: false)) }
    if old.defaultValue != new.defaultValue {
      unhashed("default \(old.defaultValue?.words ?? "none") → \(new.defaultValue?.words ?? "none")")
    }
    if old.minimum != new.minimum { unhashed("minimum \(old.minimum ?? "none") → \(new.minimum ?? "none")") }
    if old.maximum != new.maximum { unhashed("maximum \(old.maximum ?? "none") → \(new.maximum ?? "none")") }
    if old.regularExpression != new.regularExpression { unhashed("another pattern that texts must match") }
    if old.valueTransformerName != new.valueTransformerName {
      unhashed("transformer \(old.valueTransformerName ?? "none") → \(new.valueTransformerName ?? "none")")
    }
    return changes
  }

  /// The changes between two definitions of a relationship, but for its name; destinations and inverses are compared
  /// under the names that they have in the later model.
  package static func between(
    _ old: Relationship, _ new: Relationship, destination: String?, inverse: String?
  ) -> [DefinitionChange] {
    var changes: [DefinitionChange] = []
    if old.isToMany != new.isToMany { changes.append(.init(new.isToMany ? "to-one → to-many" : "to-many → to-one")) }
    if destination != new.destinationEntityName {
      changes.append(.init("destination \(old.destinationEntityName) → \(new.destinationEntityName)"))
    }
    if inverse != new.inverseName {
      changes.append(.init("inverse \(old.inverseName ?? "none") → \(new.inverseName ?? "none")"))
    }
    if old.isOptional != new.isOptional {
      changes.append(.init(new.isOptional ? "required → optional" : "optional → required"))
    }
    if old.isOrdered != new.isOrdered { changes.append(.init(new.isOrdered ? "now ordered" : "no more ordered")) }
    if old.isTransient != new.isTransient {
      changes.append(.init(new.isTransient ? "stored → transient" : "transient → stored"))
    }
    if old.minCount != new.minCount { changes.append(.init("minimum count \(old.minCount) → \(new.minCount)")) }
    if old.maxCount != new.maxCount, old.isToMany == new.isToMany {
      changes.append(.init("maximum count \(old.maxCount) → \(new.maxCount)"))
    }
    if old.versionHashModifier != new.versionHashModifier { changes.append(.init("another version hash modifier")) }
    if old.deleteRule != new.deleteRule {
      changes.append(.init("delete rule \(old.deleteRule.words) → \(new.deleteRule.words)", isHashed: false))
    }
    return changes
  }

  /// The changes between two definitions of an entity, but for its name and its properties; `parent` is the earlier
  /// parent under the name that it has in the later model.
  package static func between(_ old: Entity, _ new: Entity, parent: String?) -> [DefinitionChange] {
    var changes: [DefinitionChange] = []
    if parent != new.parentName {
      changes.append(.init("parent \(old.parentName ?? "none") → \(new.parentName ?? "none")"))
    }
    if old.isAbstract != new.isAbstract {
      changes.append(.init(new.isAbstract ? "concrete → abstract" : "abstract → concrete"))
    }
    if old.versionHashModifier != new.versionHashModifier { changes.append(.init("another version hash modifier")) }
    let (before, after) = (constraints(of: old), constraints(of: new))
    for gone in before where !after.contains(gone) {
      changes.append(.init("uniqueness constraint (\(gone)) removed"))
    }
    for added in after where !before.contains(added) {
      changes.append(.init("uniqueness constraint (\(added)) added"))
    }
    if indexes(of: old) != indexes(of: new) { changes.append(.init("other fetch indexes", isHashed: false)) }
    return changes
  }

  private static func constraints(of entity: Entity) -> [String] {
    entity.uniquenessConstraints.map { $0.joined(separator: ", ") }
  }

  private static func indexes(of entity: Entity) -> Set<FetchIndex> { Set(entity.fetchIndexes) }
}

extension AttributeType {
  /// The type as Xcode shows it.
  package var words: String { xmlName ?? "Undefined" }
}

extension Relationship.DeleteRule {
  /// The rule as Xcode shows it.
  package var words: String {
    switch self {
    case .noAction: "No Action"
    case .nullify: "Nullify"
    case .cascade: "Cascade"
    case .deny: "Deny"
    }
  }
}

extension AttributeDefault {
  /// The default as a model's file writes it.
  package var words: String {
    switch self {
    case .integer(let number): "\(number)"
    case .boolean(let value): value ? "YES" : "NO"
    case .double(let number): "\(number)"
    case .decimal(let text): text
    case .string(let text): "“\(text)”"
    case .date(let seconds): "\(seconds) s after 2001"
    case .uuid: "a UUID"
    case .binary: "bytes"
    case .archived(let className): "an object of class \(className)"
    }
  }
}
