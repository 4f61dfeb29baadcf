// Hops with policies over small stores: the tests' own models and rows, mapping models as values, and policies as
// closures in the test's process. The tests read the results with SQL, by the names of the destination's layout.

import Diagnostics
import Expressions
import FoundationEssentials
import ManagedObjectModel
import MigrationPolicy
import OtherPrograms
import PersistentStore
import PropertyLists
import SQLite
import SystemPackage
import Testing

@testable import MappingModel
@testable import MigrationEngine
@testable import MigrationPlanning
@testable import PolicyMigration

// MARK: Models

func attribute(
  _ name: String, _ type: AttributeType = .string, optional: Bool = true, value: AttributeDefault? = nil,
  external: Bool = false
) -> Attribute {
  Attribute(name: name, type: type, isOptional: optional, defaultValue: value, allowsExternalStorage: external)
}

func toOne(_ name: String, _ destination: String, inverse: String? = nil) -> Relationship {
  Relationship(name: name, destinationEntityName: destination, inverseName: inverse)
}

func toMany(_ name: String, _ destination: String, inverse: String? = nil, ordered: Bool = false) -> Relationship {
  Relationship(
    name: name, destinationEntityName: destination, inverseName: inverse, isToMany: true, isOrdered: ordered)
}

func entity(
  _ name: String, parent: String? = nil, abstract: Bool = false, _ attributes: [Attribute] = [],
  _ relationships: [Relationship] = []
) -> Entity {
  Entity(
    name: name, parentName: parent, isAbstract: abstract, attributes: attributes, relationships: relationships)
}

// MARK: Mappings

func mapping(
  _ name: String, _ source: String?, _ destination: String?, type: EntityMappingType = .custom, policy: String? = nil,
  userInfo: [String: PropertyListValue] = [:], filter: PredicateNode? = nil,
  _ attributes: [String: ExpressionNode] = [:],
  _ relationships: [String: ExpressionNode] = [:]
) -> ExplicitEntityMapping {
  func properties(_ values: [String: ExpressionNode]) -> [ExplicitPropertyMapping] {
    values.sorted { $0.key < $1.key }.map { ExplicitPropertyMapping(name: $0.key, value: .expression($0.value)) }
  }
  return ExplicitEntityMapping(
    name: name, type: type, source: source, destination: destination, policy: policy, userInfo: userInfo,
    filter: filter.map { SourceFilter(text: "…", predicate: $0) }, attributes: properties(attributes),
    relationships: properties(relationships))
}

/// `$source.a.b`.
func source(_ path: String...) -> ExpressionNode { .keyPath(.variable("source"), path.map { .key($0) }) }

/// `FUNCTION($manager, "destinationInstancesForEntityMappingNamed:sourceInstances:", "name", $source.relationship)`.
func made(by mapping: String, of relationship: String) -> ExpressionNode {
  .destinationInstances(.entityMapping(mapping), source(relationship))
}

// MARK: Policies

/// The interface to one call for a policy in a test.
final class Pen {
  let introduction: PolicyIntroduction
  private(set) var keys: [String: Int64]
  private let answering: (PolicyRequest) throws -> PolicyAnswer
  var operations: [PolicyOperation] = []

  init(
    _ introduction: PolicyIntroduction, _ keys: PolicyKeys,
    _ answering: @escaping (PolicyRequest) throws -> PolicyAnswer
  ) {
    self.introduction = introduction
    self.keys = keys.next
    self.answering = answering
  }

  /// Sends a request, after all changes.
  func ask(_ request: PolicyRequest) throws -> PolicyAnswer {
    if !operations.isEmpty {
      let sent = operations
      operations = []
      #expect(try answering(.apply(sent)) == .done)
    }
    return try answering(request)
  }

  func insert(_ entity: String, _ values: [String: PolicyValue] = [:]) throws -> PolicyObjectID {
    let root = try #require(introduction.destinationEntities.first { $0.name == entity }?.root)
    let key = try #require(keys[root])
    keys[root] = key + 1
    let id = PolicyObjectID(side: .destination, entity: entity, key: key)
    operations.append(.insert(PolicyObject(id: id, values: values)))
    return id
  }

  func standard(_ instance: PolicySourceInstance) -> PolicyObjectID {
    operations.append(.insert(instance.standard))
    associate(instance, instance.standard.id)
    return instance.standard.id
  }

  func associate(_ instance: PolicySourceInstance, _ id: PolicyObjectID) {
    operations.append(.associate(source: instance.source.id, destination: id))
  }

  func set(_ id: PolicyObjectID, _ values: [String: PolicyValue]) {
    operations.append(.set(PolicyObject(id: id, values: values)))
  }

  func remembered(_ table: String, _ key: PolicyValue) throws -> PolicyObjectID? {
    guard case .value(let value) = try ask(.lookup(table: table, key: key)) else { return nil }
    guard case .object(let id) = value else { return nil }
    return id
  }

