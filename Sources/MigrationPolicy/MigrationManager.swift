// A policy's handle on the migration, after NSMigrationManager. Changes are gathered and go out with the reply to the call, or
// before a question whose answer they could change: so a thousand objects cost one message, and still every question sees
// what was done before it. Confined to the policy's one thread.

/// The migration, as a policy sees it.
public final class MigrationManager {
  /// The mapping at work.
  public let mapping: EntityMapping
  /// For the policy's own use while the mapping is at work; `table(_:)` is shared by all policies of the hop.
  public var userInfo: [String: Any] = [:]

  private let entities: [PolicyObjectID.Side: [String: PolicyEntity]]
  private var ask: ((PolicyWireRequest) throws -> PolicyAnswer)?
  /// Counts calls: what is known of destination objects is true within one.
  private(set) var generation = 0
  /// Objects in the policy's hands during this call.
  private var objects: [PolicyObjectID: ManagedObject] = [:]
  private var keys = PolicyKeys(next: [:])
  private var changes: [PolicyWireOperation] = []
  private var batch = 0

  /// Sources of this call by their place in it, with the objects of default creation.
  private var standards: [PolicyObjectID: (index: Int, object: PolicyObject)] = [:]
  /// Associations that this call has made.
  private var associations: [PolicyObjectID: [PolicyObjectID]] = [:]
  /// Was a source associated outside its own turn? Then the engine is asked.
  private var hasForeignAssociations = false
  private var tables: [String: PolicyTable] = [:]

  init(_ introduction: PolicyIntroduction) {
    mapping = EntityMapping(introduction: introduction)
    entities = [
      .source: Self.byName(introduction.sourceEntities), .destination: Self.byName(introduction.destinationEntities),
    ]
  }

