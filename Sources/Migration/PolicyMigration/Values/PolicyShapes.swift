// The entities of one side of a hop by property name, with column, type and storage determined once.

import Diagnostics
import ManagedObjectModel
import MigrationEngine
import MigrationPolicy
import PersistentStore
import SQLite

/// One side of a hop.
final class PolicySide {
  let side: PolicyObjectID.Side
  let model: ManagedObjectModel
  let schema: StoreSchema
  /// The space of its tables in the connection, and the name of their schema.
  let tables: SourceTables
  var schemaName: String { tables.schemaName }
  private let names: [Int64: String]
  private var shapes: [String: PolicyShape] = [:]
  private let computed: Set<[String]>

  init(
    _ side: PolicyObjectID.Side, schema: StoreSchema, tables: SourceTables, computed: [SchemaDerivation] = []
  ) {
    self.side = side
    model = schema.model
    self.schema = schema
    self.tables = tables
    names = Dictionary(schema.numbers.map { ($0.value, $0.key) }) { first, _ in first }
    self.computed = Set(computed.map { [$0.entity, $0.attribute] })
  }

  /// Returns the entity with a number, Z_ENT.
  func entityName(_ number: Int64) -> String? { names[number] }

  /// Returns the shape of an entity; nil if the model has none of that name, or no table for it.
  func shape(of entity: String) -> PolicyShape? {
    if let shape = shapes[entity] { return shape }
    guard let shape = PolicyShape(entity, in: self, computed: computed) else { return nil }
    shapes[entity] = shape
    return shape
  }

  /// Returns `table` with the side's schema name, quoted.
  func qualified(_ table: String) -> String { tables.qualified(table) }
}

/// One entity: its table, and the storage of its own and inherited properties.
final class PolicyShape {
  /// A stored attribute.
  struct AttributeSlot {
    let name: String
    let column: String
    let form: PolicyAttributeForm
    /// Whether it is a count that hopd computes after all rows are written; policies cannot set it.
    let isComputed: Bool
  }

  /// A stored relationship.
  struct LinkSlot {
    let name: String
    let link: PolicyLink
  }

  /// The position of a property in `attributes`, `toOnes` or `toManys`.
  enum Slot {
    case attribute(Int)
    case toOne(Int)
    case toMany(Int)
  }

  let entity: Entity
  let number: Int64
  let table: EntityTable
  /// Sorted by name; the same for the same model, whatever the store.
  let attributes: [AttributeSlot]
  let toOnes: [LinkSlot]
  let toManys: [LinkSlot]
  let slots: [String: Slot]

  var name: String { entity.name }
  var root: String { table.rootEntity }

  fileprivate init?(_ name: String, in side: PolicySide, computed: Set<[String]>) {
    guard let entity = side.model.entity(named: name), let number = side.schema.number(of: name),
      let table = side.schema.table(of: name)
    else { return nil }
    self.entity = entity
    self.number = number
    self.table = table
    var attributes: [AttributeSlot] = []
    for (name, attribute) in side.model.allAttributes(of: entity).sorted(by: { $0.key < $1.key }) {
      guard let column = side.schema.column(ofAttribute: name, in: entity.name) else { continue }
      let owner = side.model.declaringEntity(of: name, in: entity)?.name ?? entity.name
      attributes.append(
        AttributeSlot(
          name: name, column: column, form: PolicyAttributeForm(attribute: attribute),
          isComputed: computed.contains([owner, name])))
    }
    self.attributes = attributes
    var toOnes: [LinkSlot] = []
    var toManys: [LinkSlot] = []
    for (name, relationship) in side.model.allRelationships(of: entity).sorted(by: { $0.key < $1.key }) {
      guard let link = PolicyLink(relationship, of: entity.name, in: side) else { continue }
      let slot = LinkSlot(name: name, link: link)
      if relationship.isToMany { toManys.append(slot) } else { toOnes.append(slot) }
    }
    self.toOnes = toOnes
    self.toManys = toManys
    slots = Dictionary(
      attributes.enumerated().map { ($0.element.name, Slot.attribute($0.offset)) }
        + toOnes.enumerated().map { ($0.element.name, Slot.toOne($0.offset)) }
        + toManys.enumerated().map { ($0.element.name, Slot.toMany($0.offset)) }
    ) { first, _ in first }
  }

  /// Returns the link of a relationship; nil if there is none of that name.
  func link(_ name: String) -> PolicyLink? {
    switch slots[name] {
    case .toOne(let index): toOnes[index].link
    case .toMany(let index): toManys[index].link
    case .attribute, nil: nil
    }
  }
}

/// A stored relationship with the storage of its pairs, seen from the entity that has it.
struct PolicyLink {
  let name: String
  let isToMany: Bool
  let isOrdered: Bool
  /// The declared destination.
  let target: String
  /// The table of all possible targets.
  let targetTable: String
  /// The Z_ENT of the possible targets.
  let targetNumbers: Set<Int64>
  let storage: RelationshipStorage

  fileprivate init?(_ relationship: Relationship, of entity: String, in side: PolicySide) {
    guard let stored = side.schema.storage(ofRelationship: relationship.name, in: entity),
      let targetTable = side.schema.table(of: relationship.destinationEntityName)
    else { return nil }
    name = relationship.name
    isToMany = relationship.isToMany
    isOrdered = relationship.isOrdered
    target = relationship.destinationEntityName
    self.targetTable = targetTable.name
    targetNumbers = Set(side.schema.numbersOfSubtree(of: relationship.destinationEntityName))
    storage = stored
  }
}
