// Predicates as SQL (docs/formats/expressions.md, "nil", "Collections" and "Strings"). SQL's logic has three values and
// that of predicates two. A comparison with NULL is made 0 only where the difference matters, under NOT and in ALL;
// elsewhere WHERE and CASE treat NULL as 0, and indexes can be used.

import ManagedObjectModel
import SQLite

extension SQLExpressionCompiler {
  func predicate(_ predicate: PredicateNode, _ frame: Frame) throws(NotCompilable) -> SQLCondition {
    switch predicate {
    case .constant(let value): return SQLCondition(sql: value ? "1" : "0", isTwoValued: true)
    case .not(let part): return SQLCondition(sql: try self.predicate(part, frame).negated, isTwoValued: true)
    case .and(let parts): return try joined(parts, frame, isAnd: true)
    case .or(let parts): return try joined(parts, frame, isAnd: false)
    case .comparison(let comparison): return try self.comparison(comparison, frame)
    }
  }

  private func joined(
    _ parts: [PredicateNode], _ frame: Frame, isAnd: Bool
  ) throws(NotCompilable) -> SQLCondition {
    var conditions: [SQLCondition] = []
    for part in parts { conditions.append(try predicate(part, frame)) }
    guard let last = conditions.last else { return SQLCondition(sql: isAnd ? "1" : "0", isTwoValued: true) }
    // A part that may fail is evaluated only if the parts before it require it, as on instances; SQLite's AND and OR do
    // not promise that.
    if conditions.contains(where: { $0.sql.mayFail }) {
      var sql = last.twoValued
      for condition in conditions.dropLast().reversed() {
        sql = "(CASE WHEN \(condition.sql) THEN \(isAnd ? sql : "1") ELSE \(isAnd ? "0" : sql) END)"
      }
      return SQLCondition(sql: sql, isTwoValued: true)
    }
    let sql = conditions.map(\.sql).joined(separator: isAnd ? " AND " : " OR ")
    return SQLCondition(sql: "(\(sql))", isTwoValued: conditions.allSatisfy(\.isTwoValued))
  }

  private func comparison(_ comparison: Comparison, _ frame: Frame) throws(NotCompilable) -> SQLCondition {
    guard comparison.modifier != .direct else {
      if comparison.operation == .contains, try isCollection(comparison.left, frame) {
        return try membership(comparison.swapped(.in), try scalar(comparison.right, frame), frame)
      }
      return try compare(comparison, try scalar(comparison.left, frame), frame)
    }
    if endsInToOne(comparison.left, frame) {
      throw NotCompilable("among the objects at the end of a path there may be none, which counts under a modifier")
    }
    let reached = try reach(comparison.left, frame)
    if case .list(let members) = reached, members.isEmpty {
      return SQLCondition(sql: comparison.modifier == .any ? "0" : "1", isTwoValued: true)
    }
    let values = try values(of: reached)
    let condition = try compare(comparison, values.member, frame)
    let test = comparison.modifier == .all ? condition.negated : condition.sql
    // A term that may fail must not be evaluated for rows that the joins leave out.
    let guarded: SQLExpression = test.mayFail ? "CASE WHEN \(values.condition) THEN \(test) ELSE 0 END" : test
    let exists: SQLExpression = "EXISTS (SELECT 1 FROM \(values.from) WHERE \(values.condition) AND \(guarded))"
    return SQLCondition(sql: comparison.modifier == .any ? exists : "(NOT \(exists))", isTwoValued: true)
  }

  private func isCollection(_ node: ExpressionNode, _ frame: Frame) throws(NotCompilable) -> Bool {
    switch try reach(node, frame) {
    case .value: false
    case .objects(let chain): chain.isCollection
    case .values, .list: true
    }
  }

  /// Whether the expression ends in the to-one of each member of a collection. SQL's joins leave out members without
  /// one.
  private func endsInToOne(_ node: ExpressionNode, _ frame: Frame) -> Bool {
    guard case .keyPath(let base, let steps) = node, case .key(let name)? = steps.last else { return false }
    let path: ExpressionNode = steps.count == 1 ? base : .keyPath(base, Array(steps.dropLast()))
    guard case .objects(let chain)? = try? reach(path, frame), chain.isCollection,
      let found = scope.model.entity(named: chain.entity)
    else { return false }
    return scope.model.allRelationships(of: found)[name]?.isToMany == false
  }

