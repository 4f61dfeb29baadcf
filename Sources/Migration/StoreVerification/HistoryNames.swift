// The meaning of a row of persistent history: the names of its entity and of the changed properties. The verifier
// follows entities and the values of deleted objects hop by hop from the store's version to the last one, independently
// of the engine; changed properties keep their names.

import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore

/// An entity of the store's version, followed to the last version.
struct HistoryEntity {
  /// Its number there.
  let number: Int64
  /// The position in the store for each tombstone position that the entity uses in the result; nil for an attribute
  /// that was not preserved.
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
      after.bits.indices.filter { bit.sets(after.bits[$0]) }
    }
    let left = HistoryLayout.tombstoneAttributes(of: entity, in: first.source).map {
      Self.attribute(continuing: $0, of: entity, plan: plan)
    }
    tombstones = HistoryLayout.tombstoneAttributes(of: name, in: last.destination).map(left.firstIndex)
  }

  /// Returns the attribute of the last version that continues one of the store's; nil if a hop drops it.
  private static func attribute(continuing attribute: String, of entity: String, plan: MigrationPlan) -> String? {
    var (entity, name) = (entity, attribute)
    for hop in plan.hops {
      guard let mapping = hop.mapping.mapping(fromSource: entity), let next = mapping.destinationEntity,
        let found = mapping.attributes.first(where: { $0.source == name })?.destination
      else { return nil }
      (entity, name) = (next, found)
    }
    return name
  }

  /// Whether two values of ZCOLUMNS name the same properties, but for those whose names the result does not have. If
  /// several to-manys cannot be distinguished, the result must name all of them.
  func agree(_ old: [UInt8], _ new: [UInt8]) -> Bool {
    if before.bits == after.bits { return old == new }
    guard new.count == after.byteCount else { return false }
    let found = Set(after.positions(in: new))
    guard old.count == before.byteCount else { return found.count == after.bits.count }
    var meant: Set<Int> = []
    for position in before.positions(in: old) {
      let group = before.bits[position].group
      let alike = group.isUnordered ? before.bits.indices.filter { before.bits[$0].group == group } : [position]
      meant.formUnion(alike.flatMap { images[$0] })
    }
    for group in HistoryColumns.Group.allCases where group.isUnordered {
      let places = after.bits.indices.filter { after.bits[$0].group == group }
      if places.contains(where: meant.contains) { meant.formUnion(places) }
    }
    return found == meant
  }
}
