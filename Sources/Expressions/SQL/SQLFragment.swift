// Pieces of SQL with what is known of their values. Every piece stands for itself: a column, a literal, a call, or
// something in parentheses, so pieces are put together without thinking of precedence.

import PersistentStore
import SQLite

/// What kind of value a piece of SQL gives. NULL is always possible.
enum SQLKind: Hashable {
  case null
  /// 0 or 1.
  case boolean
  case integer(ClosedRange<Int64>)
  /// A Float attribute's double: it fits such an attribute.
  case float
  case real
  /// An integer or a double, row by row.
  case number
  case decimal
  case string
  case date
  case data
  case uuid
  /// Content that is only carried; with external storage in the column's own form.
  case carried(isExternal: Bool)
  /// Z_PK of an object of that root entity's table.
  case object(root: String)

  /// Values of different classes are never equal and have no order.
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

  /// The integers it may be, where it is one.
  var range: ClosedRange<Int64>? {
    switch self {
    case .boolean: 0...1
    case .integer(let range): range
    default: nil
    }
  }

  /// Always a double or NULL?
  var isReal: Bool { self == .real || self == .float }

  /// The kind of either; nil where SQL could not tell them apart again.
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
  /// Its value, where it is a constant.
  var constant: ExpressionValue?
  /// Is it a bare column, which may be written twice?
  var isColumn = false

  static let null = SQLFragment(sql: .null, kind: .null, constant: .null)

  /// As a double: dates may be integers in their columns.
  var real: SQLExpression { kind == .real || kind == .float ? sql : "CAST(\(sql) AS REAL)" }
}

extension SQLFragment {
  /// NULL, whatever the operands are; those that may fail are evaluated all the same, as on instances.
  static func null(after operands: SQLFragment...) -> SQLFragment {
    let failing = operands.filter { $0.sql.mayFail }
    if failing.isEmpty { return .null }
    return SQLFragment(sql: "nullif(\(SQLCondition.never(after: failing).sql), 0)", kind: .null)
  }
}

extension SQLCondition {
  /// 0, whatever the operands are; those that may fail are evaluated all the same. `&` has no short way out, unlike
  /// AND.
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
  /// Is it never NULL?
  let isTwoValued: Bool

  var twoValued: SQLExpression { isTwoValued ? sql : "(\(sql) IS TRUE)" }
  var negated: SQLExpression { isTwoValued ? "(NOT \(sql))" : "(\(sql) IS NOT TRUE)" }
}

/// Objects on the way along a key path.
struct SQLChain {
  /// Tables up to the last to-many, and what joins them.
  var tables: [SQLExpression] = []
  var conditions: [SQLExpression] = []
  /// To-ones behind it: where one is nil the value is nil, so for values they stay a query of their own.
  var tail: [SQLExpression] = []
  var tailConditions: [SQLExpression] = []
  var alias: String
  var entity: String
  var isCollection = false
  var mayRepeat = false
  /// Were objects made single in a way that gave up the order in which they are reached?
  var hasLostOrder = false
  var order: [SQLExpression] = []

  /// The alias at the end of `tables`.
  var allTables: [SQLExpression] { tables + tail }
  var allConditions: [SQLExpression] { conditions + tailConditions }

  /// The to-ones become part of the join: for objects, and before a further to-many.
  mutating func mergeTail() {
    tables += tail
    conditions += tailConditions
    tail = []
    tailConditions = []
  }

  /// `expression` of the last object, as a scalar of the row or of the collection's member.
  func scalar(_ expression: SQLExpression) -> SQLExpression {
    tail.isEmpty
      ? expression
      : "(SELECT \(expression) FROM \(tail.joined(separator: ", ")) WHERE \(tailConditions.joined(separator: " AND ")))"
  }
}

/// Values of a collection.
struct SQLValues {
  var tables: [SQLExpression]
  var conditions: [SQLExpression]
  var member: SQLFragment
  /// Each value once.
  var isDistinct = false
  /// Without nil.
  var dropsNull = false
  /// One for each member of a collection, at the end of a key path: for KVC a set.
  var isPath = false

  var from: SQLExpression { tables.joined(separator: ", ") }

  var condition: SQLExpression {
    let all = conditions + (dropsNull ? ["\(member.sql) IS NOT NULL"] : [])
    return all.isEmpty ? "1" : all.joined(separator: " AND ")
  }

  /// SELECT of the members as `v`.
  var select: SQLExpression {
    "SELECT \(isDistinct ? "DISTINCT " : "")\(member.sql) AS v FROM \(from) WHERE \(condition)"
  }
}

/// What an expression reaches.
enum SQLReached {
  case value(SQLFragment)
  case objects(SQLChain)
  case values(SQLValues)
  /// `{…}`.
  case list([SQLFragment])
}
