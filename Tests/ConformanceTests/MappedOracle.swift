// A second implementation of hops with mapping models: Core Data's three passes over dumped objects, one object and one
// relationship after the other, with both ends kept consistent. It uses no keys, no tables and no SQL; the engine must
// give the same result.

import Expressions
import FoundationEssentials
import ManagedObjectModel
import MappingModel

/// A destination object of the oracle.
final class MappedObject {
  let entity: String
  let mapping: Int
  var attributes: [String: JSON] = [:]
  var relationships: [String: [String]] = [:]
  /// Relationships whose order was set from an order of the source and not changed since.
  var sequenced: Set<String> = []

  init(entity: String, mapping: Int) {
    self.entity = entity
    self.mapping = mapping
  }
}

/// Core Data's migration over dictionaries. Objects are named by their origin: "mapping:source" or, for expanding
/// mappings, "mapping:source:member".
final class MappedOracle {
  let source: ManagedObjectModel
  let destination: ManagedObjectModel
  let mappings: [ExplicitEntityMapping]
  let sources: [String: DumpedObject]
  /// Ids in the order of entities and keys.
  let order: [String]

  private(set) var objects: [String: MappedObject] = [:]
  private var created: [[(name: String, source: String, member: String?)]] = []
  private var associations: [[String: [String]]] = []
  private var groups: [[[JSONKey]: String]] = []
  /// Whether a to-one got several objects, and whether two objects of one mapping claimed a place for one.
  private(set) var hasSeveral = false
  private(set) var isContested = false
  /// Source objects that were merged into another one, by mapping.
  private(set) var merged: [Int: Int64] = [:]

  struct JSONKey: Hashable {
    let text: String
    init(_ value: JSON) { text = value.description }
  }

  init(source: ManagedObjectModel, destination: ManagedObjectModel, hop: MappedHop, objects: [DumpedObject]) {
    self.source = source
    self.destination = destination
    mappings = hop.entityMappings
    sources = Dictionary(objects.map { ($0.id, $0) }) { first, _ in first }
    order = objects.map(\.id)
  }

  func run() {
    associations = Array(repeating: [:], count: mappings.count)
    groups = Array(repeating: [:], count: mappings.count)
    created = Array(repeating: [], count: mappings.count)
    for index in mappings.indices { create(index) }
    // What a text mapping copies comes before what it gives.
    for isCopied in [true, false] {
      for index in mappings.indices { relate(index, isCopied: isCopied) }
    }
  }

  // MARK: Pass 1

  private func create(_ index: Int) {
    let mapping = mappings[index]
    guard let from = mapping.source, let to = mapping.destination else { return }
    let ids = order.filter { id in
      sources[id]?.entity == from && (mapping.filter.map { isTrue($0.predicate, on: id) } ?? true)
    }
    switch mapping.grouping {
    case .each:
      for id in ids { make(index, to, source: id, member: nil, for: [id]) }
    case .distinctBy(let keys, let keep), .deduplicate(let keys, let keep):
      var byKey: [[JSONKey]: [String]] = [:]
      var keyOrder: [[JSONKey]] = []
      var single: [String] = []
      for id in ids {
        let values = keys.map { value($0, on: id, each: nil) }
        if values.contains(.null) {
          single.append(id)
          continue
        }
        let key = values.map(JSONKey.init)
        if byKey[key] == nil { keyOrder.append(key) }
        byKey[key, default: []].append(id)
      }
      for key in keyOrder {
        guard let members = byKey[key], let speaker = representative(members, keep) else { continue }
        groups[index][key] = make(index, to, source: speaker, member: nil, for: members)
        if case .deduplicate = mapping.grouping { merged[index, default: 0] += Int64(members.count - 1) }
      }
      if case .deduplicate = mapping.grouping {
        for id in single { make(index, to, source: id, member: nil, for: [id]) }
        created[index].sort { number($0.source) < number($1.source) }
      }
    case .expand(let node, _):
      for id in ids {
        for member in reached(node, on: id, each: nil).ids { make(index, to, source: id, member: member, for: [id]) }
      }
    }
  }

  private func number(_ id: String) -> Int64 { Int64(id.split(separator: "/").last?.dropFirst() ?? "") ?? 0 }

