// Values as SQL (docs/formats/expressions.md, "Arithmetic" and "CAST"): plain operators if they cannot differ from the
// evaluator, else functions that run the evaluator's own code.

import ManagedObjectModel
import PersistentStore
import SQLite

extension SQLExpressionCompiler {
  /// Compiles an expression to what it reaches: a value, objects, values, or a list.
  func reach(_ node: ExpressionNode, _ frame: Frame) throws(NotCompilable) -> SQLReached {
    switch node {
    case .constant(let constant): return .value(literal(ExpressionValue(constant)))
    case .selfObject, .variable("source"):
      return .objects(SQLChain(alias: frame.row.alias, entity: frame.row.entity))
    case .variable(let name):
      guard let row = frame.row.variables[name] else { throw NotCompilable("$\(name) is unknown here") }
      return .objects(SQLChain(alias: row.alias, entity: row.entity))
    case .keyPath(let base, let steps): return try path(base, steps, frame)
    case .function(.noIndex, let arguments) where arguments.count == 1: return try reach(arguments[0], frame)
    case .function(let function, let arguments): return .value(try call(function, arguments, frame))
    case .cast(let operand, let target): return .value(try cast(try scalar(operand, frame), to: target, frame))
    case .ternary(let predicate, let yes, let no): return .value(try ternary(predicate, yes, no, frame))
    case .subquery(let collection, let variable, let predicate):
      return try subquery(collection, variable, predicate, frame)
    case .aggregate(let members):
      var list: [SQLFragment] = []
      for member in members { list.append(try scalar(member, frame)) }
      return .list(list)
    case .element(let collection, let index): return try element(collection, index, frame)
    case .arithmetic(let operation, let left, let right):
      return .value(try arithmetic(operation, try scalar(left, frame), try scalar(right, frame), frame))
    case .negated(let operand): return .value(try negated(try scalar(operand, frame), frame))
    case .destinationInstances, .policyMethod:
      throw NotCompilable(Self.needsEngine(node) ?? "it needs the engine")
    }
  }

  /// Compiles an expression to one value.
  func scalar(_ node: ExpressionNode, _ frame: Frame) throws(NotCompilable) -> SQLFragment {
    switch try reach(node, frame) {
    case .value(let fragment): return fragment
    case .objects(let chain):
      guard !chain.isCollection, let table = schema.table(of: chain.entity) else {
        throw NotCompilable("a collection is used where one value is required")
      }
      return SQLFragment(sql: chain.scalar("\(chain.alias).Z_PK"), kind: .object(root: table.rootEntity))
    case .values, .list: throw NotCompilable("a collection is used where one value is required")
    }
  }

  // MARK: Constants

  func literal(_ value: ExpressionValue) -> SQLFragment {
    switch value {
    case .null: return .null
    case .boolean(let value):
      return SQLFragment(sql: .integer(value ? 1 : 0), kind: .boolean, constant: .boolean(value))
    case .integer(let number):
      let sql = SQLExpression.integer(number)
      return SQLFragment(
        sql: number < 0 && number > .min ? "(\(sql))" : sql, kind: .integer(number...number), constant: value)
    case .double(let number): return SQLFragment(sql: Self.real(number), kind: .real, constant: value)
    case .date(let number): return SQLFragment(sql: Self.real(number), kind: .date, constant: value)
    case .decimal(let number):
      let sql = number.integer.map { literal(.integer($0)).sql } ?? Self.real(number.double)
      return SQLFragment(sql: sql, kind: .decimal, constant: value)
    case .string(let text): return SQLFragment(sql: .value(.text(text)), kind: .string, constant: value)
    case .data(let bytes): return SQLFragment(sql: .value(.blob(bytes)), kind: .data, constant: value)
    case .uuid(let bytes): return SQLFragment(sql: .value(.blob(bytes)), kind: .uuid, constant: value)
    case .carried, .object, .list: return .null
    }
  }

