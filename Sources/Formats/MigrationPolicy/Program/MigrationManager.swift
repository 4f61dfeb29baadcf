// A policy's access to the migration, modeled on NSMigrationManager. It collects changes and sends them with the reply
// to the call, or before a request whose answer depends on them: a thousand objects cost one message, and every request
// sees the changes made before it. Confined to the policy's one thread.

/// The migration, as a policy sees it: inserts, changes, fetches and associates objects.
public final class MigrationManager {
  /// The entity mapping that is running.
  public let mapping: EntityMapping

  private let sourceEntities: [String: PolicyEntityDescription]
  private let destinationEntities: [String: PolicyEntityDescription]
  private var ask: ((PolicyWireRequest) throws -> PolicyAnswer)?
  /// The number of calls so far. Values of destination objects are valid within one call.
  private(set) var generation = 0
  /// The objects fetched in this call, by id; filled from `fresh` at the first look-up by id.
  private var objects: [PolicyObjectPlace: ManagedObject] = [:]
  private var fresh: [ManagedObject] = []
  private var keys = PolicyKeys(next: [:])
  private var changes: [PolicyWireOperation] = []
  private var part = 0
  /// The error of a change that was lost: it was made outside hooks and methods, or it could not be sent.
  private var lost: PolicyError?

  /// The source object that is offered, the object that default creation makes of it, their index in the call, and
  /// whether default creation has run.
  private var turn: (source: ManagedObject, standard: PolicyObject, index: Int, isTaken: Bool)?
  /// The associations that this call has made; filled from `unsorted` when a policy requests them. `unsorted` has those
  /// made since then, and the sources whose turn has ended.
  private var associations: [PolicyObjectPlace: [ManagedObject]] = [:]
  private var unsorted: [(source: ManagedObject, destination: ManagedObject?)] = []
  /// Whether a source was associated outside its own turn. If so, associations are requested from the engine.
  private var hasForeignAssociations = false
  private var tables: [String: PolicyTable] = [:]

  init(_ introduction: PolicyIntroduction) {
    mapping = EntityMapping(introduction: introduction)
    sourceEntities = Self.byName(introduction.sourceEntities, .source)
    destinationEntities = Self.byName(introduction.destinationEntities, .destination)
  }

  private static func byName(
    _ entities: [PolicyEntity], _ side: PolicyObjectID.Side
  ) -> [String: PolicyEntityDescription] {
    Dictionary(
      entities.map { ($0.name, PolicyEntityDescription($0, side)) }, uniquingKeysWith: { first, _ in first })
  }

  // MARK: Objects

  /// Inserts an object of the destination model. Its attributes have the model's defaults until they are set.
  public func insertNewObject(forEntityName name: String) throws -> ManagedObject {
    let entity = try entity(name, .destination)
    guard !entity.isAbstract else { throw PolicyError("\(name) is abstract: no object can be of it") }
    guard let key = keys.next[entity.root], key < .max else { throw PolicyError("no next key for \(name)") }
    keys.next[entity.root] = key + 1
    let id = PolicyObjectID(side: .destination, entity: name, key: key)
    return try insert(
      ManagedObject(entity, key, manager: self), as: .plain(.insert(PolicyObject(id: id, values: [:]))))
  }

  /// Default creation: inserts the object that the mapping's attribute expressions make of a source object, and
  /// associates the two. Only for the source of the running `createDestinationInstances`, and only once.
  @discardableResult
  public func insertStandardInstance(for source: ManagedObject) throws -> ManagedObject {
    guard let turn, !turn.isTaken, turn.source == source else {
      throw PolicyError("default creation is for a source that was just offered, and only once")
    }
    self.turn?.isTaken = true
    let (id, values) = (turn.standard.id, turn.standard.values)
    let made = try insert(
      ManagedObject(try entity(id.entity, id.side), id.key, known: values, manager: self),
      as: .standard(turn.index, replacing: [:]))
    unsorted.append((source, made))
    return made
  }

  private func insert(_ made: ManagedObject, as operation: PolicyWireOperation) throws -> ManagedObject {
    try requireCall()
    made.pending = (part, changes.count)
    fresh.append(made)
    changes.append(operation)
    return made
  }

  /// Deletes a destination object. References to it become nil.
  public func delete(_ object: ManagedObject) throws {
    guard object.entity.side == .destination else { throw PolicyError("the source store is never changed") }
    try add(.delete(object.objectID))
    object.pending = nil
    register()
    objects[object.place] = nil
    // Later changes must not be merged with earlier ones of the deleted object.
    part += 1
  }

  /// Returns the object with an id, without a request to the engine.
  public func object(with id: PolicyObjectID) throws -> ManagedObject {
    try adopt(PolicyObject(id: id, values: [:]))
  }

