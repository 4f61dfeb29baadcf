// Every row of Tests/ExpressionCases, in the evaluator and in SQL, with and without calls of the evaluator.

import BlockingTests
import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite
import Testing

@testable import Expressions

@Suite(.blocking) struct ExpressionTableTests {
  private enum Tree {
    case value(ExpressionNode)
    case predicate(PredicateNode)
  }

  /// Parses and checks; the error is a refusal.
  private func tree(_ row: ExpressionRow, _ store: ExpressionTableStore) throws(HopdError) -> Tree {
    let checker = ExpressionChecker(store.scope(row))
    if row.isPredicate {
      let predicate = try ExpressionParser.predicate(row.text)
      try checker.check(predicate)
      return .predicate(predicate)
    }
    let node = try ExpressionParser.expression(row.text)
    switch checker.type(of: node) {
    case .value(let type): try checker.check(node, for: Attribute(name: "target", type: type))
    // An invalid expression is reported for any attribute.
    case .unknown: try checker.check(node, for: Attribute(name: "target", type: .string))
    default: break
    }
    return .value(node)
  }

  private func evaluated(_ tree: Tree, _ row: ExpressionRow, _ store: ExpressionTableStore) throws -> ExpressionValue {
    let evaluator = ExpressionEvaluator(scope: store.scope(row), source: store.source, moment: 0)
    switch tree {
    case .value(let node): return try evaluator.value(node, on: store.order)
    case .predicate(let predicate): return .boolean(try evaluator.isTrue(predicate, on: store.order))
    }
  }

  private func queried(
    _ tree: Tree, _ row: ExpressionRow, _ store: ExpressionTableStore, isForced: Bool
  ) throws -> (value: SQLiteValue, isPlain: Bool) {
    let fallbacks = ExpressionFallbacks()
    let compiler = SQLExpressionCompiler(
      scope: store.scope(row), schema: store.schema, tables: .schema("store"), moment: 0, fallbacks: fallbacks)
    let place = SQLRow(alias: "s", entity: "Order")
    let sql =
      switch tree {
      case .value(let node) where isForced: fallbacks.call(.value(node), compiler, place, property: nil, because: "")
      case .value(let node): try compiler.value(node, row: place)
      case .predicate(let predicate) where isForced:
        fallbacks.call(.condition(predicate), compiler, place, property: nil, because: "")
      case .predicate(let predicate): try compiler.condition(predicate, row: place)
      }
    try fallbacks.register(on: store.connection, schema: store.schema, tables: .schema("store"))
    let table = try #require(store.schema.table(of: "Order"))
    do {
      let value = try store.connection.value(
        "SELECT \(sql.text) FROM store.\(SQLiteIdentifier.quoted(table.name)) AS s WHERE s.Z_PK = 1")
      return (value ?? .null, fallbacks.isEmpty)
    } catch {
      throw store.connection.takeFunctionFailure() ?? error
    }
  }

  @Test func everyRowGivesWhatItSays() throws {
    let store = try ExpressionTableStore()
    let rows = try ExpressionRow.all()
    var plain = 0
    for row in rows {
      let tree: Tree
      do {
        tree = try self.tree(row, store)
      } catch {
        guard case .refused(let word) = row.result else {
          Issue.record("\(row) is refused: \(error)")
          continue
        }
        #expect("\(error)".contains(word), "\(row): \(error)")
        continue
      }
      switch row.result {
      case .refused(let word): Issue.record("\(row) is not refused (\(word))")
      case .error(let code):
        for result in outcomes(tree, row, store) {
          guard case .failure(let error as HopdError) = result else {
            Issue.record("\(row) gives \(result), not \(code)")
            continue
          }
          #expect(error.code.name == code && error.code.isRowError, "\(row): \(error)")
        }
      case .collection(let expected):
        guard case .list(let found) = try evaluated(tree, row, store) else {
          Issue.record("\(row) gives no collection")
          continue
        }
        #expect(Set(found) == Set(expected) && found.count == expected.count, "\(row): \(found)")
      case .value(let expected):
        do {
          let found = try evaluated(tree, row, store)
          #expect("\(found)" == "\(expected)", "\(row)")
          for isForced in [false, true] {
            let (value, isPlain) = try queried(tree, row, store, isForced: isForced)
            if isPlain, !isForced { plain += 1 }
            #expect(
              try number(value) == number(StorageForm.plain(expected)), "\(row): SQL, on instances: \(isForced)")
          }
        } catch {
          Issue.record("\(row): \(error)")
        }
      }
    }
    #expect(rows.count >= 400)
    #expect(plain > rows.count / 2, "only \(plain) of \(rows.count) are plain SQL")
  }

  private func outcomes(
    _ tree: Tree, _ row: ExpressionRow, _ store: ExpressionTableStore
  ) -> [Swift.Result<String, any Error>] {
    [
      Swift.Result { "\(try evaluated(tree, row, store))" },
      Swift.Result { "\(try queried(tree, row, store, isForced: false).value)" },
      Swift.Result { "\(try queried(tree, row, store, isForced: true).value)" },
    ]
  }

  /// In SQL 3 and 3.0 are one number.
  private func number(_ value: SQLiteValue) -> SQLiteValue {
    if case .integer(let number) = value, number.magnitude < 1 << 53 { return .real(Double(number)) }
    return value
  }
}
