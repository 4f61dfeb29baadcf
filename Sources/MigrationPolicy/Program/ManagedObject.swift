// An object of the source or the destination store in a policy's hands. It holds the values that came with the call and
// asks for others when they are wanted; changes are gathered by the manager. Confined to the policy's one thread.

/// An object: its entity, its key, and values by property name.
public final class ManagedObject: Hashable {
  /// Values that were asked for or set; of a destination object only as long as the call lasts.
  var known: PolicyFields
  /// The row in which the object came along: most of its values are never inspected, so they stay there.
  var row: PolicyObjectRow?
  /// The call in which the object was handed out, or first used again: one object per id and call.
  var generation: Int
  /// Where the object is among the changes not yet sent, and in which part of them.
  var pending: (part: Int, index: Int)?
  let entity: PolicyEntityDescription
  /// Primary key.
  let key: Int64
  private let manager: MigrationManager

  init(
    _ entity: PolicyEntityDescription, _ key: Int64, known: PolicyFields = PolicyFields(), row: PolicyObjectRow? = nil,
    manager: MigrationManager
  ) {
    self.entity = entity
    self.key = key
    self.known = known
    self.row = row
    self.manager = manager
    generation = manager.generation
  }

  /// Store, entity and primary key.
  public var objectID: PolicyObjectID { PolicyObjectID(side: entity.side, entity: entity.name, key: key) }

  /// Name of the object's entity.
  public var entityName: String { entity.name }

  /// What the object is known by within a call.
  var place: PolicyObjectPlace { PolicyObjectPlace(entity: ObjectIdentifier(entity), key: key) }

  /// Names of the stored attributes of the entity, its parents' included.
  public var attributeNames: [String] {
    entity.properties.filter { !$0.value.isRelationship }.map(\.key).sorted()
  }

  /// Names of the relationships.
  public var relationshipNames: [String] { entity.properties.filter(\.value.isRelationship).map(\.key).sorted() }

  /// The entity that a relationship leads to; objects of its subentities may be there.
  public func destinationEntityName(forRelationship key: String) throws -> String {
    guard let destination = try property(key).destination else {
      throw PolicyError("\(entityName).\(key) is not a relationship")
    }
    return destination
  }

  /// Has the entity a property of this name?
  public func has(_ key: String) -> Bool { entity.properties[key] != nil }

  /// A value; `object` or `null` for a to-one, `objects` for a to-many.
  public func value(forKey key: String) throws -> PolicyValue {
    let property = try property(key)
    guard isCurrent else { return try manager.current(self).value(forKey: key) }
    // The other end of a relationship may have been changed through another object, so a destination's are always asked
    // for.
    let isRelationship = property.isRelationship
    if entity.side == .source || !isRelationship {
      if let value = known[key] { return value }
      if let value = try row?.value(key) { return value }
    }
    return try manager.load(self, key, isToMany: isRelationship && property.kind != "to-one")
  }

  /// A text, nil where the value is nil.
  public func string(forKey key: String) throws -> String? { try value(forKey: key).string }

  /// The object of a to-one relationship.
  public func object(forKey key: String) throws -> ManagedObject? {
    guard case .object(let id) = try value(forKey: key) else { return nil }
    return try manager.object(with: id)
  }

  /// The objects of a relationship, in its order if it has one.
  public func objects(forKey key: String) throws -> [ManagedObject] {
    switch try value(forKey: key) {
    case .object(let id): return [try manager.object(with: id)]
    case .objects(let ids): return try ids.map { try manager.object(with: $0) }
    default: return []
    }
  }

  /// Sets a value of a destination object. The other end of a relationship follows.
  public func setValue(_ value: PolicyValue, forKey key: String) throws {
    let property = try property(key)
    guard entity.side == .destination else {
      throw PolicyError("\(entityName).\(key) belongs to the source store, which is never changed")
    }
    switch (value, property.isRelationship) {
    case (.null, _), (.object, true), (.objects, true): break
    case (.object, false), (.objects, false):
      throw PolicyError("\(entityName).\(key) is an attribute: it takes no object")
    case (_, true): throw PolicyError("\(entityName).\(key) is a relationship: it takes objects")
    default: break
    }
    try manager.set(isCurrent ? self : manager.current(self), key, value, isRelationship: property.isRelationship)
  }