  /// Sends the changes and releases all objects. An object that is used again is fetched again.
  func letGo() throws {
    try flush()
    fresh.removeAll(keepingCapacity: true)
    objects.removeAll(keepingCapacity: true)
    generation += 1
  }

  /// Adds the objects fetched since the last look-up to `objects`.
  private func register() {
    guard !fresh.isEmpty else { return }
    for object in fresh { objects[object.place] = object }
    fresh.removeAll(keepingCapacity: true)
  }

  /// The one instance for this id in this call: one that was fetched in the meantime, or the kept one. A kept
  /// destination object loses its values, because the store has changed since.
  func current(_ kept: ManagedObject) -> ManagedObject {
    register()
    if let other = objects[kept.place] { return other }
    if kept.entity.side == .destination { kept.known = [:] }
    kept.generation = generation
    objects[kept.place] = kept
    return kept
  }

  private func adopt(_ object: PolicyObject) throws -> ManagedObject {
    let entity = try entity(object.id.entity, object.id.side)
    register()
    let place = PolicyObjectPlace(entity: ObjectIdentifier(entity), key: object.id.key)
    if let known = objects[place] {
      known.known.merge(object.values) { $1 }
      return known
    }
    let new = ManagedObject(entity, object.id.key, known: object.values, manager: self)
    objects[place] = new
    return new
  }

  // MARK: Associations

  /// `associateSourceInstance:withDestinationInstance:forEntityMapping:`, for the entity mapping that is running.
  public func associate(
    sourceInstance source: ManagedObject, withDestinationInstance destination: ManagedObject, for mapping: EntityMapping
  ) throws {
    guard mapping.name == self.mapping.name else {
      throw PolicyError("a policy associates for its own mapping, \(self.mapping.name)")
    }
    guard source.entity.side == .source, destination.entity.side == .destination else {
      throw PolicyError("an association leads from a source object to a destination object")
    }
    if turn?.source != source {
      sortAssociations()
      if associations[source.place] == nil { hasForeignAssociations = true }
    }
    unsorted.append((source, destination))
    try add(.associate(source: source.objectID, destination: destination.objectID))
  }

  private func sortAssociations() {
    for (source, destination) in unsorted {
      associations[source.place, default: []] += destination.map { [$0] } ?? []
    }
    unsorted.removeAll(keepingCapacity: true)
  }

  /// `destinationInstancesForEntityMappingNamed:sourceInstances:`: returns the objects that an entity mapping made of
  /// these sources, or of all sources if `sources` is nil.
  public func destinationInstances(
    forEntityMappingNamed name: String, sourceInstances sources: [ManagedObject]? = nil
  ) throws -> [ManagedObject] {
    // Associations that the running mapping made of this call's sources are at hand, unless sources were associated
    // outside their turn.
    if name == mapping.name, !hasForeignAssociations, let sources {
      sortAssociations()
      if sources.allSatisfy({ associations[$0.place] != nil }) {
        var seen: Set<PolicyObjectPlace> = []
        return try sources.flatMap { associations[$0.place] ?? [] }.filter { seen.insert($0.place).inserted }.map {
          try object(with: $0.objectID)
        }
      }
    }
    return try found(.destinationInstances(mapping: name, sources: sources?.map(\.objectID)))
  }

  /// `sourceInstancesForEntityMappingNamed:destinationInstances:`
  public func sourceInstances(
    forEntityMappingNamed name: String, destinationInstances destinations: [ManagedObject]? = nil
  ) throws -> [ManagedObject] {
    try found(.sourceInstances(mapping: name, destinations: destinations?.map(\.objectID)))
  }

  // MARK: Tables and journal

  /// Returns a table that lives as long as the hop. All policies of the hop share it.
  public func table(_ name: String) -> PolicyTable {
    if let table = tables[name] { return table }
    let table = PolicyTable(name, manager: self)
    tables[name] = table
    return table
  }

  /// Core Data's `userInfo` of the manager: a table that all policies of the hop share.
  public var userInfo: PolicyTable { table("userInfo") }

  /// Writes a line to the journal. Write keys and counts: people's data does not belong in the journal.
  public func log(_ line: String) throws { _ = try question(.plain(.log(line))) }

  // MARK: Changes

  func add(_ operation: PolicyOperation) throws {
    try requireCall()
    changes.append(.plain(operation))
  }

  /// Throws outside hooks and methods. The error is thrown again at the next call or at the end, even if the policy
  /// catches it.
  func requireCall() throws {
    guard ask == nil else { return }
    let error = PolicyError("a change was made outside hooks and methods: it cannot reach the store")
    lost = error
    throw error
  }

  /// Ends the session. Throws if a change was lost.
  func close() throws {
    if let lost { throw lost }
  }

