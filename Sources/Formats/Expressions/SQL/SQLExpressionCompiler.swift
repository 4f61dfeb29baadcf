// Compiles expressions to SQL: an optimization of `ExpressionEvaluator` that must agree with it, row by row. An
// expression without an exact form in SQL is refused with a reason or, with fallbacks, becomes a call that evaluates it
// on the row's object. The API is here; the rules are in the extensions: paths, values, predicates, storage.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite

/// The reason why an expression cannot be SQL.
package struct NotCompilable: Error, Sendable, Hashable, CustomStringConvertible {
  /// The reason in words, for the plan.
  package let reason: String

  init(_ reason: String) { self.reason = reason }

  static let carried = NotCompilable("the content is only carried: it can be compared with nil")
  static let decimal = NotCompilable("decimals are computed in decimal")

  package var description: String { reason }
}

/// The row that an expression is evaluated on: the alias of its table in the statement, its entity, and the rows of
/// variables.
package struct SQLRow: Sendable, Hashable {
  package let alias: String
  package let entity: String
  /// Other rows by variable name, without `$`: `each`, and those of SUBQUERY.
  package var variables: [String: SQLRow]

  /// Creates a row.
  package init(alias: String, entity: String, variables: [String: SQLRow] = [:]) {
    self.alias = alias
    self.entity = entity
    self.variables = variables
  }
}

/// The objects that an expression reaches from a row, as parts of a SELECT for FROM and WHERE. The caller may correlate
/// them or join them with the row's table.
package struct SQLObjects: Sendable, Hashable {
  /// The tables with aliases, comma-separated.
  package let from: SQLExpression
  /// The condition that joins them with each other and with the row.
  package let condition: SQLExpression
  /// The alias whose rows are the objects.
  package let alias: String
  /// The declared entity of the objects; subentities included.
  package let entity: String
  /// Whether there is at most one object per row.
  package let isToOne: Bool
  /// The terms of ORDER BY: the relationship's order, or that of keys.
  package let order: SQLExpression
  /// Whether one object may occur several times. It counts once, at its first position.
  package let mayRepeat: Bool
}

