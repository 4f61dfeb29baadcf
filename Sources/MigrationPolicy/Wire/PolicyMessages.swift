// What the engine and a policy say to each other, as values; docs/POLICIES.md has them as JSON. A call goes to the
// policy and ends with its reply; in between the policy may ask, and every question is answered at once. All objects
// are named by real primary keys, so nothing has to be translated later and no table of temporary names grows.

/// An object of the source or of the destination store.
public struct PolicyObjectID: Sendable, Hashable {
  /// Which store it is in.
  public enum Side: String, Sendable, Hashable { case source, destination }

  public var side: Side
  /// Its concrete entity.
  public var entity: String
  /// Z_PK.
  public var key: Int64

  /// Names an object.
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
  /// Digits with `.`.
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
  /// What only the program has, as an argument of a method: `$manager`, `$entityMapping` or `$entityPolicy`.
  case variable(PolicyVariable)
}

/// A variable of a mapping model that stands for something in the policy's own program.
public enum PolicyVariable: String, Sendable, Hashable, CaseIterable {
  case manager, entityMapping, entityPolicy
}

/// A key path by which fetched objects are ordered, after NSSortDescriptor.
public struct PolicySort: Sendable, Hashable {
  /// A key path to a value, `name` or `author.name`.
  public var keyPath: String
  /// From the least value on; nil comes first.
  public var ascending: Bool

  /// Orders by a key path.
  public init(keyPath: String, ascending: Bool = true) {
    self.keyPath = keyPath
    self.ascending = ascending
  }
}

/// Where the answer to a fetch begins.
public struct PolicyPage: Sendable, Hashable {
  /// Objects that are passed over, fetchOffset.
  public var offset: Int
  /// Only objects with a greater primary key than this; for fetches without an order.
  public var after: Int64?

  /// Begins at the first object, or later.
  public init(offset: Int = 0, after: Int64? = nil) {
    self.offset = offset
    self.after = after
  }
}

/// An object with those of its values that were asked for or are sent along.
public struct PolicyObject: Sendable, Hashable {
  public var id: PolicyObjectID
  /// By property name: attributes and to-ones always; to-manys where they were asked for.
  public var values: [String: PolicyValue]

  /// Makes a snapshot.
  public init(id: PolicyObjectID, values: [String: PolicyValue]) {
    self.id = id
    self.values = values
  }
}

/// A source object for which destination objects are wanted.
public struct PolicySourceInstance: Sendable, Hashable {
  /// The source object with its attributes and to-ones.
  public var source: PolicyObject
  /// The object that default creation makes: its id, and the values of the mapping's attribute expressions.
  public var standard: PolicyObject

  /// Makes an instance.
  public init(source: PolicyObject, standard: PolicyObject) {
    self.source = source
    self.standard = standard
  }
}

/// A hook, and what it is called on.
public enum PolicyCall: Sendable, Hashable {
  /// beginEntityMapping. Always first.
  case begin
  /// `FUNCTION($entityPolicy, selector, …)` of an attribute's expression, once per list of arguments.
  case method(selector: String, arguments: [[PolicyValue]])
  /// createDestinationInstancesForSourceInstance, for each of a chunk in order.
  case createDestinationInstances([PolicySourceInstance])
  /// endInstanceCreationForEntityMapping.
  case endInstanceCreation
  /// createRelationshipsForDestinationInstance, for each of a chunk, after the mapping's own relationships were set.
  case createRelationships([PolicyObjectID])
  /// endRelationshipCreationForEntityMapping.
  case endRelationshipCreation
  /// performCustomValidationForEntityMapping.
  case performCustomValidation
  /// endEntityMapping. Always last.
  case end
  /// The hook of a stage before its hop. The only call.
  case willMigrate
  /// The hook of a stage after its hop. The only call.
  case didMigrate
}

extension PolicyCall {
  /// The calls that name nothing.
  static let withoutParts: [PolicyCall] = [
    .begin, .endInstanceCreation, .endRelationshipCreation, .performCustomValidation, .end, .willMigrate, .didMigrate,
  ]

  /// The instances of createDestinationInstances.
  var instances: [PolicySourceInstance] { if case .createDestinationInstances(let sent) = self { sent } else { [] } }

