// The messages between the engine and a policy, as values; Examples/Policies/MESSAGES.md has them as JSON. The engine
// sends a call and the policy ends it with a reply; in between the policy may send requests, which the engine answers
// at once. All objects have real primary keys, so no temporary names must be translated or kept in a table.

/// The id of an object of the source or of the destination store.
public struct PolicyObjectID: Sendable, Hashable {
  /// The store of an object.
  public enum Side: String, Sendable, Hashable { case source, destination }

  public var side: Side
  /// The object's concrete entity.
  public var entity: String
  /// The primary key, Z_PK.
  public var key: Int64

  /// Creates an id.
  public init(side: Side, entity: String, key: Int64) {
    self.side = side
    self.entity = entity
    self.key = key
  }
}

/// A value of a property.
public enum PolicyValue: Sendable, Hashable {
  case null
  case boolean(Bool)
  case integer(Int64)
  case double(Double)
  /// Digits with `.` as the decimal point.
  case decimal(String)
  case string(String)
  /// Seconds since 2001-01-01 UTC.
  case date(Double)
  case data([UInt8])
  /// 16 bytes.
  case uuid([UInt8])
  case uri(String)
  /// The archived bytes of a Transformable.
  case transformable([UInt8])
  /// Boxed, so that all other values stay small.
  indirect case object(PolicyObjectID)
  case objects([PolicyObjectID])
  case list([PolicyValue])
  /// An argument of a method that only the program can supply: `$manager`, `$entityMapping` or `$entityPolicy`.
  case variable(PolicyVariable)
}

/// A variable of a mapping model that stands for an object in the policy's own program.
public enum PolicyVariable: String, Sendable, Hashable, CaseIterable {
  case manager, entityMapping, entityPolicy
}

/// A key path by which fetched objects are ordered, modeled on NSSortDescriptor.
public struct PolicySort: Sendable, Hashable {
  /// A key path to a value: `name` or `author.name`.
  public var keyPath: String
  /// Whether the order is ascending, with nil first.
  public var ascending: Bool

  /// Orders by a key path.
  public init(keyPath: String, ascending: Bool = true) {
    self.keyPath = keyPath
    self.ascending = ascending
  }
}

/// The start of a fetch.
public struct PolicyPage: Sendable, Hashable {
  /// The number of objects to skip: `fetchOffset`.
  public var offset: Int
  /// Fetches only objects with a greater primary key; for fetches without an order.
  public var after: Int64?

  /// Starts at the first object, or later.
  public init(offset: Int = 0, after: Int64? = nil) {
    self.offset = offset
    self.after = after
  }
}

/// An object with values: those that were requested, or those that the engine sends with a call.
public struct PolicyObject: Sendable, Hashable {
  public var id: PolicyObjectID
  /// The values by property name: attributes and to-ones always, to-manys if they were requested.
  public var values: [String: PolicyValue]

  /// Creates a snapshot.
  public init(id: PolicyObjectID, values: [String: PolicyValue]) {
    self.id = id
    self.values = values
  }
}

/// A source object for which a policy creates destination objects.
public struct PolicySourceInstance: Sendable, Hashable {
  /// The source object with its attributes and to-ones.
  public var source: PolicyObject
  /// The object that default creation makes: its id, and the values of the mapping's attribute expressions.
  public var standard: PolicyObject

  /// Creates an instance.
  public init(source: PolicyObject, standard: PolicyObject) {
    self.source = source
    self.standard = standard
  }
}

/// A hook, and the objects that it is called for.
public enum PolicyCall: Sendable, Hashable {
  /// `beginEntityMapping`. Always first.
  case begin
  /// `FUNCTION($entityPolicy, selector, …)` of an attribute's expression, once per list of arguments.
  case method(selector: String, arguments: [[PolicyValue]])
  /// `createDestinationInstancesForSourceInstance`, for each source of a chunk in order.
  case createDestinationInstances([PolicySourceInstance])
  /// `endInstanceCreationForEntityMapping`.
  case endInstanceCreation
  /// `createRelationshipsForDestinationInstance`, for each object of a chunk, after the mapping's own relationships
  /// were set.
  case createRelationships([PolicyObjectID])
  /// `endRelationshipCreationForEntityMapping`.
  case endRelationshipCreation
  /// `performCustomValidationForEntityMapping`.
  case performCustomValidation
  /// `endEntityMapping`. Always last.
  case end
  /// The hook of a stage before its hop. The only call of its program.
  case willMigrate
  /// The hook of a stage after its hop. The only call of its program.
  case didMigrate
}

extension PolicyCall {
  /// The calls without arguments.
  static let withoutParts: [PolicyCall] = [
    .begin, .endInstanceCreation, .endRelationshipCreation, .performCustomValidation, .end, .willMigrate, .didMigrate,
  ]

  /// The instances of createDestinationInstances; empty for all other calls.
  package var instances: [PolicySourceInstance] {
    if case .createDestinationInstances(let sent) = self { sent } else { [] }
  }