/// Compiles expressions and predicates of one scope.
package struct SQLExpressionCompiler {
  let scope: ExpressionScope
  let schema: StoreSchema
  let tables: SourceTables
  let moment: Double
  let fallbacks: ExpressionFallbacks?
  let counter = AliasCounter()

  /// Compiles against a store with the layout of `schema`; `tables` has the names of its tables. `moment` is `now()`.
  ///
  /// With `fallbacks`, expressions that cannot be SQL are evaluated on instances.
  package init(
    scope: ExpressionScope, schema: StoreSchema, tables: SourceTables, moment: Double,
    fallbacks: ExpressionFallbacks? = nil
  ) {
    self.scope = scope
    self.schema = schema
    self.tables = tables
    self.moment = moment
    self.fallbacks = fallbacks
  }

  // MARK: The engine's entry points

  /// Returns a scalar: Booleans as 0 and 1, dates and decimals as numbers, objects as Z_PK.
  package func value(_ node: ExpressionNode, row: SQLRow) throws(NotCompilable) -> SQLExpression {
    try compiled(.value(node), row) { () throws(NotCompilable) in
      try scalar(node, frame(row, property: nil)).sql
    }
  }

  /// Returns a scalar in the storage form of a destination attribute; a value that does not fit is an error of the row.
  package func value(
    _ node: ExpressionNode, row: SQLRow, storedAs attribute: Attribute
  ) throws(NotCompilable) -> SQLExpression {
    let frame = frame(row, property: attribute.name)
    // Copied content stays in SQL, which can read the files of external storage.
    if case .keyPath = node, let sql = try carried(node, frame, as: attribute) { return sql }
    if attribute.type == .binary, !attribute.allowsExternalStorage, reachesExternalStorage(node) {
      // Only evaluation on the object shows which value it is and whether it is in a file. The result has the form of
      // external storage, which can express both; SQL then converts it to plain content.
      var external = attribute
      external.allowsExternalStorage = true
      return "\(ExternalDataForm.contentFunction)(\(try stored(node, frame, as: external)))"
    }
    return try stored(node, frame, as: attribute)
  }

  private func stored(
    _ node: ExpressionNode, _ frame: Frame, as attribute: Attribute
  ) throws(NotCompilable) -> SQLExpression {
    try compiled(.stored(node, attribute), frame.row, property: attribute.name) { () throws(NotCompilable) in
      try stored(try scalar(node, frame), as: attribute, frame)
    }
  }

  /// Whether a value of the expression may come from an attribute with external storage.
  package func reachesExternalStorage(_ node: ExpressionNode) -> Bool {
    var typing = ExpressionTyping(scope)
    _ = typing.type(of: node)
    return typing.externalValues > 0
  }

  /// Returns a condition that is 1 or 0, never NULL.
  package func condition(_ predicate: PredicateNode, row: SQLRow) throws(NotCompilable) -> SQLExpression {
    try condition(predicate, row) { $0.twoValued }
  }

  /// Returns a condition for WHERE, where NULL means 0; indexes can be used for it.
  package func filter(_ predicate: PredicateNode, row: SQLRow) throws(NotCompilable) -> SQLExpression {
    try condition(predicate, row) { $0.sql }
  }

  /// SQLite tests the terms of WHERE in any order: one that may fail must not be evaluated for rows that others leave
  /// out.
  private func condition(
    _ predicate: PredicateNode, _ row: SQLRow, _ form: (SQLCondition) -> SQLExpression
  ) throws(NotCompilable) -> SQLExpression {
    let sql = try compiled(.condition(predicate), row) { () throws(NotCompilable) in
      form(try self.predicate(predicate, frame(row, property: nil)))
    }
    guard sql.mayFail, let number = schema.number(of: row.entity) else { return sql }
    let numbers = schema.numbersOfSubtree(of: row.entity).map(String.init).joined(separator: ", ")
    let membership = numbers.isEmpty ? "= \(number)" : "IN (\(numbers))"
    return "CASE WHEN \(row.alias).Z_ENT \(membership) THEN \(sql) ELSE 0 END"
  }

  /// Returns the objects that an expression reaches.
  package func objects(_ node: ExpressionNode, row: SQLRow) throws(NotCompilable) -> SQLObjects {
    if let reason = Self.needsEngine(node) { throw NotCompilable(reason) }
    do throws(NotCompilable) {
      guard case .objects(let chain) = try reach(node, frame(row, property: nil)) else {
        throw NotCompilable("a value is used where objects are required")
      }
      guard !chain.hasLostOrder else {
        throw NotCompilable("objects are reached in several ways, and their order counts")
      }
      return objects(of: chain)
    } catch {
      guard let fallbacks, let (entity, isToMany) = staticEntity(node, row), let table = schema.table(of: entity) else {
        throw error
      }
      let call = fallbacks.call(.objects(node), self, row, property: nil, because: error.reason)
      let (list, alias) = (counter.next(), counter.next())
      return SQLObjects(
        from: "json_each(\(call)) AS \(list), \(qualified(table.name)) AS \(alias)",
        condition: "\(alias).Z_PK = \(list).value", alias: alias, entity: entity, isToOne: !isToMany,
        order: "\(list).key", mayRepeat: false)
    }
  }

  // MARK: Frames

  /// The context of an expression while it is compiled.
  struct Frame {
    var row: SQLRow
    /// The last two arguments of functions that may fail: the place that the error names.
    let site: String
  }

  /// Makes aliases that are unique within one compiler.
  final class AliasCounter {
    private var count = 0
    func next() -> String {
      count += 1
      return "o\(count)"
    }
  }

  func frame(_ row: SQLRow, property: String?) -> Frame {
    let name = property.map { "\(row.entity).\($0)" } ?? row.entity
    return Frame(row: row, site: ", \(SQLiteIdentifier.literal(name)), \(row.alias).Z_PK")
  }

  func qualified(_ table: String) -> String { tables.qualified(table) }

  private func compiled(
    _ entry: ExpressionFallbacks.Work, _ row: SQLRow, property: String? = nil,
    _ body: () throws(NotCompilable) -> SQLExpression
  ) throws(NotCompilable) -> SQLExpression {
    if let reason = entry.needsEngine { throw NotCompilable(reason) }
    guard let fallbacks else { return try body() }
    do {
      return try body()
    } catch {
      return fallbacks.call(entry, self, row, property: property, because: error.reason)
    }
  }

  /// Returns why neither SQL nor an evaluator on the source can evaluate the expression: it needs objects of the
  /// destination, or methods of a policy.
  static func needsEngine(_ node: ExpressionNode) -> String? {
    switch node {
    case .destinationInstances: "objects of the destination are looked up inside an expression"
    case .policyMethod(let selector, _): "the policy's method \(selector) is called"
    case .constant, .selfObject, .variable: nil
    case .keyPath(let base, _), .cast(let base, _), .element(let base, _), .negated(let base): needsEngine(base)
    case .function(_, let parts), .aggregate(let parts): parts.lazy.compactMap(needsEngine).first
    case .ternary(let predicate, let yes, let no): needsEngine(predicate) ?? needsEngine(yes) ?? needsEngine(no)
    case .subquery(let base, _, let predicate): needsEngine(base) ?? needsEngine(predicate)
    case .arithmetic(_, let left, let right): needsEngine(left) ?? needsEngine(right)
    }
  }

  static func needsEngine(_ predicate: PredicateNode) -> String? {
    switch predicate {
    case .constant: nil
    case .comparison(let comparison): needsEngine(comparison.left) ?? needsEngine(comparison.right)
    case .and(let parts), .or(let parts): parts.lazy.compactMap { needsEngine($0) }.first
    case .not(let part): needsEngine(part)
    }
  }
}

extension ExpressionFallbacks.Work {
  fileprivate var needsEngine: String? {
    switch self {
    case .value(let node), .stored(let node, _), .objects(let node): SQLExpressionCompiler.needsEngine(node)
    case .condition(let predicate): SQLExpressionCompiler.needsEngine(predicate)
    }
  }
}
