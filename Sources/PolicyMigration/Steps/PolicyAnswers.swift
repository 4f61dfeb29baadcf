// Answers requests of policies from the current source and staged store. A request that cannot be answered is refused,
// with a reason for the author of the policy; only changes that cannot be made end the hop.

import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPolicy
import PersistentStore
import SQLite

/// Answers the requests of one hop's policies.
final class PolicyAnswers {
  /// A query for objects.
  struct Fetch {
    let statement: Statement
    /// The test of each object, for predicates without a form in SQL.
    let test: ((PolicyObjectID, [String: PolicyObjectID]) throws -> Bool)?
  }

  /// The longest line of a policy in the journal, in characters.
  static let lineLength = 4_000
  /// The most queries that stay prepared.
  static let keptFetches = 128
  /// The most objects in one predicate: each is a table of the query.
  static let fetchObjects = 40

  let connection: Connection
  private let sides: [PolicyObjectID.Side: PolicySide]
  let targets: [PolicyObjectID.Side: PolicyTargetEntity]
  private let members: [PolicyObjectID.Side: PolicyMembers]
  private let associations: PolicyAssociations
  private let memory: PolicyMemory
  private let external: PolicyExternalContent
  private let options: EngineOptions
  let expressions: PolicyExpressions
  var fetches: [PolicyFetchText: Fetch] = [:]
  private var readers: [String: Reader] = [:]

  /// Reads single objects of an entity.
  private final class Reader {
    let form: PolicyRowForm
    let statement: Statement

    init(_ form: PolicyRowForm, _ statement: Statement) {
      self.form = form
      self.statement = statement
    }
  }

  init(
    connection: Connection, sides: [PolicyObjectID.Side: PolicySide],
    targets: [PolicyObjectID.Side: PolicyTargetEntity], members: [PolicyObjectID.Side: PolicyMembers],
    associations: PolicyAssociations, memory: PolicyMemory, external: PolicyExternalContent, options: EngineOptions,
    expressions: PolicyExpressions
  ) {
    self.connection = connection
    self.sides = sides
    self.targets = targets
    self.members = members
    self.associations = associations
    self.memory = memory
    self.external = external
    self.options = options
    self.expressions = expressions
  }

  /// Returns the answer to a request, except changes and log lines, which the caller handles.
  func answer(_ request: PolicyRequest, for speaker: PolicySpeaker) throws -> PolicyAnswer {
    do {
      if let hook = speaker.hook { try Self.check(request, of: hook) }
      switch request {
      case .apply, .log: return .done
      case .fetch(let side, let entity, let predicate, let limit, let objects, let sort, let page):
        let text = PolicyFetchText(
          side: side, entity: entity, predicate: predicate, sort: sort, variables: objects.mapValues(\.entity))
        return .objects(try fetch(text, objects, limit: limit, page: page))
      case .values(let ids, let properties): return .objects(try values(of: ids, properties))
      case .destinationInstances(let mapping, let sources):
        return .ids(
          try associations.destinations(of: mapping, sources: sources, limit: options.policyAnswerObjects))
      case .sourceInstances(let mapping, let destinations):
        return .ids(
          try associations.sources(of: mapping, destinations: destinations, limit: options.policyAnswerObjects))
      case .lookup(let table, let key): return .value(try memory.value(table: table, key: key))
      case .remember(let table, let key, let value):
        try memory.remember(table: table, key: key, value: value, for: speaker)
        return .done
      }
    } catch let refusal as PolicyRefusal {
      return .refused(refusal.reason)
    }
  }

  /// Refuses requests that a stage cannot make: it has one store, and no entity mappings.
  private static func check(_ request: PolicyRequest, of hook: StageHook) throws {
    switch request {
    case .fetch(side: .source, _, _, _, _, _, _):
      let version = hook.moment == .willMigrate ? hook.stage.source : hook.stage.destination
      throw PolicyRefusal(reason: "\(hook.moment.rawValue) has one store, that of \(version): fetch without a side")
    case .destinationInstances, .sourceInstances:
      throw PolicyRefusal(reason: "a stage has no entity mappings: fetch the objects")
    default: break
    }
  }

  // MARK: Values

  private func values(of ids: [PolicyObjectID], _ properties: [String]) throws -> [PolicyObject] {
    var objects: [PolicyObject] = []
    var weight = 0
    for id in ids {
      guard let object = try object(id, on: try side(id.side), properties, weight: &weight) else {
        throw PolicyRefusal(reason: "there is no object \(id.entity) \(id.key) in the \(id.side.rawValue)")
      }
      objects.append(object)
    }
    return objects
  }

  /// Returns an object with all attributes and to-ones, or with the named properties; nil if there is none.
  func object(
    _ id: PolicyObjectID, on side: PolicySide, _ properties: [String], weight: inout Int
  ) throws -> PolicyObject? {
    guard let shape = side.shape(of: id.entity) else {
      throw PolicyRefusal(reason: "the \(id.side.rawValue) version has no entity \(id.entity)")
    }
    for name in properties where shape.slots[name] == nil {
      throw PolicyRefusal(reason: "\(id.entity) of the \(id.side.rawValue) version stores no property \(name)")
    }
    let reader = try self.reader(shape, side, properties)
    try reader.statement.bind([.integer(id.key), .integer(shape.number)])
    defer { reader.statement.reset() }
    guard try reader.statement.step() else { return nil }
    weight = weight &+ 64
    var values = try reader.form.read(reader.statement, at: 1, key: id.key, weight: &weight)
    for name in properties {
      guard case .toMany(let index)? = shape.slots[name], let members = members[id.side] else { continue }
      let found = try members.members(
        of: id.key, by: shape.toManys[index].link, limit: options.policyAnswerObjects)
      weight = weight &+ found.count &* 48
      values[name] = .objects(found)
    }
    guard weight <= options.policyAnswerBytes else {
      throw PolicyRefusal(
        reason: "the answer has more than \(options.policyAnswerBytes) bytes; ask for less at a time, or with a limit")
    }
    return PolicyObject(id: id, values: values)
  }

  private func reader(_ shape: PolicyShape, _ side: PolicySide, _ properties: [String]) throws -> Reader {
    let name = "\(side.side.rawValue)\u{0}\(shape.name)\u{0}\(properties.sorted().joined(separator: "\u{0}"))"
    if let known = readers[name] { return known }
    guard let targets = targets[side.side] else { throw PolicyRefusal(reason: "there is no such side") }
    let form = PolicyRowForm(
      shape, of: side, only: properties.isEmpty ? nil : Set(properties), targets: targets, external: external)
    let list = (["s.\"Z_PK\""] + form.selectList(alias: "s")).joined(separator: ", ")
    let reader = Reader(
      form,
      try connection.prepare(
        "SELECT \(list) FROM \(side.qualified(shape.table.name)) AS s WHERE s.\"Z_PK\" = ?1 AND s.\"Z_ENT\" = ?2"))
    if readers.count >= Self.keptFetches { readers = [:] }
    readers[name] = reader
    return reader
  }

  func side(_ name: PolicyObjectID.Side) throws -> PolicySide {
    guard let side = sides[name] else { throw PolicyRefusal(reason: "there is no \(name.rawValue)") }
    return side
  }
}
