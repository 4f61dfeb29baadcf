// Pieces of SQL with the facts known of their values. Every piece is a column, a literal, a call, or in parentheses, so
// pieces can be combined without regard to precedence.

import PersistentStore
import SQLite

/// The kind of value that a piece of SQL returns. NULL is always possible.
enum SQLKind: Hashable {
  case null
  /// 0 or 1.
  case boolean
  case integer(ClosedRange<Int64>)
  /// A double of a Float attribute: it fits such an attribute.
  case float
  case real
  /// An integer or a double, which differs by row.
  case number
  case decimal
  case string
  case date
  case data
  case uuid
  /// Content that is only copied; with external storage in the column's own form.
  case carried(isExternal: Bool)
  /// The Z_PK of an object in that root entity's table.
  case object(root: String)

  /// The class of a value. Values of different classes are never equal and have no order.
  enum Class: Hashable {
    case null, number, text, data, uuid, carried
    case object(String)
  }

  var valueClass: Class {
    switch self {
    case .null: .null
    case .boolean, .integer, .float, .real, .number, .decimal, .date: .number
    case .string: .text
    case .data: .data
    case .uuid: .uuid
    case .carried: .carried
    case .object(let root): .object(root)
    }
  }

  /// The integers that a value of the kind may be; nil for other kinds.
  var range: ClosedRange<Int64>? {
    switch self {
    case .boolean: 0...1
    case .integer(let range): range
    default: nil
    }
  }

  /// Whether the value is always a double or NULL.
  var isReal: Bool { self == .real || self == .float }

  /// Returns a kind for both; nil if SQL could not distinguish them again.
  func joined(_ other: SQLKind) -> SQLKind? {
    if self == other || other == .null { return self }
    if self == .null { return other }
    if let one = range, let two = other.range {
      return .integer(min(one.lowerBound, two.lowerBound)...max(one.upperBound, two.upperBound))
    }
    if isReal && other.isReal { return .real }
    let numbers = [self, other].allSatisfy { $0.range != nil || $0.isReal || $0 == .number }
    return numbers ? .number : nil
  }
}

/// A scalar.
struct SQLFragment {
  let sql: SQLExpression
  let kind: SQLKind
  /// The value, if it is a constant.
  var constant: ExpressionValue?
  /// Whether it is a bare column, which may be written twice.
  var isColumn = false

  static let null = SQLFragment(sql: .null, kind: .null, constant: .null)

  /// The value as a double: dates may be integers in their columns.
  var real: SQLExpression { kind == .real || kind == .float ? sql : "CAST(\(sql) AS REAL)" }
}

extension SQLFragment {
  /// NULL for all operands; those that may fail are still evaluated, as on instances.
  static func null(after operands: SQLFragment...) -> SQLFragment {
    let failing = operands.filter { $0.sql.mayFail }
    if failing.isEmpty { return .null }
    return SQLFragment(sql: "nullif(\(SQLCondition.never(after: failing).sql), 0)", kind: .null)
  }
}

extension SQLCondition {
  /// 0 for all operands; those that may fail are still evaluated, as on instances. Unlike AND, `&` does not
  /// short-circuit.
  static func never(after operands: [SQLFragment]) -> SQLCondition {
    let failing = operands.filter { $0.sql.mayFail }
    if failing.isEmpty { return SQLCondition(sql: "0", isTwoValued: true) }
    let tests = failing.map { " & (\($0.sql) IS NULL)" as SQLExpression }.joined(separator: "")
    return SQLCondition(sql: "(0\(tests))", isTwoValued: true)
  }
}

/// A condition.
struct SQLCondition {
  let sql: SQLExpression
  /// Whether it is never NULL.
  let isTwoValued: Bool

  var twoValued: SQLExpression { isTwoValued ? sql : "(\(sql) IS TRUE)" }
  var negated: SQLExpression { isTwoValued ? "(NOT \(sql))" : "(\(sql) IS NOT TRUE)" }
}

/// The objects reached by the first steps of a key path.
struct SQLChain {
  /// The tables up to the last to-many, and the conditions that join them.
  var tables: [SQLExpression] = []
  var conditions: [SQLExpression] = []
  /// The to-ones after it. A nil to-one makes the value nil, so for values they remain a query of their own.
  var tail: [SQLExpression] = []
  var tailConditions: [SQLExpression] = []
  var alias: String
  var entity: String
  var isCollection = false
  var mayRepeat = false
  /// Whether duplicates were removed in a way that loses the order in which objects are reached.
  var hasLostOrder = false
  var order: [SQLExpression] = []

  /// All tables: those up to the last to-many, and the to-ones after it.
  var allTables: [SQLExpression] { tables + tail }
  var allConditions: [SQLExpression] { conditions + tailConditions }

  /// Creates the to-ones part of the join: for objects, and before a further to-many.
  mutating func mergeTail() {
    tables += tail
    conditions += tailConditions
    tail = []
    tailConditions = []
  }

  /// Returns `expression` of the last object, as a scalar of the row or of the collection's member.
  func scalar(_ expression: SQLExpression) -> SQLExpression {
    tail.isEmpty
      ? expression
      : "(SELECT \(expression) FROM \(tail.joined(separator: ", ")) WHERE \(tailConditions.joined(separator: " AND ")))"
  }
}

/// The values of a collection.
struct SQLValues {
  var tables: [SQLExpression]
  var conditions: [SQLExpression]
  var member: SQLFragment
  /// Whether each value occurs once.
  var isDistinct = false
  /// Whether nil is left out.
  var dropsNull = false
  /// Whether there is one value for each member of a collection, at the end of a key path: KVC makes a set of them.
  var isPath = false

  var from: SQLExpression { tables.joined(separator: ", ") }

  var condition: SQLExpression {
    let all = conditions + (dropsNull ? ["\(member.sql) IS NOT NULL"] : [])
    return all.isEmpty ? "1" : all.joined(separator: " AND ")
  }

  /// A SELECT of the members as `v`.
  var select: SQLExpression {
    "SELECT \(isDistinct ? "DISTINCT " : "")\(member.sql) AS v FROM \(from) WHERE \(condition)"
  }
}

/// The result of compiling an expression.
enum SQLReached {
  case value(SQLFragment)
  case objects(SQLChain)
  case values(SQLValues)
  /// `{…}`.
  case list([SQLFragment])
}