  /// The name in messages.
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

/// A change that a policy wants in the destination store; changes happen in the order they are sent.
public enum PolicyOperation: Sendable, Hashable {
  /// Insert an object. Attributes that are not named have the model's defaults. The key is the standard object's, or
  /// the next free one of its root entity (`PolicyKeys`).
  case insert(PolicyObject)
  /// Set attributes and relationships (`object`, `objects`, `null`); the other end of a relationship follows.
  case set(PolicyObject)
  /// Add objects to a to-many.
  case add(PolicyObjectID, relationship: String, [PolicyObjectID])
  /// Take objects out of a to-many.
  case remove(PolicyObjectID, relationship: String, [PolicyObjectID])
  /// Delete an object; references to it become nil.
  case delete(PolicyObjectID)
  /// associateSourceInstance:withDestinationInstance:forEntityMapping: for the mapping at work.
  case associate(source: PolicyObjectID, destination: PolicyObjectID)
}

/// A change as it goes over the wire.
package enum PolicyWireOperation: Sendable, Hashable {
  /// Insert the standard object of the call's instance with this number, some values replaced, and associate it.
  case standard(Int, replacing: PolicyFields)
  case plain(PolicyOperation)
}

/// A question of a policy.
public enum PolicyRequest: Sendable, Hashable {
  /// Carry these changes out now; no answer but `done`.
  case apply([PolicyOperation])
  /// Objects of an entity (and below it) that fulfil a predicate in text form, in the order of `sort` and then by
  /// primary key, of which `page` is a part. The predicate knows `objects` as variables of these names.
  case fetch(
    side: PolicyObjectID.Side, entity: String, predicate: String?, limit: Int?,
    objects: [String: PolicyObjectID] = [:], sort: [PolicySort] = [], page: PolicyPage = PolicyPage())
  /// Values of objects, to-manys included where they are named; no names asks for all but the to-manys.
  case values([PolicyObjectID], properties: [String])
  /// destinationInstancesForEntityMappingNamed:sourceInstances:; no sources asks for all of the mapping.
  case destinationInstances(mapping: String, sources: [PolicyObjectID]?)
  /// sourceInstancesForEntityMappingNamed:destinationInstances:
  case sourceInstances(mapping: String, destinations: [PolicyObjectID]?)
  /// What is kept under a key in a table of the hop; tables are shared by all policies of the hop.
  case lookup(table: String, key: PolicyValue)
  /// Keep a value in a table of the hop until the hop ends.
  case remember(table: String, key: PolicyValue, PolicyValue)
  /// A line for the journal.
  case log(String)
}

/// The answer to a request.
public enum PolicyAnswer: Sendable, Hashable {
  case done
  case objects([PolicyObject])
  case ids([PolicyObjectID])
  case value(PolicyValue)
  /// The request cannot be fulfilled, and why; the policy may continue or give up.
  case refused(String)
}

/// The end of a call.
public enum PolicyReply: Sendable, Hashable {
  /// Done, with the changes that were not applied yet.
  case done([PolicyOperation])
  /// Results of `method`, as many as lists of arguments, with the changes that were not applied yet.
  case results([PolicyValue], [PolicyOperation] = [])
  /// The hook failed (Core Data's 134170): the reason is shown to the operator, so it should name no user's values.
  case failed(String)
}

/// What a program may say.
package enum PolicyProgramMessage: Sendable, Hashable {
  /// First: the version of the protocol.
  case hello(version: Int64, packed: Int64 = 0)
  case request(PolicyRequest)
  case reply(PolicyReply)
}

/// The next free primary key per root entity of the destination, sent with every call. A policy takes from it in order.
public struct PolicyKeys: Sendable, Hashable {
  /// By root entity.
  public var next: [String: Int64]

  /// Makes a set of keys.
  public init(next: [String: Int64]) { self.next = next }
}

/// A property as a policy is told of it.
public struct PolicyProperty: Sendable, Hashable {
  /// "Integer 64", "String", … for attributes; "to-one", "to-many", "ordered to-many" for relationships.
  public var kind: String
  /// For relationships: the destination entity.
  public var destination: String?

