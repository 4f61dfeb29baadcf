// Key paths as joins (docs/formats/expressions.md, "Key paths"; docs/formats/store-layout.md, "To-one relationships"
// and "Join tables"), and the operations on their results: collection operators, SUBQUERY, elements.

import ManagedObjectModel
import PersistentStore
import SQLite

extension SQLExpressionCompiler {
  // MARK: Steps

  func path(
    _ base: ExpressionNode, _ steps: [KeyPathStep], _ frame: Frame
  ) throws(NotCompilable) -> SQLReached {
    var isFloat = false
    if case .key(let name)? = steps.last, ValueGetter.isWritten(name) {
      isFloat = ExpressionTyping.isFloat(
        base, steps.dropLast(), scope, variables: frame.row.variables.mapValues(\.entity))
    }
    return try follow(try reach(base, frame), steps, frame, isFloat: isFloat)
  }

  private func follow(
    _ start: SQLReached, _ steps: [KeyPathStep], _ frame: Frame, isFloat: Bool
  ) throws(NotCompilable) -> SQLReached {
    var reached = start
    for (index, step) in steps.enumerated() {
      switch step {
      case .key(let name):
        if case .objects = reached {
          reached = try property(name, of: reached)
        } else {
          reached = try getter(name, of: reached, frame, isFloat: isFloat)
        }
      case .objectPath: reached = try objectPath(of: reached)
      case .collection(let operation):
        return try collect(operation, reached, Array(steps[(index + 1)...]), frame, isFloat: isFloat)
      }
    }
    return reached
  }

  private func property(_ name: String, of reached: SQLReached) throws(NotCompilable) -> SQLReached {
    guard case .objects(let chain) = reached else { throw NotCompilable("\(name) is used on a value") }
    guard let entity = schema.model.entity(named: chain.entity) else {
      throw NotCompilable("the model has no entity \(chain.entity)")
    }
    if let relationship = schema.model.allRelationships(of: entity)[name] {
      return .objects(try extended(chain, by: relationship))
    }
    guard let attribute = schema.model.allAttributes(of: entity)[name],
      let column = schema.column(ofAttribute: name, in: chain.entity)
    else { throw NotCompilable("\(chain.entity).\(name) is not stored") }
    return of(chain, .column(column, of: chain.alias), kind(of: attribute), isColumn: true)
  }

  /// Returns an expression on the objects at the end of a chain: one value, or one per member.
  private func of(_ chain: SQLChain, _ expression: SQLExpression, _ kind: SQLKind, isColumn: Bool) -> SQLReached {
    let fragment = SQLFragment(sql: chain.scalar(expression), kind: kind, isColumn: isColumn && chain.tail.isEmpty)
    guard chain.isCollection else { return .value(fragment) }
    return .values(SQLValues(tables: chain.tables, conditions: chain.conditions, member: fragment, isPath: true))
  }

  func kind(of attribute: Attribute) -> SQLKind {
    switch attribute.type {
    case .boolean: .boolean
    case .integer16, .integer32, .integer64: .integer(attribute.type.integers ?? .min ... .max)
    case .double: .real
    case .float: .float
    case .decimal: .decimal
    case .string, .uri: .string
    case .date: .date
    case .uuid: .uuid
    case .binary: attribute.hasExternalForm ? .carried(isExternal: true) : .data
    case .transformable, .undefined, .objectID, .composite: .carried(isExternal: false)
    }
  }

