// Compiles expressions for the engine: scalars for columns, conditions for filters, and the objects that an expression
// reaches, as tables to join. Key paths over relationships alone stay open here, because the engine joins them with
// tables of its own and takes their order from both sides; `SQLExpressionCompiler` compiles all others.

import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

/// A row of a table of the source: `$source`, or `$each`.
package typealias MappedRow = SQLRow

extension AssociationRange {
  /// The row of the source under `s`; for an expanding mapping with its member under `m`.
  var row: MappedRow {
    var row = MappedRow(alias: "s", entity: sourceEntity)
    if case .expanded(let member) = kind { row.variables = ["each": MappedRow(alias: "m", entity: member)] }
    return row
  }
}

/// The objects of the source that an expression reaches from a row.
struct ReachedObjects {
  /// "table AS alias" in the order of joining, and the conditions that join them.
  var tables: [SQLExpression] = []
  var conditions: [SQLExpression] = []
  /// The alias whose rows are the objects.
  var alias: String
  /// The entity of the objects; subentities included.
  var entity: String
  var isToOne: Bool
  /// The order of one row's objects, and of one object's rows; nil if the source has no order.
  var order: SQLExpression?
  var inverseOrder: SQLExpression?
}

/// Compiles expressions of one hop.
package struct MappedExpressions {
  let hop: Hop
  let source: SourceTables
  let moment: Double
  /// The expressions that are evaluated on objects; filled while statements are compiled.
  let fallbacks: ExpressionFallbacks

  /// Compiles for the tables of `source`; `moment` is the value of `now()`.
  package init(
    hop: Hop, source: SourceTables, moment: Double, fallbacks: ExpressionFallbacks
  ) {
    self.hop = hop
    self.source = source
    self.moment = moment
    self.fallbacks = fallbacks
  }

  func qualified(_ table: String) -> String { source.qualified(table) }

  // MARK: Objects

  /// Returns the objects of a key path from `$source` or `$each`, over relationships only; nil for any other
  /// expression. `prefix` makes aliases unique if a statement has several paths.
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
          // Objects are distinguished by their keys wherever they are set, so repeats do not matter. Several
          // collections together have no order.
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
    guard let relationship = hop.source.relationship(name, of: reached.entity),
      let join = SQLRelationshipJoin(
        relationship, of: reached.entity, from: reached.alias, to: SQLiteIdentifier.quoted(alias),
        pairs: SQLiteIdentifier.quoted("\(alias)j"), schema: hop.sourceSchema, tables: source)
    else { return false }
    reached.tables += join.tables
    reached.conditions += join.conditions
    let wasToOne = reached.isToOne
    reached.alias = SQLiteIdentifier.quoted(alias)
    reached.entity = relationship.destinationEntityName
    reached.isToOne = wasToOne && !relationship.isToMany
    // An order applies only to the objects of a single collection.
    if relationship.isToMany { reached.order = wasToOne ? join.order : nil }
    reached.inverseOrder = isOnly ? join.inverseOrder : nil
    return true
  }

  /// Returns the relationship of a path of a single step from `$source`.
  func singleRelationship(_ node: ExpressionNode, of entity: String) -> (declaring: Entity, relationship: Relationship)?
  {
    guard case .keyPath(.variable("source"), let steps) = node, steps.count == 1, case .key(let name)? = steps.first,
      let value = hop.source.entity(named: entity), let relationship = hop.source.allRelationships(of: value)[name],
      let declaring = hop.source.declaringEntity(of: name, in: value)
    else { return nil }
    return (declaring, relationship)
  }

  // MARK: Values

  /// Returns the attribute at the end of a key path of to-ones, with the objects on the path.
  func plainAttribute(_ node: ExpressionNode, row: MappedRow, prefix: String) -> (
    ReachedObjects, Attribute, SQLExpression
  )? {
    guard case .keyPath(let base, let steps) = node, case .key(let name)? = steps.last else { return nil }
    let path: ExpressionNode = steps.count == 1 ? base : .keyPath(base, Array(steps.dropLast()))
    guard let reached = plainObjects(path, row: row, prefix: prefix), reached.isToOne,
      let entity = hop.source.entity(named: reached.entity), let attribute = hop.source.allAttributes(of: entity)[name],
      let column = hop.sourceSchema.column(ofAttribute: name, in: reached.entity)
    else { return nil }
    return (reached, attribute, .column(column, of: reached.alias))
  }

  /// Returns the scalar itself, or a subquery over the objects on the path to it.
  func scalar(_ expression: SQLExpression, over reached: ReachedObjects) -> SQLExpression {
    if reached.tables.isEmpty { return expression }
    return "(SELECT \(expression) FROM \(reached.tables.joined(separator: " CROSS JOIN "))"
      + " WHERE \(reached.conditions.joined(separator: " AND ")))"
  }
}

