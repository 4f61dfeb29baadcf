// Fetch requests of policies. Objects in a predicate are further tables of the query, each of a single row, so that a
// query is prepared once for any objects.

import Diagnostics
import Expressions
import MigrationEngine
import MigrationPolicy
import PersistentStore
import SQLite

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
      else { throw PolicyRefusal(reason: "the predicate names \(id.entity) \(id.key), which is not there") }
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
