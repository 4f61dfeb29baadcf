// Expressions that run on instances in the middle of a statement: the statement calls one function with the
// expression's index and the row's key and entity, and the function evaluates it through the same connection.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite

/// The expressions of a hop that are evaluated on instances, by index. The caller keeps it as long as statements that
/// use it run: the connection does not.
package final class ExpressionFallbacks {
  /// An expression and what its value becomes.
  enum Work: Sendable {
    case value(ExpressionNode)
    case stored(ExpressionNode, Attribute)
    case condition(PredicateNode)
    case objects(ExpressionNode)
  }

  /// Why an expression is here, for the plan.
  package struct Reason: Sendable, Hashable {
    /// Entity of the rows.
    package let entity: String
    /// The destination's property; nil for filters and keys.
    package let property: String?
    /// In words.
    package let reason: String
  }

  private struct Entry {
    let work: Work
    let scope: ExpressionScope
    let moment: Double
    /// Names of the variables whose rows follow the row's own.
    let variables: [String]
    let place: Place
  }

  private var entries: [Entry] = []
  /// Each reason once, in order.
  package private(set) var reasons: [Reason] = []
  /// Does anything that was compiled to SQL hold the moment that `now()` is? Then the SQL is that run's own.
  package private(set) var asksForMoment = false
  private var source: StoreInstanceSource?
  private var evaluators: [Int: ExpressionEvaluator] = [:]

  /// Makes an empty collection.
  package init() {}

  /// Does anything run on instances?
  package var isEmpty: Bool { entries.isEmpty }

  /// Registers the function on a connection that has the store's tables in `space`.
  package func register(on connection: Connection, schema: StoreSchema, space: SourceTables) throws(SQLiteError) {
    source = StoreInstanceSource(reader: StoreReader(connection: connection, space: space), schema: schema)
    evaluators = [:]
    // Weak: the source keeps statements, and they the connection, which keeps this closure.
    try connection.registerFailingFunction(ExpressionFunctions.evaluate.text, argumentCount: -1) { [weak self] values in
      guard let self else {
        throw HopdError(.internalError, "an expression was evaluated after its hop", hint: "please report this")
      }
      return try self.evaluate(values)
    }
  }

  /// Lets go of the connection. Statements that call the function fail from here on.
  package func unregister() {
    source = nil
    evaluators = [:]
  }

  /// Notes that the moment went into SQL.
  func noteMoment() { asksForMoment = true }

  /// The SQL that evaluates `work` on a row.
  func call(
    _ work: Work, _ compiler: SQLExpressionCompiler, _ row: SQLRow, property: String?, because reason: String
  ) -> SQLExpression {
    let variables = row.variables.keys.sorted()
    entries.append(
      Entry(
        work: work, scope: compiler.scope, moment: compiler.moment, variables: variables,
        place: Place(entity: row.entity, property: property)))
    let found = Reason(entity: row.entity, property: property, reason: reason)
    if !reasons.contains(found) { reasons.append(found) }
    let rows = [row] + variables.compactMap { row.variables[$0] }
    let keys = rows.map { "\($0.alias).Z_PK, \($0.alias).Z_ENT" }.joined(separator: ", ")
    return "\(ExpressionFunctions.evaluate)(\(entries.count - 1), \(keys))"
  }

  private func evaluate(_ values: [SQLiteValue]) throws -> SQLiteValue {
    guard let source, case .integer(let number)? = values.first, let index = Int(exactly: number),
      entries.indices.contains(index)
    else {
      throw HopdError(.internalError, "an expression was evaluated that is not known", hint: "please report this")
    }
    let entry = entries[index]
    var objects: [InstanceID?] = []
    for place in stride(from: 1, to: values.count - 1, by: 2) {
      if case .integer(let key) = values[place], case .integer(let number) = values[place + 1] {
        objects.append(try source.object(number: number, key: key))
      } else {
        objects.append(nil)
      }
    }
    var variables: [String: InstanceID] = [:]
    for (name, object) in zip(entry.variables, objects.dropFirst()) { variables[name] = object }
    let object = objects.first ?? nil
    let evaluator = evaluators[index] ?? ExpressionEvaluator(scope: entry.scope, source: source, moment: entry.moment)
    evaluators[index] = evaluator
    do {
      switch entry.work {
      case .value(let node): return try StorageForm.plain(evaluator.value(node, on: object, variables: variables))
      case .stored(let node, let attribute):
        return try StorageForm.stored(evaluator.value(node, on: object, variables: variables), as: attribute)
      case .condition(let predicate):
        return .integer(try evaluator.isTrue(predicate, on: object, variables: variables) ? 1 : 0)
      case .objects(let node):
        let keys = try evaluator.objects(node, on: object, variables: variables).map { String($0.key) }
        return .text("[\(keys.joined(separator: ","))]")
      }
    } catch let error as HopdError {
      // The row that the statement is about, not one that was reached from it.
      var failure = error
      failure.place = Place(row: object?.key).filled(from: entry.place).filled(from: error.place)
      throw failure
    }
  }
}