  private static func byName(_ entities: [PolicyEntity]) -> [String: PolicyEntity] {
    Dictionary(entities.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
  }

  // MARK: Objects

  /// Inserts a new object of the destination model; its attributes have the model's defaults until they are set.
  public func insertNewObject(forEntityName name: String) throws -> ManagedObject {
    let entity = try entity(name, .destination)
    guard !entity.isAbstract else { throw PolicyError("\(name) is abstract: no object can be of it") }
    guard let key = keys.next[entity.root], key < .max else { throw PolicyError("there is no next key for \(name)") }
    keys.next[entity.root] = key + 1
    let id = PolicyObjectID(side: .destination, entity: name, key: key)
    return insert(PolicyObject(id: id, values: [:]), entity, as: .plain(.insert(PolicyObject(id: id, values: [:]))))
  }

  /// Default creation: inserts the object that the mapping's attribute expressions make of a source, and associates it.
  @discardableResult
  public func insertStandardInstance(for source: ManagedObject) throws -> ManagedObject {
    guard let standard = standards.removeValue(forKey: source.objectID) else {
      throw PolicyError("default creation is for a source that was just offered, and only once")
    }
    let entity = try entity(standard.object.id.entity, .destination)
    associations[source.objectID, default: []].append(standard.object.id)
    return insert(standard.object, entity, as: .standard(standard.index, replacing: [:]))
  }

  private func insert(_ object: PolicyObject, _ entity: PolicyEntity, as operation: PolicyWireOperation)
    -> ManagedObject
  {
    let made = ManagedObject(object.id, entity: entity, values: object.values, manager: self)
    made.pending = (batch, changes.count)
    objects[object.id] = made
    changes.append(operation)
    return made
  }

  /// Deletes an object of the destination; what points to it becomes nil.
  public func delete(_ object: ManagedObject) throws {
    guard object.objectID.side == .destination else { throw PolicyError("the source store is never changed") }
    object.pending = nil
    objects[object.objectID] = nil
    add(.delete(object.objectID))
  }

  /// An object by its id; no question is asked.
  public func object(with id: PolicyObjectID) throws -> ManagedObject {
    if let known = objects[id] { return known }
    return adopt(PolicyObject(id: id, values: [:]), try entity(id.entity, id.side))
  }

  /// The one object of this id in this call: a kept one, without what it knew of a store that has changed since, or the one
  /// that was handed out meanwhile.
  func current(_ kept: ManagedObject) -> ManagedObject {
    if let other = objects[kept.objectID] { return other }
    if kept.objectID.side == .destination { kept.values = [:] }
    kept.generation = generation
    objects[kept.objectID] = kept
    return kept
  }

  private func adopt(_ object: PolicyObject, _ entity: PolicyEntity) -> ManagedObject {
    if let known = objects[object.id] {
      known.values.merge(object.values) { $1 }
      return known
    }
    let new = ManagedObject(object.id, entity: entity, values: object.values, manager: self)
    objects[object.id] = new
    return new
  }

  private func adopt(_ object: PolicyObject) throws -> ManagedObject {
    adopt(object, try entity(object.id.entity, object.id.side))
  }

  /// Objects of an entity and of the entities below it, by primary key; every `%@` of the predicate stands for an argument.
  public func fetch(
    _ entityName: String, in side: PolicyObjectID.Side = .destination, where predicate: String? = nil,
    _ arguments: PolicyValue..., limit: Int? = nil
  ) throws -> [ManagedObject] {
    _ = try entity(entityName, side)
    let text = try predicate.map { try PolicyValue.predicate($0, arguments) }
    return try found(.fetch(side: side, entity: entityName, predicate: text, limit: limit))
  }

  // MARK: Associations

  /// associateSourceInstance:withDestinationInstance:forEntityMapping: for the mapping at work.
  public func associate(
    sourceInstance source: ManagedObject, withDestinationInstance destination: ManagedObject, for mapping: EntityMapping
  ) throws {
    guard mapping.name == self.mapping.name else {
      throw PolicyError("a policy associates for its own mapping, \(self.mapping.name)")
    }
    guard source.objectID.side == .source, destination.objectID.side == .destination else {
      throw PolicyError("an association leads from a source object to a destination object")
    }
    if standards[source.objectID] == nil, associations[source.objectID] == nil { hasForeignAssociations = true }
    associations[source.objectID, default: []].append(destination.objectID)
    add(.associate(source: source.objectID, destination: destination.objectID))
  }

  /// destinationInstancesForEntityMappingNamed:sourceInstances: finds what a mapping made of these sources; of all without a
  /// list.
  public func destinationInstances(
    forEntityMappingNamed name: String, sourceInstances sources: [ManagedObject]? = nil
  ) throws -> [ManagedObject] {
    // What the mapping at work has just made of the sources of this call is known here, unless sources were associated out
    // of turn.
    if name == mapping.name, !hasForeignAssociations, let sources,
      sources.allSatisfy({ associations[$0.objectID] != nil })
    {
      var seen: Set<PolicyObjectID> = []
      return try sources.flatMap { associations[$0.objectID] ?? [] }.filter { seen.insert($0).inserted }.map(
        object(with:))
    }
    return try found(.destinationInstances(mapping: name, sources: sources?.map(\.objectID)))
  }

  /// sourceInstancesForEntityMappingNamed:destinationInstances:
  public func sourceInstances(
    forEntityMappingNamed name: String, destinationInstances destinations: [ManagedObject]? = nil
  ) throws -> [ManagedObject] {
    try found(.sourceInstances(mapping: name, destinations: destinations?.map(\.objectID)))
  }

  // MARK: Tables and journal

  /// A table that lives as long as the hop and is shared by all its policies.
  public func table(_ name: String) -> PolicyTable {
    if let table = tables[name] { return table }
    let table = PolicyTable(name, manager: self)
    tables[name] = table
    return table
  }

  /// A line for the journal. Keys and counts, please: the journal is no place for people's data.
  public func log(_ line: String) throws { _ = try question(.plain(.log(line))) }

  // MARK: Changes

  func add(_ operation: PolicyOperation) { changes.append(.plain(operation)) }

  func set(_ object: ManagedObject, _ key: String, _ value: PolicyValue, isRelationship: Bool) {
    let single = PolicyObject(id: object.objectID, values: [key: value])
    guard !isRelationship else { return add(.set(single)) }
    object.values[key] = value
    // An attribute is seen by nobody before the changes are sent, so it joins the object's insertion or last setting.
    if let pending = object.pending, pending.batch == batch, pending.index < changes.count {
      switch changes[pending.index] {
      case .standard(let number, var values):
        changes[pending.index] = .plain(.delete(object.objectID))  // lets go of `values`, so that they are not copied
        values[key] = value
        changes[pending.index] = .standard(number, replacing: values)
        return
      case .plain(.insert(var inserted)):
        changes[pending.index] = .plain(.delete(object.objectID))
        inserted.values[key] = value
        changes[pending.index] = .plain(.insert(inserted))
        return
      case .plain(.set(var earlier)):
        changes[pending.index] = .plain(.delete(object.objectID))
        earlier.values[key] = value
        changes[pending.index] = .plain(.set(earlier))
        return
      default: break
      }
    }
    object.pending = (batch, changes.count)
    add(.set(single))
  }

  private func flush() throws {
    let sent = takeChanges()
    guard !sent.isEmpty else { return }
    guard case .done = try answer(to: .apply(sent)) else { throw PolicyError("hopd gave no proper answer to changes") }
  }

  private func takeChanges() -> [PolicyWireOperation] {
    defer {
      changes.removeAll(keepingCapacity: true)
      batch += 1
    }
    return changes
  }

  // MARK: Questions

  func load(_ object: ManagedObject, _ key: String, isToMany: Bool) throws -> PolicyValue {
    let request = PolicyRequest.values([object.objectID], properties: isToMany ? [key] : [])
    let found = try found(request)
    guard found.first?.objectID == object.objectID, let value = object.values[key] else {
      throw PolicyError(
        "\(object.entityName) \(object.objectID.key) is not in the \(object.objectID.side.rawValue) store")
    }
    return value
  }

  private func found(_ request: PolicyRequest) throws -> [ManagedObject] {
    switch try question(.plain(request)) {
    case .objects(let objects): return try objects.map(adopt)
    case .ids(let ids): return try ids.map(object(with:))
    default: throw PolicyError("hopd gave no proper answer to a question for objects")
    }
  }

  /// Asks, after changes that the answer could depend on were sent.
  func question(_ request: PolicyWireRequest) throws -> PolicyAnswer {
    if case .plain(let plain) = request, plain.dependsOnChanges { try flush() }
    return try answer(to: request)
  }

  private func answer(to request: PolicyWireRequest) throws -> PolicyAnswer {
    guard let ask else { throw PolicyError("the manager can be used in hooks only") }
    let answer = try ask(request)
    if case .refused(let reason) = answer { throw PolicyError(reason) }
    return answer
  }

  private func entity(_ name: String, _ side: PolicyObjectID.Side) throws -> PolicyEntity {
    guard let entity = entities[side]?[name] else {
      throw PolicyError("the \(side.rawValue) model has no entity \(name)")
    }
    return entity
  }

  // MARK: Calls

  /// Runs a hook with a way to ask, and gives back the changes that were not sent yet.
  func during(
    _ keys: PolicyKeys, asking ask: @escaping (PolicyWireRequest) throws -> PolicyAnswer, _ hook: () throws -> Void
  ) throws -> [PolicyWireOperation] {
    self.ask = ask
    self.keys = keys
    generation += 1
    defer {
      self.ask = nil
      objects.removeAll(keepingCapacity: true)
      standards.removeAll(keepingCapacity: true)
      associations.removeAll(keepingCapacity: true)
      changes.removeAll(keepingCapacity: true)
      for table in tables.values { table.forget() }
      batch += 1
    }
    try hook()
    for table in tables.values.sorted(by: { $0.name < $1.name }) { try table.flush() }
    return takeChanges()
  }

  /// The source of an instance, which default creation can be asked for from now on.
  func offer(_ instance: PolicySourceInstance, index: Int) throws -> ManagedObject {
    standards[instance.source.id] = (index, instance.standard)
    return try adopt(instance.source)
  }

  /// Nothing more will come of a source's own turn.
  func endTurn(of source: ManagedObject) {
    standards[source.objectID] = nil
    if associations[source.objectID] == nil { associations[source.objectID] = [] }
  }
}

/// A request on its way to the wire: changes are still in their short form.
package enum PolicyWireRequest {
  case apply([PolicyWireOperation])
  case plain(PolicyRequest)
}

extension PolicyRequest {
  /// Could changes that were not sent yet alter the answer?
  fileprivate var dependsOnChanges: Bool {
    switch self {
    case .values(let ids, _): ids.contains { $0.side == .destination }
    case .fetch(let side, _, _, _): side == .destination
    case .destinationInstances, .sourceInstances: true
    case .apply, .lookup, .remember, .log: false
    }
  }
}
