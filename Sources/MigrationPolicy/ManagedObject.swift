// An object of the source or the destination store in a policy's hands. It holds the values that came with the call and asks
// for others when they are wanted; changes are gathered by the manager. Confined to the policy's one thread.

/// An object: its entity, its key, and values by property name.
public final class ManagedObject: Hashable {
  /// Store, entity and primary key.
  public let objectID: PolicyObjectID
  /// Values that are known; of a destination object only as long as the call lasts.
  var values: [String: PolicyValue]
  /// The call in which the object was handed out, or first used again: one object per id and call.
  var generation: Int
  /// Where the object stands among the changes not yet sent, and in which batch of them.
  var pending: (batch: Int, index: Int)?
  let entity: PolicyEntity
  private let manager: MigrationManager

  init(_ objectID: PolicyObjectID, entity: PolicyEntity, values: [String: PolicyValue], manager: MigrationManager) {
    self.objectID = objectID
    self.entity = entity
    self.values = values
    self.manager = manager
    generation = manager.generation
  }

  /// Name of the object's entity.
  public var entityName: String { objectID.entity }

  /// Names of the stored attributes of the entity, its parents' included.
  public var attributeNames: [String] {
    entity.properties.filter { !$0.value.isRelationship }.map(\.key).sorted()
  }

  /// Names of the relationships.
  public var relationshipNames: [String] { entity.properties.filter(\.value.isRelationship).map(\.key).sorted() }

  /// Has the entity a property of this name?
  public func has(_ key: String) -> Bool { entity.properties[key] != nil }

  /// A value; `object` or `null` for a to-one, `objects` for a to-many.
  public func value(forKey key: String) throws -> PolicyValue {
    let property = try property(key)
    guard isCurrent else { return try manager.current(self).value(forKey: key) }
    // The other end of a relationship may have been changed through another object, so a destination's are always asked for.
    let isKnown = objectID.side == .source || !property.isRelationship
    if isKnown, let value = values[key] { return value }
    return try manager.load(self, key, isToMany: property.kind != "to-one" && property.isRelationship)
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
    guard objectID.side == .destination else {
      throw PolicyError("\(entityName).\(key) belongs to the source store, which is never changed")
    }
    switch (value, property.isRelationship) {
    case (.null, _), (.object, true), (.objects, true): break
    case (.object, false), (.objects, false):
      throw PolicyError("\(entityName).\(key) is an attribute: it takes no object")
    case (_, true): throw PolicyError("\(entityName).\(key) is a relationship: it takes objects")
    default: break
    }
    manager.set(isCurrent ? self : manager.current(self), key, value, isRelationship: property.isRelationship)
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
    manager.add(.add(objectID, relationship: key, objects.map(\.objectID)))
  }

  /// Takes objects out of a to-many relationship.
  public func remove(_ objects: [ManagedObject], from key: String) throws {
    try changeable(key)
    manager.add(.remove(objectID, relationship: key, objects.map(\.objectID)))
  }

  /// An object that a policy has kept from an earlier call knows old values, and there may be a newer one of the same id.
  private var isCurrent: Bool { generation == manager.generation }

  private func changeable(_ key: String) throws {
    guard objectID.side == .destination, try property(key).isRelationship else {
      throw PolicyError("\(entityName).\(key) is no relationship of a destination object")
    }
  }

  private func property(_ key: String) throws -> PolicyProperty {
    guard let property = entity.properties[key] else {
      throw PolicyError("\(entityName) has no property \(key) in the \(objectID.side.rawValue) model")
    }
    return property
  }

  public static func == (a: ManagedObject, b: ManagedObject) -> Bool { a.objectID == b.objectID }

  public func hash(into hasher: inout Hasher) { hasher.combine(objectID) }
}

extension PolicyProperty {
  /// Kinds of relationships are words of their own; attributes have the names of their types.
  var isRelationship: Bool { kind == "to-one" || kind == "to-many" || kind == "ordered to-many" }
}
