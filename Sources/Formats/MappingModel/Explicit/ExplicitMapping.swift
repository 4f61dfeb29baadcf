// A mapping model resolved against both of its versions: the content of a `.cdm`, from whatever form it was read. It
// follows Core Data's NSMappingModel and NSEntityMapping; features that only text mappings have are marked.

import Diagnostics
import Expressions
import ManagedObjectModel
import PropertyLists
import SystemPackage

/// One mapping model between two versions.
package struct ExplicitMapping: Sendable, Hashable {
  /// File name without extension, as "Model1_to_Model2".
  package let name: String
  /// The file.
  package let path: FilePath
  /// Version names.
  package let sourceVersion: String
  package let destinationVersion: String
  /// In the order of execution.
  package internal(set) var entityMappings: [ExplicitEntityMapping]

  /// Returns a copy with other entity mappings.
  func replacing(_ entityMappings: [ExplicitEntityMapping]) -> ExplicitMapping {
    var copy = self
    copy.entityMappings = entityMappings
    return copy
  }
}

/// NSEntityMappingType, by Core Data's numbers (docs/formats/mapping-models.md, "Compiled files").
package enum EntityMappingType: Int, Sendable, Hashable {
  case undefined = 0
  case custom = 1
  case add = 2
  case remove = 3
  case copy = 4
  case transform = 5

  /// Lower-case word, as `hopctl mapping show` prints it.
  package var word: String { "\(self)" }
}

/// One entity's part of a mapping model.
package struct ExplicitEntityMapping: Sendable, Hashable {
  /// Unique in the hop; relationships look it up.
  package internal(set) var name: String
  package internal(set) var type: EntityMappingType
  /// nil for `add`.
  package let source: String?
  /// nil for `remove`.
  package let destination: String?
  /// Class name of the policy as written, with or without module; nil for the default policy.
  package internal(set) var policy: String?
  /// The policy's `mapping.userInfo`; strings, numbers and booleans as property list values.
  package internal(set) var userInfo: [String: PropertyListValue] = [:]
  /// The predicate that source objects must fulfil, as text and tree; nil takes all objects.
  package internal(set) var filter: SourceFilter?
  /// One per mapped destination attribute, sorted by name; other attributes keep their defaults.
  package internal(set) var attributes: [ExplicitPropertyMapping] = []
  /// One per mapped destination relationship, sorted by name.
  package internal(set) var relationships: [ExplicitPropertyMapping] = []
  /// Text mappings only: several sources to one destination, or several destinations of one source.
  package internal(set) var grouping = SourceGrouping.each
  /// Why it has no effect between these two versions; nil if it is followed. A dead one has no source, no destination
  /// and no properties here: only its name can still be looked up.
  package internal(set) var deadness: Deadness?
}

/// Why an entity mapping has no effect, and what it would have done.
package struct Deadness: Sendable, Hashable {
  /// A clause that follows the mapping's name in messages.
  package let reason: String
  /// The source entity that the mapping model names.
  package let source: String?
  /// The policy that will never run.
  package let policy: String?
}

extension ExplicitEntityMapping {
  /// The word of its type; "dead" if it has no effect.
  package var typeWord: String { deadness == nil ? type.word : "dead" }

  /// Returns an entity mapping without effect, which keeps only its name.
  static func dead(
    _ name: String, because reason: String, of source: String?, policy: String? = nil
  ) -> ExplicitEntityMapping {
    ExplicitEntityMapping(
      name: name, type: .undefined, source: nil, destination: nil,
      deadness: Deadness(reason: reason, source: source, policy: policy))
  }

  /// The plan's warning about a dead entity mapping; nil if it is followed.
  func deathNotice(at path: FilePath) -> HopdError? {
    deadness.map { deadness in
      HopdError(
        .deadMapping, "the entity mapping “\(name)” has no effect: \(deadness.reason)", at: Place(file: path),
        hint: "create the mapping model again for these versions, or remove the entity mapping from it")
    }
  }
}

extension ExplicitMapping {
  /// Returns a copy without dead entity mappings; look-ups of their objects become nil.
  func livingOnly() -> ExplicitMapping {
    let dead = Set(entityMappings.filter { $0.deadness != nil }.map(\.name))
    guard !dead.isEmpty else { return self }
    return replacing(
      entityMappings.filter { $0.deadness == nil }.map { mapping in
        var living = mapping
        for (index, property) in mapping.relationships.enumerated() {
          guard case .expression(.destinationInstances(.entityMapping(let name), _))? = property.value,
            dead.contains(name)
          else { continue }
          living.relationships[index].value = .expression(.constant(.null))
        }
        return living
      })
  }
}

/// A source filter predicate.
package struct SourceFilter: Sendable, Hashable {
  /// As written.
  package let text: String
  package internal(set) var predicate: PredicateNode
}

