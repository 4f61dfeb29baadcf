// Arithmetic on values (docs/formats/expressions.md, "Arithmetic"), the same for the evaluator and for the functions
// that SQL calls: integers are checked, decimals stay decimal, and NaN becomes nil because SQLite can store it only as
// NULL.

import Diagnostics

#if canImport(Glibc)
  import Glibc
#endif

/// The arithmetic of expressions.
enum Arithmetic {
  /// `+ - * / **`; nil on either side gives nil.
  static func apply(
    _ operation: ArithmeticOperator, _ left: ExpressionValue, _ right: ExpressionValue
  ) throws(HopdError) -> ExpressionValue {
    if left.isNull || right.isNull { return .null }
    let one = try double(left, operation.rawValue)
    let other = try double(right, operation.rawValue)
    if operation == .power { return number(pow(one, other)) }
    switch (left, right) {
    case (.decimal, .double), (.double, .decimal), (.decimal, _), (_, .decimal):
      if let result = try decimal(operation, left, right) { return result }
    default: break
    }
    if let one = left.asInteger, let other = right.asInteger {
      return .integer(try integers(operation, one, other))
    }
    let result: Double
    switch operation {
    case .add: result = one + other
    case .subtract: result = one - other
    case .multiply: result = one * other
    case .divide:
      guard other != 0 else { throw .divisionByZero() }
      result = one / other
    case .power: result = pow(one, other)
    }
    // A date and an interval give a date; two dates give the interval between them.
    switch (left, right, operation) {
    case (.date, .date, .subtract): return number(result)
    case (.date, _, .add), (.date, _, .subtract), (_, .date, .add): return result.isNaN ? .null : .date(result)
    default: return number(result)
    }
  }

  private static func double(_ value: ExpressionValue, _ operation: String) throws(HopdError) -> Double {
    guard let double = value.asDouble else { throw .mismatch("\(operation) is used on a value that is not a number") }
    return double
  }

  private static func integers(
    _ operation: ArithmeticOperator, _ left: Int64, _ right: Int64
  ) throws(HopdError) -> Int64 {
    let (result, overflow): (Int64, Bool)
    switch operation {
    case .add: (result, overflow) = left.addingReportingOverflow(right)
    case .subtract: (result, overflow) = left.subtractingReportingOverflow(right)
    case .multiply: (result, overflow) = left.multipliedReportingOverflow(by: right)
    case .divide, .power:
      guard right != 0 else { throw .divisionByZero() }
      (result, overflow) = left.dividedReportingOverflow(by: right)
    }
    guard !overflow else { throw .overflow("64 bits") }
    return result
  }

  /// Returns nil if a side is infinite or too large for a decimal: then doubles are used.
  private static func decimal(
    _ operation: ArithmeticOperator, _ left: ExpressionValue, _ right: ExpressionValue
  ) throws(HopdError) -> ExpressionValue? {
    guard let one = decimal(left), let other = decimal(right) else { return nil }
    let result: DecimalNumber?
    switch operation {
    case .add: result = one.adding(other)
    case .subtract: result = one.subtracting(other)
    case .multiply: result = one.multiplied(by: other)
    case .divide, .power:
      guard !other.isZero else { throw .divisionByZero() }
      result = one.divided(by: other)
    }
    guard let result else { throw .overflow("a decimal number") }
    return .decimal(result)
  }

  /// Returns the number as a decimal.
  static func decimal(_ value: ExpressionValue) -> DecimalNumber? {
    switch value {
    case .boolean(let value): DecimalNumber(value ? 1 : 0)
    case .integer(let value): DecimalNumber(value)
    case .double(let value), .date(let value): DecimalNumber(value)
    case .decimal(let value): value
    default: nil
    }
  }

  /// Returns a double as a value; NaN becomes nil.
  static func number(_ value: Double) -> ExpressionValue { value.isNaN ? .null : .double(value) }

  /// Unary minus.
  static func negate(_ value: ExpressionValue) throws(HopdError) -> ExpressionValue {
    switch value {
    case .null: return .null
    case .double(let value): return number(-value)
    case .decimal(let value): return .decimal(value.negated)
    default: return try apply(.subtract, .integer(0), value)
    }
  }

  /// Functions of one number: abs, ceiling, floor, trunc, and the functions of reals.
  static func apply(_ function: ExpressionFunction, _ value: ExpressionValue) throws(HopdError) -> ExpressionValue {
    if value.isNull { return .null }
    if function.isOfReals {
      let real = try double(value, function.rawValue)
      return switch function {
      case .squareRoot: number(real.squareRoot())
      case .logarithm: number(log10(real))
      case .naturalLogarithm: number(log(real))
      default: number(exp(real))
      }
    }
    if let integer = value.asInteger {
      guard function == .absolute else { return .integer(integer) }
      guard integer != .min else { throw .overflow("64 bits") }
      return .integer(abs(integer))
    }
    if case .decimal(let decimal) = value {
      let result: DecimalNumber? =
        switch function {
        case .absolute: decimal.magnitude
        case .ceiling: decimal.ceiling
        case .floor: decimal.floor
        default: decimal.truncated
        }
      guard let result else { throw .overflow("a decimal number") }
      return .decimal(result)
    }
    let real = try double(value, function.rawValue)
    return switch function {
    case .absolute: number(real.magnitude)
    case .ceiling: number(real.rounded(.up))
    case .floor: number(real.rounded(.down))
    default: number(real.rounded(.towardZero))
    }
  }