  /// The call's name in messages.
  package var name: String {
    switch self {
    case .begin: "begin"
    case .method: "method"
    case .createDestinationInstances: "createDestinationInstances"
    case .endInstanceCreation: "endInstanceCreation"
    case .createRelationships: "createRelationships"
    case .endRelationshipCreation: "endRelationshipCreation"
    case .performCustomValidation: "performCustomValidation"
    case .end: "end"
    case .willMigrate: "willMigrate"
    case .didMigrate: "didMigrate"
    }
  }
}

/// A change that a policy makes in the destination store. hopd makes changes in the order in which they are sent.
public enum PolicyOperation: Sendable, Hashable {
  /// Inserts an object. Attributes without a value have the model's defaults. The key is the standard object's, or the
  /// next free one of its root entity (`PolicyKeys`).
  case insert(PolicyObject)
  /// Sets attributes and relationships (`object`, `objects`, `null`). hopd updates the inverse relationships.
  case set(PolicyObject)
  /// Adds objects to a to-many.
  case add(PolicyObjectID, relationship: String, [PolicyObjectID])
  /// Removes objects from a to-many.
  case remove(PolicyObjectID, relationship: String, [PolicyObjectID])
  /// Deletes an object. References to it become nil.
  case delete(PolicyObjectID)
  /// `associateSourceInstance:withDestinationInstance:forEntityMapping:`, for the entity mapping that is running.
  case associate(source: PolicyObjectID, destination: PolicyObjectID)
}

/// A change as it is sent.
package enum PolicyWireOperation: Sendable, Hashable {
  /// Inserts the standard object of the call's instance with this number, with some values replaced, and associates it.
  case standard(Int, replacing: [String: PolicyValue])
  case plain(PolicyOperation)
}

/// A request of a policy.
public enum PolicyRequest: Sendable, Hashable {
  /// Makes these changes now; the answer is `done`.
  case apply([PolicyOperation])
  /// Fetches the objects of an entity and its subentities that match a predicate in text form, in the order of `sort`
  /// and then by primary key, from `page` on. `objects` are variables of the predicate, by name.
  case fetch(
    side: PolicyObjectID.Side, entity: String, predicate: String?, limit: Int?,
    objects: [String: PolicyObjectID] = [:], sort: [PolicySort] = [], page: PolicyPage = PolicyPage())
  /// Fetches values of objects. Without names, all but the to-manys; to-manys only if they are named.
  case values([PolicyObjectID], properties: [String])
  /// `destinationInstancesForEntityMappingNamed:sourceInstances:`. Without sources, all objects of the mapping.
  case destinationInstances(mapping: String, sources: [PolicyObjectID]?)
  /// `sourceInstancesForEntityMappingNamed:destinationInstances:`
  case sourceInstances(mapping: String, destinations: [PolicyObjectID]?)
  /// Reads the value of a key in a table of the hop. All policies of the hop share its tables.
  case lookup(table: String, key: PolicyValue)
  /// Stores a value in a table of the hop until the hop ends.
  case remember(table: String, key: PolicyValue, PolicyValue)
  /// Writes a line to the journal.
  case log(String)
}

/// The answer to a request.
public enum PolicyAnswer: Sendable, Hashable {
  case done
  case objects([PolicyObject])
  case ids([PolicyObjectID])
  case value(PolicyValue)
  /// The request failed, and why; the policy may continue or fail.
  case refused(String)
}

/// The end of a call.
public enum PolicyReply: Sendable, Hashable {
  /// The hook succeeded, with the changes that were not sent yet.
  case done([PolicyOperation])
  /// The results of `method`, one per list of arguments, with the changes that were not sent yet.
  case results([PolicyValue], [PolicyOperation] = [])
  /// The hook failed (Core Data's 134170). The operator sees the reason, so it should contain no values of users.
  case failed(String)
}

/// A message of a program.
package enum PolicyProgramMessage: Sendable, Hashable {
  /// First: the version of the protocol.
  case hello(version: Int64)
  case request(PolicyRequest)
  case reply(PolicyReply)
}

/// The next free primary key per root entity of the destination. The engine sends them with every call, and a policy
/// uses them in order.
public struct PolicyKeys: Sendable, Hashable {
  /// The next free key, by root entity.
  public var next: [String: Int64]

  /// Creates a set of keys.
  public init(next: [String: Int64]) { self.next = next }
}

/// A property of an entity, as it is sent to a policy.
public struct PolicyProperty: Sendable, Hashable {
  /// "Integer 64", "String", … for attributes; "to-one", "to-many", "ordered to-many" for relationships.
  public var kind: String
  /// The destination entity of a relationship.
  public var destination: String?

  /// Describes a property.
  public init(kind: String, destination: String? = nil) {
    self.kind = kind
    self.destination = destination
  }
}

