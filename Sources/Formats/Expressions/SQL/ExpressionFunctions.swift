// The SQL functions that compiled expressions call. Each runs the evaluator's own code, so the two cannot disagree. A
// function that may fail takes as last arguments the property and the key of the row: its error names these, never a
// value.

import Diagnostics
import ManagedObjectModel
import SQLite

/// The SQL functions of expressions.
package enum ExpressionFunctions {
  static let real = SQLExpression.function("hopd_real")
  static let fold = SQLExpression.function("hopd_fold")
  static let string = SQLExpression.function("hopd_string")
  static let uppercase = SQLExpression.function("hopd_uppercase")
  static let lowercase = SQLExpression.function("hopd_lowercase")
  static let length = SQLExpression.function("hopd_length")
  static let canonical = SQLExpression.function("hopd_canonical")
  static let arithmetic = SQLExpression.function("hopd_checked_arithmetic", .mayFail)
  static let number = SQLExpression.function("hopd_checked_number", .mayFail)
  static let modulus = SQLExpression.function("hopd_checked_modulus", .mayFail)
  static let bits = SQLExpression.function("hopd_checked_bits", .mayFail)
  static let getter = SQLExpression.function("hopd_checked_getter", .mayFail)
  static let cast = SQLExpression.function("hopd_checked_cast", .mayFail)
  static let store = SQLExpression.function("hopd_checked_store", .mayFail)
  static let matches = SQLExpression.function("hopd_checked_matches", .mayFail)
  static let sum = SQLExpression.function("hopd_checked_sum", .mayFail)
  static let average = SQLExpression.function("hopd_checked_average", .mayFail)
  /// Evaluates an expression of `ExpressionFallbacks` on the object of a row.
  package static let evaluate = SQLExpression.function("hopd_checked_evaluate", .mayFail)

  /// Registers all functions that compiled expressions call, except that of `ExpressionFallbacks`. A store's schema
  /// cannot call any of them.
  package static func register(on connection: Connection) throws(SQLiteError) {
    try registerText(on: connection)
    try registerNumbers(on: connection)
    try registerConversions(on: connection)
    try registerGetter(on: connection)
  }

  private static func registerText(on connection: Connection) throws(SQLiteError) {
    try connection.registerFailingFunction(real.text, argumentCount: 1, isDeterministic: true) { values in
      guard case .integer(let bits)? = values.first else { return .null }
      return .real(Double(bitPattern: UInt64(bitPattern: bits)))
    }
    try connection.registerFailingFunction(fold.text, argumentCount: 2, isDeterministic: true) { values in
      guard case .text(let text) = values[0], case .integer(let flags) = values[1] else { return values[0] }
      let comparison = Comparison(
        .selfObject, flags & 4 != 0 ? .like : .equal, .selfObject, ignoresCase: flags & 1 != 0,
        ignoresDiacritics: flags & 2 != 0)
      return .text(comparison.folded(text))
    }
    try connection.registerFailingFunction(string.text, argumentCount: 3, isDeterministic: true) { values in
      guard case .text(let name) = values[0], let operation = Comparison.Operator(rawValue: name),
        case .text(let text) = values[1], case .text(let pattern) = values[2]
      else { return .null }
      return .integer(TextComparison.holds(operation, text, pattern) ? 1 : 0)
    }
    let functions: [(SQLExpression, ExpressionFunction, CaseMapping?)] = [
      (uppercase, .uppercase, .uppercase), (lowercase, .lowercase, .lowercase), (length, .length, nil),
      (canonical, .canonical, nil),
    ]
    for (name, function, mapping) in functions {
      try connection.registerFailingFunction(name.text, argumentCount: 1, isDeterministic: true, mapping: mapping) {
        values in
        try StorageForm.plain(TextFunction.apply(function, value(values[0])))
      }
    }
    let patterns = PatternCache()
    try register(matches, 5, on: connection) { values in
      guard case .text(let text) = values[0], case .text(let pattern) = values[1], case .integer(let flags) = values[2]
      else { return .null }
      let comparison = Comparison(
        .selfObject, .matches, .selfObject, ignoresCase: flags & 1 != 0, ignoresDiacritics: flags & 2 != 0)
      return .boolean(try TextFunction.holds(comparison, text, pattern, patterns: patterns))
    }
  }

  private static func registerNumbers(on connection: Connection) throws(SQLiteError) {
    try register(arithmetic, 5, on: connection) { values in
      guard case .text(let name) = values[0], let operation = ArithmeticOperator(rawValue: name) else { return .null }
      return try Arithmetic.apply(operation, value(values[1]), value(values[2]))
    }
    try register(number, 4, on: connection) { values in
      guard case .text(let name) = values[0], let function = ExpressionFunction(rawValue: name) else { return .null }
      return try Arithmetic.apply(function, value(values[1]))
    }
    try register(modulus, 4, on: connection) { values in try Arithmetic.modulus(value(values[0]), value(values[1])) }
    try register(bits, 5, on: connection) { values in
      guard case .text(let name) = values[0], let function = ExpressionFunction(rawValue: name) else { return .null }
      return try Arithmetic.bits(function, value(values[1]), value(values[2]))
    }
    try registerSum(sum, on: connection) { sum in try sum.sum() }
    try registerSum(average, on: connection) { sum in try sum.average() }
  }

  /// A sum over rows. An overflow is noticed only at the end, so the first term's row is kept for the error.
  private static func registerSum(
    _ name: SQLExpression, on connection: Connection, _ result: @escaping (ValueSum) throws -> ExpressionValue
  ) throws(SQLiteError) {
    try connection.registerAggregate(
      name.text, argumentCount: 3, start: { (sum: ValueSum(), site: [SQLiteValue]()) },
      step: { state, values in
        if state.site.isEmpty { state.site = values }
        do {
          try state.sum.add(value(values[0]))
        } catch let error as HopdError {
          throw error.located(place(values))
        }
      },
      finish: { state in try named(state.site) { try result(state.sum) } })
  }

  private static func registerConversions(on connection: Connection) throws(SQLiteError) {
    try register(cast, 5, on: connection) { values in
      guard case .text(let name) = values[0], let target = CastTarget(rawValue: name) else { return .null }
      return try ValueCast.apply(target, to: value(values[2], isUUID: values[1] == .integer(1)))
    }
    try connection.registerFailingFunction(store.text, argumentCount: 5, isDeterministic: true) { values in
      guard case .integer(let number) = values[0], let type = AttributeType(rawValue: Int(clamping: number)) else {
        return .null
      }
      do {
        return try StorageForm.stored(value(values[2], isUUID: values[1] == .integer(1)), as: type)
      } catch let error as HopdError {
        throw error.located(place(values))
      }
    }
  }

  /// The kind of a getter's operand: in SQL, numbers of Float attributes and dates look like other numbers.
  enum GetterOperand: Int64 {
    case plain, uuid, date, float
  }

  private static func registerGetter(on connection: Connection) throws(SQLiteError) {
    try register(getter, 5, on: connection) { values in
      guard case .text(let name) = values[0], let getter = ValueGetter(rawValue: name),
        case .integer(let number) = values[1], let operand = GetterOperand(rawValue: number)
      else { return .null }
      var operandValue = value(values[2], isUUID: operand == .uuid)
      if operand == .date, let seconds = operandValue.asDouble { operandValue = .date(seconds) }
      return try GetterValue.apply(getter, to: operandValue, isFloat: operand == .float)
    }
  }

  /// Registers a function of values that may fail.
  private static func register(
    _ function: SQLExpression, _ argumentCount: Int32, on connection: Connection,
    _ body: @escaping ([SQLiteValue]) throws -> ExpressionValue
  ) throws(SQLiteError) {
    try connection.registerFailingFunction(function.text, argumentCount: argumentCount, isDeterministic: true) {
      values in
      try named(values) { try body(values) }
    }
  }

  /// Runs `body` and adds to its errors the place from the last two arguments.
  private static func named(
    _ values: [SQLiteValue], _ body: () throws -> ExpressionValue
  ) throws -> SQLiteValue {
    do {
      return try StorageForm.plain(try body())
    } catch let error as HopdError {
      throw error.located(place(values))
    }
  }

  /// The place in the last two arguments: "Entity.property" and the row's key.
  private static func place(_ values: [SQLiteValue]) -> Place {
    guard values.count >= 2, case .text(let site) = values[values.count - 2] else { return Place() }
    let parts = site.split(separator: ".", maxSplits: 1).map(String.init)
    let key: Int64? = if case .integer(let key)? = values.last { key } else { nil }
    return Place(entity: parts.first, property: parts.count > 1 ? parts[1] : nil, row: key)
  }

  /// Returns an argument from SQL as a value: texts as texts, numbers as numbers.
  private static func value(_ stored: SQLiteValue, isUUID: Bool = false) -> ExpressionValue {
    switch stored {
    case .null: .null
    case .integer(let value): .integer(value)
    case .real(let value): Arithmetic.number(value)
    case .text(let text): .string(text)
    case .blob(let bytes): isUUID && bytes.count == 16 ? .uuid(bytes) : .data(bytes)
    }
  }
}