/// NSPropertyMapping: the source of a destination property's value.
package struct ExplicitPropertyMapping: Sendable, Hashable {
  /// Name in the destination entity.
  package let name: String
  /// The source of the value; nil keeps what is there: the default, or a policy's value (docs/formats/expressions.md,
  /// "Value expressions"). The constant nil sets nil.
  package internal(set) var value: PropertyValue?
  /// Relationships of text mappings only: the file does not give it, and the source's relationship of that name is
  /// copied. Where a file gives one end of a relationship, copies of both ends are set before.
  package internal(set) var isCopied = false

  /// Returns a copy with transformed expressions.
  func mappingExpressions(_ transform: (ExpressionNode) -> ExpressionNode) -> ExplicitPropertyMapping {
    ExplicitPropertyMapping(name: name, value: value?.mappingExpressions(transform), isCopied: isCopied)
  }
}

/// A property's value.
package enum PropertyValue: Sendable, Hashable {
  /// A value expression.
  case expression(ExpressionNode)
  /// Text mappings, relationships only: the object that the named mapping made for that value of the key. The named
  /// mapping groups its sources by that key (`distinctBy`).
  case grouped(mapping: String, keys: [ExpressionNode])
  /// Text mappings, relationships only: the objects of a destination entity whose attribute has that value.
  case matching(entity: String, attribute: String, key: ExpressionNode)
}

extension PropertyValue {
  /// Its expressions: one, or one for each key.
  var expressions: [ExpressionNode] {
    switch self {
    case .expression(let node), .matching(_, _, let node): [node]
    case .grouped(_, let keys): keys
    }
  }

  /// Returns a copy with transformed expressions.
  func mappingExpressions(_ transform: (ExpressionNode) -> ExpressionNode) -> PropertyValue {
    switch self {
    case .expression(let node): .expression(transform(node))
    case .grouped(let mapping, let keys): .grouped(mapping: mapping, keys: keys.map(transform))
    case .matching(let entity, let attribute, let key):
      .matching(entity: entity, attribute: attribute, key: transform(key))
    }
  }

  /// The name of the entity mapping whose objects are looked up.
  var mappingLookedFor: String? {
    switch self {
    case .expression(.destinationInstances(.entityMapping(let name), _)), .grouped(let name, _): name
    default: nil
    }
  }
}

extension PropertyValue: CustomStringConvertible {
  /// As `hopctl mapping show` prints it.
  package var description: String {
    switch self {
    case .expression(let node): node.description
    case .grouped(let mapping, let keys):
      "object of \(mapping) by {\(keys.map(\.description).joined(separator: ", "))}"
    case .matching(let entity, let attribute, let key): "\(entity) where \(attribute) == \(key.description)"
    }
  }
}

/// How source objects and destination objects correspond. Only text mappings can use a case other than `each`.
package enum SourceGrouping: Sendable, Hashable {
  /// One destination object for each source object.
  case each
  /// One destination object per distinct value of the keys; sources with a nil in their keys make none. Every source of
  /// a group is associated with the group's object.
  case distinctBy([ExpressionNode], keep: KeepRule)
  /// As `each`, but of sources with equal keys only one makes an object, and the others are associated with it; sources
  /// with a nil in their keys are not duplicates. Dropped objects are reported.
  case deduplicate(by: [ExpressionNode], keep: KeepRule)
  /// One destination object per source object and member of one of its to-many relationships; expressions read the
  /// member as `$each`.
  case expand(ExpressionNode, entity: String)
}

extension SourceGrouping {
  /// The expressions: keys, rule of what is kept, members.
  var expressions: [ExpressionNode] {
    switch self {
    case .each: []
    case .distinctBy(let keys, .latest(let node)), .deduplicate(let keys, .latest(let node)): keys + [node]
    case .distinctBy(let keys, _), .deduplicate(let keys, _): keys
    case .expand(let members, _): [members]
    }
  }

  /// Returns a copy with transformed expressions.
  func mappingExpressions(_ transform: (ExpressionNode) -> ExpressionNode) -> SourceGrouping {
    switch self {
    case .each: .each
    case .distinctBy(let keys, let keep):
      .distinctBy(keys.map(transform), keep: keep.mappingExpressions(transform))
    case .deduplicate(let keys, let keep):
      .deduplicate(by: keys.map(transform), keep: keep.mappingExpressions(transform))
    case .expand(let members, let entity): .expand(transform(members), entity: entity)
    }
  }

  /// Entities of the variables that expressions may use in addition to `$source`.
  var variables: [String: String] { if case .expand(_, let members) = self { ["each": members] } else { [:] } }

  /// The number of keys that identify its objects; nil if its objects cannot be looked up by keys.
  var keyCount: Int? { if case .distinctBy(let keys, _) = self { keys.count } else { nil } }
}

/// Which of several source objects represents its group.
package enum KeepRule: Sendable, Hashable {
  /// The lowest or highest primary key.
  case lowest
  case highest
  /// The greatest value of an expression; among equal values the lowest primary key.
  case latest(ExpressionNode)

  /// Returns a copy with a transformed expression.
  func mappingExpressions(_ transform: (ExpressionNode) -> ExpressionNode) -> KeepRule {
    if case .latest(let node) = self { .latest(transform(node)) } else { self }
  }
}
