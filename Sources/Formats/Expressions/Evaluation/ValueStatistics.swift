// median:, mode: and stddev: of a collection's values (docs/formats/expressions.md, "Functions"). None depends on the
// order of the values; nil is ignored.

import Diagnostics

/// Statistics of numbers.
enum ValueStatistics {
  /// Returns the middle value, or the mean of the two in the middle; nil if there are none.
  static func median(_ values: [ExpressionValue]) throws(HopdError) -> ExpressionValue {
    let sorted = try sorted(values)
    guard !sorted.isEmpty else { return .null }
    let upper = sorted[sorted.count / 2]
    let lower = sorted[(sorted.count - 1) / 2]
    if case .decimal = upper { return try mean(lower, upper) }
    if case .decimal = lower { return try mean(lower, upper) }
    guard let one = lower.asDouble, let other = upper.asDouble else { return .null }
    return Arithmetic.number(sorted.count % 2 == 1 ? one : (one + other) / 2)
  }

  private static func mean(_ one: ExpressionValue, _ other: ExpressionValue) throws(HopdError) -> ExpressionValue {
    try Arithmetic.apply(.divide, Arithmetic.apply(.add, one, other), .integer(2))
  }

  /// Returns the most frequent values, each once, in ascending order.
  static func mode(_ values: [ExpressionValue]) throws(HopdError) -> [ExpressionValue] {
    var runs: [(value: ExpressionValue, count: Int)] = []
    for value in try sorted(values) {
      if let last = runs.last, last.value == value {
        runs[runs.count - 1].count += 1
      } else {
        runs.append((value, 1))
      }
    }
    let most = runs.map(\.count).max() ?? 0
    return runs.filter { $0.count == most }.map(\.value)
  }

  /// Returns the standard deviation of the values as a whole population; nil if there are none.
  static func standardDeviation(_ values: [ExpressionValue]) throws(HopdError) -> ExpressionValue {
    let numbers = try sorted(values).compactMap(\.asDouble)
    guard !numbers.isEmpty else { return .null }
    var sum = ValueSum()
    for number in numbers { try sum.add(.double(number)) }
    guard let mean = try sum.average().asDouble else { return .null }
    var squares = ValueSum()
    for number in numbers { try squares.add(.double((number - mean) * (number - mean))) }
    guard let variance = try squares.average().asDouble else { return .null }
    return Arithmetic.number(variance.squareRoot())
  }

  private static func sorted(_ values: [ExpressionValue]) throws(HopdError) -> [ExpressionValue] {
    let numbers = values.filter { !$0.isNull }
    for number in numbers where number.asDouble == nil {
      throw .mismatch("a member of a collection is not a number")
    }
    return numbers.sorted { ($0.order($1) ?? 0) < 0 }
  }
}
