// Functions on text, and the string operators with their modifiers: what the evaluator and the functions that SQL calls
// share.

import Diagnostics

/// Functions on text.
enum TextFunction {
  /// uppercase:, lowercase: with Unicode's full mapping and no locale; length: in UTF-16 units.
  static func apply(_ function: ExpressionFunction, _ value: ExpressionValue) throws(HopdError) -> ExpressionValue {
    if value.isNull { return .null }
    guard case .string(let text) = value else {
      throw .mismatch("\(function.rawValue) is used on a value that is no text")
    }
    switch function {
    case .uppercase: return .string(text.uppercased())
    case .lowercase: return .string(text.lowercased())
    default: return .integer(Int64(text.utf16.count))
    }
  }

  /// concat: the texts behind one another; nil where one of them is nil.
  static func concatenate(_ values: [ExpressionValue]) throws(HopdError) -> ExpressionValue {
    var result = ""
    var hasNull = false
    for value in values {
      switch value {
      case .null: hasNull = true
      case .string(let text): result += text
      default: throw .mismatch("\(ExpressionFunction.concatenate.rawValue) is used on a value that is no text")
      }
    }
    return hasNull ? .null : .string(result)
  }

  /// Does a string operator hold? MATCHES knows case itself, as folding would change the pattern's classes.
  static func holds(
    _ comparison: Comparison, _ text: String, _ pattern: String, patterns: PatternCache
  ) throws(HopdError) -> Bool {
    let (case_, marks) = (comparison.ignoresCase, comparison.ignoresDiacritics)
    if comparison.operation == .matches {
      guard !pattern.isEmpty else { return false }
      let folded = marks ? TextFolding.fold(text, ignoringCase: false, ignoringDiacritics: true) : text
      let expression = marks ? TextFolding.fold(pattern, ignoringCase: false, ignoringDiacritics: true) : pattern
      return try patterns.pattern(expression, ignoringCase: case_).matches(folded)
    }
    guard case_ || marks else { return TextComparison.holds(comparison.operation, text, pattern) }
    return TextComparison.holds(
      comparison.operation, TextFolding.fold(text, ignoringCase: case_, ignoringDiacritics: marks),
      TextFolding.fold(pattern, ignoringCase: case_, ignoringDiacritics: marks))
  }
}