extension MappedExpressions {
  // MARK: Compiled expressions

  private func compiler(
    _ place: ExpressionScope.Place, row: MappedRow, range: AssociationRange
  ) -> SQLExpressionCompiler {
    SQLExpressionCompiler(
      scope: ExpressionScope(
        model: hop.source, sourceEntity: range.sourceEntity, place: place, variables: row.variables.mapValues(\.entity),
        hasPolicy: range.mapping.policy != nil),
      schema: hop.sourceSchema, tables: source, moment: moment, fallbacks: fallbacks)
  }

  private func compiled<Result>(
    range: AssociationRange, property: String?, _ body: () throws(NotCompilable) -> Result
  ) throws(HopdError) -> Result {
    do {
      return try body()
    } catch {
      throw unsupported(error.reason, range: range, property: property)
    }
  }

  /// Returns a value in the storage form of `attribute`.
  package func value(
    _ node: ExpressionNode, row: MappedRow, storedAs attribute: Attribute, range: AssociationRange
  ) throws(HopdError) -> SQLExpression {
    if case .constant(.null) = node { return .null }
    // Content is never evaluated, only copied.
    let isContent = attribute.type == .binary || attribute.type == .transformable
    if let (reached, before, column) = plainAttribute(node, row: row, prefix: "v"),
      before.type == attribute.type, reached.tables.isEmpty || isContent
    {
      return scalar(HopCompiler.carried(column, from: before, to: attribute), over: reached)
    }
    return try compiled(range: range, property: attribute.name) { () throws(NotCompilable) in
      try compiler(.attribute, row: row, range: range).value(node, row: row, storedAs: attribute)
    }
  }

  /// Whether a value of the expression may come from an attribute with external storage.
  func reachesExternalStorage(_ node: ExpressionNode, row: MappedRow, range: AssociationRange) -> Bool {
    compiler(.attribute, row: row, range: range).reachesExternalStorage(node)
  }

  /// Returns a value that identifies or distinguishes rows.
  func key(_ node: ExpressionNode, row: MappedRow, range: AssociationRange) throws(HopdError) -> SQLExpression {
    try compiled(range: range, property: nil) { () throws(NotCompilable) in
      try compiler(.key, row: row, range: range).value(node, row: row)
    }
  }

  /// Returns a condition on a row, for WHERE.
  package func condition(
    _ predicate: PredicateNode, row: MappedRow, range: AssociationRange
  ) throws(HopdError) -> SQLExpression {
    try compiled(range: range, property: nil) { () throws(NotCompilable) in
      try compiler(.sourceFilter, row: row, range: range).filter(predicate, row: row)
    }
  }

  /// Returns the objects that an expression reaches.
  func objects(
    _ node: ExpressionNode, row: MappedRow, prefix: String, range: AssociationRange, property: String?
  ) throws(HopdError) -> ReachedObjects {
    if let reached = plainObjects(node, row: row, prefix: prefix) { return reached }
    let found = try compiled(range: range, property: property) { () throws(NotCompilable) in
      try compiler(.relationship, row: row, range: range).objects(node, row: row)
    }
    guard let table = hop.sourceSchema.table(of: found.entity) else {
      throw unsupported("objects of \(found.entity)", range: range, property: property)
    }
    // An alias of the engine's own: the compiler's aliases recur in other expressions of the statement.
    let alias = SQLiteIdentifier.quoted("\(prefix)c")
    return ReachedObjects(
      tables: [found.from, "\(qualified(table.name)) AS \(alias)"],
      conditions: [found.condition, "\(alias).\"Z_PK\" = \(found.alias).\"Z_PK\""], alias: alias,
      entity: found.entity, isToOne: found.isToOne,
      order: found.isToOne
        ? nil : "row_number() OVER (PARTITION BY \(row.alias).\"Z_PK\" ORDER BY \(found.order))",
      inverseOrder: nil)
  }

  func unsupported(_ what: String, range: AssociationRange, property: String?) -> HopdError {
    HopdError(
      .mappingUnsupported, "the expression cannot be followed: \(what)",
      at: Place(hop: hop.title, entity: range.mapping.name, property: property),
      hint: "write a different expression, or use a policy")
  }
}