  /// Compares a value with the right side.
  private func compare(
    _ comparison: Comparison, _ left: SQLFragment, _ frame: Frame
  ) throws(NotCompilable) -> SQLCondition {
    switch comparison.operation {
    case .in: return try membership(comparison, left, frame)
    case .between:
      guard case .list(let bounds) = try reach(comparison.right, frame), bounds.count == 2 else {
        throw NotCompilable("BETWEEN needs two bounds in braces")
      }
      let low = try ordered(.greaterOrEqual, fold(left, comparison), fold(bounds[0], comparison))
      let high = try ordered(.lessOrEqual, fold(left, comparison), fold(bounds[1], comparison))
      if low.sql.mayFail || high.sql.mayFail {
        // Both bounds are evaluated, as on instances.
        return SQLCondition(sql: "(\(low.twoValued) & \(high.twoValued))", isTwoValued: true)
      }
      return SQLCondition(sql: "(\(low.sql) AND \(high.sql))", isTwoValued: low.isTwoValued && high.isTwoValued)
    case .equal, .notEqual:
      let right = fold(try scalar(comparison.right, frame), comparison)
      return try equal(fold(left, comparison), right, isNegated: comparison.operation == .notEqual)
    case .less, .lessOrEqual, .greater, .greaterOrEqual:
      return try ordered(
        comparison.operation, fold(left, comparison), fold(try scalar(comparison.right, frame), comparison))
    case .beginsWith, .contains, .endsWith, .like, .matches:
      return try text(comparison, left, try scalar(comparison.right, frame), frame)
    }
  }

  /// `==` and `!=`: nil equals nil, and values of different classes are different.
  private func equal(
    _ left: SQLFragment, _ right: SQLFragment, isNegated: Bool
  ) throws(NotCompilable) -> SQLCondition {
    let (one, other) = (left.kind.valueClass, right.kind.valueClass)
    if one != .null && other != .null {
      if one == .carried || other == .carried { throw .carried }
      if one != other {
        let sign = left.sql.mayFail || right.sql.mayFail ? "&" : "AND"
        let both: SQLExpression = "((\(left.sql) IS NULL) \(sign) (\(right.sql) IS NULL))"
        return SQLCondition(sql: isNegated ? "(NOT \(both))" : both, isTwoValued: true)
      }
    }
    return SQLCondition(sql: "(\(left.sql) IS \(isNegated ? "NOT " : "")\(right.sql))", isTwoValued: true)
  }

  private func ordered(
    _ operation: Comparison.Operator, _ left: SQLFragment, _ right: SQLFragment
  ) throws(NotCompilable) -> SQLCondition {
    let (one, other) = (left.kind.valueClass, right.kind.valueClass)
    if one == .carried || other == .carried { throw .carried }
    var hasOrder = one == other && one != .null
    if case .object = one { hasOrder = false }
    guard hasOrder else { return .never(after: [left, right]) }
    return SQLCondition(sql: "(\(left.sql) \(operation.rawValue) \(right.sql))", isTwoValued: false)
  }

  private func membership(
    _ comparison: Comparison, _ left: SQLFragment, _ frame: Frame
  ) throws(NotCompilable) -> SQLCondition {
    let value = fold(left, comparison)
    let reached = try reach(comparison.right, frame)
    if case .value(let right) = reached {
      // IN on texts: whether the left text is part of the right one.
      if right.kind == .string { return try text(comparison.swapped(.contains), right, left, frame) }
      guard right.kind == .null else { throw NotCompilable("IN needs a collection") }
      return .never(after: [value, right])
    }
    if case .list(let members) = reached {
      if value.kind.valueClass == .carried { throw .carried }
      // A member that may be nil is compared separately: a collection contains nil only if one of its members is nil.
      var tests: [SQLExpression] = []
      var constants: [SQLExpression] = []
      for member in members.map({ fold($0, comparison) }) {
        if let constant = member.constant, !constant.isNull, value.isColumn {
          if member.kind.valueClass == value.kind.valueClass { constants.append(member.sql) }
        } else {
          tests.append(try equal(value, member, isNegated: false).sql)
        }
      }
      if !constants.isEmpty {
        tests.append("(\(value.sql) IS NOT NULL AND \(value.sql) IN (\(constants.joined(separator: ", "))))")
      }
      guard !tests.isEmpty else { return .never(after: [value]) }
      return SQLCondition(sql: Self.any(tests), isTwoValued: true)
    }
    let values = try values(of: asSet(reached))
    let test = try equal(value, fold(values.member, comparison), isNegated: false)
    return SQLCondition(
      sql: "EXISTS (SELECT 1 FROM \(values.from) WHERE \(values.condition) AND \(test.sql))", isTwoValued: true)
  }