  /// Writes a double exactly: SQLite does not always read decimal text as the nearest double (3.40), so only small
  /// whole numbers are written as text.
  static func real(_ value: Double) -> SQLExpression {
    if value.isNaN { return .null }
    if value == value.rounded(), value.magnitude < 0x1p53 {
      let text: SQLExpression = "\(Int64(value)).0"
      return value < 0 ? "(\(text))" : text
    }
    return "\(ExpressionFunctions.real)(\(SQLiteValue.integer(Int64(bitPattern: value.bitPattern)).literal))"
  }

  // MARK: Arithmetic

  func arithmetic(
    _ operation: ArithmeticOperator, _ left: SQLFragment, _ right: SQLFragment, _ frame: Frame
  ) throws(NotCompilable) -> SQLFragment {
    if left.kind == .null || right.kind == .null { return .null(after: left, right) }
    guard left.kind.valueClass == .number, right.kind.valueClass == .number else {
      throw NotCompilable("\(operation.rawValue) is used on a value that is not a number")
    }
    guard operation == .power || (left.kind != .decimal && right.kind != .decimal) else { throw .decimal }
    let (isDate, isOtherDate) = (left.kind == .date, right.kind == .date)
    let one = isDate ? left.real : left.sql
    let other = isOtherDate ? right.real : right.sql
    func checked(_ kind: SQLKind) -> SQLFragment {
      let name = SQLiteIdentifier.literal(operation.rawValue)
      return SQLFragment(sql: "\(ExpressionFunctions.arithmetic)(\(name), \(one), \(other)\(frame.site))", kind: kind)
    }
    if operation == .power { return checked(.real) }
    if let first = left.kind.range, let second = right.kind.range {
      guard let range = Self.range(operation, first, second) else { return checked(.integer(.min ... .max)) }
      return SQLFragment(sql: "(\(one) \(operation.rawValue) \(other))", kind: .integer(range))
    }
    let kind: SQLKind =
      switch (isDate, isOtherDate, operation) {
      case (true, true, .subtract): .real
      case (true, _, .add), (true, _, .subtract), (_, true, .add): .date
      case (true, _, _), (_, true, _): .real
      default: left.kind.isReal || right.kind.isReal ? .real : .number
      }
    // A double on one side makes the other a double, as in the evaluator.
    guard kind != .number, operation != .divide else { return checked(kind) }
    return SQLFragment(sql: "(\(one) \(operation.rawValue) \(other))", kind: kind)
  }

  /// Returns the range of a result that cannot overflow; nil if it can.
  static func range(
    _ operation: ArithmeticOperator, _ left: ClosedRange<Int64>, _ right: ClosedRange<Int64>
  ) -> ClosedRange<Int64>? {
    var ends: [Int64] = []
    for one in [left.lowerBound, left.upperBound] {
      for other in [right.lowerBound, right.upperBound] {
        let (value, overflow) =
          switch operation {
          case .add: one.addingReportingOverflow(other)
          case .subtract: one.subtractingReportingOverflow(other)
          case .multiply: one.multipliedReportingOverflow(by: other)
          case .divide, .power: (Int64(0), true)
          }
        if overflow { return nil }
        ends.append(value)
      }
    }
    guard let low = ends.min(), let high = ends.max() else { return nil }
    return low...high
  }

  private func negated(_ operand: SQLFragment, _ frame: Frame) throws(NotCompilable) -> SQLFragment {
    if let constant = operand.constant, let value = try? Arithmetic.negate(constant) { return literal(value) }
    switch operand.kind {
    case .real, .float: return SQLFragment(sql: "(- \(operand.sql))", kind: operand.kind)
    default: return try arithmetic(.subtract, literal(.integer(0)), operand, frame)
    }
  }

  // MARK: Functions

  private func now() -> SQLFragment { SQLFragment(sql: Self.real(moment), kind: .date) }

