// Functions on text, and the string operators with their modifiers: shared by the evaluator and the functions that SQL
// calls.

import Diagnostics

/// Functions on text.
enum TextFunction {
  /// Applies uppercase: or lowercase: with Unicode's full mapping and no locale, length: in UTF-16 units, or
  /// canonical:.
  static func apply(_ function: ExpressionFunction, _ value: ExpressionValue) throws(HopdError) -> ExpressionValue {
    if value.isNull { return .null }
    guard case .string(let text) = value else {
      throw .mismatch("\(function.rawValue) is used on a value that is not a text")
    }
    switch function {
    case .uppercase: return .string(text.uppercased())
    case .lowercase: return .string(lowercased(text))
    case .canonical: return .string(TextFolding.canonical(text))
    default: return .integer(Int64(text.utf16.count))
    }
  }

  /// Returns the text in lower case. A capital sigma at the end of a word becomes a final one (Unicode, SpecialCasing),
  /// which the standard library omits.
  private static func lowercased(_ text: String) -> String {
    guard text.unicodeScalars.contains("\u{3a3}") else { return text.lowercased() }
    let scalars = Array(text.unicodeScalars)
    // For each position, from the end: whether a cased letter follows, after any case-ignorable characters.
    var isFollowed = [Bool](repeating: false, count: scalars.count)
    var state = false
    for index in scalars.indices.reversed() {
      isFollowed[index] = state
      let properties = scalars[index].properties
      if !properties.isCaseIgnorable { state = properties.isCased }
    }
    var result = ""
    var isPreceded = false
    for (index, scalar) in scalars.enumerated() {
      let properties = scalar.properties
      if scalar == "\u{3a3}" {
        result.unicodeScalars.append(isPreceded && !isFollowed[index] ? "\u{3c2}" : "\u{3c3}")
      } else {
        result.unicodeScalars.append(contentsOf: properties.lowercaseMapping.unicodeScalars)
      }
      if !properties.isCaseIgnorable { isPreceded = properties.isCased }
    }
    return result
  }

  /// concat: joins the texts; nil if one of them is nil.
  static func concatenate(_ values: [ExpressionValue]) throws(HopdError) -> ExpressionValue {
    var result = ""
    var hasNull = false
    for value in values {
      switch value {
      case .null: hasNull = true
      case .string(let text): result += text
      default: throw .mismatch("\(ExpressionFunction.concatenate.rawValue) is used on a value that is not a text")
      }
    }
    return hasNull ? .null : .string(result)
  }

  /// Whether a string operator is true. MATCHES handles case itself, because folding would change the pattern's
  /// classes.
  static func holds(
    _ comparison: Comparison, _ text: String, _ pattern: String, patterns: PatternCache
  ) throws(HopdError) -> Bool {
    let (case_, marks) = (comparison.ignoresCase, comparison.ignoresDiacritics)
    if comparison.operation == .matches {
      guard !pattern.isEmpty else { return false }
      func folded(_ text: String) -> String {
        marks ? TextFolding.simplyFolded(text, ignoringCase: false, ignoringDiacritics: true) : text
      }
      return try patterns.pattern(folded(pattern), ignoringCase: case_).matches(folded(text))
    }
    return TextComparison.holds(comparison.operation, comparison.folded(text), comparison.folded(pattern))
  }
}

extension Comparison {
  /// Whether the modifiers change any text.
  var folds: Bool { ignoresCase || ignoresDiacritics }

  /// Returns the text folded according to the modifiers.
  func folded(_ text: String) -> String {
    guard folds else { return text }
    return operation == .like
      ? TextFolding.simplyFolded(text, ignoringCase: ignoresCase, ignoringDiacritics: ignoresDiacritics)
      : TextFolding.fold(text, ignoringCase: ignoresCase, ignoringDiacritics: ignoresDiacritics)
  }

  /// The modifiers as the argument of `hopd_fold`: 1 for case, 2 for diacritics, 4 for one character per character.
  var foldFlags: Int { (ignoresCase ? 1 : 0) + (ignoresDiacritics ? 2 : 0) + (operation == .like ? 4 : 0) }
}