  /// OR as a balanced tree: SQLite limits the depth of expressions to 1000, and lists may have 10,000 members. If a
  /// member may fail, all are evaluated, as on instances.
  private static func any(_ tests: [SQLExpression]) -> SQLExpression {
    let sign = tests.mayFail ? "|" : "OR"
    func joined(_ tests: ArraySlice<SQLExpression>) -> SQLExpression {
      if tests.count == 1, let test = tests.first { return test }
      let half = tests.startIndex + tests.count / 2
      return "(\(joined(tests[..<half])) \(sign) \(joined(tests[half...])))"
    }
    return joined(tests[...])
  }

  // MARK: Text

  /// Returns the text folded as `[c]` and `[d]` require.
  private func fold(_ fragment: SQLFragment, _ comparison: Comparison) -> SQLFragment {
    guard comparison.folds, fragment.kind == .string else { return fragment }
    if case .string(let text)? = fragment.constant { return literal(.string(comparison.folded(text))) }
    return SQLFragment(sql: "\(ExpressionFunctions.fold)(\(fragment.sql), \(comparison.foldFlags))", kind: .string)
  }

  private func text(
    _ comparison: Comparison, _ left: SQLFragment, _ right: SQLFragment, _ frame: Frame
  ) throws(NotCompilable) -> SQLCondition {
    if left.kind == .null || right.kind == .null { return .never(after: [left, right]) }
    guard left.kind == .string, right.kind == .string else {
      throw NotCompilable("\(comparison.operation.rawValue) is used on a value that is not a text")
    }
    let name = SQLiteIdentifier.literal(comparison.operation.rawValue)
    if comparison.operation == .matches {
      return SQLCondition(
        sql: "\(ExpressionFunctions.matches)(\(left.sql), \(right.sql), \(comparison.foldFlags)\(frame.site))",
        isTwoValued: false)
    }
    let text = fold(left, comparison)
    let pattern = fold(right, comparison)
    if case .string(let value)? = pattern.constant {
      // An empty pattern never matches.
      if value.isEmpty { return .never(after: [text]) }
      if let sql = plain(comparison.operation, text, value) { return SQLCondition(sql: sql, isTwoValued: false) }
    }
    return SQLCondition(sql: "\(ExpressionFunctions.string)(\(name), \(text.sql), \(pattern.sql))", isTwoValued: false)
  }

  /// Returns the operators that plain SQL has, exact also for texts with NULs; nil for the others.
  private func plain(_ operation: Comparison.Operator, _ text: SQLFragment, _ pattern: String) -> SQLExpression? {
    switch operation {
    case .contains: return "(instr(\(text.sql), \(literal(.string(pattern)).sql)) > 0)"
    case .endsWith:
      let bytes = Array(pattern.utf8)
      return "(substr(CAST(\(text.sql) AS BLOB), -\(bytes.count)) = \(SQLiteValue.blob(bytes).literal))"
    case .beginsWith:
      let start = literal(.string(pattern)).sql
      guard text.isColumn else { return nil }
      guard let end = Self.successor(of: pattern) else { return nil }
      return "(\(text.sql) >= \(start) AND \(text.sql) < \(literal(.string(end)).sql))"
    case .like: return like(text, WildcardPattern(pattern).parts)
    default: return nil
    }
  }

  /// Returns LIKE for patterns without `?` and with `*` at the ends only.
  private func like(_ text: SQLFragment, _ parts: [WildcardPattern.Part]) -> SQLExpression? {
    var middle = String.UnicodeScalarView()
    let isOpenAtStart = parts.first == .any
    let isOpenAtEnd = parts.count > 1 && parts.last == .any
    for part in parts.dropFirst(isOpenAtStart ? 1 : 0).dropLast(isOpenAtEnd ? 1 : 0) {
      guard case .scalar(let scalar) = part else { return nil }
      middle.append(scalar)
    }
    guard !middle.isEmpty else { return nil }
    let pattern = String(middle)
    switch (isOpenAtStart, isOpenAtEnd) {
    case (false, false): return "(\(text.sql) = \(literal(.string(pattern)).sql))"
    case (false, true): return plain(.beginsWith, text, pattern)
    case (true, false): return plain(.endsWith, text, pattern)
    case (true, true): return plain(.contains, text, pattern)
    }
  }

  /// Returns the first text after all that begin with `text`: UTF-8 keeps the order of scalars.
  static func successor(of text: String) -> String? {
    var scalars = Array(text.unicodeScalars)
    while let last = scalars.popLast() {
      let next = last.value == 0xd7ff ? 0xe000 : last.value + 1
      guard let scalar = Unicode.Scalar(next) else { continue }
      scalars.append(scalar)
      var view = String.UnicodeScalarView()
      view.append(contentsOf: scalars)
      return String(view)
    }
    return nil
  }
}
