// An object of the source or the destination store. It holds the values that came with the call and fetches others when
// they are read; the manager collects the changes. Confined to the policy's one thread.

/// An object of a store: its entity, its primary key, and its values by property name.
public final class ManagedObject: Hashable {
  /// Values that came with the call, or were fetched or set. A destination object keeps them only until the call ends.
  var known: [String: PolicyValue]
  /// The call in which the object was fetched or first used again. There is one instance per id and call.
  var generation: Int
  /// The object's position among the changes not yet sent, and the part of them that it belongs to.
  var pending: (part: Int, index: Int)?
  let entity: PolicyEntityDescription
  /// The primary key.
  let key: Int64
  private let manager: MigrationManager

  init(
    _ entity: PolicyEntityDescription, _ key: Int64, known: [String: PolicyValue] = [:], manager: MigrationManager
  ) {
    self.entity = entity
    self.key = key
    self.known = known
    self.manager = manager
    generation = manager.generation
  }

  /// The object's store, entity and primary key.
  public var objectID: PolicyObjectID { PolicyObjectID(side: entity.side, entity: entity.name, key: key) }

  /// The name of the object's entity.
  public var entityName: String { entity.name }

  /// The object's identity within a call.
  var place: PolicyObjectPlace { PolicyObjectPlace(entity: ObjectIdentifier(entity), key: key) }

  /// The names of the entity's stored attributes, inherited ones included, sorted.
  public var attributeNames: [String] {
    entity.properties.filter { !$0.value.isRelationship }.map(\.key).sorted()
  }

  /// The names of the entity's relationships, sorted.
  public var relationshipNames: [String] { entity.properties.filter(\.value.isRelationship).map(\.key).sorted() }

  /// Returns the destination entity of a relationship. The objects may also be of its subentities.
  public func destinationEntityName(forRelationship key: String) throws -> String {
    guard let destination = try property(key).destination else {
      throw PolicyError("\(entityName).\(key) is not a relationship")
    }
    return destination
  }

  /// Whether the entity has a property of this name.
  public func has(_ key: String) -> Bool { entity.properties[key] != nil }

  /// Returns a value: `object` or `null` for a to-one, `objects` for a to-many.
  public func value(forKey key: String) throws -> PolicyValue {
    let property = try property(key)
    guard isCurrent else { return try manager.current(self).value(forKey: key) }
    // A change of another object may have changed the inverse here, so a destination object's relationships are always
    // fetched.
    let isRelationship = property.isRelationship
    if entity.side == .source || !isRelationship, let value = known[key] { return value }
    return try manager.load(self, key, isToMany: isRelationship && property.kind != "to-one")
  }

  /// Returns a text; nil if the value is nil.
  public func string(forKey key: String) throws -> String? { try value(forKey: key).string }

  /// Returns the object of a to-one relationship.
  public func object(forKey key: String) throws -> ManagedObject? {
    guard case .object(let id) = try value(forKey: key) else { return nil }
    return try manager.object(with: id)
  }

  /// Returns the objects of a relationship, in its order if it is ordered.
  public func objects(forKey key: String) throws -> [ManagedObject] {
    switch try value(forKey: key) {
    case .object(let id): return [try manager.object(with: id)]
    case .objects(let ids): return try ids.map { try manager.object(with: $0) }
    default: return []
    }
  }

  /// Sets a value of a destination object. hopd updates the inverse relationship.
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

  /// Sets a to-one relationship. hopd updates the inverse.
  public func setValue(_ object: ManagedObject?, forKey key: String) throws {
    try setValue(object.map { .object($0.objectID) } ?? .null, forKey: key)
  }

  /// Sets a to-many relationship, in this order if it is ordered. hopd updates the inverse.
  public func setValue(_ objects: [ManagedObject], forKey key: String) throws {
    try setValue(.objects(objects.map(\.objectID)), forKey: key)
  }

  /// Adds objects to a to-many relationship of a destination object.
  public func add(_ objects: [ManagedObject], to key: String) throws {
    try changeable(key)
    try manager.add(.add(objectID, relationship: key, objects.map(\.objectID)))
  }

  /// Removes objects from a to-many relationship of a destination object.
  public func remove(_ objects: [ManagedObject], from key: String) throws {
    try changeable(key)
    try manager.add(.remove(objectID, relationship: key, objects.map(\.objectID)))
  }

  /// Whether the object belongs to this call. One that a policy kept from an earlier call has old values, and there may
  /// be a newer instance of the same id.
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

/// An object's identity within a call: there is one description per entity, so the description's identity serves.
struct PolicyObjectPlace: Hashable {
  let entity: ObjectIdentifier
  let key: Int64
}

/// An entity of one side, with what is read of its properties again and again.
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

  /// The next step for the author who passed a key path where a single key is needed: read the objects key by key.
  func step(_ path: String) -> String {
    let keys = path.split(separator: ".", maxSplits: 1).map(String.init)
    guard keys.count == 2, let first = properties[keys[0]], first.isRelationship else { return "" }
    return first.kind == "to-one"
      ? ": ask object(forKey: \"\(keys[0])\") for \"\(keys[1])\""
      : ": ask each of objects(forKey: \"\(keys[0])\") for \"\(keys[1])\""
  }
}

extension PolicyProperty {
  /// Relationships have kinds of their own; an attribute's kind is the name of its type.
  var isRelationship: Bool { kind == "to-one" || kind == "to-many" || kind == "ordered to-many" }
}