  private func representative(_ members: [String], _ keep: KeepRule) -> String? {
    switch keep {
    case .lowest: return members.first
    case .highest: return members.last
    case .latest(let node):
      var best: (id: String, value: JSON)?
      for id in members {
        let value = value(node, on: id, each: nil)
        guard let current = best else {
          best = (id, value)
          continue
        }
        if current.value == .null && value != .null || isLess(current.value, value) { best = (id, value) }
      }
      return best?.id
    }
  }

  @discardableResult
  private func make(_ index: Int, _ entityName: String, source id: String, member: String?, for all: [String]) -> String
  {
    let name = "\(index):\(id)" + (member.map { ":\($0)" } ?? "")
    let object = MappedObject(entity: entityName, mapping: index)
    if let entity = destination.entity(named: entityName) {
      for (key, attribute) in destination.allAttributes(of: entity) {
        switch mappings[index].attributes.first(where: { $0.name == key })?.value {
        case .expression(let node)?: object.attributes[key] = value(node, on: id, each: member)
        default:
          if case .integer(let number)? = attribute.defaultValue { object.attributes[key] = .integer(number) }
        }
      }
    }
    objects[name] = object
    created[index].append((name, id, member))
    for each in all { associations[index][each, default: []].append(name) }
    return name
  }

  // MARK: Pass 2

  private func relate(_ index: Int, isCopied: Bool) {
    guard let name = mappings[index].destination, let entity = destination.entity(named: name) else { return }
    let standsForOthers = if case .deduplicate = mappings[index].grouping { true } else { false }
    for mapping in mappings[index].relationships where mapping.isCopied == isCopied {
      guard let value = mapping.value, let relationship = destination.allRelationships(of: entity)[mapping.name] else {
        continue
      }
      var claimed: [String: String] = [:]
      for (owner, id, member) in created[index] {
        var targets: [String] = []
        var isSequenced = false
        switch value {
        case .expression(.destinationInstances(let lookup, let node)):
          let found = reached(node, on: id, each: member)
          isSequenced = found.isOrdered
          for object in found.ids { targets += destinations(of: object, lookup, for: relationship) }
        case .expression: break
        case .grouped(let other, let keys):
          let key = keys.map { JSONKey(self.value($0, on: id, each: member)) }
          if let position = mappings.firstIndex(where: { $0.name == other }), let found = groups[position][key] {
            targets = [found]
          }
        case .matching(let target, let attribute, let node):
          let wanted = self.value(node, on: id, each: member)
          let possible = Set(destination.entity(named: target).map { destination.subtree(of: $0).map(\.name) } ?? [])
          if wanted != .null {
            targets = objects.filter { possible.contains($0.value.entity) && $0.value.attributes[attribute] == wanted }
              .map(\.key).sorted()
          }
        }
        var seen: Set<String> = []
        targets = targets.filter { seen.insert($0).inserted }
        if !relationship.isToMany, targets.count > 1 { hasSeveral = true }
        let inverse = destination.inverse(of: relationship)?.relationship
        if inverse.map({ !$0.isToMany }) ?? relationship.isToMany {
          for target in targets {
            if let other = claimed[target], other != owner { isContested = true }
            claimed[target] = owner
          }
        }
        // An object that stands for others keeps those that refer to any of them.
        var others: [String] = []
        if standsForOthers, relationship.isToMany, value != .expression(.constant(.null)) {
          others = (objects[owner]?.relationships[relationship.name] ?? []).filter { !targets.contains($0) }
        }
        set(owner, relationship, inverse, targets + others)
        if isSequenced, others.isEmpty { objects[owner]?.sequenced.insert(relationship.name) }
      }
    }
  }

  private func destinations(of id: String, _ lookup: InstanceLookup, for relationship: Relationship) -> [String] {
    switch lookup {
    case .entityMapping(let name):
      return mappings.firstIndex { $0.name == name }.flatMap { associations[$0][id] } ?? []
    case .sourceRelationship:
      return mappings.indices.filter { index in
        mappings[index].source == sources[id]?.entity
          && (mappings[index].destination.flatMap { destination.entity(named: $0) }.map { entity in
            destination.lineage(of: entity).contains { $0.name == relationship.destinationEntityName }
          } ?? false)
      }.flatMap { associations[$0][id] ?? [] }
    }
  }

