// A mapping model after it was set against both of its versions: what a `.cdm` would say, whatever it was read from.
// Core Data's NSMappingModel and NSEntityMapping; the words of text mappings that Core Data has no word for are marked.

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

  /// The same with other entity mappings.
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
  /// Unique in the hop, by which relationships find it.
  package internal(set) var name: String
  package internal(set) var type: EntityMappingType
  /// nil for `add`.
  package let source: String?
  /// nil for `remove`.
  package let destination: String?
  /// Class name of the policy as written, with or without module; nil for the default policy.
  package internal(set) var policy: String?
  /// What the policy reads as `mapping.userInfo`; strings, numbers and booleans as property list values.
  package internal(set) var userInfo: [String: PropertyListValue] = [:]
  /// Text and tree of the predicate that source objects must fulfil; nil takes all.
  package internal(set) var filter: SourceFilter?
  /// One per destination attribute that is named, sorted by name; what is not named keeps its default.
  package internal(set) var attributes: [ExplicitPropertyMapping] = []
  /// One per destination relationship that is named, sorted by name.
  package internal(set) var relationships: [ExplicitPropertyMapping] = []
  /// Words of text mappings: several sources to one destination, or several destinations of one source.
  package internal(set) var grouping = SourceGrouping.each
  /// Why it has no effect between these two versions; nil for one that is followed. A dead one has no source, no
  /// destination and no properties here: only its name can still be looked for.
  package internal(set) var deadness: Deadness?
}

/// Why an entity mapping has no effect, and what it would have done.
package struct Deadness: Sendable, Hashable {
  /// In words that follow the mapping's name.
  package let reason: String
  /// The source entity that it names.
  package let source: String?
  /// The policy that will never run.
  package let policy: String?
}

extension ExplicitEntityMapping {
  /// The word of its type; "dead" for one without effect.
  package var typeWord: String { deadness == nil ? type.word : "dead" }

  /// An entity mapping of which only the name is left, for the reason given.
  static func dead(
    _ name: String, because reason: String, of source: String?, policy: String? = nil
  ) -> ExplicitEntityMapping {
    ExplicitEntityMapping(
      name: name, type: .undefined, source: nil, destination: nil,
      deadness: Deadness(reason: reason, source: source, policy: policy))
  }

  /// What a plan says of a dead one; nil for one that is followed.
  func deathNotice(at path: FilePath) -> HopdError? {
    deadness.map { deadness in
      HopdError(
        .deadMapping, "the entity mapping “\(name)” has no effect: \(deadness.reason)", at: Place(file: path),
        hint: "make the mapping model again for these versions, or remove the entity mapping from it")
    }
  }
}

extension ExplicitMapping {
  /// The same without dead entity mappings; what looks for their objects finds none.
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

/// NSPropertyMapping: where a destination property's value comes from.
package struct ExplicitPropertyMapping: Sendable, Hashable {
  /// Name in the destination entity.
  package let name: String
  /// nil leaves what is there: the default, or what a policy set (docs/formats/expressions.md, "Value expressions").
  /// The constant nil sets nil.
  package internal(set) var value: PropertyValue?

  /// The same with other expressions.
  func mappingExpressions(_ transform: (ExpressionNode) -> ExpressionNode) -> ExplicitPropertyMapping {
    ExplicitPropertyMapping(name: name, value: value?.mappingExpressions(transform))
  }
}

/// A property's value.
package enum PropertyValue: Sendable, Hashable {
  /// A value expression.
  case expression(ExpressionNode)
  /// Text mappings, relationships only: the object that the named mapping, which groups its sources by one key
  /// (`distinctBy`), made for that value of the key.
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

  /// The same with other expressions.
  func mappingExpressions(_ transform: (ExpressionNode) -> ExpressionNode) -> PropertyValue {
    switch self {
    case .expression(let node): .expression(transform(node))
    case .grouped(let mapping, let keys): .grouped(mapping: mapping, keys: keys.map(transform))
    case .matching(let entity, let attribute, let key):
      .matching(entity: entity, attribute: attribute, key: transform(key))
    }
  }

  /// The entity mapping whose objects it looks for by name.
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

/// How source objects and destination objects correspond. All but `each` are words of text mappings only.
package enum SourceGrouping: Sendable, Hashable {
  /// One destination object for each source object.
  case each
  /// One destination object per distinct value of the keys; sources whose keys hold a nil make none. Every source of a
  /// group is associated with the group's object.
  case distinctBy([ExpressionNode], keep: KeepRule)
  /// As `each`, but of sources with equal keys only one makes an object, and the others are associated with it; sources
  /// whose keys hold a nil are no duplicates. What was dropped is reported.
  case deduplicate(by: [ExpressionNode], keep: KeepRule)
  /// One destination object per source object and member of a to-many of it, which is `$each` in the expressions.
  case expand(ExpressionNode, entity: String)
}

extension SourceGrouping {
  /// Its expressions: keys, what is kept, members.
  var expressions: [ExpressionNode] {
    switch self {
    case .each: []
    case .distinctBy(let keys, .latest(let node)), .deduplicate(let keys, .latest(let node)): keys + [node]
    case .distinctBy(let keys, _), .deduplicate(let keys, _): keys
    case .expand(let members, _): [members]
    }
  }

  /// The same with other expressions.
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

  /// Entities of the variables that expressions have besides `$source`.
  var variables: [String: String] { if case .expand(_, let members) = self { ["each": members] } else { [:] } }

  /// How many keys tell its objects apart, where others can look for them by keys.
  var keyCount: Int? { if case .distinctBy(let keys, _) = self { keys.count } else { nil } }
}

/// Which of several source objects stands for its group.
package enum KeepRule: Sendable, Hashable {
  /// The lowest or highest primary key.
  case lowest
  case highest
  /// The greatest value of an expression; among equals the lowest primary key.
  case latest(ExpressionNode)

  /// The same with another expression.
  func mappingExpressions(_ transform: (ExpressionNode) -> ExpressionNode) -> KeepRule {
    if case .latest(let node) = self { .latest(transform(node)) } else { self }
  }
}
