// The values of key paths over collections, as sets, and the getters of values (docs/formats/expressions.md,
// "Collections" and "Getters").

import SQLite

extension SQLExpressionCompiler {
  /// Returns the values of a key path over a collection as the set that KVC makes of them; any other result unchanged.
  func asSet(_ reached: SQLReached) -> SQLReached {
    guard case .values(var values) = reached, values.isPath else { return reached }
    values.isPath = false
    values.isDistinct = true
    values.dropsNull = true
    return .values(values)
  }

  /// Returns the same values as a table of their own.
  func materialised(_ values: SQLValues) -> SQLValues {
    let alias = counter.next()
    return SQLValues(
      tables: ["(\(values.select)) AS \(alias)"], conditions: [],
      member: SQLFragment(sql: "\(alias).v", kind: values.member.kind, isColumn: true))
  }

  func getter(
    _ name: String, of reached: SQLReached, _ frame: Frame, isFloat: Bool
  ) throws(NotCompilable) -> SQLReached {
    guard let getter = ValueGetter(rawValue: name) else { throw NotCompilable("\(name) is used on a value") }
    switch reached {
    case .value(let fragment): return .value(try self.getter(getter, fragment, frame, isFloat: isFloat))
    case .values(var values):
      // The getter applies to the values that are distinct so far.
      if values.isDistinct { values = materialised(values) }
      values.member = try self.getter(getter, values.member, frame, isFloat: isFloat)
      return .values(values)
    case .objects, .list: throw NotCompilable("\(name) is used on a list")
    }
  }

  private func getter(
    _ getter: ValueGetter, _ operand: SQLFragment, _ frame: Frame, isFloat: Bool
  ) throws(NotCompilable) -> SQLFragment {
    if operand.kind == .null || getter == .itself { return operand }
    switch operand.kind {
    case .carried, .object: throw NotCompilable("\(getter.rawValue) is used on content that is only carried")
    case .decimal: throw .decimal
    default: break
    }
    let kind: SQLKind
    switch getter {
    case .doubleValue, .timeIntervalSince1970, .timeIntervalSinceReferenceDate: kind = .real
    case .floatValue: kind = .float
    case .boolValue: kind = .boolean
    case .length: kind = .integer(0...Int64(Int32.max))
    default: kind = getter.integers.map { .integer($0.range) } ?? .string
    }
    let form: ExpressionFunctions.GetterOperand =
      switch operand.kind {
      case .uuid: .uuid
      case .date: .date
      default: isFloat ? .float : .plain
      }
    let name = SQLiteIdentifier.literal(getter.rawValue)
    return SQLFragment(
      sql: "\(ExpressionFunctions.getter)(\(name), \(form.rawValue), \(operand.sql)\(frame.site))", kind: kind)
  }
}