  private func extended(_ chain: SQLChain, by relationship: Relationship) throws(NotCompilable) -> SQLChain {
    guard let storage = schema.storage(ofRelationship: relationship.name, in: chain.entity),
      let table = schema.table(of: relationship.destinationEntityName)
    else { throw NotCompilable("\(chain.entity).\(relationship.name) is not stored") }
    let quoted = SQLiteIdentifier.quoted
    let near = chain.alias
    let far = counter.next()
    var next = chain
    next.alias = far
    next.entity = relationship.destinationEntityName
    let source: SQLExpression = "\(qualified(table.name)) AS \(far)"
    var membership: [SQLExpression] = []
    if table.rootEntity != relationship.destinationEntityName {
      let numbers = schema.numbersOfSubtree(of: relationship.destinationEntityName).map(String.init)
      membership = ["\(far).Z_ENT IN (\(numbers.joined(separator: ", ")))"]
    }
    switch storage {
    case .toOne(let own, _):
      next.tail.append(source)
      next.tailConditions += ["\(far).Z_PK = \(near).\(quoted(own.key))"] + membership
      if chain.isCollection { next.mayRepeat = true }
    case .members(let columns), .owned(let columns):
      next.mergeTail()
      next.tables.append(source)
      next.conditions += ["\(far).\(quoted(columns.key)) = \(near).Z_PK"] + membership
      next.order += columns.orderKey.map { ["\(far).\(quoted($0))"] } ?? []
      next.order.append("\(far).Z_PK")
      next.isCollection = true
    case .join(let join):
      let pairs = counter.next()
      next.mergeTail()
      next.tables += ["\(join.pairs(in: qualified(join.table))) AS \(pairs)", source]
      next.conditions += [
        "\(pairs).\(quoted(join.owner)) = \(near).Z_PK", "\(far).Z_PK = \(pairs).\(quoted(join.target))",
      ]
      next.conditions += membership
      next.order += join.order.map { ["\(pairs).\(quoted($0))"] } ?? []
      next.order.append("\(far).Z_PK")
      if chain.isCollection { next.mayRepeat = true }
      next.isCollection = true
    }
    return next
  }

  private func objectPath(of reached: SQLReached) throws(NotCompilable) -> SQLReached {
    guard case .objects(let chain) = reached, let entity = schema.model.entity(named: chain.entity) else {
      throw NotCompilable("objectID is used on a value")
    }
    let objects = chain.isCollection ? try once(chain) : chain
    let names = schema.model.subtree(of: entity).map(\.name)
    let cases = names.compactMap { name in
      schema.number(of: name).map { "WHEN \($0) THEN \(SQLiteIdentifier.literal("/\(name)/p"))" }
    }
    let prefix =
      names.count == 1
      ? SQLiteIdentifier.literal("/\(chain.entity)/p")
      : "CASE \(objects.alias).Z_ENT \(cases.joined(separator: " ")) END"
    return of(objects, "(\(prefix) || \(objects.alias).Z_PK)", .string, isColumn: false)
  }

  // MARK: Objects

  /// Returns the chain as a collection of objects, each once.
  func once(_ chain: SQLChain) throws(NotCompilable) -> SQLChain {
    var chain = chain
    chain.mergeTail()
    let needsTable = chain.tables.isEmpty
    guard chain.mayRepeat || needsTable else { return chain }
    guard let table = schema.table(of: chain.entity) else { throw NotCompilable("\(chain.entity) has no table") }
    let alias = counter.next()
    let condition: SQLExpression =
      needsTable
      ? "\(alias).Z_PK = \(chain.alias).Z_PK"
      : "\(alias).Z_PK IN (SELECT \(chain.alias).Z_PK FROM \(chain.tables.joined(separator: ", "))"
        + " WHERE \(chain.conditions.joined(separator: " AND ")))"
    return SQLChain(
      tables: ["\(qualified(table.name)) AS \(alias)"], conditions: [condition], alias: alias, entity: chain.entity,
      isCollection: chain.isCollection, hasLostOrder: !needsTable, order: ["\(alias).Z_PK"])
  }

  func objects(of chain: SQLChain) -> SQLObjects {
    var chain = chain
    if chain.tables.isEmpty, chain.tail.isEmpty, let made = try? once(chain) { chain = made }
    chain.mergeTail()
    let order = chain.order.isEmpty ? ["\(chain.alias).Z_PK"] : chain.order
    return SQLObjects(
      from: chain.tables.joined(separator: ", "), condition: chain.conditions.joined(separator: " AND "),
      alias: chain.alias, entity: chain.entity, isToOne: !chain.isCollection, order: order.joined(separator: ", "),
      mayRepeat: chain.mayRepeat)
  }

  func subquery(
    _ collection: ExpressionNode, _ variable: String, _ predicate: PredicateNode, _ frame: Frame
  ) throws(NotCompilable) -> SQLReached {
    guard case .objects(let reached) = try reach(collection, frame) else {
      throw NotCompilable("SUBQUERY is used on values")
    }
    var chain = try once(reached)
    var inner = frame
    inner.row.variables[variable] = SQLRow(alias: chain.alias, entity: chain.entity)
    let condition = try self.predicate(predicate, inner).sql
    // SQL may test members that instances skip, and skip members that instances test.
    if condition.mayFail {
      throw NotCompilable("the predicate of a SUBQUERY may fail for a member")
    }
    chain.conditions.append(condition)
    chain.isCollection = true
    return .objects(chain)
  }