  /// Bit operations on 64-bit integers. `right` is not used for the complement.
  static func bits(
    _ function: ExpressionFunction, _ left: ExpressionValue, _ right: ExpressionValue
  ) throws(HopdError) -> ExpressionValue {
    if left.isNull || right.isNull { return .null }
    guard let one = left.asInteger, let other = right.asInteger else {
      throw .mismatch("\(function.rawValue) is used on a value that is not an integer")
    }
    switch function {
    case .bitwiseAnd: return .integer(one & other)
    case .bitwiseOr: return .integer(one | other)
    case .bitwiseXor: return .integer(one ^ other)
    case .onesComplement: return .integer(~one)
    default:
      // C leaves shifts by more bits than the type has undefined.
      guard (0...63).contains(other) else { throw .overflow("a shift by 0 to 63 bits") }
      return .integer(function == .leftShift ? one << other : one >> other)
    }
  }

  /// `modulus:by:`: the remainder has the sign of the left side.
  static func modulus(_ left: ExpressionValue, _ right: ExpressionValue) throws(HopdError) -> ExpressionValue {
    if left.isNull || right.isNull { return .null }
    if let one = left.asInteger, let other = right.asInteger {
      guard other != 0 else { throw .divisionByZero() }
      // The smallest integer divided by -1 has a quotient that does not fit, and the remainder 0.
      return .integer(one.remainderReportingOverflow(dividingBy: other).partialValue)
    }
    let name = ExpressionFunction.modulus.rawValue
    let (one, other) = (try double(left, name), try double(right, name))
    guard other != 0 else { throw .divisionByZero() }
    return number(one.truncatingRemainder(dividingBy: other))
  }
}

extension ExpressionFunction {
  /// Whether the function makes a double of any number.
  var isOfReals: Bool {
    switch self {
    case .squareRoot, .logarithm, .naturalLogarithm, .exponential: true
    default: false
    }
  }
}

/// A sum that does not depend on the order of its terms, so rows may be read in any order: integers are added in 128
/// bits, doubles without rounding until the end (Shewchuk's partial sums).
struct ValueSum {
  private var integers: Int128 = 0
  private var partials: [Double] = []
  private var special: Double?
  private var decimals: DecimalNumber?
  private var hasDouble = false
  private(set) var count = 0

  /// Adds a term; nil counts as 0.
  mutating func add(_ value: ExpressionValue) throws(HopdError) {
    count += 1
    switch value {
    case .null: break
    case .boolean(let value): integers += value ? 1 : 0
    case .integer(let value): integers += Int128(value)
    case .double(let value), .date(let value):
      hasDouble = true
      add(value)
    case .decimal(let value):
      guard let sum = (decimals ?? DecimalNumber(0)).adding(value) else { throw .overflow("a decimal number") }
      decimals = sum
    default: throw .mismatch("a sum or an average has a member that is not a number")
    }
  }

  private mutating func add(_ term: Double) {
    guard term.isFinite else {
      special = (special ?? 0) + term
      return
    }
    var term = term
    var kept = 0
    for partial in partials {
      let (large, small) = term.magnitude < partial.magnitude ? (partial, term) : (term, partial)
      let high = large + small
      guard high.isFinite else {
        // Out of the range of doubles: the infinity stays, as it would in a plain sum.
        special = (special ?? 0) + high
        return
      }
      let low = small - (high - large)
      if low != 0 {
        partials[kept] = low
        kept += 1
      }
      term = high
    }
    partials.removeSubrange(kept...)
    partials.append(term)
  }

  /// The partial sums, rounded once.
  private var real: Double {
    if let special { return special }
    var rest = partials
    guard var high = rest.popLast() else { return 0 }
    var low = 0.0
    while let next = rest.popLast() {
      let before = high
      high = before + next
      low = next - (high - before)
      if low != 0 { break }
    }
    // Halfway between two doubles, the lower partial sums decide.
    if let next = rest.last, (low < 0 && next < 0) || (low > 0 && next > 0) {
      let twice = low * 2
      let other = high + twice
      if twice == other - high { high = other }
    }
    return high
  }

  /// Returns the sum; 0 if there are no terms.
  func sum() throws(HopdError) -> ExpressionValue {
    if let decimals {
      guard let integers = DecimalNumber("\(integers)"),
        let sum = DecimalNumber(real).flatMap({ decimals.adding($0)?.adding(integers) })
      else { throw .overflow("a decimal number") }
      return .decimal(sum)
    }
    if hasDouble {
      var sum = self
      sum.add(Double(integers))
      return Arithmetic.number(sum.real)
    }
    guard let sum = Int64(exactly: integers) else { throw .overflow("64 bits") }
    return .integer(sum)
  }

  /// Returns the average; nil if there are no terms.
  func average() throws(HopdError) -> ExpressionValue {
    if count == 0 { return .null }
    if decimals != nil { return try Arithmetic.apply(.divide, sum(), .integer(Int64(count))) }
    var sum = self
    sum.add(Double(integers))
    return Arithmetic.number(sum.real / Double(count))
  }
}
