// What the engine asks of an expression: a scalar for a column, a condition for a filter, and the objects that it reaches, as
// tables to join. The plain forms that nearly every mapping uses are made here, because the engine knows more of them (an
// order on both sides, the form of external values); everything else is compiled by `SQLExpressionCompiler`.

import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

/// A row of a table of the source: `$source`, or `$each`.
struct MappedRow: Sendable, Hashable {
  let alias: String
  let entity: String
  var variables: [String: MappedRow] = [:]
}

/// Objects of the source that an expression reaches from a row.
struct ReachedObjects {
  /// "table AS alias" in the order of joining, and what joins them.
  var tables: [String] = []
  var conditions: [String] = []
  /// The alias whose rows are the objects.
  var alias: String
  /// Their entity; objects may be of entities below it.
  var entity: String
  var isToOne: Bool
  /// What puts the objects of one row in order, and the rows of one object; nil where the source has no order.
  var order: String?
  var inverseOrder: String?
}

/// Compiles expressions of one hop.
struct MappedExpressions {
  let hop: Hop
  let sourceSchema: String
  let moment: Double

  func qualified(_ table: String) -> String {
    SQLiteIdentifier.quoted(sourceSchema) + "." + SQLiteIdentifier.quoted(table)
  }

  // MARK: Objects

  /// The objects of a key path from `$source` or `$each`, over relationships only; nil for any other expression.
  /// `prefix` keeps aliases of several paths of one statement apart.
  func plainObjects(_ node: ExpressionNode, row: MappedRow, prefix: String) -> ReachedObjects? {
    switch node {
    case .variable(let name):
      guard let start = self.row(named: name, from: row) else { return nil }
      return ReachedObjects(alias: start.alias, entity: start.entity, isToOne: true)
    case .keyPath(let base, let steps):
      guard var reached = plainObjects(base, row: row, prefix: prefix + "b") else { return nil }
      for (index, step) in steps.enumerated() {
        switch step {
        case .collection(.unionOfObjects), .collection(.distinctUnionOfObjects), .collection(.distinctUnionOfSets):
          // Objects are told apart by their keys wherever they are set, so that repeats do not count. What several
          // collections give together has no order.
          reached.order = nil
          reached.inverseOrder = nil
          reached.isToOne = false
          continue
        case .key(let name):
          guard follow(name, alias: "\(prefix)\(index)", reached: &reached, isOnly: reached.tables.isEmpty) else {
            return nil
          }
        default: return nil
        }
      }
      return reached
    default: return nil
    }
  }

  func row(named name: String, from row: MappedRow) -> MappedRow? {
    name == "source" ? row : row.variables[name]
  }

  private func follow(_ name: String, alias: String, reached: inout ReachedObjects, isOnly: Bool) -> Bool {
    guard let entity = hop.source.entity(named: reached.entity),
      let relationship = hop.source.allRelationships(of: entity)[name],
      let storage = hop.sourceSchema.storage(ofRelationship: name, in: reached.entity),
      let target = hop.sourceSchema.table(of: relationship.destinationEntityName)
    else { return false }
    let (from, to) = (reached.alias, SQLiteIdentifier.quoted(alias))
    func column(_ alias: String, _ name: String) -> String { "\(alias).\(SQLiteIdentifier.quoted(name))" }
    var order: String?
    var inverseOrder: String?
    switch storage {
    case .toOne(_, let key, _, let orderKey):
      reached.tables.append("\(qualified(target.name)) AS \(to)")
      reached.conditions.append("\(to).\"Z_PK\" = \(column(from, key))")
      inverseOrder = orderKey.map { column(from, $0) }
    case .inverseOfToOne(let table, let key, let orderKey):
      reached.tables.append("\(qualified(table)) AS \(to)")
      reached.conditions.append("\(column(to, key)) = \(from).\"Z_PK\"")
      order = orderKey.map { column(to, $0) }
    case .ownerColumn(let table, let key):
      reached.tables.append("\(qualified(table)) AS \(to)")
      reached.conditions.append("\(column(to, key)) = \(from).\"Z_PK\"")
    case .join(let join, let isOwner):
      let pair = SQLiteIdentifier.quoted("\(alias)j")
      let (owner, other) = isOwner ? (join.ownerColumn, join.targetColumn) : (join.targetColumn, join.ownerColumn)
      reached.tables += ["\(qualified(join.name)) AS \(pair)", "\(qualified(target.name)) AS \(to)"]
      reached.conditions += [
        "\(column(pair, owner)) = \(from).\"Z_PK\"", "\(to).\"Z_PK\" = \(column(pair, other))",
      ]
      order = (isOwner ? join.orderColumn : join.inverseOrderColumn).map { column(pair, $0) }
      inverseOrder = (isOwner ? join.inverseOrderColumn : join.orderColumn).map { column(pair, $0) }
    }
    let wasToOne = reached.isToOne
    reached.alias = to
    reached.entity = relationship.destinationEntityName
    reached.isToOne = wasToOne && !relationship.isToMany
    // An order means something for the objects of one collection only.
    reached.order = wasToOne && relationship.isToMany ? order : (relationship.isToMany ? nil : reached.order)
    reached.inverseOrder = isOnly ? inverseOrder : nil
    return true
  }

  /// The relationship of a path of a single step from `$source`.
  func singleRelationship(_ node: ExpressionNode, of entity: String) -> (declaring: Entity, relationship: Relationship)?
  {
    guard case .keyPath(.variable("source"), let steps) = node, steps.count == 1, case .key(let name)? = steps.first,
      let value = hop.source.entity(named: entity), let relationship = hop.source.allRelationships(of: value)[name],
      let declaring = hop.source.declaringEntity(of: name, in: value)
    else { return nil }
    return (declaring, relationship)
  }

