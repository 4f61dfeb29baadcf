// The differences between two models, entity by entity and property by property, as text: to review a change, and to
// find the property that changed a hash. A pure value, made from two models only.

import ManagedObjectModel
import MappingModel

/// The effect of a hop on existing rows.
package enum RowEffect: String, Sendable, Hashable {
  /// Their values stay unchanged.
  case kept
  /// Their values stay, converted to another type.
  case converted
  /// They begin with the default.
  case defaulted
  /// They begin without a value.
  case empty
  /// Their values are dropped.
  case dropped
  /// The rows decide whether the hop is possible.
  case rowsDecide = "rows-decide"
  /// The hop needs a decision: a default, a renaming identifier or a mapping model.
  case needsMapping = "needs-mapping"
  /// No row is affected.
  case none
}

/// The kind of a change to a part of a model.
package enum ChangeKind: String, Sendable, Hashable {
  case added, removed, renamed, changed
}

/// The difference between two definitions of a property.
package struct PropertyDifference: Sendable, Hashable {
  package let kind: ChangeKind
  /// Its name in the later model; for a removed one, its name in the earlier model.
  package let name: String
  /// Its name in the earlier model, if that is different.
  package internal(set) var oldName: String?
  /// Whether it is a relationship rather than an attribute.
  package let isRelationship: Bool
  /// The changes, each a phrase: "type String → Integer 16".
  package let changes: [DefinitionChange]
  package let effect: RowEffect
  /// The effect on rows, as a phrase.
  package let outcome: String

  /// Whether the difference changes the version hash of its entity.
  package var isHashed: Bool { kind != .changed || changes.contains(where: \.isHashed) }
}

/// One change of a definition.
package struct DefinitionChange: Sendable, Hashable {
  /// The change as a phrase.
  package let words: String
  /// Whether it is part of the version hash.
  package let isHashed: Bool

  /// Creates a change.
  package init(_ words: String, isHashed: Bool = true) {
    self.words = words
    self.isHashed = isHashed
  }
}

/// The difference between two definitions of an entity.
package struct EntityDifference: Sendable, Hashable {
  package let kind: ChangeKind
  /// Its name in the later model; for a removed one, its name in the earlier model.
  package let name: String
  /// Its name in the earlier model, if that is different.
  package internal(set) var oldName: String?
  /// Changes of the entity itself.
  package internal(set) var changes: [DefinitionChange] = []
  /// Changes of its own properties.
  package internal(set) var properties: [PropertyDifference] = []
  package let effect: RowEffect
  /// The effect on its rows, as a phrase.
  package let outcome: String

  /// Whether the difference changes the version hash of the entity.
  package var isHashed: Bool {
    kind != .changed || changes.contains(where: \.isHashed) || properties.contains(where: \.isHashed)
  }
}

/// Two names that may mean the same thing, although nothing in the models connects them.
package struct RenameSuspicion: Sendable, Hashable {
  /// The kind of part that has the two names.
  package enum Part: Sendable, Hashable { case entity, attribute, relationship }

  package let part: Part
  /// The entity of the later model; nil if the names are entities'.
  package let entity: String?
  /// That entity's name in the earlier model.
  package let oldEntity: String?
  package let old: String
  package let new: String
  /// The renaming identifier of the old one: its name, or the one that it had before a rename of its own.
  package let identifier: String
  /// Why they look alike.
  package let reason: String

  /// Why the identifier is not the old name, as a line after the text to paste.
  var explanation: String {
    identifier == old
      ? "" : "\n(\(old) was renamed before: its identifier is \(identifier), and stays that of all later names)"
  }

  /// The suspicion as a sentence.
  package var sentence: String { (entity.map { "\($0): " } ?? "") + question }

  /// The same without the entity.
  package var question: String { "added \(new), dropped \(old), \(reason): a renaming identifier may be missing" }
}

/// The differences between two models.
package struct ModelDifference: Sendable {
  /// Names of the versions.
  package let from: String
  package let to: String
  /// The entities that differ, by name.
  package let entities: [EntityDifference]
  package let suspicions: [RenameSuspicion]
  /// The number of entities that are the same.
  package let unchanged: Int

  package var isEmpty: Bool { entities.isEmpty }
}

/// Collects the changes between two definitions of one part of a model.
private struct DefinitionChanges<Part> {
  let old: Part
  let new: Part
  var found: [DefinitionChange] = []

  /// Adds a change if the value differs, with text made from both values.
  mutating func note<Value: Equatable>(
    _ value: (Part) -> Value, isHashed: Bool = true, _ words: (Value, Value) -> String
  ) {
    let (before, after) = (value(old), value(new))
    if before != after { found.append(DefinitionChange(words(before, after), isHashed: isHashed)) }
  }
}

