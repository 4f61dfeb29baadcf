// The two functions that rules need and SQLite lacks: NSString's length, and a pattern over a whole text.

import Diagnostics
import Expressions
import PersistentStore
import SQLite

/// Functions of `ValidationRule`'s conditions.
enum ValidationFunctions {
  /// Registers them; done again, it replaces them.
  static func register(on connection: Connection) throws(SQLiteError) {
    try connection.registerFunction(ValidationRule.lengthFunction, argumentCount: 1) { values in
      guard case .text(let text)? = values.first else { return .null }
      return .integer(Int64(text.utf16.count))
    }
    // One hop has few patterns and asks for each of them many times.
    var patterns: [String: Regex<AnyRegexOutput>] = [:]
    try connection.registerFailingFunction(ValidationRule.matchesFunction, argumentCount: 2) { values in
      guard values.count == 2, case .text(let text) = values[0], case .text(let pattern) = values[1] else {
        return .null
      }
      if patterns[pattern] == nil { patterns[pattern] = try regex(pattern) }
      guard let regex = patterns[pattern] else { return .null }
      return .integer(try regex.wholeMatch(in: text) == nil ? 0 : 1)
    }
  }

  /// A pattern of a model; ICU's and Swift's languages agree on what models mostly hold, and the rest is refused.
  private static func regex(_ pattern: String) throws(HopdError) -> Regex<AnyRegexOutput> {
    do {
      return try Regex(pattern)
    } catch {
      throw HopdError(
        .invalidRows, "a regular expression of the model cannot be read", cause: error,
        hint: "write it without what only ICU knows (possessive quantifiers, named sets)")
    }
  }
}