  /// Describes a property.
  public init(kind: String, destination: String? = nil) {
    self.kind = kind
    self.destination = destination
  }
}

/// An entity as a policy is told of it: own and inherited properties that are stored.
public struct PolicyEntity: Sendable, Hashable {
  public var name: String
  /// Its root entity, by which keys are counted.
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

/// The moment of a stage at which a program is called.
public enum PolicyStage: String, Sendable, Hashable { case willMigrate, didMigrate }

/// What a policy is told of the store that is migrated, as it was before.
public struct PolicyStore: Sendable, Hashable {
  /// The path of its database.
  public var path: String
  /// Its metadata, as far as they are plain values or lists of such.
  public var metadata: [String: PolicyValue]

  /// Describes a store.
  public init(path: String, metadata: [String: PolicyValue]) {
    self.path = path
    self.metadata = metadata
  }
}

/// What a policy is told first: which mapping it is in, and both models.
public struct PolicyIntroduction: Sendable, Hashable {
  /// Class name as the mapping model has it.
  public var policy: String
  /// The entity mapping: its name, type word, entities, and user info.
  public var mapping: String
  public var mappingType: String
  public var source: String?
  public var destination: String?
  public var userInfo: [String: PolicyValue]
  /// Text of each attribute's and relationship's value expression, nil where there is none.
  public var expressions: [String: String?]
  /// Version names.
  public var sourceVersion: String
  public var destinationVersion: String
  public var sourceEntities: [PolicyEntity]
  public var destinationEntities: [PolicyEntity]
  /// The store that is migrated; nil where the engine does not tell.
  public var store: PolicyStore?
  /// For a program of a stage: its moment. The mapping is named after it then, the versions are those of the stage, and
  /// the destination entities are those of the one store there is.
  public var stage: PolicyStage?

  /// Makes an introduction.
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

/// What a policy says of a batch: the changes that were not applied yet, in their short form.
package enum PolicyBatchReply: Sendable, Hashable {
  case done([PolicyWireOperation])
  case failed(String)
}

/// A policy at the other end of a pipe, or one in the same process. Confined to the thread of its job.
package protocol PolicyConversation: AnyObject {
  /// Runs one hook; questions that come meanwhile go to `answering`.
  func call(
    _ call: PolicyCall, keys: PolicyKeys, answering: (PolicyRequest) throws -> PolicyAnswer
  ) throws -> PolicyReply
  /// Runs createDestinationInstances for a batch, and `meanwhile` once in the caller's process before anything is
  /// answered.
  func create(
    _ batch: PolicyBatch, keys: PolicyKeys, meanwhile: () throws -> Void,
    answering: (PolicyRequest) throws -> PolicyAnswer
  ) throws -> PolicyBatchReply
  /// Readies the message of the batch that comes next, as far as it can be without knowing what comes before it.
  func prepare(_ batch: PolicyBatch) throws
  /// Ends the conversation after its last call. Throws where the program did not end well: it may hold changes that it
  /// never sent.
  func finish() throws
  /// Ends the conversation, and the program behind it; called once, also after an error.
  func close()
}

/// Opens conversations: one per entity mapping that names a policy.
package protocol PolicyProvider: Sendable {
  /// Is the class bound to a program? With or without its module.
  func isBound(_ policy: String) -> Bool
  /// Throws where the class is bound to something that cannot be started; nothing is started.
  func check(_ policy: String) throws
  /// Starts the policy. Throws where the program cannot be started.
  func open(_ introduction: PolicyIntroduction) throws -> any PolicyConversation
}

extension PolicyProvider {
  package func check(_ policy: String) throws {}
}

extension PolicyConversation {
  package func prepare(_ batch: PolicyBatch) throws {}
  package func finish() throws { close() }

  /// For a policy in the same process: nothing can be done meanwhile.
  package func create(
    _ batch: PolicyBatch, keys: PolicyKeys, meanwhile: () throws -> Void,
    answering: (PolicyRequest) throws -> PolicyAnswer
  ) throws -> PolicyBatchReply {
    try meanwhile()
    switch try call(.createDestinationInstances(try batch.values()), keys: keys, answering: answering) {
    case .done(let operations): return .done(operations.map { .plain($0) })
    case .results: throw PolicyError("it answered a hook with results")
    case .failed(let reason): return .failed(reason)
    }
  }
}