extension DefinitionChange {
  /// Returns the changes between two definitions of an attribute, except for its name.
  package static func between(_ old: Attribute, _ new: Attribute) -> [DefinitionChange] {
    var changes = DefinitionChanges(old: old, new: new)
    changes.note(\.type) { "type \($0.name) → \($1.name)" }
    changes.note(\.isOptional) { $1 ? "required → optional" : "optional → required" }
    changes.note(\.isTransient) { $1 ? "stored → transient" : "transient → stored" }
    changes.note(\.derivationExpression) { "derivation \($0 ?? "none") → \($1 ?? "none")" }
    changes.note(\.allowsExternalStorage) { "external storage switched \($1 ? "on" : "off")" }
    changes.note(\.preservesAfterDeletion) { "preserved after deletion: \($1 ? "now" : "no more")" }
    changes.note(\.versionHashModifier) { _, _ in "another version hash modifier" }
    if old.elements != new.elements || old.compositeTypeName != new.compositeTypeName {
      changes.found.append(.init("another composite"))
    }
    changes.note(\.defaultValue, isHashed: false) { "default \($0?.words ?? "none") → \($1?.words ?? "none")" }
    changes.note(\.minimum, isHashed: false) { "minimum \($0 ?? "none") → \($1 ?? "none")" }
    changes.note(\.maximum, isHashed: false) { "maximum \($0 ?? "none") → \($1 ?? "none")" }
    changes.note(\.regularExpression, isHashed: false) { _, _ in "another pattern that texts must match" }
    changes.note(\.valueTransformerName, isHashed: false) { "transformer \($0 ?? "none") → \($1 ?? "none")" }
    return changes.found
  }

  /// Returns the changes between two definitions of a relationship, except for its name; destinations and inverses are
  /// compared by their names in the later model.
  package static func between(
    _ old: Relationship, _ new: Relationship, destination: String?, inverse: String?
  ) -> [DefinitionChange] {
    var changes = DefinitionChanges(old: old, new: new)
    changes.note(\.isToMany) { $1 ? "to-one → to-many" : "to-many → to-one" }
    if destination != new.destinationEntityName {
      changes.found.append(.init("destination \(old.destinationEntityName) → \(new.destinationEntityName)"))
    }
    if inverse != new.inverseName {
      changes.found.append(.init("inverse \(old.inverseName ?? "none") → \(new.inverseName ?? "none")"))
    }
    changes.note(\.isOptional) { $1 ? "required → optional" : "optional → required" }
    changes.note(\.isOrdered) { $1 ? "now ordered" : "no more ordered" }
    changes.note(\.isTransient) { $1 ? "stored → transient" : "transient → stored" }
    changes.note(\.minCount) { "minimum count \($0) → \($1)" }
    if old.isToMany == new.isToMany { changes.note(\.maxCount) { "maximum count \($0) → \($1)" } }
    changes.note(\.versionHashModifier) { _, _ in "another version hash modifier" }
    changes.note(\.deleteRule, isHashed: false) { "delete rule \($0.words) → \($1.words)" }
    return changes.found
  }

  /// Returns the changes between two definitions of an entity, except for its name and its properties; `parent` is the
  /// earlier parent by its name in the later model.
  package static func between(_ old: Entity, _ new: Entity, parent: String?) -> [DefinitionChange] {
    var changes = DefinitionChanges(old: old, new: new)
    if parent != new.parentName {
      changes.found.append(.init("parent \(old.parentName ?? "none") → \(new.parentName ?? "none")"))
    }
    changes.note(\.isAbstract) { $1 ? "concrete → abstract" : "abstract → concrete" }
    changes.note(\.versionHashModifier) { _, _ in "another version hash modifier" }
    let before = old.uniquenessConstraints.map { $0.joined(separator: ", ") }
    let after = new.uniquenessConstraints.map { $0.joined(separator: ", ") }
    changes.found += before.filter { !after.contains($0) }.map { .init("uniqueness constraint (\($0)) removed") }
    changes.found += after.filter { !before.contains($0) }.map { .init("uniqueness constraint (\($0)) added") }
    if Set(old.fetchIndexes) != Set(new.fetchIndexes) {
      changes.found.append(.init("fetch indexes changed", isHashed: false))
    }
    return changes.found
  }
}

extension Relationship.DeleteRule {
  /// The rule's name in Xcode.
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
  /// The default as a model's file contains it.
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