  func set(_ object: ManagedObject, _ key: String, _ value: PolicyValue, isRelationship: Bool) throws {
    try requireCall()
    guard !isRelationship else { return try add(.set(PolicyObject(id: object.objectID, values: [key: value]))) }
    object.known[key] = value
    // No other code reads an attribute before the changes are sent, so it is merged into the object's insertion or last
    // setting.
    if let pending = object.pending, pending.part == part, pending.index < changes.count {
      switch changes[pending.index] {
      case .standard(let number, var values):
        changes[pending.index] = .standard(number, replacing: [:])  // releases `values`: no copy is made
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
    object.pending = (part, changes.count)
    try add(.set(PolicyObject(id: object.objectID, values: [key: value])))
  }

  private func flush() throws {
    let sent = takeChanges()
    guard !sent.isEmpty else { return }
    try send(.apply(sent))
  }

  /// Sends changes. If that fails, the changes are lost and the call fails, even if the policy catches the error.
  func send(_ changes: PolicyWireRequest) throws {
    do {
      guard case .done = try answer(to: changes) else { throw PolicyError("hopd gave no proper answer to changes") }
    } catch {
      if lost == nil { lost = PolicyError("changes could not be sent: \(error)") }
      throw error
    }
  }

  private func takeChanges() -> [PolicyWireOperation] {
    defer {
      changes.removeAll(keepingCapacity: true)
      part += 1
    }
    return changes
  }

  // MARK: Requests

  func load(_ object: ManagedObject, _ key: String, isToMany: Bool) throws -> PolicyValue {
    let request = PolicyRequest.values([object.objectID], properties: isToMany ? [key] : [])
    let found = try found(request)
    guard found.first == object, let value = object.known[key] else {
      throw PolicyError(
        "\(object.entityName) \(object.key) is not in the \(object.entity.side.rawValue) store")
    }
    return value
  }

  func found(_ request: PolicyRequest) throws -> [ManagedObject] {
    switch try question(.plain(request)) {
    case .objects(let objects): return try objects.map(adopt)
    case .ids(let ids): return try ids.map(object(with:))
    default: throw PolicyError("hopd gave no proper answer to a question for objects")
    }
  }

  /// Sends a request and returns its answer. Sends the collected changes first if the answer could depend on them.
  func question(_ request: PolicyWireRequest) throws -> PolicyAnswer {
    if case .plain(let plain) = request, plain.dependsOnChanges { try flush() }
    return try answer(to: request)
  }

  private func answer(to request: PolicyWireRequest) throws -> PolicyAnswer {
    guard let ask else { throw PolicyError("the manager can be used in hooks only") }
    if let lost { throw lost }
    let answer = try ask(request)
    if case .refused(let reason) = answer { throw PolicyError(reason) }
    return answer
  }

  func entity(_ name: String, _ side: PolicyObjectID.Side) throws -> PolicyEntityDescription {
    guard let entity = side == .source ? sourceEntities[name] : destinationEntities[name] else {
      throw PolicyError("the \(side.rawValue) model has no entity \(name)")
    }
    return entity
  }

  // MARK: Calls

  /// Runs a hook, sends its requests through `ask`, and returns the changes that were not sent yet.
  func during(
    _ keys: PolicyKeys, asking ask: @escaping (PolicyWireRequest) throws -> PolicyAnswer, _ hook: () throws -> Void
  ) throws -> [PolicyWireOperation] {
    if let lost { throw lost }
    self.ask = ask
    self.keys = keys
    generation += 1
    defer {
      self.ask = nil
      fresh.removeAll(keepingCapacity: true)
      unsorted.removeAll(keepingCapacity: true)
      if !objects.isEmpty { objects.removeAll(keepingCapacity: true) }
      if !associations.isEmpty { associations.removeAll(keepingCapacity: true) }
      changes.removeAll(keepingCapacity: true)
      turn = nil
      for table in tables.values { table.forget() }
      part += 1
    }
    try hook()
    for table in tables.values.sorted(by: { $0.name < $1.name }) { try table.flush() }
    if let lost { throw lost }
    return takeChanges()
  }

  /// Returns the source object of an instance and begins its turn, in which default creation may run for it.
  func offer(_ instance: PolicySourceInstance, _ index: Int) throws -> ManagedObject {
    let id = instance.source.id
    let entity = try entity(id.entity, id.side)
    let offered: ManagedObject
    // The policy may have looked up this object by its id already.
    register()
    if let known = objects[PolicyObjectPlace(entity: ObjectIdentifier(entity), key: id.key)] {
      known.known.merge(instance.source.values) { $1 }
      offered = known
    } else {
      offered = ManagedObject(entity, id.key, known: instance.source.values, manager: self)
      fresh.append(offered)
    }
    turn = (offered, instance.standard, index, false)
    return offered
  }

  /// Ends a source's turn.
  func endTurn(of source: ManagedObject) {
    turn = nil
    unsorted.append((source, nil))
  }
}