  func remember(_ table: String, _ key: PolicyValue, _ id: PolicyObjectID) throws {
    #expect(try ask(.remember(table: table, key: key, .object(id))) == .done)
  }

  func ids(_ request: PolicyRequest) throws -> [PolicyObjectID] {
    guard case .ids(let ids) = try ask(request) else { throw PolicyFailure("no ids") }
    return ids
  }

  func objects(_ request: PolicyRequest) throws -> [PolicyObject] {
    let answer = try ask(request)
    guard case .objects(let objects) = answer else { throw PolicyFailure("no objects but \(answer)") }
    return objects
  }
}

struct PolicyFailure: Error {
  let reason: String
  init(_ reason: String) { self.reason = reason }
}

/// A policy as a closure over calls; nil runs the default.
typealias ClosurePolicy = (PolicyCall, Pen) throws -> PolicyReply?

/// Policies in this process, by class name. Unchecked: each stays on the thread of its test.
final class ClosurePolicies: PolicyProvider, @unchecked Sendable {
  private let policies: [String: ClosurePolicy]
  /// Called before each call, with its number in the hop; may throw.
  var onCall: (Int, PolicyCall) throws -> Void = { _, _ in }
  private(set) var calls: [PolicyCall] = []
  private(set) var introductions: [PolicyIntroduction] = []
  private(set) var opened = 0
  private(set) var closed = 0

  init(_ policies: [String: ClosurePolicy]) { self.policies = policies }

  func isBound(_ policy: String) -> Bool { policies[policy] != nil }

  func open(_ introduction: PolicyIntroduction) throws -> any PolicyConversation {
    opened += 1
    introductions.append(introduction)
    return Conversation(self, introduction, policies[introduction.policy] ?? { _, _ in nil })
  }

  private final class Conversation: PolicyConversation {
    private let owner: ClosurePolicies
    private let introduction: PolicyIntroduction
    private let policy: ClosurePolicy

    init(_ owner: ClosurePolicies, _ introduction: PolicyIntroduction, _ policy: @escaping ClosurePolicy) {
      self.owner = owner
      self.introduction = introduction
      self.policy = policy
    }

    func call(
      _ call: PolicyCall, keys: PolicyKeys, answering: (PolicyRequest) throws -> PolicyAnswer
    ) throws -> PolicyReply {
      owner.calls.append(call)
      try owner.onCall(owner.calls.count, call)
      return try withoutActuallyEscaping(answering) { answering in
        let pen = Pen(introduction, keys, answering)
        if let reply = try policy(call, pen) {
          if case .done(let operations) = reply { return .done(pen.operations + operations) }
          return reply
        }
        if case .createDestinationInstances(let instances) = call {
          for instance in instances { _ = pen.standard(instance) }
        }
        return .done(pen.operations)
      }
    }

    /// Works as a program does: in parallel with the engine, which stores the previous batch, and with standard objects
    /// as numbers.
    func create(
      _ batch: PolicyBatch, keys: PolicyKeys, meanwhile: () throws -> Void,
      answering: (PolicyRequest) throws -> PolicyAnswer
    ) throws -> PolicyBatchReply {
      var isDone = false
      func engine() throws {
        guard !isDone else { return }
        isDone = true
        try meanwhile()
      }
      let instances = batch.instances
      let reply: PolicyReply
      do {
        reply = try call(.createDestinationInstances(instances), keys: keys) { request in
          try engine()
          return try answering(request)
        }
      } catch {
        try engine()
        throw error
      }
      try engine()
      switch reply {
      case .done(let operations): return .done(Self.shortened(operations, instances))
      case .failed(let reason): return .failed(reason)
      case .results: throw PolicyFailure("results")
      }
    }

    private static func shortened(
      _ operations: [PolicyOperation], _ instances: [PolicySourceInstance]
    ) -> [PolicyWireOperation] {
      let numbers = Dictionary(instances.enumerated().map { ($0.element.standard.id, $0.offset) }) { first, _ in first }
      var short: [PolicyWireOperation] = []
      var index = 0
      while index < operations.count {
        if case .insert(let object) = operations[index], let number = numbers[object.id],
          index + 1 < operations.count,
          operations[index + 1] == .associate(source: instances[number].source.id, destination: object.id),
          instances[number].standard.values.keys.allSatisfy({ object.values[$0] != nil })
        {
          let replaced = object.values.filter { instances[number].standard.values[$0.key] != $0.value }
          short.append(.standard(number, replacing: replaced))
          index += 2
        } else {
          short.append(.plain(operations[index]))
          index += 1
        }
      }
      return short
    }

    func close() { owner.closed += 1 }
  }
}

// MARK: Stores