  func element(_ collection: ExpressionNode, _ index: ElementIndex, _ frame: Frame) throws(NotCompilable) -> SQLReached
  {
    let reached = try reach(collection, frame)
    if case .list(let members) = reached {
      try checkMembers(members)
      let member: SQLFragment? =
        switch index {
        case .size: literal(.integer(Int64(members.count)))
        case .first: members.first
        case .last: members.last
        case .position(let position):
          Int(exactly: position).flatMap { members.indices.contains($0) ? members[$0] : nil }
        }
      return .value(member ?? .null)
    }
    if index == .size { return .value(try count(asSet(reached))) }
    guard case .objects(let chain) = reached, chain.isCollection, !chain.mayRepeat, !chain.hasLostOrder,
      let table = schema.table(of: chain.entity)
    else { throw NotCompilable("an index is used on values, or on objects that are reached in several ways") }
    var order = chain.order.isEmpty ? ["\(chain.alias).Z_PK"] : chain.order
    if index == .last { order = order.map { "\($0) DESC" } }
    let offset: Int64 = if case .position(let position) = index { position } else { 0 }
    let alias = counter.next()
    let key: SQLExpression =
      "(SELECT \(chain.alias).Z_PK FROM \(chain.allTables.joined(separator: ", "))"
      + " WHERE \(chain.allConditions.joined(separator: " AND "))"
      + " ORDER BY \(order.joined(separator: ", ")) LIMIT 1 OFFSET \(offset))"
    // A negative index matches no member; SQLite would take it as the first.
    return .objects(
      SQLChain(
        tail: ["\(qualified(table.name)) AS \(alias)"], tailConditions: [offset < 0 ? "0" : "\(alias).Z_PK = \(key)"],
        alias: alias, entity: chain.entity))
  }

  // MARK: Collection operators

  private func collect(
    _ operation: CollectionOperator, _ reached: SQLReached, _ path: [KeyPathStep], _ frame: Frame, isFloat: Bool
  ) throws(NotCompilable) -> SQLReached {
    var members = asSet(reached)
    if case .objects(let chain) = reached {
      guard chain.isCollection else { throw NotCompilable("\(operation.rawValue) is used on a single object") }
      members = .objects(try once(chain))
    }
    let result = try follow(members, path, frame, isFloat: isFloat)
    switch operation {
    case .count: return .value(try count(result))
    case .sum, .min, .max, .average: return .value(try combined(operation, try values(of: result), frame))
    case .unionOfObjects, .distinctUnionOfObjects, .distinctUnionOfSets:
      if case .objects = result { return result }
      var values = try values(of: result)
      if values.isDistinct { values = materialised(values) }
      values.isPath = false
      values.dropsNull = true
      values.isDistinct = operation != .unionOfObjects
      return .values(values)
    }
  }

  /// Returns the members of a collection as values; objects as their keys, each once.
  func values(of reached: SQLReached) throws(NotCompilable) -> SQLValues {
    switch reached {
    case .values(let values): return values
    case .objects(let chain):
      guard chain.isCollection, let table = schema.table(of: chain.entity) else {
        throw NotCompilable("a single object is used where a collection is required")
      }
      let objects = try once(chain)
      let key = SQLFragment(sql: "\(objects.alias).Z_PK", kind: .object(root: table.rootEntity), isColumn: true)
      return SQLValues(tables: objects.tables, conditions: objects.conditions, member: key)
    case .list(let members):
      guard !members.isEmpty else { throw NotCompilable("an empty list is used where a collection is required") }
      var kind = SQLKind.null
      for member in members {
        guard let joined = kind.joined(member.kind) else {
          throw NotCompilable("a list has members of different kinds")
        }
        kind = joined
      }
      try checkMembers(members)
      // SQLite allows 500 terms in a compound SELECT.
      guard members.count <= 400 else { throw NotCompilable("a list has more than 400 members") }
      let alias = counter.next()
      // A plus removes the first member's affinity, which would convert the other members' integers to doubles.
      let rows = members.map { "SELECT +\($0.sql) AS v" as SQLExpression }.joined(separator: " UNION ALL ")
      return SQLValues(
        tables: ["(\(rows)) AS \(alias)"], conditions: [],
        member: SQLFragment(sql: "\(alias).v", kind: kind, isColumn: true))
    case .value: throw NotCompilable("one value is used where a collection is required")
    }
  }