/// An entity, as it is sent to a policy: its stored properties, own and inherited.
public struct PolicyEntity: Sendable, Hashable {
  public var name: String
  /// The root entity, by which keys are counted.
  public var root: String
  public var isAbstract: Bool
  public var properties: [String: PolicyProperty]

  /// Describes an entity.
  public init(name: String, root: String, isAbstract: Bool, properties: [String: PolicyProperty]) {
    self.name = name
    self.root = root
    self.isAbstract = isAbstract
    self.properties = properties
  }
}

/// The hook of a stage for which a program is called.
public enum PolicyStage: String, Sendable, Hashable { case willMigrate, didMigrate }

/// The store that is migrated, as it was before the migration.
public struct PolicyStore: Sendable, Hashable {
  /// The path of its database.
  public var path: String
  /// Its metadata: plain values, and lists of plain values.
  public var metadata: [String: PolicyValue]

  /// Describes a store.
  public init(path: String, metadata: [String: PolicyValue]) {
    self.path = path
    self.metadata = metadata
  }
}

/// The first message to a policy: its entity mapping, and both models.
public struct PolicyIntroduction: Sendable, Hashable {
  /// The class name in the mapping model.
  public var policy: String
  /// The entity mapping: its name, type, entities and user info.
  public var mapping: String
  public var mappingType: String
  public var source: String?
  public var destination: String?
  public var userInfo: [String: PolicyValue]
  /// The text of each attribute's and relationship's value expression; nil if it has none.
  public var expressions: [String: String?]
  /// The names of the two versions.
  public var sourceVersion: String
  public var destinationVersion: String
  public var sourceEntities: [PolicyEntity]
  public var destinationEntities: [PolicyEntity]
  /// The store that is migrated; nil if the engine does not pass it.
  public var store: PolicyStore?
  /// The hook, for a program of a stage. The mapping then has the hook's name, the versions are those of the stage, and
  /// the destination entities are those of the one store.
  public var stage: PolicyStage?

  /// Creates an introduction.
  public init(
    policy: String, mapping: String, mappingType: String, source: String?, destination: String?,
    userInfo: [String: PolicyValue], expressions: [String: String?], sourceVersion: String, destinationVersion: String,
    sourceEntities: [PolicyEntity], destinationEntities: [PolicyEntity], store: PolicyStore? = nil,
    stage: PolicyStage? = nil
  ) {
    self.store = store
    self.stage = stage
    self.policy = policy
    self.mapping = mapping
    self.mappingType = mappingType
    self.source = source
    self.destination = destination
    self.userInfo = userInfo
    self.expressions = expressions
    self.sourceVersion = sourceVersion
    self.destinationVersion = destinationVersion
    self.sourceEntities = sourceEntities
    self.destinationEntities = destinationEntities
  }
}

/// A policy's reply to a batch: the changes that were not sent yet, in their short form.
package enum PolicyBatchReply: Sendable, Hashable {
  case done([PolicyWireOperation])
  case failed(String)
}

/// A conversation with a policy in another process, or in the same one. Confined to the thread of its job.
package protocol PolicyConversation: AnyObject {
  /// Runs one hook. `answering` answers the requests that the policy sends meanwhile.
  func call(
    _ call: PolicyCall, keys: PolicyKeys, answering: (PolicyRequest) throws -> PolicyAnswer
  ) throws -> PolicyReply
  /// Runs createDestinationInstances for a batch. Runs `meanwhile` once in the caller's process before the first
  /// request is answered.
  func create(
    _ batch: PolicyBatch, keys: PolicyKeys, meanwhile: () throws -> Void,
    answering: (PolicyRequest) throws -> PolicyAnswer
  ) throws -> PolicyBatchReply
  /// Ends the conversation after its last call. Throws if the program did not end well: it may have changes that it
  /// never sent.
  func finish() throws
  /// Ends the conversation and its program. Called once, also after an error.
  func close()
}

/// Opens conversations: one per entity mapping that names a policy.
package protocol PolicyProvider: Sendable {
  /// Whether the class, with or without its module, is bound to a program.
  func isBound(_ policy: String) -> Bool
  /// Throws if the class is bound to a program that cannot be started. Starts nothing.
  func check(_ policy: String) throws
  /// Starts the policy. Throws if the program cannot be started.
  func open(_ introduction: PolicyIntroduction) throws -> any PolicyConversation
}

extension PolicyProvider {
  package func check(_ policy: String) throws {}
}

extension PolicyConversation {
  package func finish() throws { close() }

  /// For a policy in the same process, in which nothing can run meanwhile.
  package func create(
    _ batch: PolicyBatch, keys: PolicyKeys, meanwhile: () throws -> Void,
    answering: (PolicyRequest) throws -> PolicyAnswer
  ) throws -> PolicyBatchReply {
    try meanwhile()
    switch try call(.createDestinationInstances(batch.instances), keys: keys, answering: answering) {
    case .done(let operations): return .done(operations.map { .plain($0) })
    case .results: throw PolicyError("it answered a hook with results")
    case .failed(let reason): return .failed(reason)
    }
  }
}