  /// Sets a to-one relationship.
  public func setValue(_ object: ManagedObject?, forKey key: String) throws {
    try setValue(object.map { .object($0.objectID) } ?? .null, forKey: key)
  }

  /// Sets a to-many relationship, in this order if it has one.
  public func setValue(_ objects: [ManagedObject], forKey key: String) throws {
    try setValue(.objects(objects.map(\.objectID)), forKey: key)
  }

  /// Adds objects to a to-many relationship.
  public func add(_ objects: [ManagedObject], to key: String) throws {
    try changeable(key)
    try manager.add(.add(objectID, relationship: key, objects.map(\.objectID)))
  }

  /// Takes objects out of a to-many relationship.
  public func remove(_ objects: [ManagedObject], from key: String) throws {
    try changeable(key)
    try manager.add(.remove(objectID, relationship: key, objects.map(\.objectID)))
  }

  /// An object that a policy has kept from an earlier call knows old values, and there may be a newer one of the same
  /// id.
  private var isCurrent: Bool { generation == manager.generation }

  private func changeable(_ key: String) throws {
    guard entity.side == .destination, try property(key).isRelationship else {
      throw PolicyError("\(entityName).\(key) is not a relationship of a destination object")
    }
  }

  private func property(_ key: String) throws -> PolicyEntityDescription.Property {
    guard let property = entity.properties[key] else {
      throw PolicyError("\(entityName) has no property \(key) in the \(entity.side.rawValue) model\(entity.step(key))")
    }
    return property
  }

  public static func == (a: ManagedObject, b: ManagedObject) -> Bool { a.place == b.place }

  public func hash(into hasher: inout Hasher) { hasher.combine(place) }
}

/// An object within a call: entities are described once, so their identity serves.
struct PolicyObjectPlace: Hashable {
  let entity: ObjectIdentifier
  let key: Int64
}

/// An entity of one side, with what is asked of its properties over and over.
final class PolicyEntityDescription {
  struct Property {
    let kind: String
    let isRelationship: Bool
    let destination: String?
  }

  let side: PolicyObjectID.Side
  let name: String
  let root: String
  let isAbstract: Bool
  let properties: [String: Property]

  init(_ entity: PolicyEntity, _ side: PolicyObjectID.Side) {
    self.side = side
    name = entity.name
    root = entity.root
    isAbstract = entity.isAbstract
    properties = entity.properties.mapValues {
      Property(kind: $0.kind, isRelationship: $0.isRelationship, destination: $0.destination)
    }
  }

  /// What to write for a key path: objects are asked key by key.
  func step(_ path: String) -> String {
    let keys = path.split(separator: ".", maxSplits: 1).map(String.init)
    guard keys.count == 2, let first = properties[keys[0]], first.isRelationship else { return "" }
    return first.kind == "to-one"
      ? ": ask object(forKey: \"\(keys[0])\") for \"\(keys[1])\""
      : ": ask each of objects(forKey: \"\(keys[0])\") for \"\(keys[1])\""
  }
}

/// A row of a batch, as an object's values.
struct PolicyObjectRow {
  /// Where the columns of the batch's shapes are, by name.
  final class Columns {
    let entity: PolicyEntityDescription
    let numbers: [String: Int]

    init(_ entity: PolicyEntityDescription, _ columns: [String]) {
      self.entity = entity
      numbers = Dictionary(columns.enumerated().map { ($0.element, $0.offset) }) { first, _ in first }
    }
  }

  let batch: PolicyBatch
  let columns: Columns
  let index: Int
  let isStandard: Bool

  /// The value of a column; nil where the row has none of that name.
  func value(_ name: String) throws -> PolicyValue? {
    guard let column = columns.numbers[name] else { return nil }
    return isStandard ? try batch.standardValue(index, column) : try batch.sourceValue(index, column)
  }
}

extension PolicyProperty {
  /// Kinds of relationships are words of their own; attributes have the names of their types.
  var isRelationship: Bool { kind == "to-one" || kind == "to-many" || kind == "ordered to-many" }
}