  private func call(
    _ function: ExpressionFunction, _ arguments: [ExpressionNode], _ frame: Frame
  ) throws(NotCompilable) -> SQLFragment {
    guard let first = arguments.first else { return now() }
    switch function {
    case .now: return now()
    case .noIndex: return try scalar(first, frame)
    // Rare, and computed from all values at once.
    case .median, .mode, .standardDeviation: throw NotCompilable("\(function.rawValue) has no form in SQL")
    case .count, .sum, .min, .max, .average:
      let reached = asSet(try reach(first, frame))
      if case .value(let fragment) = reached, fragment.kind == .null { return fragment }
      if function == .count { return try count(reached) }
      return try combined(function.combination, try values(of: reached), frame)
    case .modulus: return try modulus(arguments, frame)
    case .bitwiseAnd, .bitwiseOr, .bitwiseXor, .leftShift, .rightShift, .onesComplement:
      return try bits(function, arguments, frame)
    case .absolute, .ceiling, .floor, .truncate, .squareRoot, .logarithm, .naturalLogarithm, .exponential:
      return try ofNumber(function, first, frame)
    case .uppercase: return try ofText(function, ExpressionFunctions.uppercase, first, frame)
    case .lowercase: return try ofText(function, ExpressionFunctions.lowercase, first, frame)
    case .canonical: return try ofText(function, ExpressionFunctions.canonical, first, frame)
    case .length: return try ofText(function, ExpressionFunctions.length, first, frame)
    case .concatenate: return try concatenated(arguments, frame)
    }
  }

  private func modulus(_ arguments: [ExpressionNode], _ frame: Frame) throws(NotCompilable) -> SQLFragment {
    guard arguments.count == 2 else { throw NotCompilable("modulus:by: takes two arguments") }
    let (left, right) = (try number(arguments[0], frame), try number(arguments[1], frame))
    if left.kind == .null || right.kind == .null { return .null(after: left, right) }
    let kind: SQLKind =
      left.kind.range != nil && right.kind.range != nil
      ? .integer(.min ... .max) : left.kind == .number || right.kind == .number ? .number : .real
    return SQLFragment(sql: "\(ExpressionFunctions.modulus)(\(left.sql), \(right.sql)\(frame.site))", kind: kind)
  }

  private func ofNumber(
    _ function: ExpressionFunction, _ argument: ExpressionNode, _ frame: Frame
  ) throws(NotCompilable) -> SQLFragment {
    let operand = try number(argument, frame)
    if operand.kind == .null { return operand }
    if let range = operand.kind.range, !function.isOfReals {
      if function != .absolute { return SQLFragment(sql: operand.sql, kind: .integer(range)) }
      if range.lowerBound > .min {
        let most = max(range.lowerBound.magnitude, range.upperBound.magnitude)
        return SQLFragment(sql: "abs(\(operand.sql))", kind: .integer(0...Int64(clamping: most)))
      }
    }
    let kind: SQLKind =
      function.isOfReals
      ? .real : operand.kind.range != nil ? .integer(.min ... .max) : operand.kind == .number ? .number : .real
    let name = SQLiteIdentifier.literal(function.rawValue)
    return SQLFragment(sql: "\(ExpressionFunctions.number)(\(name), \(operand.sql)\(frame.site))", kind: kind)
  }

  private func ofText(
    _ function: ExpressionFunction, _ name: SQLExpression, _ argument: ExpressionNode, _ frame: Frame
  ) throws(NotCompilable) -> SQLFragment {
    let operand = try scalar(argument, frame)
    if operand.kind == .null { return operand }
    guard operand.kind == .string else {
      throw NotCompilable("\(function.rawValue) is used on a value that is not a text")
    }
    return SQLFragment(
      sql: "\(name)(\(operand.sql))", kind: function == .length ? .integer(0...Int64(Int32.max)) : .string)
  }

  private func bits(
    _ function: ExpressionFunction, _ arguments: [ExpressionNode], _ frame: Frame
  ) throws(NotCompilable) -> SQLFragment {
    var operands: [SQLFragment] = []
    for argument in arguments { operands.append(try number(argument, frame)) }
    guard let left = operands.first else { return .null }
    let right = operands.count > 1 ? operands[1] : literal(.integer(0))
    if left.kind == .null || right.kind == .null { return .null(after: left, right) }
    let sql: SQLExpression
    switch function {
    case .bitwiseAnd where left.kind.range != nil && right.kind.range != nil: sql = "(\(left.sql) & \(right.sql))"
    case .bitwiseOr where left.kind.range != nil && right.kind.range != nil: sql = "(\(left.sql) | \(right.sql))"
    case .onesComplement where left.kind.range != nil: sql = "(~ \(left.sql))"
    default:
      let name = SQLiteIdentifier.literal(function.rawValue)
      sql = "\(ExpressionFunctions.bits)(\(name), \(left.sql), \(right.sql)\(frame.site))"
    }
    return SQLFragment(sql: sql, kind: .integer(.min ... .max))
  }

