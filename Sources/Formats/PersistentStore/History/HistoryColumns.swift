// ZCOLUMNS of an update: the properties of an object that the save changed, one bit each
// (docs/formats/history-and-cloudkit.md, "Changed columns").

import ManagedObjectModel

/// The bits of ZCOLUMNS for the objects of one entity.
package struct HistoryColumns: Sendable, Hashable {
  /// The groups of the bits, in this order.
  package enum Group: Int, Sendable, Hashable, CaseIterable {
    /// A to-one.
    case toOne
    /// One more for a to-one whose destination has subentities.
    case discriminator
    /// The order key of a to-one whose inverse is ordered; they are in the order of their columns.
    case orderKey
    /// An attribute with a column.
    case attribute
    /// A to-many whose inverse is a to-one, or that has none.
    case toMany
    /// A many-to-many.
    case manyToMany

    /// Whether the order of several bits in the group is unknown.
    package var isUnordered: Bool { self == .toMany || self == .manyToMany }
  }

  /// The meaning of one bit.
  package struct Bit: Sendable, Hashable {
    /// Its group.
    package let group: Group
    /// The property, of the entity or inherited.
    package let property: String
    /// The element, if the property is a composite attribute.
    package var element: String?

    /// Whether this bit sets `bit` in the value for another version: that of the property of the same name. A
    /// discriminator and an order key set their to-one too, and are only set individually.
    package func sets(_ bit: Bit) -> Bool {
      guard property == bit.property, element == bit.element else { return false }
      switch bit.group {
      case .toOne, .toMany, .manyToMany: return group != .attribute
      case .discriminator, .orderKey, .attribute: return group == bit.group
      }
    }
  }

  /// The bits, the first one highest in the first byte.
  package let bits: [Bit]
  /// The uncertain part of the list of bits, as "the composite attribute place"; nil if every part was measured.
  package let doubt: String?

  /// Finds the bits of an entity in a layout; nil for an entity that the model does not have.
  package init?(of entity: String, in schema: StoreSchema) {
    let model = schema.model
    guard let value = model.entity(named: entity) else { return nil }
    var groups: [Group: [Bit]] = [:]
    func add(_ group: Group, _ property: String, element: String? = nil) {
      groups[group, default: []].append(Bit(group: group, property: property, element: element))
    }
    var doubt: String?
    // Inherited properties come first, level by level.
    for level in model.lineage(of: value) {
      for relationship in level.relationships.sorted(by: { $0.name < $1.name }) where !relationship.isTransient {
        let name = relationship.name
        guard let storage = schema.storage(ofRelationship: name, in: level.name) else { continue }
        switch storage {
        case .toOne(let own, _):
          add(.toOne, name)
          if own.discriminator != nil { add(.discriminator, name) }
        case .members, .owned: add(.toMany, name)
        case .join: add(.manyToMany, name)
        }
      }
      for attribute in level.attributes.sorted(by: { $0.name < $1.name }) where !attribute.isTransient {
        guard attribute.type == .composite else {
          add(.attribute, attribute.name)
          continue
        }
        let elements = attribute.compositeTypeName.flatMap { model.composites[$0] } ?? []
        if elements.isEmpty || elements.contains(where: { $0.type == .composite }) {
          doubt = doubt ?? "the composite attribute \(attribute.name)"
        }
        for element in elements.map(\.name).sorted() { add(.attribute, attribute.name, element: element) }
      }
    }
    let lineage = Set(model.lineage(of: value).map(\.name))
    for case .orderKey(let owner, let name) in schema.table(of: entity)?.columns.map(\.role) ?? []
    where lineage.contains(owner) { add(.orderKey, name) }
    if groups[.orderKey]?.count ?? 0 > 1 {
      var orders = KeyOrders(model: model, numbers: schema.numbers)
      if orders.order(of: value).doubt != nil { doubt = doubt ?? "the order keys" }
    }
    // No store has shown whether the column of an owner has a bit of its own.
    let owned = schema.tables.flatMap(\.columns).lazy.compactMap { column -> String? in
      guard case .owner(let owner, let relationship) = column.role,
        let target = model.ownRelationship(relationship, of: owner), lineage.contains(target.destinationEntityName)
      else { return nil }
      return "\(owner).\(relationship)"
    }
    if let first = owned.first { doubt = doubt ?? "the column of the owner of \(first)" }
    self.doubt = doubt
    bits = Group.allCases.flatMap { groups[$0] ?? [] }
  }

  /// Number of bytes of a value.
  package var byteCount: Int { (bits.count + 7) / 8 }

  /// Returns the positions of the bits that are set in a value of `byteCount` bytes.
  package func positions(in value: [UInt8]) -> [Int] {
    bits.indices.filter { index in
      let byte = index / 8
      return value.indices.contains(byte) && value[byte] & (0x80 >> UInt8(index % 8)) != 0
    }
  }

  /// Returns a value with these bits set.
  package func value(settingPositions positions: some Sequence<Int>) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: byteCount)
    for position in positions where bits.indices.contains(position) {
      bytes[position / 8] |= 0x80 >> UInt8(position % 8)
    }
    return bytes
  }
}

extension HistoryLayout {
  /// Returns the attributes whose values a deleted object leaves in its change, in the order of ZTOMBSTONE0,
  /// ZTOMBSTONE1 ….
  ///
  /// They are in alphabetical order, own and inherited ones together (docs/formats/history-and-cloudkit.md, "History
  /// tables").
  package static func tombstoneAttributes(of entity: String, in model: ManagedObjectModel) -> [String] {
    guard let value = model.entity(named: entity) else { return [] }
    return Set(model.lineage(of: value).flatMap(\.attributes).filter(\.preservesAfterDeletion).map(\.name)).sorted()
  }
}