/// A source store, a mapping, and the staged store that the hop makes.
final class PolicyWorld {
  let folder: FilePath
  let source: StoreSchema
  let destination: StoreSchema
  let hop: Hop
  var options = EngineOptions()
  private(set) var notes: [HopNote] = []
  private(set) var reports = 0
  /// Called with each progress report; returning false stops the hop.
  var observer: (HopProgress) -> Bool = { _ in true }

  private var sourcePath: FilePath { folder.appending("Source.sqlite") }
  private var stagedPath: FilePath { folder.appending("staged") }

  /// Makes the source store, with the rows of `sql`.
  init(
    from old: [Entity], to new: [Entity], _ mappings: [[ExplicitEntityMapping]], _ sql: String, framework: Int64 = 1344
  ) throws {
    folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-policy-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
    let (before, after) = (
      ManagedObjectModel(name: "V1", entities: old), ManagedObjectModel(name: "V2", entities: new)
    )
    source = StoreSchema(model: before, frameworkVersion: framework)
    destination = StoreSchema(model: after, frameworkVersion: framework)
    let path = folder.appending("Source.sqlite")
    try FreshStore(schema: source, uuid: "6E3BD6E0-2D1A-4B8E-9C55-0C4E0C3B7F11").make(at: path)
    let connection = try Connection.ofApp(path)
    try connection.execute("PRAGMA journal_mode = DELETE")
    try connection.execute(sql)
    let mapped = MappedHop(
      mappings: mappings.enumerated().map {
        ExplicitMapping(
          name: "Map\($0.offset)", path: FilePath("/maps/Map\($0.offset).cdm"), sourceVersion: "V1",
          destinationVersion: "V2",
          entityMappings: $0.element)
      })
    hop = Hop(
      index: 0, source: before, destination: after, sourceSchema: source, destinationSchema: destination,
      mapping: InferredMapping(sourceVersion: "V1", destinationVersion: "V2", entityMappings: []), mapped: mapped,
      entities: [])
  }

  deinit { try? FileManager.default.removeItem(atPath: folder.string) }

  /// Runs the hop; the staged store remains for `rows`, and for another run.
  @discardableResult
  func run(_ policies: any PolicyProvider, isFinal: Bool = true) throws -> StagedStore {
    if !FileManager.default.fileExists(atPath: stagedPath.string) {
      try Data().write(to: URL(filePath: stagedPath.string))
    }
    let connection = try Connection(path: "unused", access: .memory)
    try connection.attachUnchanged(sourcePath, as: "store", access: .immutable)
    let executor = HopExecutor(
      connection: connection, hop: hop, source: .schema("store"), isFinal: isFinal,
      identity: Checkpoint.Identity(plan: "plan", source: "source", boot: "boot"), options: options,
      external: try ExternalDataDirectory(of: StoreLocation(database: sourcePath)),
      policySteps: PolicyHopRunner.maker(policies),
      note: { [unowned self] in notes.append($0) })
    let staged = try executor.run(into: stagedPath) { progress in
      reports += 1
      return observer(progress)
    }
    try executor.seal()
    return staged
  }

  /// Returns the bytes of the source store.
  func sourceBytes() throws -> [UInt8] { Array(try Data(contentsOf: URL(filePath: sourcePath.string))) }

  /// Returns the rows of a query on the staged store, with values as text and nil as "–".
  func rows(_ sql: String) throws -> [[String]] { try rows(sql, of: stagedPath) }

  /// Returns the same of the source store.
  func sourceRows(_ sql: String) throws -> [[String]] { try rows(sql, of: sourcePath) }

  private func rows(_ sql: String, of path: FilePath) throws -> [[String]] {
    let connection = try Connection.ofApp(path, .readOnly)
    return try connection.rows(sql) { row in
      (0..<row.columnCount).map { index in
        switch row.value(at: index) {
        case .null: "–"
        case .integer(let number): String(number)
        case .real(let number): String(number)
        case .text(let text): text
        case .blob(let bytes): "x" + bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        }
      }
    }
  }

  /// Returns the storage of a many-to-many of the destination: table, the columns of the owner and of the target, and
  /// the order of the targets.
  func pairs(_ entity: String, _ relationship: String) throws -> (
    table: String, owner: String, target: String, order: String
  ) {
    guard case .join(let join)? = destination.storage(ofRelationship: relationship, in: entity) else {
      throw PolicyFailure("\(entity).\(relationship) has no join table")
    }
    return (join.table, join.owner, join.target, join.order ?? "NULL")
  }

  func externalFile(_ name: String, _ bytes: [UInt8]) throws {
    let directory = StoreLocation(database: sourcePath).externalDataDirectory
    try FileManager.default.createDirectory(atPath: directory.string, withIntermediateDirectories: true)
    try Data(bytes).write(to: URL(filePath: directory.appending(name).string))
  }
}

/// Returns the HopdError that a body throws.
func policyError(_ body: () throws -> Void) -> HopdError? {
  do {
    try body()
    return nil
  } catch {
    return error as? HopdError
  }
}