  /// `||`, which is NULL if one of the texts is. The list is split in halves, so that it stays a shallow tree for
  /// SQLite.
  private func concatenated(_ arguments: [ExpressionNode], _ frame: Frame) throws(NotCompilable) -> SQLFragment {
    var operands: [SQLFragment] = []
    for argument in arguments { operands.append(try scalar(argument, frame)) }
    guard operands.allSatisfy({ $0.kind == .string || $0.kind == .null }) else {
      throw NotCompilable("\(ExpressionFunction.concatenate.rawValue) is used on a value that is not a text")
    }
    var texts = operands.map(\.sql)
    while texts.count > 1 {
      texts = stride(from: 0, to: texts.count, by: 2).map { index in
        index + 1 < texts.count ? "(\(texts[index]) || \(texts[index + 1]))" : texts[index]
      }
    }
    return SQLFragment(sql: texts.first ?? .null, kind: .string)
  }

  /// Compiles a function's argument to a number: dates as their seconds, no decimals.
  private func number(_ node: ExpressionNode, _ frame: Frame) throws(NotCompilable) -> SQLFragment {
    let operand = try scalar(node, frame)
    if operand.kind == .null { return operand }
    guard operand.kind.valueClass == .number else {
      throw NotCompilable("a function of numbers is used on another value")
    }
    guard operand.kind != .decimal else { throw .decimal }
    return operand.kind == .date ? SQLFragment(sql: operand.real, kind: .real) : operand
  }

  private func ternary(
    _ predicate: PredicateNode, _ yes: ExpressionNode, _ no: ExpressionNode, _ frame: Frame
  ) throws(NotCompilable) -> SQLFragment {
    let condition = try self.predicate(predicate, frame).sql
    let (one, other) = (try scalar(yes, frame), try scalar(no, frame))
    guard let kind = one.kind.joined(other.kind) else {
      throw NotCompilable("TERNARY has values of different kinds")
    }
    return SQLFragment(sql: "(CASE WHEN \(condition) THEN \(one.sql) ELSE \(other.sql) END)", kind: kind)
  }

  // MARK: CAST

  private func cast(_ operand: SQLFragment, to target: CastTarget, _ frame: Frame) throws(NotCompilable) -> SQLFragment
  {
    if operand.kind == .null { return operand }
    guard operand.kind != .decimal, target != .decimal else { throw .decimal }
    switch operand.kind {
    case .carried, .object: throw NotCompilable("CAST is used on content that is only carried, or on an object")
    default: break
    }
    let kind: SQLKind
    switch target.type?.form {
    case .string?:
      if operand.kind == .string { return operand }
      kind = .string
    case nil:
      switch operand.kind {
      case .boolean: return SQLFragment(sql: operand.sql, kind: .integer(0...1))
      case .integer, .real, .float, .number: return operand
      case .date: return SQLFragment(sql: operand.real, kind: .real)
      default: kind = .number
      }
    case .real? where target.type == .float:
      if operand.kind == .float { return operand }
      kind = .float
    case .date?, .real?:
      kind = target == .date ? .date : .real
      if operand.kind.valueClass == .number { return SQLFragment(sql: operand.real, kind: kind) }
    case .boolean?:
      if operand.kind == .boolean { return operand }
      kind = .boolean
    default:
      let wanted = target.type?.integers ?? .min ... .max
      if let range = operand.kind.range, wanted.contains(range.lowerBound), wanted.contains(range.upperBound) {
        return SQLFragment(sql: operand.sql, kind: .integer(range))
      }
      kind = .integer(wanted)
    }
    let name = SQLiteIdentifier.literal(target.rawValue)
    let isUUID = operand.kind == .uuid ? "1" : "0"
    return SQLFragment(sql: "\(ExpressionFunctions.cast)(\(name), \(isUUID), \(operand.sql)\(frame.site))", kind: kind)
  }
}