  // MARK: Values

  /// The attribute that a key path of to-ones ends in, with the objects on the way.
  func plainAttribute(_ node: ExpressionNode, row: MappedRow, prefix: String) -> (ReachedObjects, Attribute, String)? {
    guard case .keyPath(let base, let steps) = node, case .key(let name)? = steps.last else { return nil }
    let path: ExpressionNode = steps.count == 1 ? base : .keyPath(base, Array(steps.dropLast()))
    guard let reached = plainObjects(path, row: row, prefix: prefix), reached.isToOne,
      let entity = hop.source.entity(named: reached.entity), let attribute = hop.source.allAttributes(of: entity)[name],
      let column = hop.sourceSchema.column(ofAttribute: name, in: reached.entity)
    else { return nil }
    return (reached, attribute, "\(reached.alias).\(SQLiteIdentifier.quoted(column))")
  }

  /// The scalar itself, or a subquery over the objects on the way to it.
  func scalar(_ expression: String, over reached: ReachedObjects) -> String {
    if reached.tables.isEmpty { return expression }
    return "(SELECT \(expression) FROM \(reached.tables.joined(separator: " CROSS JOIN "))"
      + " WHERE \(reached.conditions.joined(separator: " AND ")))"
  }
}

extension MappedExpressions {
  // MARK: Values, keys and conditions

  /// A value in the form in which `attribute` is stored.
  func value(
    _ node: ExpressionNode, row: MappedRow, storedAs attribute: Attribute, lane: AssociationLayout.Lane
  ) throws(HopdError) -> String {
    if let (reached, before, column) = plainAttribute(node, row: row, prefix: "v"), before.type == attribute.type {
      return scalar(HopCompiler.carried(column, from: before, to: attribute), over: reached)
    }
    return try compiled(node, row: row, lane: lane, property: attribute.name)
  }

  /// A value by which rows are told apart or found.
  func key(_ node: ExpressionNode, row: MappedRow, lane: AssociationLayout.Lane) throws(HopdError) -> String {
    if let (reached, _, column) = plainAttribute(node, row: row, prefix: "k") { return scalar(column, over: reached) }
    return try compiled(node, row: row, lane: lane, property: nil)
  }

  /// A two-valued condition on a row.
  func condition(
    _ predicate: PredicateNode, row: MappedRow, lane: AssociationLayout.Lane
  ) throws(HopdError) -> String {
    switch predicate {
    case .constant(let flag): return flag ? "1" : "0"
    case .and(let parts):
      return try join(parts, " AND ", row: row, lane: lane) ?? "1"
    case .or(let parts):
      return try join(parts, " OR ", row: row, lane: lane) ?? "0"
    case .not(let part): return "NOT (\(try condition(part, row: row, lane: lane)))"
    case .comparison(let comparison):
      let left = try compiled(comparison.left, row: row, lane: lane, property: nil)
      let right = try compiled(comparison.right, row: row, lane: lane, property: nil)
      switch comparison.operation {
      case .equal: return "\(left) IS \(right)"
      case .notEqual: return "\(left) IS NOT \(right)"
      case .less, .lessOrEqual, .greater, .greaterOrEqual:
        return "coalesce(\(left) \(comparison.operation.rawValue) \(right), 0)"
      default: throw unsupported(comparison.operation.rawValue, lane: lane, property: nil)
      }
    }
  }

  private func join(
    _ parts: [PredicateNode], _ word: String, row: MappedRow, lane: AssociationLayout.Lane
  ) throws(HopdError) -> String? {
    var texts: [String] = []
    for part in parts { texts.append("(\(try condition(part, row: row, lane: lane)))") }
    return texts.isEmpty ? nil : texts.joined(separator: word)
  }

  private func compiled(
    _ node: ExpressionNode, row: MappedRow, lane: AssociationLayout.Lane, property: String?
  ) throws(HopdError) -> String {
    switch node {
    case .constant(let value):
      switch value {
      case .null: return "NULL"
      case .boolean(let flag): return flag ? "1" : "0"
      case .integer(let number): return String(number)
      case .double(let number), .date(let number): return SQLiteValue.real(number).literal
      case .decimal(let text), .string(let text): return SQLiteValue.text(text).literal
      case .data(let bytes), .uuid(let bytes): return SQLiteValue.blob(bytes).literal
      }
    case .function(.now, _): return SQLiteValue.real(moment).literal
    case .keyPath(.selfObject, let steps):
      return try compiled(.keyPath(.variable("source"), steps), row: row, lane: lane, property: property)
    default: break
    }
    if let (reached, _, column) = plainAttribute(node, row: row, prefix: "v") { return scalar(column, over: reached) }
    if let reached = plainObjects(node, row: row, prefix: "v"), reached.isToOne {
      return scalar("\(reached.alias).\"Z_PK\"", over: reached)
    }
    throw unsupported("this form", lane: lane, property: property)
  }

  func unsupported(_ what: String, lane: AssociationLayout.Lane, property: String?) -> HopdError {
    HopdError(
      .mappingUnsupported, "\(what) is not supported here",
      at: Place(hop: hop.title, entity: lane.mapping.name, property: property))
  }
}

extension MappedExpressions {
  /// The objects that an expression reaches.
  func objects(
    _ node: ExpressionNode, row: MappedRow, prefix: String, lane: AssociationLayout.Lane, property: String?
  ) throws(HopdError) -> ReachedObjects {
    if let reached = plainObjects(node, row: row, prefix: prefix) { return reached }
    throw unsupported("an expression of this form over objects", lane: lane, property: property)
  }
}
