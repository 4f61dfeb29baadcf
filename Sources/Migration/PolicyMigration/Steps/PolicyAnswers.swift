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
  /// The maximum number of queries that stay prepared.
  static let keptFetches = 128
  /// The maximum number of objects in one predicate: each is a table of the query.
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
        throw PolicyRefusal(reason: "no object \(id.entity) \(id.key) in the \(id.side.rawValue)")
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
    guard let targets = targets[side.side] else { throw PolicyRefusal(reason: "no such side") }
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
    guard let side = sides[name] else { throw PolicyRefusal(reason: "no \(name.rawValue)") }
    return side
  }
}

// Fetch requests of policies. Objects in a predicate are further tables of the query, each of a single row, so that a
// query is prepared once for any objects.

extension PolicyAnswers {
  /// Returns the objects that match a request; `objects` are its variables.
  func fetch(
    _ text: PolicyFetchText, _ objects: [String: PolicyObjectID], limit: Int?, page: PolicyPage
  ) throws -> [PolicyObject] {
    let side = try self.side(text.side)
    guard page.after == nil || text.sort.isEmpty else {
      throw PolicyRefusal(reason: "objects after a primary key come in the order of keys: fetch them without another")
    }
    try check(objects, text, side)
    let fetch: Fetch
    if let known = fetches[text] {
      fetch = known
    } else {
      fetch = try prepared(text, side)
      if fetches.count >= Self.keptFetches { fetches = [:] }
      fetches[text] = fetch
    }
    // Core Data's primary keys begin at 1, but a row may have any key.
    let (first, isPastLast) = page.after?.addingReportingOverflow(1) ?? (Int64.min, false)
    if isPastLast { return [] }
    try fetch.statement.bind(text.names.map { .integer(objects[$0]?.key ?? 0) } + [.integer(first)])
    defer { fetch.statement.reset() }
    var found: [PolicyObject] = []
    var weight = 0
    var left = page.offset
    while found.count < limit ?? .max, try fetch.statement.step() {
      guard let entity = side.entityName(fetch.statement.integer(at: 1)) else { continue }
      let id = PolicyObjectID(side: text.side, entity: entity, key: fetch.statement.integer(at: 0))
      if let test = fetch.test, try !test(id, objects) { continue }
      if left > 0 {
        left -= 1
        continue
      }
      guard let object = try object(id, on: side, [], weight: &weight) else { continue }
      found.append(object)
    }
    return found
  }

  private func check(_ objects: [String: PolicyObjectID], _ text: PolicyFetchText, _ side: PolicySide) throws {
    guard objects.count <= Self.fetchObjects else {
      throw PolicyRefusal(
        reason: "the predicate names more than \(Self.fetchObjects) objects; ask for those of some at a time")
    }
    for id in objects.values {
      guard id.side == text.side else {
        throw PolicyRefusal(
          reason: "the predicate names an object of the \(id.side.rawValue) in a fetch of the \(text.side.rawValue)")
      }
      guard let shape = side.shape(of: id.entity),
        try targets[id.side]?.number(of: id.key, in: shape.table.name) == shape.number
      else { throw PolicyRefusal(reason: "the predicate names \(id.entity) \(id.key), which does not exist") }
    }
  }

  private func prepared(_ text: PolicyFetchText, _ side: PolicySide) throws -> Fetch {
    guard let shape = side.shape(of: text.entity) else {
      throw PolicyRefusal(reason: "the \(text.side.rawValue) version has no entity \(text.entity)")
    }
    var tables = ["\(side.qualified(shape.table.name)) AS s"]
    var conditions = ["s.\"Z_PK\" >= ?\(text.names.count + 1)"]
    let numbers = side.schema.numbersOfSubtree(of: text.entity)
    if numbers.count < shape.table.entities.count {
      conditions.append("s.\"Z_ENT\" IN (\(numbers.map(String.init).joined(separator: ", ")))")
    }
    for (index, name) in text.names.enumerated() {
      guard let named = text.variables[name].flatMap({ side.shape(of: $0) }) else { continue }
      let alias = PolicyFetchText.alias(index)
      tables.append("\(side.qualified(named.table.name)) AS \(alias)")
      conditions.append("\(alias).\"Z_PK\" = ?\(index + 1)")
    }
    var test: ((PolicyObjectID, [String: PolicyObjectID]) throws -> Bool)?
    if let predicate = text.predicate {
      switch try usable("predicate", { try expressions.predicate(predicate, of: text, side, connection: connection) }) {
      case .sql(let sql): conditions.append("(\(sql))")
      case .evaluated(let body): test = body
      }
    }
    let order = try usable("order") { try text.sort.map { try expressions.order($0, of: text, side) } }
    return Fetch(
      statement: try connection.prepare(
        "SELECT s.\"Z_PK\", s.\"Z_ENT\" FROM \(tables.joined(separator: ", "))"
          + " WHERE " + conditions.joined(separator: " AND ")
          + " ORDER BY \((order + ["s.\"Z_PK\""]).joined(separator: ", "))"), test: test)
  }

  private func usable<Part>(_ what: String, _ body: () throws -> Part) throws -> Part {
    do {
      return try body()
    } catch let error as HopdError {
      throw PolicyRefusal(reason: "the \(what) cannot be used: \(error.headline)")
    } catch let error as NotCompilable {
      throw PolicyRefusal(reason: "the \(what) cannot be used: \(error.reason)")
    }
  }
}
