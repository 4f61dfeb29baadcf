// The meaning of a row of persistent history: the names of its entity and of the changed properties. The verifier
// follows names hop by hop from the store's version to the last one, independently of the engine.

import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore

/// An entity of the store's version, followed to the last version.
struct HistoryEntity {
  /// Its number there.
  let number: Int64
  /// The position in the result for each tombstone position in the store; nil for an attribute that is no longer
  /// preserved.
  let tombstones: [Int?]

  private let before: HistoryColumns
  private let after: HistoryColumns
  /// For each bit of the store, the bits of the result that mean the same property.
  private let images: [[Int]]

  /// Follows an entity; nil if a hop removes it.
  init?(_ entity: String, plan: MigrationPlan) {
    guard let first = plan.hops.first, let last = plan.hops.last else { return nil }
    var name = entity
    for hop in plan.hops {
      guard let next = hop.mapping.mapping(fromSource: name)?.destinationEntity else { return nil }
      name = next
    }
    guard let number = last.destinationSchema.number(of: name),
      let before = HistoryColumns(of: entity, in: first.sourceSchema),
      let after = HistoryColumns(of: name, in: last.destinationSchema)
    else { return nil }
    (self.number, self.before, self.after) = (number, before, after)
    images = before.bits.map { bit in
      let isAttribute = bit.group == .attribute
      guard let property = Self.property(continuing: bit.property, isAttribute: isAttribute, of: entity, plan: plan)
      else { return [] }
      return after.bits.indices.filter {
        after.bits[$0].property == property && (after.bits[$0].group == .attribute) == isAttribute
      }
    }
    let preserved = HistoryLayout.tombstoneAttributes(of: name, in: last.destination)
    tombstones = HistoryLayout.tombstoneAttributes(of: entity, in: first.source).map { attribute in
      Self.property(continuing: attribute, isAttribute: true, of: entity, plan: plan).flatMap(preserved.firstIndex)
    }
  }

  /// Returns the property of the last version that continues one of the store's; nil if a hop drops it.
  private static func property(
    continuing property: String, isAttribute: Bool, of entity: String, plan: MigrationPlan
  ) -> String? {
    var (entity, name) = (entity, property)
    for hop in plan.hops {
      guard let mapping = hop.mapping.mapping(fromSource: entity), let next = mapping.destinationEntity else {
        return nil
      }
      let found =
        isAttribute
        ? mapping.attributes.first { $0.source == name }?.destination
        : mapping.relationships.first { pairs in
          guard let source = pairs.source, let owner = hop.source.entity(named: source.entity),
            let relationship = hop.source.allRelationships(of: owner)[source.relationship]
          else { return false }
          return source.isInverted
            ? hop.source.inverse(of: relationship)?.relationship.name == name : relationship.name == name
        }?.destination
      guard let found else { return nil }
      (entity, name) = (next, found)
    }
    return name
  }

  /// Whether two values of ZCOLUMNS name the same properties. If several to-manys cannot be distinguished, the result
  /// must name all of them.
  func agree(_ old: [UInt8], _ new: [UInt8]) -> Bool {
    if isSameList { return old == new }
    guard new.count == after.byteCount else { return false }
    let found = Set(after.positions(in: new))
    guard old.count == before.byteCount else { return found.count == after.bits.count }
    var (demanded, allowed): (Set<Int>, Set<Int>) = ([], [])
    for position in before.positions(in: old) {
      let bit = before.bits[position]
      let alike = bit.group.isUnordered ? before.bits.indices.filter { before.bits[$0].group == bit.group } : [position]
      let meant = Set(alike.flatMap { images[$0] })
      allowed.formUnion(meant)
      // A discriminator belongs to its to-one, an element to its composite.
      if bit.element == nil, bit.group != .discriminator { demanded.formUnion(meant) }
    }
    for group in HistoryColumns.Group.allCases where group.isUnordered {
      let places = after.bits.indices.filter { after.bits[$0].group == group }
      guard places.contains(where: demanded.contains) else { continue }
      demanded.formUnion(places)
      allowed.formUnion(places)
    }
    return demanded.isSubset(of: found) && found.isSubset(of: allowed)
  }

  /// Whether every bit means the same as before.
  private var isSameList: Bool {
    guard before.bits.count == after.bits.count else { return false }
    return before.bits.indices.allSatisfy { position in
      let (old, new) = (before.bits[position], after.bits[position])
      let isAlone = before.bits.filter { $0.group == old.group }.count == 1
      return old.group == new.group && old.element == new.element && images[position].contains(position)
        && (!old.group.isUnordered || isAlone || old.property == new.property)
    }
  }
}