  /// Sets one relationship of one object; the other end follows as in Core Data.
  private func set(_ owner: String, _ relationship: Relationship, _ inverse: Relationship?, _ targets: [String]) {
    guard let object = objects[owner] else { return }
    let old = object.relationships[relationship.name] ?? []
    object.relationships[relationship.name] = targets
    object.sequenced.remove(relationship.name)
    guard let inverse else {
      // A to-many without inverse stores its owner in the member's row: a member has one owner.
      guard relationship.isToMany else { return }
      for target in targets {
        for (name, other) in objects where name != owner && other.relationships[relationship.name] != nil {
          guard isSame(other, relationship, as: object) else { continue }
          other.relationships[relationship.name]?.removeAll { $0 == target }
        }
      }
      return
    }
    for target in old where !targets.contains(target) {
      objects[target]?.relationships[inverse.name]?.removeAll { $0 == owner }
    }
    for target in targets {
      guard let other = objects[target] else { continue }
      let before = other.relationships[inverse.name] ?? []
      if inverse.isToMany {
        if !before.contains(owner) {
          other.relationships[inverse.name] = before + [owner]
          other.sequenced.remove(inverse.name)
        }
      } else {
        for former in before where former != owner {
          objects[former]?.relationships[relationship.name]?.removeAll { $0 == target }
        }
        other.relationships[inverse.name] = [owner]
      }
    }
  }

  private func isSame(_ object: MappedObject, _ relationship: Relationship, as other: MappedObject) -> Bool {
    guard let left = destination.entity(named: object.entity), let right = destination.entity(named: other.entity)
    else {
      return false
    }
    return destination.declaringEntity(of: relationship.name, in: left)?.name
      == destination.declaringEntity(of: relationship.name, in: right)?.name
  }

  // MARK: Expressions

  func value(_ node: ExpressionNode, on id: String, each: String?) -> JSON {
    switch node {
    case .constant(.null): return .null
    case .constant(.integer(let number)): return .integer(number)
    case .constant(.string(let text)): return .string(text)
    case .keyPath(let base, let steps):
      guard case .key(let name)? = steps.last else { return .null }
      let path: ExpressionNode = steps.count == 1 ? base : .keyPath(base, Array(steps.dropLast()))
      guard let object = reached(path, on: id, each: each).ids.first else { return .null }
      return sources[object]?.attributes[name] ?? .null
    default: return .null
    }
  }

  /// Returns the objects of a path, without duplicates, and whether they have an order.
  func reached(_ node: ExpressionNode, on id: String, each: String?) -> (ids: [String], isOrdered: Bool) {
    switch node {
    case .selfObject, .variable("source"): return ([id], false)
    case .variable("each"): return (each.map { [$0] } ?? [], false)
    case .keyPath(let base, let steps):
      var (ids, isOrdered) = reached(base, on: id, each: each)
      for step in steps {
        guard case .key(let name) = step else {
          isOrdered = false
          continue
        }
        var next: [String] = []
        let wasOne = ids.count <= 1
        var isOrderedStep = false
        for object in ids {
          guard let found = sources[object], let entity = source.entity(named: found.entity) else { continue }
          if let relationship = source.allRelationships(of: entity)[name] {
            isOrderedStep = relationship.isToMany ? relationship.isOrdered : isOrdered
          }
          switch found.relationships[name] {
          case .string(let target)?: next.append(target)
          case .array(let targets)?:
            next += targets.compactMap { if case .string(let target) = $0 { target } else { nil } }
          default: break
          }
        }
        var seen: Set<String> = []
        ids = next.filter { sources[$0] != nil && seen.insert($0).inserted }
        isOrdered = isOrderedStep && wasOne
      }
      return (ids, isOrdered)
    default: return ([], false)
    }
  }

  private func isTrue(_ predicate: PredicateNode, on id: String) -> Bool {
    switch predicate {
    case .constant(let flag): return flag
    case .and(let parts): return parts.allSatisfy { isTrue($0, on: id) }
    case .or(let parts): return parts.contains { isTrue($0, on: id) }
    case .not(let part): return !isTrue(part, on: id)
    case .comparison(let comparison):
      let (left, right) = (
        value(comparison.left, on: id, each: nil), value(comparison.right, on: id, each: nil)
      )
      switch comparison.operation {
      case .equal: return left == right
      case .notEqual: return left != right
      case .less: return isLess(left, right)
      default: return false
      }
    }
  }

  private func isLess(_ left: JSON, _ right: JSON) -> Bool {
    switch (left, right) {
    case (.integer(let left), .integer(let right)): left < right
    case (.string(let left), .string(let right)): left.utf8.lexicographicallyPrecedes(right.utf8)
    default: false
    }
  }
}
