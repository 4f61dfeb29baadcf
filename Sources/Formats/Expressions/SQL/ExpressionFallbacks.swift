// Expressions that are evaluated on objects while a statement runs: the statement calls one function with the
// expression's index and the row's key and entity, and the function evaluates the expression through the same
// connection.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite

/// The expressions of a hop that are evaluated on instances, by index. The caller must keep it while statements that
/// use it run: the connection does not.
package final class ExpressionFallbacks {
  /// An expression, and the form of its result.
  enum Work: Sendable {
    case value(ExpressionNode)
    case stored(ExpressionNode, Attribute)
    case condition(PredicateNode)
    case objects(ExpressionNode)
  }

  /// The reason why an expression is not SQL, for the plan.
  package struct Reason: Sendable, Hashable {
    /// The entity of the rows.
    package let entity: String
    /// The destination's property; nil for filters and keys.
    package let property: String?
    /// The reason in words.
    package let reason: String
  }

  private struct Entry {
    let work: Work
    let scope: ExpressionScope
    let moment: Double
    /// The names of the variables whose rows follow the row's own in the arguments.
    let variables: [String]
    let place: Place
  }

  private var entries: [Entry] = []
  /// The reasons, each once, in order.
  package private(set) var reasons: [Reason] = []
  private var source: StoreInstanceSource?
  private var evaluators: [Int: ExpressionEvaluator] = [:]

  /// Creates an empty collection.
  package init() {}

  /// Whether no expression is evaluated on instances.
  package var isEmpty: Bool { entries.isEmpty }

  /// Registers the function on a connection. `tables` has the names of the store's tables.
  package func register(on connection: Connection, schema: StoreSchema, tables: SourceTables) throws(SQLiteError) {
    source = StoreInstanceSource(reader: StoreReader(connection: connection, tables: tables), schema: schema)
    evaluators = [:]
    // Weak: the source keeps statements, these keep the connection, and it keeps this closure.
    try connection.registerFailingFunction(ExpressionFunctions.evaluate.text, argumentCount: -1) { [weak self] values in
      guard let self else {
        throw HopdError(
          .internalError, "an expression was evaluated after its hop", hint: "report this bug, with the mapping model")
      }
      return try self.evaluate(values)
    }
  }

  /// Releases the connection. Statements that call the function fail from here on.
  package func unregister() {
    source = nil
    evaluators = [:]
  }

  /// Returns the SQL that evaluates `work` on a row.
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
      throw HopdError(
        .internalError, "an expression was evaluated that is unknown", hint: "report this bug, with the mapping model")
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
      // The error names the statement's own row, not one that was reached from it.
      var failure = error
      failure.place = Place(row: object?.key).filled(from: entry.place).filled(from: error.place)
      throw failure
    }
  }
}