  /// On instances all members are evaluated; SQL skips those it does not need.
  private func checkMembers(_ members: [SQLFragment]) throws(NotCompilable) {
    if members.contains(where: { $0.sql.mayFail }) {
      throw NotCompilable("a member of a list may fail")
    }
  }

  func count(_ reached: SQLReached) throws(NotCompilable) -> SQLFragment {
    if case .list(let members) = reached {
      try checkMembers(members)
      return literal(.integer(Int64(members.count)))
    }
    let values = try values(of: reached)
    let inner: SQLExpression = values.isDistinct ? "(\(values.select))" : values.from
    let condition: SQLExpression = values.isDistinct ? "" : " WHERE \(values.condition)"
    return SQLFragment(sql: "(SELECT count(*) FROM \(inner)\(condition))", kind: .integer(0...Int64.max))
  }

  func combined(
    _ operation: CollectionOperator, _ values: SQLValues, _ frame: Frame
  ) throws(NotCompilable) -> SQLFragment {
    let kind = values.member.kind
    switch kind.valueClass {
    case .number, .null: break
    case .text, .data,
      .uuid where operation == .min || operation == .max:
      break
    default: throw NotCompilable("\(operation.rawValue) works on members that are not numbers")
    }
    let alias = counter.next()
    let from: SQLExpression = "(\(values.select)) AS \(alias)"
    if operation == .min || operation == .max {
      let name = operation == .min ? "min" : "max"
      // The order decides whether an equal integer or double is the result.
      guard kind != .number else { throw NotCompilable("\(operation.rawValue) works on integers and doubles at once") }
      return SQLFragment(sql: "(SELECT \(name)(\(alias).v) FROM \(from))", kind: kind)
    }
    guard kind != .decimal else { throw NotCompilable("sums of decimals are computed in decimal") }
    let term = kind == .date ? "CAST(\(alias).v AS REAL)" : "\(alias).v"
    let function = operation == .sum ? ExpressionFunctions.sum : ExpressionFunctions.average
    let isInteger = kind.range != nil || kind == .null
    return SQLFragment(
      sql: "(SELECT \(function)(\(term)\(frame.site)) FROM \(from))",
      kind: operation == .average ? .real : isInteger ? .integer(.min ... .max) : .number)
  }

  // MARK: Kinds before compilation

  /// Returns the entity of an expression's objects, and whether there may be several, without compiling it.
  func staticEntity(_ node: ExpressionNode, _ row: SQLRow) -> (entity: String, isToMany: Bool)? {
    switch node {
    case .selfObject, .variable("source"): return (row.entity, false)
    case .variable(let name): return row.variables[name].map { ($0.entity, false) }
    case .keyPath(let base, let steps):
      guard var (entity, isToMany) = staticEntity(base, row) else { return nil }
      for step in steps {
        guard case .key(let name) = step else { continue }
        guard let owner = schema.model.entity(named: entity),
          let relationship = schema.model.allRelationships(of: owner)[name]
        else { return nil }
        entity = relationship.destinationEntityName
        isToMany = isToMany || relationship.isToMany
      }
      return (entity, isToMany)
    case .subquery(let base, _, _): return staticEntity(base, row).map { ($0.entity, true) }
    case .element(let base, _): return staticEntity(base, row).map { ($0.entity, false) }
    case .function(.noIndex, let arguments): return arguments.first.flatMap { staticEntity($0, row) }
    case .ternary(_, let yes, let no):
      guard let one = staticEntity(yes, row) else { return staticEntity(no, row) }
      guard let other = staticEntity(no, row) else { return one }
      // A common table is enough: the objects are found by key.
      guard let table = schema.table(of: one.entity), table == schema.table(of: other.entity) else { return nil }
      return (one.entity == other.entity ? one.entity : table.rootEntity, one.isToMany || other.isToMany)
    default: return nil
    }
  }
}
